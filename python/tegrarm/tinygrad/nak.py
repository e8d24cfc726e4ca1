"""Mesa's NAK as a compiler of the device TEGRA. NAK gives machine code alone, and the library loads cubins, so that one is made."""

from __future__ import annotations

import ctypes
import json
from typing import Any

from tinygrad.device import Compiler
from tinygrad.helpers import round_up
from tinygrad.renderer import nir
from tinygrad.runtime.autogen import mesa
from tinygrad.runtime.support.compiler_cuda import cuda_disassemble
from tinygrad.uop.ops import Ops, UOp

from .cubin import PARAMETERS_AT, Kernel, cubin


class NAKRenderer(nir.NAKRenderer):
    """tinygrad's renderer, with the parameters at the place that the library uses. Its output begins with a line about the kernel."""

    def __init__(self, target: Any):
        super().__init__(target)
        self.compiler = CubinCompiler(self.compiler)

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
