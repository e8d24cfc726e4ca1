"""CUDA C to machine code for the Orin: python compile.py kernels.cu kernels.cubin. The same as `tegrarm compile`."""

import sys

from tegrarm.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["compile", *sys.argv[1:]]))
