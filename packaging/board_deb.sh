#!/bin/sh
# board_deb.sh STAGE VERSION ARCHITECTURE DIRECTORY: one Debian package of everything, for boards, of what `make stage` put into STAGE. It needs glibc
# 2.31, so that it installs on JetPack 5, 6 and 7, and brings the udev rule for the device nodes.
set -eu
stage=$1 version=$2 architecture=$3 dist=$4
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dist" "$stage/DEBIAN" "$stage/lib/udev/rules.d" "$stage/usr/share/doc/tegrarm"
cp "$here/60-tegrarm.rules" "$stage/lib/udev/rules.d/"
cp "$here/debian/copyright" "$stage/usr/share/doc/tegrarm/"
cat > "$stage/DEBIAN/control" <<CONTROL
Package: tegrarm
Version: $version
Architecture: $architecture
Installed-Size: $(du -k --summarize --exclude=DEBIAN "$stage" | cut -f 1)
Section: libs
Priority: optional
Maintainer: libtegrarm contributors <maintainers@example.com>
Depends: libc6 (>= 2.31), libgcc-s1
Conflicts: libtegrarm0, libtegrarm-dev, tegrarm-sim
Provides: libtegrarm0, libtegrarm-dev, tegrarm-sim
Replaces: libtegrarm0, libtegrarm-dev, tegrarm-sim
Homepage: https://github.com/libtegrarm/libtegrarm
Description: desktop NVIDIA's Resource Manager interface for Jetson Orin
 The library, the preload library, CUDA and NVML interfaces, the virtual Orin,
 headers, and the udev rule that gives the GPU to the group video.
CONTROL
cat > "$stage/DEBIAN/postinst" <<'POSTINST'
#!/bin/sh
set -e
ldconfig
# The rule counts from now on, where udev runs.
if [ -S /run/udev/control ]; then udevadm control --reload && udevadm trigger || true; fi
POSTINST
printf '#!/bin/sh\nset -e\nldconfig\n' > "$stage/DEBIAN/postrm"
chmod 755 "$stage/DEBIAN/postinst" "$stage/DEBIAN/postrm"
dpkg-deb --root-owner-group --build "$stage" "$dist/tegrarm_${version}_$architecture.deb"
