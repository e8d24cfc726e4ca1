"""Conversions of constants, which compilers leave to the GPU where its rounding is not theirs. ptxas packs two results in one register."""

import itertools

import cuda
import numpy
import pytest

# Each is exact in both formats or has bits that are cut off.
VALUES = (3.0, 4.0, -2.5, 1.0009765625, 65504.0, 0.1, -7.0, 1e-3)


def source(kind: str, name: str, values: tuple[float, ...], pad: int) -> str:
    """A kernel that stores converted constants, each in the upper half of a word. `pad` changes which of them share a register."""
    lines = [f'asm("cvt.rz.{kind}.f32 %0, %1;" : "=h"(h[{at}]) : "f"({value!r}f));' for at, value in enumerate(values)]
    packed = 'asm("mov.b32 %0, {{%1, %2}};" : "=r"(out[{at}]) : "h"((unsigned short)0), "h"(h[{at}]));'
    stores = [packed.format(at=at) for at in range(len(values))]
    stores = stores[pad:] + stores[:pad]
    return f'extern "C" __global__ void {name}(unsigned *out) {{ unsigned short h[{len(values)}]; {" ".join(lines)} {" ".join(stores)} }}\n'


def cut(kind: str, values: tuple[float, ...]) -> list[int]:
    """The same numbers, rounded to zero."""
    exact = numpy.array(values, numpy.float32)
    if kind == "bf16":
        return list(exact.view(numpy.uint32) >> 16)
    near = exact.astype(numpy.float16)
    away = numpy.abs(near.astype(numpy.float32)) > numpy.abs(exact)
    return list(near.view(numpy.uint16) - away)


CASES = {f"of_{count}_from_{pad}": (VALUES[:count], pad) for count, pad in itertools.product((2, 3, 5, 8), (0, 1))}


@pytest.mark.parametrize("way", cuda.TRIED)
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_constants_that_share_a_register_are_converted(gpu, kind, way):
    code = cuda.compiled("".join(source(kind, name, *case) for name, case in CASES.items()), way)
    for name, (values, _) in CASES.items():
        out = numpy.zeros(len(values), numpy.uint32)
        gpu.launch(gpu.kernel(code, name), 1, 1, out)
        assert [hex(word >> 16) for word in out] == [hex(half) for half in cut(kind, values)], name
