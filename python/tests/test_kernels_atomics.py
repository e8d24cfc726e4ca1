"""Atomics: every operation on every type and space that PTX has for sm_87, and what CUDA C++ makes of `atomicAdd` and its kin.

An atomic says what it found. The reference looks for an order of the threads in which each finds what it says; there must be one.
"""

import cuda
import numpy
import pytest

from tegrarm.rm import RmError

# How many places the threads share. With one, all lanes of a warp have the same place.
SLOTS = 12
ONE = 1
THREADS = 96
# Letters of inline assembly, and C types, by the digits of a PTX type.
LETTERS = {
    "16": ("h", "unsigned short", numpy.uint16),
    "32": ("r", "unsigned", numpy.uint32),
    "64": ("l", "unsigned long long", numpy.uint64),
}
OPERATIONS = {
    "add": ["u32", "s32", "u64", "f32", "f64"],
    "add.noftz": ["f16", "f16x2"],
    "min": ["u32", "s32", "u64", "s64"],
    "max": ["u32", "s32", "u64", "s64"],
    "inc": ["u32"],
    "dec": ["u32"],
    "and": ["b32", "b64"],
    "or": ["b32", "b64"],
    "xor": ["b32", "b64"],
    "exch": ["b32", "b64"],
    "cas": ["b16", "b32", "b64"],
}
# Where the memory is, and whether the instruction says so.
PLACES = {
    "global": ("global", ".global"),
    "shared": ("shared", ".shared"),
    "generic_global": ("global", ""),
    "generic_shared": ("shared", ""),
}
MATRIX = [(op, ty, place) for op, types in OPERATIONS.items() for ty in types for place in PLACES]


def width(ty):
    return "32" if ty.endswith("x2") else ty[1:]


def name(op, ty, place, keeps, *more):
    return "_".join([op, ty, place, "atom" if keeps else "red", *more]).replace(".", "_")


def kernel(op, ty, place, keeps, order=".relaxed", scope=".gpu"):
    """One kernel; with `keeps` it keeps what its atomics find, and with generic addresses the compiler cannot tell the space."""
    letter, c, _ = LETTERS[width(ty)]
    where, space = PLACES[place]
    more = f', "{letter}"(other)' if op == "cas" else ""
    instruction = f"{'atom' if keeps else 'red'}{order}{scope}{space}.{op}.{ty}"
    operands = ('"r"((unsigned)__cvta_generic_to_shared(at))' if space == ".shared" else '"l"(at)') + f', "{letter}"(value){more}'
    if keeps:
        text = f'asm volatile("{instruction} %0, [%1], %2{", %3" if more else ""};" : "={letter}"(found) : {operands} : "memory");'
    else:
        text = f'asm volatile("{instruction} [%0], %1;" :: {operands} : "memory");'
    named = name(op, ty, place, keeps, *(x[1:] for x in (order, scope) if (order, scope) != (".relaxed", ".gpu")))
    return f"""
extern "C" __global__ void {named}({c} *memory, const {c} *values, const {c} *others, {c} *olds, int slots) {{
    __shared__ {c} shared[{SLOTS}];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {c} value = values[i], other = others[i], found = value, *at = {"shared" if where == "shared" else "memory"} + i % slots;
    if (threadIdx.x < {SLOTS}) shared[threadIdx.x] = memory[threadIdx.x];
    __syncthreads();
    asm volatile("" : "+l"(at));
    {text}
    olds[i] = found;
    __syncthreads();
    {f"if (threadIdx.x < {SLOTS}) memory[threadIdx.x] = shared[threadIdx.x];" if where == "shared" else ""}
}}"""


