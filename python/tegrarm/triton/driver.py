"""The driver for Triton: it names the GPU, loads kernels and launches them."""

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
    """The object that Triton calls the driver's ``utils``."""

    def __init__(self, driver: TegraDriver):
        self.driver = driver

    def get_device_properties(self, _index: int) -> dict[str, int]:
        """The properties of the GPU that Triton's compiler and its tuner need."""
        gpu = self.driver.device.properties
        return {
            "max_shared_mem": gpu.shared_mem_size, "max_num_regs": REGISTERS_OF_SM, "multiprocessor_count": gpu.compute_units,
            "warpSize": gpu.simd_width, "sm_clock_rate": gpu.max_clock_hz // 1000, "max_threads_per_sm": 1536,
        }

    def load_binary(self, name: str, image: bytes, _shared: int, _index: int) -> tuple[Module, Kernel, int, int, int]:
        """Loads machine code. Returns the module, the kernel, its registers, its bytes of local memory, and its largest block."""
        module = self.driver.device.load(image)
        kernel = module.kernel(name)
        a = kernel.attributes
        return module, kernel, a.registers, a.local_size, a.max_threads

    def unload_module(self, module: Module) -> None:
        """Unloads a module."""
        module.close()


class TegraDriver(DriverBase):
    """The driver. It opens GPU 0 when the device is needed for the first time."""

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
        """Triton calls this when it searches for a driver. It need not find this one, which is set by :func:`active`."""
        return False

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The type of C for a type of Triton. Launches are not compiled here, so the name can stay as it is."""
        return ty

    def get_current_target(self) -> GPUTarget:
        """The GPU for which Triton compiles."""
        gpu = self.device.properties
        return GPUTarget("cuda", 10 * (gpu.sm_version >> 8) + (gpu.sm_version & 0xff), gpu.simd_width)

    def get_current_device(self) -> int:
        """A number for the device. Triton keeps loaded kernels by this number, so each open device has its own number."""
        return _numbers.setdefault(self.device, len(_numbers))

    def set_current_device(self, number: int) -> None:
        """Refuses another device. There is one device at a time; :func:`tegrarm.triton.use` changes it."""
        if number != self.get_current_device():
            raise RuntimeError(f"Triton's device is {self.device!r}: call tegrarm.triton.use(device) to use another one")

    def get_current_stream(self, _device: int | None = None) -> int:
        """The stream of kernels. It is always 0: all kernels go to the default queue of the device."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Raises an error, because PyTorch does not have this device."""
        raise RuntimeError("PyTorch does not have this device: make arrays with tegrarm.triton.device(); torch.from_dlpack can read them")

    def get_device_interface(self) -> Any:
        """Raises the same error: PyTorch has no interface for this device."""
        return self.get_active_torch_device()

    def get_benchmarker(self) -> Callable[..., Any]:
        """The function with which Triton's autotuner measures how long the GPU takes for a call."""
        return self._measure

    def _measure(self, function: Callable[[], object], *, quantiles: Sequence[float] | None = None, rep: int = 3, **_more: Any) -> Any:
        """Calls a function several times. Returns the mean of the milliseconds, or the quantiles that the caller wants."""
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
        """A small array. Triton would clear the GPU's caches with a large one; here kernels are measured with warm caches."""
        return self.device.empty(1)

    def clear_cache(self, _cache: Any) -> None:
        """Does nothing, for the reason above."""


_driver: TegraDriver | None = None
_numbers: dict[Device, int] = {}  # the number of each device that Triton has used; numbers are never used again


def active(device: Device | None = None) -> TegraDriver:
    """The driver, which Triton uses from now on. If a device is given, the driver is made anew for that device."""
    global _driver
    if _driver is None or device is not None:
        _driver = TegraDriver(device)
        triton_driver.set_active(_driver)
    return _driver
