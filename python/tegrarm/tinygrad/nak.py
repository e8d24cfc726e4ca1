"""Mesa's NAK as a compiler of the device TEGRA. NAK gives machine code alone, and the library loads cubins, so that one is made."""

from __future__ import annotations

import ctypes
import json
from typing import Any

from tinygrad.codegen.opt import tc
from tinygrad.device import Compiler
from tinygrad.dtype import dtypes
from tinygrad.helpers import round_up
from tinygrad.renderer import nir
from tinygrad.runtime.autogen import mesa
from tinygrad.runtime.support.compiler_cuda import cuda_disassemble
from tinygrad.uop.ops import Ops, PatternMatcher, UOp, UPat

from .cubin import PARAMETERS_AT, Kernel, cubin

# NAK's numbers of the shapes 16 x 8 x 8 and 16 x 8 x 16, by the number of halves that a thread has of the left matrix (Mesa's
# nouveau/compiler/nak_private.h, nak_cmat_type). The flags are the shape and, from bits 3 and 8 on, the types of both matrices.
SHAPES = {4: 3, 8: 4}


@nir.nir_instr(nc=lambda added: added.num_components, bs=lambda added: added.bit_size, num_components=lambda added: added.num_components,
               intrins=lambda left: {"FLAGS": SHAPES[left.num_components] | mesa.GLSL_TYPE_FLOAT16 << 3 | mesa.GLSL_TYPE_FLOAT16 << 8},
               srcs=lambda left, right, added: [nir.nsrc(left), nir.nsrc(right), nir.nsrc(added)])
def multiplied(b: Any, left: Any, right: Any, added: Any) -> Any:
    """The product of two matrices of halves and the sum with a third on the tensor cores. Each thread has its part of all of them."""
    return mesa.nir_intrinsic_instr_create(b.shader, mesa.nir_intrinsic_cmat_muladd_nv)


def vector(b: Any, parts: list[Any]) -> Any:
    """A vector of scalars. tinygrad's own function makes vectors of at most four."""
    scalars = (mesa.nir_scalar * len(parts))(*[mesa.nir_scalar(ctypes.pointer(part), 0) for part in parts])
    return mesa.nir_vec_scalars(b, scalars, len(parts)).contents


class NAKRenderer(nir.NAKRenderer):
    """tinygrad's renderer, with tensor cores, and with the parameters at the place that the library uses. Its output begins with a line
    about the kernel.
    """

    def_rewrite = PatternMatcher([
        (UPat(Ops.WMMA, name="x"), lambda ctx, x: multiplied(ctx.b, *[ctx.r[part] for part in x.src])),
        (UPat(Ops.STACK, name="x"), lambda ctx, x: vector(ctx.b, [ctx.r[part] for part in x.src])),
    ]) + nir.NAKRenderer.def_rewrite

    def __init__(self, target: Any):
        super().__init__(target)
        self.compiler = CubinCompiler(self.compiler)
        # This compiler has no bfloat16, and tensor cores multiply float32 with ten bits of fraction.
        self.tensor_cores = [core for core in tc.get_cuda(target.arch) if core.dtype_in == dtypes.half]

    def param(self, b: Any, x: UOp, sz: int) -> Any:
        """Renders a parameter. Parameters begin after the values that the library itself puts into that constant bank."""
        self.param_idx = max(self.param_idx, PARAMETERS_AT)
        at = round_up(self.param_idx, sz)
        self.param_idx = at
        self._parameters.append((at - PARAMETERS_AT, sz))
        return super().param(b, x, sz)

    def render(self, uops: list[UOp]) -> str:
        """Mesa's intermediate code as text, after the name and the parameters."""
        self._parameters: list[tuple[int, int]] = []
        name = next((u.arg.function_name for u in uops if u.op is Ops.SINK and u.arg is not None), "kernel")
        source = super().render(uops)
        return f"{json.dumps([name, self._parameters])}\n{source}"


class CubinCompiler(Compiler):
    """NAK as a compiler. Its machine code becomes a cubin."""

    def __init__(self, nak: Any):
        self.nak, self.arch = nak, nak.arch
        super().__init__(f"compile_tegra_nak_{nak.arch}")

    def __reduce__(self) -> Any:
        return CubinCompiler, (self.nak,)

    def compile(self, src: str) -> bytes:
        """Makes a cubin from the output of :class:`NAKRenderer`."""
        about, _, code = src.partition("\n")
        name, parameters = json.loads(about)
        made = self.nak.compile(code)
        info = mesa.struct_nak_shader_info.from_buffer_copy(made)
        kernel = Kernel(name, made[ctypes.sizeof(info):], [tuple(p) for p in parameters], registers=info.num_gprs,
                        barriers=info.num_control_barriers, shared=info.cs.smem_size, scratch=info.slm_size)
        return cubin(kernel, int(self.arch.removeprefix("sm_")))

    def disassemble(self, lib: bytes) -> None:
        """Prints the code with NVIDIA's disassembler."""
        cuda_disassemble(lib, self.arch)
