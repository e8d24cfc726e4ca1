#!/bin/sh
# aarch64_wheel.sh CACHE PYTHON: the wheel in CACHE/dist, installed with pip by an AArch64 Python into a clean environment, runs the demo.
# That Python is Debian's (apt is asked for another architecture's packages, in directories of its own); qemu-user runs it. Both are
# kept in CACHE, as are the wheels the demo needs.
set -eu
unset TEGRARM_LIB  # the wheel has its own
cache=$1 host_python=$2 here=$(dirname "$0")
root=$cache/root demo=$(cd "$here/../.." && pwd)/examples/python/demo.py

# --- Python -------------------------------------------------------------------------------------------------------
if [ ! -e "$cache/.unpacked" ]; then
    apt=$cache/apt
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/debs" "$root"
    : > "$apt/status"
    cat > "$apt/conf" <<CONF
APT::Architecture "arm64"; APT::Architectures { "arm64"; }; APT::Sandbox::User "root";
Dir::State "$apt/state"; Dir::State::status "$apt/status"; Dir::Cache "$apt/cache"; Acquire::Languages "none";
CONF
    export APT_CONFIG="$apt/conf"
    apt-get update -q
    version=$(apt-cache depends python3-minimal | sed -n 's/.*Depends: python\(3\.[0-9]*\)-minimal.*/\1/p' | head -1)
    (cd "$apt/debs" && apt-get download -q "python$version-minimal" "libpython$version-minimal" "libpython$version-stdlib" \
        libc6 libgcc-s1 libstdc++6 zlib1g libexpat1 libffi8 libssl3 libbz2-1.0 liblzma5 libuuid1 libsqlite3-0 libatomic1 python3-pip-whl)
    for package in "$apt"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done
    unset APT_CONFIG
    touch "$cache/.unpacked"
fi
python=$(ls "$root"/usr/bin/python3.*)
version=${python##*/python}
run() { qemu-aarch64-static -L "$root" "$@"; }

# --- the wheel, in a clean environment ----------------------------------------------------------------------------
rm -rf "$cache/venv"
run "$python" -m venv --without-pip "$cache/venv"
python=$cache/venv/bin/python$version
site=$(run "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
run "$python" "$(ls "$root"/usr/share/python-wheels/pip-*.whl)"/pip install --quiet --no-deps --no-index --disable-pip-version-check \
    "$cache"/dist/tegrarm-*_aarch64.whl

# --- what the demo needs beside it: unpacked by this machine's pip, which is quicker ---------------------------------
needed=$(sed -n '/^\(numpy\|tinygrad\|nvidia-cuda-nvrtc\|nvidia-cuda-runtime\)/{s/;.*//;p;}' "$here/../requirements-demo.txt")
platforms=$(for glibc in 17 27 28 34; do printf ' --platform manylinux_2_%s_aarch64' $glibc; done)
# shellcheck disable=SC2086
"$host_python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --target "$cache/needed" --upgrade \
    --python-version "$version" $platforms --platform manylinux2014_aarch64 $needed
cp -r "$cache/needed/." "$site"

cd "$cache"
where=$(run "$python" -c 'import platform, tegrarm._ffi as f; print(platform.machine(), f.find())')
case "$where" in "aarch64 $cache/venv/"*) ;; *) echo "not the wheel's library: $where"; exit 1;; esac
TEGRARM_BACKEND=sim run "$python" "$demo" > demo.out
grep -q '\[5 7 9\]' demo.out && grep -q 'ran on virtual Orin' demo.out
echo "aarch64 wheel: installed with pip by Python $version on $(run "$python" -c 'import platform; print(platform.machine())'), the demo ran"
