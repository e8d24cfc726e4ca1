"""Runs kernels with the virtual Orin's checker, which a process has from its start: one process runs a list of them.

As a program it reads the list from standard input (pickled) and writes a line before the reports of each kernel."""

import functools
import hashlib
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile

MARK = "=== kernel "
KEPT = "TEGRARM_TEST_COMPILED"  # the folder of machine code that other processes of this run have compiled


def main():
    import cuda  # The parent may have no numpy.
    import numpy

    from tegrarm.rm import RmError

    def array(what):
        """`("int32", n)` becomes an array of n numbers, `("unwritten", n)` a buffer for as many, and `("struct", n)` an argument that
        contains them; a number has 32 bits."""
        if isinstance(what, tuple) and what[0] == "unwritten":
            return cuda.Unwritten(4 * what[1])
        if isinstance(what, tuple) and what[0] == "struct":
            return numpy.void(numpy.arange(what[1], dtype=numpy.int32).tobytes())
        return numpy.arange(what[1]).astype(what[0]) if isinstance(what, tuple) else numpy.int32(what)

    def compiled(source, option):
        path = pathlib.Path(os.environ.get(KEPT) or kept().name, hashlib.sha256(f"{option}\n{source}".encode()).hexdigest())
        if not path.exists():
            path.write_bytes(cuda.compiled(source, "12", option))
        return path.read_bytes()

    for name, source, kernel, grid, block, arguments, options in pickle.load(sys.stdin.buffer):
        print(MARK + name, file=sys.stderr, flush=True)
        gpu = cuda.Gpu()
        try:
            function = gpu.kernel(compiled(source, options.pop("compiled", "--generate-line-info")), kernel)
            gpu.launch(function, grid, block, *[array(a) for a in arguments], **options)
        except RmError as e:
            print("stopped:", e, file=sys.stderr, flush=True)
        gpu.close()


@functools.cache
def kept():
    """A folder that goes with the process that made it. Each kernel is compiled once, and not again for each set of checks."""
    return tempfile.TemporaryDirectory(prefix="tegrarm-checked-")


def run(kernels, checks, **environment):
    """The reports of each kernel by its name, and what else was said. A kernel: name, source, function, grid, block, arguments, options."""
    ours = {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CHECK": checks, "TEGRARM_SIM_FAULTS": "0", KEPT: kept().name}
    child = subprocess.run([sys.executable, __file__], input=pickle.dumps(kernels), capture_output=True, check=False,
                           env={**os.environ, **ours, **environment})
    text = child.stderr.decode()
    assert child.returncode == 0, text
    first, *parts = text.split(MARK)
    # The last word of the checker comes behind the reports of the last kernel.
    return {part.split("\n", 1)[0]: reports(part) for part in parts}, text


def reports(text):
    """The reports in a text: each is its first line and those that are indented below it."""
    return [found for found in re.findall(r"^tegrarm-check: (.*\n(?:    .*\n)*)", text, re.M) if " launches were checked: " not in found]


if __name__ == "__main__":
    main()
