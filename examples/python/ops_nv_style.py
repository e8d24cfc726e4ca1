"""A driver in the style of tinygrad's ops_nv, through plain ctypes: the same RM calls, made by the library instead of an ioctl.

Such a driver has one place in which it calls the kernel (`rm_alloc`, `rm_control` and the mapping of memory, here class `Rm`). That place
is all that changes; everything else, down to the launch descriptor and the doorbell, is its own as before. examples/c/raw.h is the
same in C. Everybody else uses tegrarm.Device.
"""

import ctypes
import struct
import time

from abi import abi

from tegrarm import compile, lib

SOURCE = """
extern "C" __global__ void axpy(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""


class Rm:
    """What was an ioctl on /dev/nvidiactl in the original."""

    def __init__(self):
        self.root = 0
        self.root = self.alloc(0, abi.NV01_ROOT_CLIENT)

    @staticmethod
    def check(status: int) -> None:
        if status:
            text = ctypes.create_string_buffer(512)
            lib().tegrarm_last_error(text, 512)
            raise RuntimeError(f"{lib().tegrarm_status_name(status).decode()}: {text.value.decode()}")

    def alloc(self, parent: int, class_: int, params=None) -> int:
        handle = ctypes.c_uint32()
        size = ctypes.sizeof(params) if params is not None else 0
        self.check(lib().rm_alloc(self.root, parent, ctypes.byref(handle), class_, ctypes.addressof(params) if size else None, size))
        return handle.value

    def control(self, handle: int, command: int, params):
        self.check(lib().rm_control(self.root, handle, command, ctypes.addressof(params), ctypes.sizeof(params)))
        return params

    def map_cpu(self, device: int, memory: int, size: int) -> int:
        address = ctypes.c_void_p()
        self.check(lib().rm_map_memory(self.root, device, memory, 0, size, ctypes.byref(address), 0))
        return address.value

    def map_gpu(self, device: int, mapper: int, memory: int, size: int) -> int:
        address = ctypes.c_uint64()
        self.check(lib().rm_map_memory_dma(self.root, device, mapper, memory, 0, size, 0, ctypes.byref(address)))
        return address.value

    def close(self) -> None:
        self.check(lib().rm_free(self.root, 0, self.root))


class Memory:
    """Memory that CPU and GPU share."""

    def __init__(self, gpu: "Gpu", size: int):
        params = abi.NV_MEMORY_ALLOCATION_PARAMS(owner=gpu.rm.root, size=size, alignment=4096)
        self.handle = gpu.rm.alloc(gpu.device, abi.NV01_MEMORY_LOCAL_USER, params)
        self.va = gpu.rm.map_gpu(gpu.device, gpu.mapper, self.handle, size)
        self.cpu = (ctypes.c_uint8 * size).from_address(gpu.rm.map_cpu(gpu.device, self.handle, size))

    def words(self, at: int = 0, count: int = 1):
        return (ctypes.c_uint32 * count).from_buffer(self.cpu, at)

    def long(self, at: int = 0):
        return ctypes.c_uint64.from_buffer(self.cpu, at)

    def floats(self, count: int):
        return (ctypes.c_float * count).from_buffer(self.cpu)


ENTRIES, USERD, HOST, COMPUTE = 1024, 8192, 0, 1
LOCAL = 0x400  # bytes of local memory of a thread


def method(subchannel: int, address: int, *values: int) -> list[int]:
    """Words that write consecutive methods."""
    return [1 << 29 | len(values) << 16 | subchannel << 13 | address >> 2, *values]


def halves(value: int) -> tuple[int, int]:
    return value >> 32, value & 0xffff_ffff


class Gpu:
    """Client, device, address space, channel and doorbell."""

    def __init__(self):
        from tegrarm import device_profile
        self.profile, self.rm, self.submitted = device_profile(), Rm(), 0
        rm = self.rm
        self.device = rm.alloc(rm.root, abi.NV01_DEVICE_0, abi.NV0080_ALLOC_PARAMETERS(hClientShare=rm.root))
        self.subdevice = rm.alloc(self.device, abi.NV20_SUBDEVICE_0, abi.NV2080_ALLOC_PARAMETERS())
        space = rm.alloc(self.device, abi.FERMI_VASPACE_A, abi.NV_VASPACE_ALLOCATION_PARAMETERS())
        self.mapper = rm.alloc(self.device, abi.NV01_MEMORY_VIRTUAL, abi.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS(hVASpace=space))
        engine = abi.NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS(engineType=abi.NV2080_ENGINE_TYPE_GRAPHICS)
        group = rm.alloc(self.device, abi.KEPLER_CHANNEL_GROUP_A, engine)
        share = abi.NV_CTXSHARE_ALLOCATION_PARAMETERS(hVASpace=space, flags=abi.NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC)
        self.area, self.commands, self.semaphore = Memory(self, 64 << 10), Memory(self, 1 << 20), Memory(self, 4096)
        self._channel(group, rm.alloc(group, abi.FERMI_CONTEXT_SHARE_A, share))
        self._setup()

    def _channel(self, group: int, share: int) -> None:
        params = abi.NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS(
            hObjectBuffer=self.area.handle, gpFifoOffset=self.area.va, gpFifoEntries=ENTRIES, hContextShare=share)
        params.hUserdMemory[0], params.userdOffset[0] = self.area.handle, USERD
        channel = self.rm.alloc(group, abi.AMPERE_CHANNEL_GPFIFO_A, params)
        self.rm.alloc(channel, abi.AMPERE_COMPUTE_B)
        self.rm.control(group, abi.NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, abi.NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS(bEnable=1))
        token = abi.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS()
        self.token = self.rm.control(channel, abi.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, token).workSubmitToken
        page = self.rm.map_cpu(self.subdevice, self.rm.alloc(self.subdevice, abi.TURING_USERMODE_A), 0x10000)
        self.doorbell = ctypes.c_uint32.from_address(page + abi.NVC361_NOTIFY_CHANNEL_PENDING)

    def _setup(self) -> None:
        """The engine, and where kernels find shared and local memory."""
        per_tpc = LOCAL * 32 * 48 * 2
        self.local = Memory(self, (per_tpc * ((self.profile.compute_units + 1) // 2) + 0x1ffff) & ~0x1ffff)
        self.wait(self.submit([
            *method(COMPUTE, abi.NVC6C0_SET_OBJECT, abi.AMPERE_COMPUTE_B),
            *method(COMPUTE, abi.NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, *halves(self.profile.shared_window)),
            *method(COMPUTE, abi.NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, *halves(self.profile.local_window)),
            *method(COMPUTE, abi.NVC6C0_SET_SHADER_LOCAL_MEMORY_A, *halves(self.local.va)),
            *method(COMPUTE, abi.NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, *halves(per_tpc), 0xff)]))

    def submit(self, words: list[int]) -> int:
        """Gives words to the GPU, with a release of the submission's number behind them."""
        self.submitted += 1
        number, slot = self.submitted, self.submitted % 256 * 4096
        execute = (abi.NVC56F_SEM_EXECUTE_OPERATION_RELEASE
                   | abi.NVC56F_SEM_EXECUTE_RELEASE_WFI_EN << abi.NVC56F_SEM_EXECUTE_RELEASE_WFI_SHIFT
                   | abi.NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT << abi.NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_SHIFT)
        high, low = halves(self.semaphore.va)
        words = [*words, *method(HOST, abi.NVC56F_SEM_ADDR_LO, low, high, number, 0, execute)]
        self.commands.words(slot, len(words))[:] = words
        self.area.long((number - 1) % ENTRIES * 8).value = self.commands.va + slot | len(words) << 42 | 1 << 41
        self.area.words(USERD + abi.AmpereAControlGPFifo.GPPut.offset)[0] = number % ENTRIES
        self.doorbell.value = self.token
        return number

    def wait(self, number: int) -> None:
        while self.semaphore.long().value < number:
            time.sleep(0.0001)


