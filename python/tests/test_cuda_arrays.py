"""CUDA arrays of the CUDA library: what they say of themselves, their copies, the limits of their sizes, levels, graphs."""

import ctypes
from collections.abc import Iterator

import cuda_driver as driver
import numpy
import pytest
from cuda_driver import array, call, code, out, read
from test_cuda_memory import ARRAY, HOST, ArrayDescriptor, Memcpy2d, Memcpy3d, cuda_array, read_array


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[int]:
    with driver.context() as made:
        yield made


def test_arrays_say_what_they_are_and_copies_stay_inside() -> None:
    given = ArrayDescriptor(100, 7, 0, 0x20, 2, 2)
    made = out("cuArray3DCreate_v2", ctypes.byref(given))
    seen, flat = ArrayDescriptor(), (ctypes.c_uint64 * 3)()
    call("cuArray3DGetDescriptor_v2", ctypes.byref(seen), made)
    call("cuArrayGetDescriptor_v2", flat, made)
    assert bytes(seen) == bytes(given) and list(flat) == [100, 7, 0x20 | 2 << 32]
    # Of eight bytes each are the elements, whose halves no copy leaves.
    data = numpy.arange(1400, dtype=numpy.float32).reshape(7, 200)
    rows = Memcpy2d(src_type=HOST, src_host=data.ctypes.data, src_pitch=800, dst_type=ARRAY, dst_array=made, width=800, height=7)
    for change in ({"dst_x": 8}, {"dst_y": 1}, {"width": 796}, {"dst_x": 4, "width": 792}, {"width": 808}, {"height": 8}):
        wrong = Memcpy2d.from_buffer_copy(rows)
        for name, value in change.items():
            setattr(wrong, name, value)
        assert code("cuMemcpy2D_v2", ctypes.byref(wrong)) == 1, change
    call("cuMemcpy2D_v2", ctypes.byref(rows))
    assert code("cuMemcpyAtoH_v2", data, made, 0, 8) == 1, "it has more than one row"
    for name in ("cuArrayGetSparseProperties", "cuArrayGetMemoryRequirements"):
        assert code(name, (ctypes.c_uint64 * 9)(), made, ctypes.c_int(0)) == 1
    assert code("cuArrayGetPlane", ctypes.byref(ctypes.c_uint64()), made, ctypes.c_uint(0)) == 1
    call("cuArrayDestroy", made)
    assert code("cuArrayDestroy", made) == 400 == code("cuArrayGetDescriptor_v2", flat, made)
    assert code("cuMemcpy2D_v2", ctypes.byref(rows)) == 1


def test_arrays_of_one_row() -> None:
    data, result = numpy.arange(64, dtype=numpy.uint32), numpy.zeros(64, numpy.uint32)
    first, second = (out("cuArrayCreate_v2", (ctypes.c_uint64 * 3)(64, 0, 3 | 1 << 32)) for _ in range(2))
    memory, stream = array(data[::-1].copy()), out("cuStreamCreate", ctypes.c_uint(0))
    call("cuMemcpyHtoA_v2", first, 0, data, 256)
    call("cuMemcpyAtoA_v2", second, 128, first, 0, 128)
    call("cuMemcpyDtoA_v2", second, 0, memory, 128)
    call("cuMemcpyAtoHAsync_v2", result, second, 0, 256, stream)
    call("cuStreamSynchronize", stream)
    assert (result[:32] == data[::-1][:32]).all() and (result[32:] == data[:32]).all()
    call("cuMemcpyHtoAAsync_v2", first, 4, data, 4, stream)
    call("cuStreamSynchronize", stream)
    call("cuMemcpyAtoD_v2", memory, first, 0, 12)
    assert list(read(memory, numpy.zeros(3, numpy.uint32))) == [0, 0, 2]
    call("cuMemcpyAtoH_v2", result, first, 8, 8)
    assert list(result[:2]) == [2, 3]
    for at, size in ((0, 257), (252, 8), (2, 4), (0, 3), (1 << 63, 4)):
        assert code("cuMemcpyHtoA_v2", first, at, data, size) == 1 == code("cuMemcpyAtoD_v2", memory, first, at, size), (at, size)
    for made in (first, second):
        call("cuArrayDestroy", made)


