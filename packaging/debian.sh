#!/bin/sh
# debian.sh DIRECTORY VERSION: a Debian source package of what git has, and the packages that dpkg-buildpackage makes of it, in DIRECTORY.
# cargo's target directory is one of its own: for cargo the source is another one, and this tree's libraries stay as they are.
set -eu
mkdir -p "$1"
dist=$(cd "$1" && pwd) version=$2
tree=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source=$work/libtegrarm-$version
mkdir "$source"
(cd "$tree" && git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf -) | tar -C "$source" -xf -
cp -r "$source/packaging/debian" "$source/debian"
# The day of the newest commit: the same source makes the same packages.
date=$(git -C "$tree" log -1 --format=%cD 2> /dev/null || date -R)
cat > "$source/debian/changelog" <<CHANGES
libtegrarm ($version) unstable; urgency=medium

  * See CHANGELOG.md.

 -- libtegrarm contributors <maintainers@example.com>  $date
CHANGES
# -d: Rust comes from rustup, where the distribution has an older one.
cd "$source"
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$tree/target}/debian dpkg-buildpackage -d -us -uc --jobs-try=auto > "$work/log" 2>&1 || { tail -n 60 "$work/log"; exit 1; }
cp "$work"/*deb "$work"/*.dsc "$work"/*.tar.* "$dist"/
ls "$dist"