class Program:
    """A kernel of a cubin without relocations, its launch descriptor and its bank of parameters."""

    def __init__(self, gpu: Gpu, image: bytes, name: str):
        self.gpu, sections = gpu, self._sections(image)
        code = sections[f".text.{name}"]
        self.memory, self.launch_area = Memory(gpu, len(code) + 8192), Memory(gpu, 8192)
        self.memory.cpu[:len(code)] = code
        self.code_size, self.registers = len(code), self._registers(sections[".nv.info"])

    @staticmethod
    def _sections(image: bytes) -> dict[str, bytes]:
        table, = struct.unpack_from("<Q", image, 40)
        size, count, names = struct.unpack_from("<HHH", image, 58)
        headers = [struct.unpack_from("<IIQQQQ", image, table + size * i) for i in range(count)]
        strings = image[headers[names][4]:]
        return {strings[h[0]:strings.index(b"\0", h[0])].decode(): image[h[4]:h[4] + h[5]] for h in headers if h[1] != 8}

    @staticmethod
    def _registers(info: bytes) -> int:
        at = 0
        while at + 4 <= len(info):
            form, attribute, length = info[at], info[at + 1], int.from_bytes(info[at + 2:at + 4], "little") if info[at] == 4 else 0
            if (form, attribute) == (4, 0x2f):  # EIATTR_REGCOUNT: the file has one kernel
                return struct.unpack_from("<I", info, at + 8)[0]
            at += 4 + length
        raise ValueError("the cubin does not say how many registers the kernel has")

    def descriptor(self, grid: tuple, block: tuple, bank: int) -> list[int]:
        """A launch descriptor (QMD): 64 words of bit fields."""
        words = [0] * 64

        def field(name: str, value: int, index: int | None = None) -> None:
            shift, width = getattr(abi, f"NVC6C0_QMDV03_00_{name}_SHIFT"), getattr(abi, f"NVC6C0_QMDV03_00_{name}_WIDTH")
            shift = shift if index is None else shift(index)
            words[shift // 32] |= (value & (1 << width) - 1) << shift % 32

        for name in ("SM_GLOBAL_CACHING_ENABLE", "INVALIDATE_SHADER_DATA_CACHE", "INVALIDATE_INSTRUCTION_CACHE",
                     "INVALIDATE_SHADER_CONSTANT_CACHE", "BARRIER_COUNT"):
            field(name, 1)
        field("QMD_MAJOR_VERSION", 3)
        field("QMD_GROUP_ID", 0x3f)
        field("SASS_VERSION", 0x87)
        field("API_VISIBLE_CALL_LIMIT", abi.NVC6C0_QMDV03_00_API_VISIBLE_CALL_LIMIT_NO_CHECK)
        field("SAMPLER_INDEX", abi.NVC6C0_QMDV03_00_SAMPLER_INDEX_VIA_HEADER_INDEX)
        field("CWD_MEMBAR_TYPE", abi.NVC6C0_QMDV03_00_CWD_MEMBAR_TYPE_L1_SYSMEMBAR)
        for axis, blocks in zip(("WIDTH", "HEIGHT", "DEPTH"), grid, strict=True):
            field(f"CTA_RASTER_{axis}", blocks)
        for axis, threads in enumerate(block):
            field(f"CTA_THREAD_DIMENSION{axis}", threads)
        field("PROGRAM_ADDRESS_LOWER", self.memory.va & 0xffff_ffff)
        field("PROGRAM_ADDRESS_UPPER", self.memory.va >> 32)
        field("PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED", self.memory.va >> 8 & 0xffff_ffff)
        field("PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED", self.memory.va >> 40)
        field("PROGRAM_PREFETCH_SIZE", self.code_size >> 8)
        field("REGISTER_COUNT_V", self.registers)
        field("SHARED_MEMORY_SIZE", 1024)
        for limit, size in (("MIN", 8), ("TARGET", 8), ("MAX", 164)):
            field(f"{limit}_SM_CONFIG_SHARED_MEM_SIZE", size // 4 + 1)
        field("SHADER_LOCAL_MEMORY_HIGH_SIZE", LOCAL)
        field("CONSTANT_BUFFER_ADDR_LOWER", bank & 0xffff_ffff, 0)
        field("CONSTANT_BUFFER_ADDR_UPPER", bank >> 32, 0)
        field("CONSTANT_BUFFER_SIZE_SHIFTED4", 0x180 // 16, 0)
        field("CONSTANT_BUFFER_INVALIDATE", 1, 0)
        field("CONSTANT_BUFFER_VALID", 1, 0)
        return words

    def __call__(self, grid: tuple, block: tuple, arguments: bytes) -> int:
        """Launches, and returns the number to wait for."""
        profile, area = self.gpu.profile, self.launch_area
        windows = [word for window in (profile.shared_window, profile.local_window) for word in reversed(halves(window))]
        area.words(0, 64)[:] = self.descriptor(grid, block, area.va + 256)
        area.words(256, 11)[:] = [*block, *grid, *windows, 0xfffdc0]
        area.cpu[256 + 0x160:256 + 0x160 + len(arguments)] = arguments
        names = ("INSTRUCTION", "GLOBAL_DATA", "CONSTANT")
        caches = sum(1 << getattr(abi, f"NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI_{name}_SHIFT") for name in names)
        return self.gpu.submit([
            *method(COMPUTE, abi.NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI, caches),
            *method(COMPUTE, abi.NVC6C0_SEND_PCAS_A, area.va >> 8),
            *method(COMPUTE, abi.NVC6C0_SEND_SIGNALING_PCAS2_B,
                    abi.NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_SCHEDULE)])


def main() -> None:
    gpu, n = Gpu(), 1000
    program = Program(gpu, compile.compiled(SOURCE.encode(), "axpy.cu"), "axpy")
    y, x = Memory(gpu, 4 * n), Memory(gpu, 4 * n)
    y.floats(n)[:], x.floats(n)[:] = range(n), [1.0] * n
    for _ in range(3):
        gpu.wait(program((8, 1, 1), (128, 1, 1), struct.pack("<QQfi", y.va, x.va, 0.5, n)))
    assert list(y.floats(n)) == [i + 1.5 for i in range(n)]
    print(f"axpy of {n} numbers, three times, with RM calls through ctypes: right")
    gpu.rm.close()


if __name__ == "__main__":
    main()
