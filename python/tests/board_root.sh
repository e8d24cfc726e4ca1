#!/bin/sh
# board_root.sh DIRECTORY SUITE DIST [ARCHITECTURE]: the commands that docs/boards.md prints under "Two files", as they are printed, on a bare
# system: from the Debian package in DIST to the demo on the virtual Orin, by a user of no rights.
#
# SUITE is a release of Ubuntu or Debian: focal, jammy and noble are those of JetPack 5, 6 and 7. It is unpacked into DIRECTORY by debootstrap, which
# needs root. ARCHITECTURE is Debian's word (amd64, arm64), and this computer's when left out. The programs of another one run under qemu-user, which
# takes an hour. Where python3 is older than tinygrad wants, the commands for JetPack 6 or 5 take the place of some lines. Those for JetPack 5 fetch
# a Python: without a network for that, NEWER_PYTHON names one in the root that takes its place, and the output says so; NEWER_PYTHON=build compiles
# it there from the source of Debian 12. MIRROR names another mirror than this machine's own; Ubuntu has another one for arm64 (ports.ubuntu.com)
# than for amd64.
set -eu
[ $# = 3 ] || [ $# = 4 ] || { sed -n '2,3p' "$0"; exit 2; }
[ "$(id -u)" = 0 ] && command -v debootstrap > /dev/null || { echo "board root: SKIPPED, this needs root and debootstrap"; exit 0; }
# A mount namespace of its own: what is mounted below ends with it.
[ -n "${BOARD_ROOT:-}" ] || BOARD_ROOT=1 exec unshare --mount "$0" "$@"
mkdir -p "$1"
architecture=${4:-$(dpkg --print-architecture)} suite=$2
case $architecture in
    amd64) machine=x86_64 ;;
    arm64) machine=aarch64 ;;
    *) echo "board root: the architecture is $architecture, and packages are made for amd64 and arm64"; exit 2 ;;
esac
name=$suite-$architecture
[ "$machine" != "$(uname -m)" ] || name=$suite
work=$(cd "$1" && pwd) dist=$(cd "$3" && pwd)
tree=$(cd "$(dirname "$0")/../.." && pwd)
say() { printf 'board root: %s: %s\n' "$name" "$*"; }

# --- programs of another architecture -----------------------------------------------------------------------------
# The kernel starts qemu for them if binfmt_misc has an entry. If this machine has none, it is ours, and goes at the end. Debian's entry lacks
# the flag C, without which sudo under qemu would not be root.
if [ "$machine" != "$(uname -m)" ]; then
    formats=/proc/sys/fs/binfmt_misc entry=/usr/lib/binfmt.d/qemu-$machine.conf
    [ -e "$entry" ] || { say "SKIPPED, there is no $entry: apt install qemu-user-static"; exit 0; }
    [ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats || { say "SKIPPED, this kernel has no binfmt_misc"; exit 0; }
    own=tegrarm-$machine-$$
    trap 'echo -1 > $formats/$own' EXIT
    trap 'exit 130' INT TERM
    sed "s/^:[^:]*:/:$own:/; s/:[A-Z]*\$/:OCPF/" "$entry" > $formats/register
fi

# --- the system ---------------------------------------------------------------------------------------------------
root=$work/$name
if [ ! -e "$root/.complete" ]; then
    origin=Debian components=main scripts=/usr/share/debootstrap/scripts like=sid
    case $suite in focal|jammy|noble) origin=Ubuntu components=main,universe like=gutsy ;; esac
    mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Origin: $origin" "Label: $origin" | sort -u | head -n 1)}
    if [ "$origin $architecture" = "Ubuntu arm64" ]; then
        mirror=${MIRROR:-http://ports.ubuntu.com/ubuntu-ports}
        /usr/lib/apt/apt-helper -o Acquire::Retries=0 -o Acquire::http::Timeout=20 download-file "$mirror/dists/$suite/Release" "$work/$name.release" \
            > "$work/$name.log" 2>&1 || { say "$mirror cannot be reached: MIRROR must name a mirror of Ubuntu's ports"; exit 1; }
    fi
    [ -n "$mirror" ] || { say "this machine's sources have no $origin: MIRROR must name one"; exit 1; }
    say "unpacking it"
    rm -rf "$root"
    # A debootstrap that is older than the release does not know its name. All releases of a distribution are unpacked alike.
    debootstrap --arch=$architecture --variant=minbase --components=$components \
        --include=python3,python3-venv,python3-pip,ca-certificates,sudo,gcc,libc6-dev \
        "$suite" "$root" "$mirror" "$([ -e "$scripts/$suite" ] || echo "$scripts/$like")" > "$work/$name.log" 2>&1 \
        || { say "debootstrap failed, see $work/$name.log"; exit 1; }
    touch "$root/.complete"
fi
# An installed system has the release's updates, too.
grep -q -- -updates "$root/etc/apt/sources.list" || sed -i "1{p;s/ $suite / $suite-updates /}" "$root/etc/apt/sources.list"
# How this machine reaches registries: names, certificates, pip's own configuration.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || cp -L "$file" "$root$file"
done
for directory in /proc /dev /sys; do mount --rbind "$directory" "$root$directory"; done
links=${PIP_FIND_LINKS:-}
[ ! -d "$links" ] || { mkdir -p "$root$links"; mount --bind "$links" "$root$links"; }
environment="LANG=C.UTF-8 TEGRARM_BACKEND=sim USER=owner HOME=/srv/owner"
for variable in http_proxy https_proxy no_proxy SSL_CERT_FILE PIP_CERT PIP_INDEX_URL PIP_FIND_LINKS PIP_DEFAULT_TIMEOUT; do
    eval "value=\${$variable:-}"
    [ -z "$value" ] || environment="$environment $variable=$value"
done

# A Python 3.11 of the root's own glibc, in /opt/python.
build_python() {
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sort -u | head -n 1)
    source=pool/main/p/python3.11/python3.11_3.11.2.orig.tar.gz hash=2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849
    say "compiling Python from Debian's source"
    rm -rf "$root/opt/python" "$root/opt/Python-3.11.2"
    { /usr/lib/apt/apt-helper download-file "$mirror$source" "$root/opt/python.tar.gz" "SHA256:$hash" && tar -C "$root/opt" -xf "$root/opt/python.tar.gz" \
        && chroot "$root" apt-get install -q -y make zlib1g-dev libffi-dev libssl-dev \
        && chroot "$root" sh -ec 'cd /opt/Python-3.11.2; ./configure -q --prefix=/opt/python --disable-test-modules; make -s -j"$(nproc)" install' \
        && rm -r "$root/opt/python.tar.gz" "$root/opt/Python-3.11.2"; } > "$work/$name.python.log" 2>&1 \
        || { say "no Python was made, see $work/$name.python.log"; exit 1; }
}

