#!/bin/sh
# loader_knows.sh DIRECTORY SONAME: says what to do when programs that are linked with the installed library would not find it.
ldconfig=$(PATH=$PATH:/usr/sbin:/sbin command -v ldconfig) || exit 0
if "$ldconfig" -p 2> /dev/null | grep -qF "$1/$2"; then
    exit 0
fi
echo "The loader does not know $1/$2 yet."
if "$ldconfig" -v -N 2> /dev/null | grep -q "^$1:"; then
    echo "Run: sudo ldconfig"
else
    echo "$1 is no directory that it searches. Run: echo $1 | sudo tee /etc/ld.so.conf.d/tegrarm.conf && sudo ldconfig"
    echo "Or set LD_LIBRARY_PATH=$1 for your programs."
fi