EXCHANGES = ("exch", "cas")
SOURCE = "\n".join(kernel(*row, keeps) for row in MATRIX for keeps in (True, False) if keeps or row[0] not in EXCHANGES)
# Memory orders and scopes change the fences around an atomic, not what it does.
ORDERED = [("add", "u32"), ("add", "f32"), ("max", "s64"), ("exch", "b64"), ("cas", "b32")]
ORDERS = [(order, scope) for order in (".relaxed", ".acquire", ".release", ".acq_rel") for scope in (".cta", ".gpu", ".sys")]
ORDER_SOURCE = "\n".join(kernel(op, ty, place, True, *how) for op, ty in ORDERED for place in PLACES for how in ORDERS)


def apply(op, ty, old, value, other):
    """What memory holds after one atomic; everything is bits."""
    bits = int(width(ty))
    mask = (1 << bits) - 1
    if ty.startswith("f"):
        kind = {"f16": numpy.float16, "f16x2": numpy.float16, "f32": numpy.float32, "f64": numpy.float64}[ty]
        store = LETTERS[width(ty)][2]
        a, b = (numpy.array([x], store).view(kind) for x in (old, value))
        return int((a + b).view(store)[0])
    signed = (lambda x: x - (1 << bits) if x >> (bits - 1) else x) if ty.startswith("s") else (lambda x: x)
    return {
        "add": lambda: old + value & mask,
        "min": lambda: min(old, value, key=signed),
        "max": lambda: max(old, value, key=signed),
        "inc": lambda: 0 if old >= value else old + 1,
        "dec": lambda: value if old == 0 or old > value else old - 1,
        "and": lambda: old & value,
        "or": lambda: old | value,
        "xor": lambda: old ^ value,
        "exch": lambda: value,
        "cas": lambda: other if old == value else old,
    }[op.split(".")[0]]()


