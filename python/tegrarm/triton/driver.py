"""Triton's driver: which GPU there is, how its kernels are loaded and launched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import driver as triton_driver

from ..device import Device
from ..kernels import Kernel, Module
from .launcher import Launcher

REGISTERS_OF_SM = 65536


class Loader:
    """What Triton calls the driver's ``utils``."""

    def __init__(self, driver: TegraDriver):
        self.driver = driver

    def get_device_properties(self, _index: int) -> dict[str, int]:
        """What Triton's compiler and its tuner want to know of the GPU."""
        gpu = self.driver.device.properties
        return {
            "max_shared_mem": gpu.shared_mem_size, "max_num_regs": REGISTERS_OF_SM, "multiprocessor_count": gpu.compute_units,
            "warpSize": gpu.simd_width, "sm_clock_rate": gpu.max_clock_hz // 1000, "max_threads_per_sm": 1536,
        }

    def load_binary(self, name: str, image: bytes, _shared: int, _index: int) -> tuple[Module, Kernel, int, int, int]:
        """Loads machine code: module, kernel, registers, bytes of local memory, threads of a block."""
        module = self.driver.device.load(image)
        kernel = module.kernel(name)
        a = kernel.attributes
        return module, kernel, a.registers, a.local_size, a.max_threads

    def unload_module(self, module: Module) -> None:
        """Unloads it."""
        module.close()


class TegraDriver(DriverBase):
    """The driver. It opens GPU 0 when it is first asked for it."""

    launcher_cls = Launcher

    def __init__(self, device: Device | None = None):
        self._device, self.utils = device, Loader(self)

    @property
    def device(self) -> Device:
        """The device of all kernels."""
        if self._device is None:
            self._device = Device()
        return self._device

    @classmethod
    def is_active(cls) -> bool:
        """Triton asks when it looks for a driver by itself; this one is set."""
        return False

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The type of C for one of Triton's: launches are not compiled here, so that it is its own name."""
        return ty

    def get_current_target(self) -> GPUTarget:
        """What the compiler makes code for."""
        gpu = self.device.properties
        return GPUTarget("cuda", 10 * (gpu.sm_version >> 8) + (gpu.sm_version & 0xff), gpu.simd_width)

    def get_current_device(self) -> int:
        """A number for the device. Triton keeps loaded kernels by it, so that each open device has its own."""
        return _numbers.setdefault(self.device, len(_numbers))

    def set_current_device(self, number: int) -> None:
        """There is one device at a time: :func:`tegrarm.triton.use` takes another."""
        if number != self.get_current_device():
            raise RuntimeError(f"Triton's device is {self.device!r}: tegrarm.triton.use(device) takes another")

    def get_current_stream(self, _device: int | None = None) -> int:
        """All kernels go to the queue that the device was opened with."""
        return 0

    def get_active_torch_device(self) -> Any:
        """PyTorch has no such device."""
        raise RuntimeError("PyTorch knows nothing of this device: arrays come from tegrarm.triton.device(); torch.from_dlpack sees them")

    def get_device_interface(self) -> Any:
        """That of PyTorch, which has none for this device."""
        return self.get_active_torch_device()

    def get_benchmarker(self) -> Callable[..., Any]:
        """How long the GPU takes for a call: for Triton's autotuner."""
        return self._measure

    def _measure(self, function: Callable[[], object], *, quantiles: Sequence[float] | None = None, rep: int = 3, **_more: Any) -> Any:
        """Milliseconds: the mean, or the quantiles that are asked for."""
        function()
        times = []
        for _ in range(max(min(rep, 10), 1)):
            with self.device.timer() as timer:
                function()
            times.append(timer.ns / 1e6)
        if quantiles is None:
            return sum(times) / len(times)
        times.sort()
        return [times[round(q * (len(times) - 1))] for q in quantiles]

    def get_empty_cache_for_benchmark(self) -> Any:
        """Memory as large as the GPU's caches. What is measured here is measured with warm ones."""
        return self.device.empty(1)

    def clear_cache(self, _cache: Any) -> None:
        """Nothing: see above."""


_driver: TegraDriver | None = None
_numbers: dict[Device, int] = {}  # of all devices that Triton had; a number is never used again


def active(device: Device | None = None) -> TegraDriver:
    """Our driver, which is Triton's from then on; with a device, one of that device."""
    global _driver
    if _driver is None or device is not None:
        _driver = TegraDriver(device)
        triton_driver.set_active(_driver)
    return _driver