def test_the_sizes_of_arrays_are_those_of_the_attributes() -> None:
    def limit(number: int) -> int:
        return out("cuDeviceGetAttribute", ctypes.c_int(number), ctypes.c_int(0), kind=ctypes.c_int)

    # TEXTURE1D_WIDTH, SURFACE1D_WIDTH, TEXTURE2D_GATHER_WIDTH, TEXTURE3D_WIDTH and that of its alternate, layers, cubes.
    one, surface, gather, three, deep, layers, cube = (limit(number) for number in (21, 55, 45, 24, 49, 43, 52))
    assert surface < one and three < deep
    can = [(one, 0, 0, 0), (surface, 0, 0, 2), (gather, 1, 0, 8), (gather + 1, 1, 0, 0), (three, 1, 1, 0), (1, 1, deep, 0),
           (1, 0, layers, 1), (1, 1, layers, 1), (4, 4, 6, 4), (4, 4, 12, 5), (cube, cube, 6, 4)]
    cannot = [(0, 0, 0, 0), (one + 1, 0, 0, 0), (surface + 1, 0, 0, 2), (gather + 1, 1, 0, 8), (three + 1, 1, 1, 0), (three, 1, deep, 0),
              (1, 1, deep + 1, 0), (1, 0, layers + 1, 1), (1, 0, 4, 0), (1, 1, 0, 1), (4, 5, 6, 4), (4, 4, 7, 4), (4, 4, 13, 5),
              (8, 8, 0, 1 << 9)]
    for cases, expected in ((can, 0), (cannot, 1)):
        for width, height, depth, flags in cases:
            made, given = ctypes.c_uint64(), ArrayDescriptor(width, height, depth, 1, 1, flags)
            assert code("cuArray3DCreate_v2", ctypes.byref(made), ctypes.byref(given)) == expected, given
            if not expected:
                call("cuArrayDestroy", made.value)
    for format, channels, flags, expected in ((1, 3, 0, 1), (7, 1, 0, 1), (0xC1, 2, 0, 0), (0xC1, 1, 0, 1), (0xB0, 1, 0, 1),
                                              (0x91, 4, 0, 1), (1, 1, 0x40, 801), (1, 1, 0x80, 801), (1, 1, 0x10, 801)):
        given = ArrayDescriptor(8, 8, 0, format, channels, flags)
        assert code("cuArray3DCreate_v2", ctypes.byref(ctypes.c_uint64()), ctypes.byref(given)) == expected, given


def test_levels_of_an_array() -> None:
    given = ArrayDescriptor(20, 5, 3, 8, 4, 0)
    made = out("cuMipmappedArrayCreate", ctypes.byref(given), ctypes.c_uint(9))
    levels, seen = [], ArrayDescriptor()
    for level in range(5):
        levels.append(out("cuMipmappedArrayGetLevel", made, ctypes.c_uint(level)))
        call("cuArray3DGetDescriptor_v2", ctypes.byref(seen), levels[-1])
        assert (seen.width, seen.height, seen.depth) == tuple(max(size >> level, 1) for size in (20, 5, 3))
    assert code("cuMipmappedArrayGetLevel", ctypes.byref(ctypes.c_uint64()), made, ctypes.c_uint(5)) == 1, "the fifth has one element"
    assert code("cuArrayDestroy", levels[0]) == 400
    assert code("cuMipmappedArrayCreate", ctypes.byref(ctypes.c_uint64()), ctypes.byref(given), ctypes.c_uint(0)) == 1
    layered = out("cuMipmappedArrayCreate", ctypes.byref(ArrayDescriptor(8, 8, 3, 8, 4, 1)), ctypes.c_uint(2))
    call("cuArray3DGetDescriptor_v2", ctypes.byref(seen), out("cuMipmappedArrayGetLevel", layered, ctypes.c_uint(1)))
    assert (seen.width, seen.height, seen.depth) == (4, 4, 3), "layers are in every level"
    for one in (made, layered):
        call("cuMipmappedArrayDestroy", one)
    assert code("cuArray3DGetDescriptor_v2", ctypes.byref(seen), levels[0]) == 400 == code("cuMipmappedArrayDestroy", made)


def test_graphs_copy_arrays() -> None:
    data = numpy.arange(6 * 50 * 3, dtype=numpy.uint8).reshape(3, 6, 50)
    source, target, stream = cuda_array(data), cuda_array(numpy.zeros_like(data)), out("cuStreamCreate", ctypes.c_uint(1))
    box = Memcpy3d(src_type=ARRAY, src_array=source, src_x=7, src_y=2, src_z=1, dst_type=ARRAY, dst_array=target, dst_y=1)
    box.width, box.height, box.depth = 40, 4, 2
    call("cuStreamBeginCapture_v2", stream, ctypes.c_uint(0))
    call("cuMemcpy3DAsync_v2", ctypes.byref(box), stream)
    graph = out("cuStreamEndCapture", stream, last=True)
    nodes, count, seen = (ctypes.c_uint64 * 2)(), ctypes.c_size_t(2), Memcpy3d()
    call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
    call("cuGraphMemcpyNodeGetParams", nodes[0], ctypes.byref(seen))
    names = ("type", "array", "x", "y", "z")
    told = [[getattr(seen, side + name) for name in names] for side in ("src_", "dst_")]
    # The type has 32 bits.
    assert [[kind & 0xFFFFFFFF, *rest] for kind, *rest in told] == [[3, source, 7, 2, 1], [3, target, 0, 1, 0]]
    # What the node says makes the same node.
    call("cuGraphMemcpyNodeSetParams", nodes[0], ctypes.byref(seen))
    run = out("cuGraphInstantiateWithFlags", graph, 0)
    expected = numpy.zeros_like(data)
    expected[0:2, 1:5, 0:40] = data[1:3, 2:6, 7:47]
    for _ in range(2):
        call("cuGraphLaunch", run, stream)
        call("cuStreamSynchronize", stream)
        assert (read_array(target, data) == expected).all()
    call("cuGraphExecDestroy", run)
    call("cuGraphDestroy", graph)
    for made in (source, target):
        call("cuArrayDestroy", made)