def inputs(op, ty, count, slots):
    """What memory holds at first, and each thread's operands. Sums are exact in any order, and grow, so that no value comes twice."""
    store, draw = LETTERS[width(ty)][2], numpy.random.default_rng(int(width(ty)) + len(op))
    slot, turn = numpy.arange(count) % slots, numpy.arange(count) // slots
    memory, values, others = (draw.integers(0, numpy.iinfo(store).max, n, store, endpoint=True) for n in (SLOTS, count, count))
    if ty.startswith("f"):
        kind = {"f16": numpy.float16, "f16x2": numpy.float16, "f32": numpy.float32, "f64": numpy.float64}[ty]
        parts = 2 if ty == "f16x2" else 1
        memory = numpy.arange(SLOTS * parts).astype(kind).view(store)
        values = (1 + numpy.arange(count * parts) // parts % 16).astype(kind).view(store)
    elif op in ("inc", "dec"):
        memory, values = numpy.arange(SLOTS, dtype=store), (3 + slot).astype(store)
    elif op in ("and", "or"):
        # One bit for each thread of a slot, and a few that do nothing.
        bit = (1 << (turn * 2 % int(width(ty))).astype(store)).astype(store)
        memory, values = (numpy.zeros(SLOTS, store), bit) if op == "or" else (~numpy.zeros(SLOTS, store), ~bit)
    elif op == "cas":
        # A thread waits for what another one leaves, or for something that never comes.
        chain = draw.permutation(1 << 15)[:count].astype(store)
        others = chain
        before = numpy.concatenate([memory[:slots], chain])[: count]
        values = numpy.where(turn % 5 == 4, ~before, before)
    return memory, values.astype(store), others.astype(store)


def check(op, ty, first, last, values, others, found):
    """There is an order of these atomics on one place that explains all they found, and what is left."""
    now, left = int(first), [(int(v), int(o), int(f)) for v, o, f in zip(values, others, found, strict=True)]
    while left:
        ready = [x for x in left if x[2] == now]
        assert ready, f"{op}.{ty}: {now:#x} was there, and {len(left)} atomics found {[hex(x[2]) for x in left[:4]]}"
        # Atomics that change nothing come first, because the results do not show when they were executed.
        step = next((x for x in ready if apply(op, ty, now, x[0], x[1]) == now), ready[0])
        left.remove(step)
        now = apply(op, ty, now, step[0], step[1])
    assert now == int(last), f"{op}.{ty}: {int(last):#x} is left, not {now:#x}"


def run(gpu, cubin, op, ty, place, keeps, *more, slots=SLOTS):
    blocks = 1 if PLACES[place][0] == "shared" else 2
    memory, values, others = inputs(op, ty, blocks * THREADS, slots)
    last, olds = memory.copy(), numpy.zeros_like(values)
    gpu.launch(gpu.kernel(cubin, name(op, ty, place, keeps, *more)), blocks, THREADS, last, values, others, olds, numpy.int32(slots))
    for slot in range(slots):
        mine = slice(slot, None, slots)
        if keeps:
            check(op, ty, memory[slot], last[slot], values[mine], others[mine], olds[mine])
        else:
            now = int(memory[slot])
            for value in values[mine]:
                now = apply(op, ty, now, int(value), 0)
            assert now == int(last[slot]), f"slot {slot}: {int(last[slot]):#x}, not {now:#x}"


@pytest.mark.parametrize("way", cuda.TRIED)
@pytest.mark.parametrize("place", PLACES)
def test_every_operation_type_and_space(gpu, way, place):
    cubin = cuda.compiled(SOURCE, way)
    for op, ty, where in MATRIX:
        for keeps in (True, False):
            if where == place and (keeps or op not in EXCHANGES):
                run(gpu, cubin, op, ty, place, keeps)
                run(gpu, cubin, op, ty, place, keeps, slots=ONE)


@pytest.mark.parametrize("place", PLACES)
def test_orders_and_scopes(gpu, place):
    cubin = cuda.compiled(ORDER_SOURCE)
    for op, ty in ORDERED:
        for order, scope in ORDERS:
            more = () if (order, scope) == (".relaxed", ".gpu") else (order[1:], scope[1:])
            run(gpu, cubin, op, ty, place, True, *more)


# Misplaced atomics. 32-bit ones have no way around local memory, and the others do not reach this kernel's fallback.
MISPLACED = """
extern "C" __global__ void shared_word(unsigned *out, int shift) {
    __shared__ unsigned s[8];
    asm volatile("red.shared.add.u32 [%0], 1;" :: "r"((unsigned)__cvta_generic_to_shared(s) + shift) : "memory");
    out[0] = s[0];
}
extern "C" __global__ void shared_counter(unsigned *out, int shift) {
    __shared__ unsigned s[8];
    atomicAdd((unsigned *)((char *)s + shift), 1u);
    out[0] = s[0];
}
extern "C" __global__ void global_word(unsigned *out, int shift) { atomicXor((unsigned *)((char *)out + shift), threadIdx.x); }
extern "C" __global__ void global_long(unsigned long long *out, int shift) {
    atomicMax((unsigned long long *)((char *)out + shift), 1ull + threadIdx.x);
}
extern "C" __global__ void local_word(unsigned *out, int shift) {
    unsigned mine[4] = {1, 2, 3, 4}, *at = mine + shift;
    asm volatile("" : "+l"(at) :: "memory");
    asm volatile("atom.inc.u32 %0, [%1], 9;" : "=r"(out[0]) : "l"(at) : "memory");
    out[1] = mine[shift & 3];
}
"""


@pytest.mark.parametrize(("kernel", "shift", "why"), [
    ("shared_word", 2, "misaligned"),
    ("shared_counter", 1, "misaligned"),
    ("shared_counter", 1 << 16, "out of range"),
    ("global_word", 2, "misaligned"),
    ("global_long", 4, "misaligned"),
    ("local_word", 1, "wrong space"),
])
def test_misplaced_atomics_are_refused(gpu, kernel, shift, why):
    out = numpy.zeros(8, numpy.uint32)
    with pytest.raises(RmError, match="(?i)" + why):
        gpu.launch(gpu.kernel(cuda.compiled(MISPLACED), kernel), 1, 32, out, numpy.int32(shift))
