#!/bin/sh
# board_root.sh DIRECTORY SUITE DIST: the commands that docs/boards.md prints under "Two files", as they are printed, on a bare system: from the
# Debian package in DIST to the demo on the virtual Orin, by a user of no rights.
#
# SUITE is a release of Ubuntu or Debian: focal, jammy and noble are those of JetPack 5, 6 and 7. It is unpacked into DIRECTORY by debootstrap, which
# needs root. The files are those of this computer's architecture. Where python3 is older than tinygrad wants, the commands for JetPack 6 or 5
# take the place of some lines. Those for JetPack 5 fetch a Python: without a network for that, NEWER_PYTHON names one in the root that takes its
# place, and the output says so. MIRROR names another mirror than this machine's own.
set -eu
[ $# = 3 ] || { sed -n '2,4p' "$0"; exit 2; }
[ "$(id -u)" = 0 ] && command -v debootstrap > /dev/null || { echo "board root: SKIPPED, this needs root and debootstrap"; exit 0; }
# A mount namespace of its own: what is mounted below ends with it.
[ -n "${BOARD_ROOT:-}" ] || BOARD_ROOT=1 exec unshare --mount "$0" "$@"
mkdir -p "$1"
work=$(cd "$1" && pwd) suite=$2 dist=$(cd "$3" && pwd)
tree=$(cd "$(dirname "$0")/../.." && pwd)
say() { printf 'board root: %s: %s\n' "$suite" "$*"; }

# --- the system ---------------------------------------------------------------------------------------------------
root=$work/$suite
if [ ! -e "$root/.complete" ]; then
    origin=Debian components=main scripts=/usr/share/debootstrap/scripts like=sid
    case $suite in focal|jammy|noble) origin=Ubuntu components=main,universe like=gutsy ;; esac
    mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Origin: $origin" "Label: $origin" | sort -u | head -n 1)}
    [ -n "$mirror" ] || { say "this machine's sources have no $origin: MIRROR must name one"; exit 1; }
    say "unpacking it"
    rm -rf "$root"
    # A debootstrap that is older than the release does not know its name. All releases of a distribution are unpacked alike.
    debootstrap --variant=minbase --components=$components --include=python3,python3-venv,python3-pip,ca-certificates,sudo,gcc,libc6-dev \
        "$suite" "$root" "$mirror" "$([ -e "$scripts/$suite" ] || echo "$scripts/$like")" > "$work/$suite.log" 2>&1 \
        || { say "debootstrap failed, see $work/$suite.log"; exit 1; }
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
for name in http_proxy https_proxy no_proxy SSL_CERT_FILE PIP_CERT PIP_INDEX_URL PIP_FIND_LINKS PIP_DEFAULT_TIMEOUT; do
    eval "value=\${$name:-}"
    [ -z "$value" ] || environment="$environment $name=$value"
done

chroot "$root" apt-get update -q > "$work/$suite.log" 2>&1 || { say "apt-get update failed, see $work/$suite.log"; exit 1; }

# --- the owner of the board, and two files ------------------------------------------------------------------------
rm -rf "$root/srv/owner"
chroot "$root" dpkg --purge tegrarm > /dev/null 2>&1 || :
chroot "$root" id owner > /dev/null 2>&1 || chroot "$root" useradd --home-dir /srv/owner owner
mkdir -p "$root/srv/owner"
echo 'owner ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/owner"
echo 'APT::Get::Assume-Yes "true";' > "$root/etc/apt/apt.conf.d/90yes"
cp "$dist"/tegrarm_*_"$(dpkg --print-architecture)".deb "$dist"/tegrarm-*"$(uname -m)".whl "$root/srv/owner/"
chroot "$root" chown -R owner /srv/owner

# --- the commands, as they are printed, of this architecture ------------------------------------------------------
block() { sed -n '/^## Two files/,/^## /p' "$tree/docs/boards.md" | awk -v wanted="$1" '/^```/ { n += !inside; inside = !inside; next } inside && n == wanted' \
    | sed "s/arm64/$(dpkg --print-architecture)/; s/aarch64/$(uname -m)/"; }
version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
newer=
case $version in
    3.10)
        newer="the commands for JetPack 6"
        commands=$(block 1 | sed '/^python3 -m venv/,$d'; block 2; block 1 | sed -n '/^pip install/,$p') ;;
    3.[0-9])
        newer="the commands for JetPack 5"
        commands=$(block 1 | sed '/^python3 -m venv/,$d'; block 3; block 1 | sed -n '/^tegrarm doctor/,$p')
        if [ -n "${NEWER_PYTHON:-}" ]; then
            newer="$newer, with $NEWER_PYTHON for the Python that uv would fetch"
            commands=$(echo "$commands" | sed "s|--python 3.12|--python $NEWER_PYTHON|")
        fi
        if [ "$(uname -m)" = x86_64 ]; then
            newer="$newer, without tinymesa, which wants glibc 2.32 and which boards do not get"
            echo "tinymesa; sys_platform == 'none'" > "$root/srv/owner/override.txt"
            environment="$environment UV_OVERRIDE=/srv/owner/override.txt"
        fi ;;
    *) commands=$(block 1) ;;
esac
{ echo 'set -ex; cd'; echo "$commands"
  # The compiler's line of the chapter, with the package's headers and with the wheel's; and the NVML of both.
  printf '%s\n' 'printf "#include <tegrarm.h>\nint main(void) { return tegrarm_init(NULL) != NV_OK; }\n" > program.c' \
      'cc program.c $(tegrarm cflags) -o with_wheel && ./with_wheel' 'cc program.c -ltegrarm -o with_package && ./with_package' \
      'tegrarm doctor --json > doctor.json' \
      "LD_LIBRARY_PATH=/usr/lib/$(uname -m)-linux-gnu/tegrarm/nvml python -c 'import ctypes; assert ctypes.CDLL(\"libnvidia-ml.so.1\").nvmlInit_v2() == 0'" \
      "LD_LIBRARY_PATH=/usr/lib/$(uname -m)-linux-gnu/tegrarm/cuda python -c 'import ctypes; assert ctypes.CDLL(\"libcuda.so.1\").cuInit(0) == 0'" \
      'tegrarm-sim --version'
} > "$root/srv/owner/commands.sh"
say "$(chroot "$root" ldd --version | sed -n 1p), Python $version"
[ -z "$newer" ] || say "$newer"
began=$(date +%s)
if chroot "$root" sudo -u owner env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin $environment sh /srv/owner/commands.sh > "$work/$suite.txt" 2>&1; then
    say "from the package to the demo in $(($(date +%s) - began)) s"
else
    say "FAILED ($?), the end of $work/$suite.txt is"
    tail -n 30 "$work/$suite.txt"
    exit 1
fi