chroot "$root" apt-get update -q > "$work/$name.log" 2>&1 || { say "apt-get update failed, see $work/$name.log"; exit 1; }

# --- the owner of the board, and two files ------------------------------------------------------------------------
rm -rf "$root/srv/owner"
chroot "$root" dpkg --purge tegrarm > /dev/null 2>&1 || :
chroot "$root" id owner > /dev/null 2>&1 || chroot "$root" useradd --home-dir /srv/owner owner
mkdir -p "$root/srv/owner"
echo 'owner ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/owner"
echo 'APT::Get::Assume-Yes "true";' > "$root/etc/apt/apt.conf.d/90yes"
cp "$dist"/tegrarm_*_"$architecture".deb "$dist"/tegrarm-*"$machine".whl "$root/srv/owner/"
chroot "$root" chown -R owner /srv/owner

# --- the commands, as they are printed, of this architecture ------------------------------------------------------
block() { sed -n '/^## Two files/,/^## /p' "$tree/docs/boards.md" | awk -v wanted="$1" '/^```/ { n += !inside; inside = !inside; next } inside && n == wanted' \
    | sed "s/arm64/$architecture/; s/aarch64/$machine/"; }
version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
newer=
case $version in
    3.10)
        newer="the commands for JetPack 6"
        commands=$(block 1 | sed '/^python3 -m venv/,$d'; block 2; block 1 | sed -n '/^pip install/,$p') ;;
    3.[0-9])
        newer="the commands for JetPack 5"
        commands=$(block 1 | sed '/^python3 -m venv/,$d'; block 3; block 1 | sed -n '/^tegrarm doctor/,$p')
        if [ "${NEWER_PYTHON:-}" = build ]; then
            NEWER_PYTHON=/opt/python/bin/python3.11
            [ -x "$root$NEWER_PYTHON" ] || build_python
        fi
        if [ -n "${NEWER_PYTHON:-}" ]; then
            newer="$newer, with $NEWER_PYTHON for the Python that uv would fetch"
            commands=$(echo "$commands" | sed "s|--python 3.12|--python $NEWER_PYTHON|")
        fi
        if [ "$machine" = x86_64 ]; then
            newer="$newer, without tinymesa, which wants glibc 2.32 and which boards do not get"
            echo "tinymesa; sys_platform == 'none'" > "$root/srv/owner/override.txt"
            environment="$environment UV_OVERRIDE=/srv/owner/override.txt"
        fi ;;
    *) commands=$(block 1) ;;
esac
{ echo 'set -ex; cd'; echo "$commands"
  # The compiler's line of the chapter, with the package's headers and with the wheel's; and the NVML, the CUDA driver and the CUDA runtimes of
  # the package.
  printf '%s\n' 'printf "#include <tegrarm.h>\nint main(void) { return tegrarm_init(NULL) != NV_OK; }\n" > program.c' \
      'cc program.c $(tegrarm cflags) -o with_wheel && ./with_wheel' 'cc program.c -ltegrarm -o with_package && ./with_package' \
      'tegrarm doctor --json > doctor.json' \
      "LD_LIBRARY_PATH=/usr/lib/$machine-linux-gnu/tegrarm/nvml python -c 'import ctypes; assert ctypes.CDLL(\"libnvidia-ml.so.1\").nvmlInit_v2() == 0'" \
      "LD_LIBRARY_PATH=/usr/lib/$machine-linux-gnu/tegrarm/cuda python -c 'import ctypes; assert ctypes.CDLL(\"libcuda.so.1\").cuInit(0) == 0'" \
      "for major in 12 13; do LD_LIBRARY_PATH=/usr/lib/$machine-linux-gnu/tegrarm/cuda python -c 'import ctypes, sys
devices = ctypes.c_int()
assert ctypes.CDLL(\"libcudart.so.\" + sys.argv[1]).cudaGetDeviceCount(ctypes.byref(devices)) == 0 and devices.value == 1' \$major; done" \
      'tegrarm-sim --version'
} > "$root/srv/owner/commands.sh"
say "$(chroot "$root" ldd --version | sed -n 1p), Python $version"
[ -z "$newer" ] || say "$newer"
began=$(date +%s)
if chroot "$root" sudo -u owner env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin $environment sh /srv/owner/commands.sh > "$work/$name.txt" 2>&1; then
    say "from the package to the demo in $(($(date +%s) - began)) s"
else
    say "FAILED ($?), the end of $work/$name.txt is"
    tail -n 30 "$work/$name.txt"
    exit 1
fi
