#!/bin/sh
# Stands in for clang where there is none. tinygrad compiles its CPU device's kernels with $CC, in clang's dialect, and reads the object from
# standard output (`-o -`). The clang is that of the wheel `ziglang`, which this project links with (packaging/zig-requirements.txt): it takes
# the same options, but writes to files only, has other names for targets, and adds debug sections, whose relocations tinygrad does not know.
# What has another name behind -o gets a file, as from every compiler: other programs that find this one in $CC are no tinygrad.
set -eu
object=
trap 'rm -f "$object"' EXIT
for arg; do
    shift
    case $arg in
    -) if [ "${last-}" = -o ]; then object=$(mktemp); arg=$object; fi; set -- "$@" "$arg" ;;
    --target=arm64-*) set -- "$@" --target=aarch64-linux-gnu ;;
    --target=*) arch=${arg#--target=}; set -- "$@" "--target=${arch%%-*}-linux-gnu" ;;
    *) set -- "$@" "$arg" ;;
    esac
    last=$arg
done
"${TEGRARM_TEST_ZIG:-python3}" -m ziglang cc "$@" -fno-sanitize=all -g0
if [ -n "$object" ]; then cat "$object"; fi
