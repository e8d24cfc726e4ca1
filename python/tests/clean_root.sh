#!/bin/sh
# clean_root.sh DIRECTORY [SUITE [GOAL...]]: the README's two commands on a bare system that has cc, make, cargo and python3-venv alone.
#
# SUITE is a release of Debian or Ubuntu (bookworm when left out; noble is Ubuntu 24.04). It is unpacked into DIRECTORY by debootstrap, which
# needs root. The tree goes in as git knows it, with what is not committed yet. This machine's Rust is lent, because distributions have an older
# one; its registry is not, so that everything is fetched as on the first day. Without root or debootstrap, a fresh HOME and a PATH of links to
# those tools alone take the place of the system: what is installed is hidden, but libraries are not. GOALs are `demo` and `test` when left out;
# the time of each is printed. MIRROR names another mirror than this machine's own.
set -eu
[ $# -ge 1 ] || { sed -n '2,4p' "$0"; exit 2; }
bare_system() { [ "$(id -u)" = 0 ] && command -v debootstrap > /dev/null; }
# A mount namespace of its own: what is mounted below ends with it.
if bare_system && [ -z "${CLEAN_ROOT:-}" ]; then CLEAN_ROOT=1 exec unshare --mount "$0" "$@"; fi
mkdir -p "$1"
work=$(cd "$1" && pwd) suite=${2:-bookworm}
shift; [ $# = 0 ] || shift
goals=${*:-demo test}
tree=$(cd "$(dirname "$0")/../.." && pwd)
rust=$(cd "$tree" && rustc --print sysroot)
tools="gcc,libc6-dev,make,python3,python3-venv,ca-certificates"

say() { printf 'clean root: %s\n' "$*"; }

# --- where it runs ------------------------------------------------------------------------------------------------
if bare_system; then
    root=$work/$suite
    if [ ! -e "$root/.complete" ]; then
        # A debootstrap that is older than the release does not know its name. All releases of a distribution are unpacked alike.
        origin=Debian components=main like=sid
        case $suite in noble|jammy) origin=Ubuntu components=main,universe like=gutsy ;; esac
        mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Origin: $origin" "Label: $origin" | sort -u | head -n 1)}
        [ -n "$mirror" ] || { say "this machine's sources have no $origin: MIRROR must name one"; exit 1; }
        scripts=/usr/share/debootstrap/scripts
        script=$([ -e "$scripts/$suite" ] || echo "$scripts/$like")
        say "unpacking $suite"
        rm -rf "$root"
        debootstrap --variant=minbase --components=$components --include="$tools" "$suite" "$root" "$mirror" $script > "$work/$suite.log" 2>&1 \
            || { say "debootstrap failed, see $work/$suite.log"; exit 1; }
        touch "$root/.complete"
    fi
    # How this machine reaches registries: names, certificates, pip's own configuration.
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
        [ ! -e "$file" ] || cp -L "$file" "$root$file"
    done
    home=$root/srv/newcomer inside=/srv/newcomer/libtegrarm
    toolchain=/opt/rust path=/opt/rust/bin:/usr/bin:/bin
    start() { chroot "$root" /usr/bin/env -i $environment "$@"; }
else
    say "no root or no debootstrap: a fresh HOME and a PATH of few tools on this system"
    suite="this system" root= home=$work/newcomer
    inside=$home/libtegrarm toolchain=$rust path=$work/bin
    rm -rf "$path"; mkdir -p "$path"
    for tool in sh bash env cc gcc ld as ar make python3 git tar gzip install ln cp mv rm mkdir touch cat sed grep awk head tail sort uniq \
        tr cut wc ls find dirname basename mktemp uname id date sleep nproc ldconfig readelf strip objdump nm test chmod expr xargs; do
        [ ! -e "$(command -v $tool)" ] || ln -s "$(command -v $tool)" "$path/$tool"
    done
    for tool in cargo rustc rustdoc; do ln -s "$rust/bin/$tool" "$path/$tool"; done
    start() { env -i $environment "$@"; }
fi

# --- the tree, and nothing of an earlier run ----------------------------------------------------------------------
rm -rf "$home"; mkdir -p "$home/libtegrarm"
(cd "$tree" && git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf -) | tar -C "$home/libtegrarm" -xf -

environment="HOME=$([ -n "$root" ] && echo /srv/newcomer || echo "$home") PATH=$path LANG=C.UTF-8"
for name in http_proxy https_proxy no_proxy SSL_CERT_FILE PIP_CERT PIP_INDEX_URL PIP_FIND_LINKS PIP_DEFAULT_TIMEOUT; do
    eval "value=\${$name:-}"
    [ -z "$value" ] || environment="$environment $name=$value"
done

if [ -n "$root" ]; then
    mkdir -p "$root$toolchain"
    mount --bind "$rust" "$root$toolchain"
    for directory in /proc /dev /sys; do mount --rbind "$directory" "$root$directory"; done
    links=${PIP_FIND_LINKS:-}
    [ ! -d "$links" ] || { mkdir -p "$root$links"; mount --bind "$links" "$root$links"; }
fi

# --- the commands -------------------------------------------------------------------------------------------------
say "$suite: $(start cc --version | head -n 1); $(start python3 --version); $(start cargo --version); clang: $(start sh -c 'command -v clang || echo none')"
status=0
for goal in $goals; do
    began=$(date +%s)
    start make -C "$inside" $goal > "$work/$goal.txt" 2>&1 || status=$?
    [ $status = 0 ] && verdict=passed || verdict="FAILED ($status), the end of $work/$goal.txt is"
    say "$suite: make $goal $verdict after $(($(date +%s) - began)) s"
    [ $status = 0 ] || { tail -n 40 "$work/$goal.txt"; exit 1; }
    grep -h SKIPPED "$work/$goal.txt" | sort -u || :
done
