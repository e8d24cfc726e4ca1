"""The part of the driver's CUDA API that a recording needs."""
import ctypes

Address = ctypes.c_uint64


class Gpu:
    """The first GPU of this machine."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name, driver = ctypes.create_string_buffer(100), ctypes.c_int()
        self.call("cuDeviceGetName", name, len(name), device)
        self.call("cuDriverGetVersion", ctypes.byref(driver))
        capability = []
        for attribute in (75, 76):
            value = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
            capability.append(value.value)
        self.description = (f"{name.value.decode()}, compute capability {capability[0]}.{capability[1]}, "
                            f"CUDA {driver.value // 1000}.{driver.value % 1000 // 10} driver {kernel_driver()}")

    def call(self, name, *args):
        """Calls the driver. An error ends the program."""
        status = getattr(self.cuda, name)(*args)
        if status:
            raise SystemExit(f"{name} failed with CUDA error {status}")

    def alloc(self, size):
        """Allocates memory on the GPU."""
        address = Address()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def run(self, text, name, blocks, threads, data, size):
        """Compiles PTX or loads a cubin, runs its kernel `name`(out, in), and returns the `size` bytes that the kernel wrote."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), text + b"\0")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        out, into = self.alloc(size), self.alloc(max(len(data), 1))
        self.call("cuMemsetD8_v2", out, 0, ctypes.c_size_t(size))
        self.call("cuMemcpyHtoD_v2", into, data, ctypes.c_size_t(len(data)))
        arguments = (ctypes.c_void_p * 2)(*(ctypes.addressof(x) for x in (out, into)))
        self.call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, 0, None, arguments, None)
        result = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", result, out, ctypes.c_size_t(size))
        self.call("cuMemFree_v2", out)
        self.call("cuMemFree_v2", into)
        self.call("cuModuleUnload", module)
        return result.raw


def kernel_driver():
    """The version of the kernel's driver."""
    try:
        with open("/sys/module/nvidia/version") as file:
            return file.read().strip()
    except OSError:
        return "unknown"
