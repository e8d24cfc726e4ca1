#!/bin/sh
# Stands in for clang where only another C compiler is installed. tinygrad compiles a few helper functions of its CPU device with
# $CC and writes the object to stdout; gcc can do that too, but for clang's --target option and the object on a pipe.
set -e
object=$(mktemp)
trap 'rm -f "$object"' EXIT
for arg; do
    shift
    case $arg in
    --target=*) ;;
    *) set -- "$@" "$arg" ;;
    esac
done
cc "$@" -o "$object"
cat "$object"
