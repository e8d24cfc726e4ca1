#!/bin/sh
# glibc.sh CACHE ARCHITECTURE TARGET PYTHON: the C tests, linked with the libraries of TARGET/release, on Debian 11's glibc 2.31.
# Debian 11 is unpacked into CACHE by apt, in directories of its own; PYTHON has the zig that links the tests. Without the
# packages it says so, and nothing is tested.
set -eu
export TEGRARM_BACKEND=sim
mkdir -p "$1"
cache=$1/$2 arch=$2 target=$3 zig="'$4' -m ziglang"
here=$(cd "$(dirname "$0")" && pwd) root=$1/$2/root

# --- Debian 11 ----------------------------------------------------------------------------------------------------
unpack() {
    apt=$cache/apt
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/debs" "$apt/parts" "$root"
    : > "$apt/status"
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    # Where this machine has its own Debian from.
    for mirror in $(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | sort -u); do
        echo "deb [signed-by=$keyring] $mirror bullseye main" > "$apt/sources.list"
        cat > "$apt/conf" <<CONF
APT::Architecture "$arch"; APT::Architectures { "$arch"; }; APT::Sandbox::User "root"; Acquire::Check-Valid-Until "false";
Dir::State "$apt/state"; Dir::State::status "$apt/status"; Dir::Cache "$apt/cache"; Acquire::Languages "none";
Dir::Etc::sourcelist "$apt/sources.list"; Dir::Etc::sourceparts "$apt/parts";
CONF
        if APT_CONFIG=$apt/conf apt-get update -q --error-on=any \
            && (cd "$apt/debs" && APT_CONFIG=$apt/conf apt-get download -q libc6 libgcc-s1); then
            for package in "$apt"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
            touch "$cache/.unpacked"
            return
        fi
    done
    return 1
}
if [ ! -e "$cache/.unpacked" ] && ! unpack > "$1/$2.log" 2>&1; then
    echo "glibc $arch: SKIPPED, Debian 11's packages cannot be had (see $1/$2.log)"
    exit 0
fi
case $arch in
    amd64) gnu=x86_64-linux-gnu under= ;;
    arm64) gnu=aarch64-linux-gnu under=qemu-aarch64-static ;;
esac
libraries=$root/lib/$gnu:$target/release
run() { $under "$root/lib/$gnu/ld-2.31.so" --library-path "$libraries" "$@"; }

# --- the tests ----------------------------------------------------------------------------------------------------
echo "glibc $arch: $(run "$root/lib/$gnu/libc.so.6" | sed -n 1p)"
ln -sf libtegrarm.so "$target/release/libtegrarm.so.0"
# Without the C++ program: this machine's compiler makes it for this machine's glibc, and zig links a C++ library into it that no shared
# library can ask how many exceptions there are.
make --no-print-directory -C "$here/../../ctests" CARGO_TARGET_DIR="$target" CC="$zig cc -target $gnu.2.31 -UNDEBUG -fno-sanitize=all" \
    CXX_PROGRAMS= \
    RUN="$under '$root/lib/$gnu/ld-2.31.so' --library-path '$libraries'" plain
# The preload library, below the same loader; and the simulator says who it is.
LD_PRELOAD= $under "$root/lib/$gnu/ld-2.31.so" --preload "$target/release/libtegrarm_preload.so" --library-path "$libraries" \
    "$target/ctests/channel" > /dev/null
run "$target/release/tegrarm-sim" --version
echo "glibc $arch: the C tests, the preload library and the simulator ran"
