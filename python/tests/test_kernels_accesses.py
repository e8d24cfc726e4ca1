"""Loads and stores in every form that PTX has for sm_87: spaces, memory orders, cache operators, hints, types and vectors."""

import cuda
import numpy
import pytest

THREADS = 64
SCOPES = (".cta", ".gpu", ".sys")
# How a load is made, and how the store of the same kernel.
ORDERS = [("", ""), (".weak", ".weak"), (".volatile", ".volatile"),
          *((f".relaxed{scope}", f".relaxed{scope}") for scope in SCOPES), *((f".acquire{scope}", f".release{scope}") for scope in SCOPES)]
TYPES = {"8": ("r", "u8", "s8", "b8"), "16": ("h", "u16", "s16", "b16"), "32": ("r", "u32", "s32", "b32"), "64": ("l", "u64", "s64", "b64")}
C = {"8": "unsigned", "16": "unsigned short", "32": "unsigned", "64": "unsigned long long"}
# Cache operators and hints, of global memory alone.
GLOBAL = [(".ca", ".wb"), (".cg", ".cg"), (".cs", ".cs"), (".lu", ".wt"), (".cv", ".wb"), (".nc", ""),
          (".L1::evict_last", ".L1::evict_last"),
          (".L1::no_allocate", ".L1::no_allocate"), (".L1::evict_first", ".L1::evict_first"), (".nc.L1::evict_last.L2::128B", ""),
          (".L1::evict_unchanged.L2::256B", ".L1::evict_unchanged"), (".L2::64B", "")]
MMIO = [(".mmio.relaxed.sys", ".mmio.relaxed.sys")]


# Space, load and store of each kernel.
ROWS = [*((space, *pair) for space in (".global", ".shared", "") for pair in ORDERS), *((".global", *pair) for pair in GLOBAL + MMIO)]


def types(load):
    """What a kernel copies one after another: type and number of items. Not every order has vectors."""
    vectors = not load.startswith((".acquire", ".mmio"))
    return [(ty, items) for bits, (_, *some) in TYPES.items() for ty in some for items in ((1, 2, 4) if vectors else (1,))
            if int(bits) * items <= 128]


def size(ty, items):
    return int(ty[1:]) // 8 * items


def name(space, load, store):
    return f"copy{space}{load}{store}".replace(".", "_").replace("::", "_")


def placed(operation, order, space):
    """The order stands before the space, cache operators and hints behind it."""
    before = order.startswith((".weak", ".volatile", ".relaxed", ".acquire", ".release", ".mmio"))
    return f"{operation}{order}{space}" if before else f"{operation}{space}{order}"


def copy(space, load, store, ty, items, at):
    """Every thread copies its items of one type."""
    (letter, *_), c = TYPES[ty[1:]], C[ty[1:]]
    vector = f".v{items}" if items > 1 else ""
    group = "{" + ", ".join(f"%{i}" for i in range(items)) + "}" if items > 1 else "%0"
    outs = ", ".join(f'"={letter}"(x[{i}])' for i in range(items))
    ins = outs.replace("=", "")
    address = '"r"((unsigned)__cvta_generic_to_shared(%s))' if space == ".shared" else '"l"(%s)'
    place = f"{at * THREADS} + threadIdx.x * {size(ty, items)}"
    return f"""
    {{
        {c} x[{items}];
        asm volatile("{placed("ld", load, space)}{vector}.{ty} {group}, [%{items}];" : {outs} : {address % f"from + {place}"} : "memory");
        asm volatile("{placed("st", store, space)}{vector}.{ty.replace("s", "u")} [%{items}], {group};"
                     :: {ins}, {address % f"to + {place}"} : "memory");
    }}"""


def kernel(space, load, store):
    at, copies = 0, ""
    for ty, items in types(load):
        copies += copy(space, load, store, ty, items, at)
        at += size(ty, items)
    total, local = at * THREADS, space == ".shared"
    return f"""
extern "C" __global__ void {name(space, load, store)}(const unsigned char *in, unsigned char *out) {{
    extern __shared__ __align__(16) unsigned char a[];
    unsigned char *b = a + {total}, *to = {"b" if local else "out"};
    const unsigned char *from = {"a" if local else "in"};
    {f"for (int i = threadIdx.x; i < {total}; i += {THREADS}) a[i] = in[i];" if local else ""}
    __syncthreads();
    {copies}
    __syncthreads();
    {f"for (int i = threadIdx.x; i < {total}; i += {THREADS}) out[i] = b[i];" if local else ""}
}}"""


SOURCE = "\n".join(kernel(*row) for row in ROWS)


@pytest.mark.parametrize("way", cuda.TRIED)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: name(*row))
def test_every_load_and_store(gpu, way, row):
    total = THREADS * sum(size(*one) for one in types(row[1]))
    data = numpy.random.default_rng(total).integers(0, 256, total, numpy.uint8)
    out = numpy.zeros_like(data)
    gpu.launch(gpu.kernel(cuda.compiled(SOURCE, way), name(*row)), 1, THREADS, data, out, shared=2 * total if row[0] == ".shared" else 0)
    assert (out == data).all()
