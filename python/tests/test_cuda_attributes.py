"""Attributes of launches, streams, pointers and copies, and what a device has none of: peers and parts."""

import ctypes
from collections.abc import Iterator

import cuda_driver as driver
import numpy
import pytest
from cuda_driver import array, call, code, out, read
from test_cuda_graphs import GLOBAL, Kernels, N, capture, edges, end, graph, handles, instantiate, node, stream

DATA = numpy.arange(N, dtype=numpy.float32)


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[int]:
    with driver.context() as made:
        yield made


@pytest.fixture(scope="module")
def kernels(context: int) -> Kernels:
    return Kernels()


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint64 * 8)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [("sizes", ctypes.c_uint * 7), ("stream", ctypes.c_uint64), ("attributes", ctypes.POINTER(LaunchAttribute)),
                ("count", ctypes.c_uint)]


COOPERATIVE, CLUSTER, PROGRAMMATIC_EVENT, PRIORITY, COMPLETION_EVENT, UPDATABLE, CARVEOUT = 2, 4, 7, 8, 12, 13, 14


def launch_ex(kernels: Kernels, on: int, address: int, *attributes: tuple[int, int]) -> int:
    """The result of a launch of `add` with attributes: the numbers, and the first words of their values."""
    given = [LaunchAttribute(id, 0, (ctypes.c_uint64 * 8)(word)) for id, word in attributes]
    config = LaunchConfig((8, 1, 1, 128, 1, 1, 0), on, (LaunchAttribute * len(given))(*given), len(given))
    return code("cuLaunchKernelEx", ctypes.byref(config), kernels.add, driver.values(address, 1.0, ctypes.c_int(N)), None)


def attribute(of: int, id: int, name: str = "cuGraphKernelNodeGetAttribute") -> int:
    value = (ctypes.c_uint64 * 8)()
    call(name, of, ctypes.c_uint(id), value)
    return value[0]


def test_attributes_of_launches_stay_with_their_nodes(kernels: Kernels) -> None:
    data = numpy.zeros(N, numpy.float32)
    a, on, of = array(data), stream(), graph()
    capture(on)
    assert launch_ex(kernels, on, a, (COOPERATIVE, 1), (CARVEOUT, 50)) == 0
    captured = end(on)
    first, = handles("cuGraphGetNodes", captured)
    assert [attribute(first, id) for id in (COOPERATIVE, CARVEOUT, PRIORITY, UPDATABLE)] == [1, 50, 0, 0]
    plain = node("Kernel", of, [], kernels.node(kernels.add, a, 2.0))
    assert [attribute(plain, id) for id in (COOPERATIVE, CARVEOUT, CLUSTER)] == [0, 0xFFFFFFFF, 0]
    call("cuGraphKernelNodeSetAttribute", plain, ctypes.c_uint(PRIORITY), (ctypes.c_uint64 * 8)(3))
    assert attribute(plain, PRIORITY) == 3 and attribute(plain, COOPERATIVE) == 0
    call("cuGraphKernelNodeCopyAttributes", plain, first)
    assert [attribute(plain, id) for id in (COOPERATIVE, CARVEOUT, PRIORITY)] == [1, 50, 0]
    for id, word, expected in ((CLUSTER, 2 | 1 << 32, 801), (UPDATABLE, 1, 801), (PROGRAMMATIC_EVENT, 0, 1), (99, 0, 1)):
        assert code("cuGraphKernelNodeSetAttribute", plain, ctypes.c_uint(id), (ctypes.c_uint64 * 8)(word, 1)) == expected, id
    assert code("cuGraphKernelNodeGetAttribute", plain, ctypes.c_uint(99), (ctypes.c_uint64 * 8)()) == 1
    call("cuGraphLaunch", instantiate(captured), on)
    call("cuGraphLaunch", instantiate(of), on)
    call("cuStreamSynchronize", on)
    assert (read(a, data) == 3).all()


def test_other_parameters_leave_the_attributes_of_a_node(kernels: Kernels) -> None:
    """A launch that is cooperative stays so: else its blocks would wait for others that have not begun."""
    data = numpy.zeros(N, numpy.float32)
    a, on, of = array(data), stream(), graph()
    launch = node("Kernel", of, [], kernels.node(kernels.add, a, 1.0))
    for id, word in ((COOPERATIVE, 1), (PRIORITY, 3)):
        call("cuGraphKernelNodeSetAttribute", launch, ctypes.c_uint(id), (ctypes.c_uint64 * 8)(word))
    call("cuGraphKernelNodeSetParams", launch, ctypes.byref(kernels.node(kernels.add, a, 2.0)))
    assert [attribute(launch, id) for id in (COOPERATIVE, PRIORITY)] == [1, 3]
    ready = instantiate(of)
    call("cuGraphExecKernelNodeSetParams", ready, launch, ctypes.byref(kernels.node(kernels.add, a, 4.0)))
    call("cuGraphLaunch", ready, on)
    call("cuStreamSynchronize", on)
    assert (read(a, data) == 4).all()
    # More blocks than the GPU has room for are no cooperative launch, in a node as little as anywhere else.
    many = kernels.node(kernels.add, a, 1.0)
    many.sizes[0] = 100000
    assert code("cuGraphKernelNodeSetParams", launch, ctypes.byref(many)) == 720
    assert code("cuGraphExecKernelNodeSetParams", ready, launch, ctypes.byref(many)) == 720


def test_an_event_of_a_launch_comes_behind_it(kernels: Kernels) -> None:
    data = numpy.zeros(N, numpy.float32)
    a, on, other = array(data), stream(), stream()
    event, timed = out("cuEventCreate", ctypes.c_uint(2)), out("cuEventCreate", ctypes.c_uint(0))
    for id in (PROGRAMMATIC_EVENT, COMPLETION_EVENT):
        assert launch_ex(kernels, on, a, (id, event)) == 0
        call("cuStreamWaitEvent", other, event, ctypes.c_uint(0))
        kernels.launch(kernels.scale, other, a, 2.0)
        call("cuStreamSynchronize", other)
        assert launch_ex(kernels, on, a, (id, timed)) == 1 and launch_ex(kernels, on, a, (id, on)) == 400
    assert (read(a, data) == 6).all()
    assert launch_ex(kernels, on, a, (CLUSTER, 2 | 1 << 32)) == 801
    # In a capture, a stream that waits for the event takes part behind the launch.
    capture(on)
    assert launch_ex(kernels, on, a, (COMPLETION_EVENT, event)) == 0
    call("cuStreamWaitEvent", other, event, ctypes.c_uint(0))
    kernels.launch(kernels.scale, other, a, 2.0)
    call("cuEventRecord", event, other)
    call("cuStreamWaitEvent", on, event, ctypes.c_uint(0))
    assert len(edges(captured := end(on))) == 1
    call("cuGraphLaunch", instantiate(captured), on)
    call("cuStreamSynchronize", on)
    assert (read(a, data) == 14).all()


def test_edges_of_a_newer_gpu_are_refused(kernels: Kernels) -> None:
    of, on = graph(), stream()
    first, second = [out("cuGraphAddEmptyNode", of, None, 0) for _ in range(2)]
    pair = [(ctypes.c_uint64 * 1)(one) for one in (first, second)]
    plain, programmatic = (ctypes.c_uint64 * 1)(0), (ctypes.c_uint64 * 1)(1 << 16)
    assert code("cuGraphAddDependencies_v2", of, *pair, programmatic, 1) == 801
    call("cuGraphAddDependencies_v2", of, *pair, plain, 1)
    assert len(edges(of)) == 1
    assert code("cuGraphRemoveDependencies_v2", of, *pair, programmatic, 1) == 801
    call("cuGraphRemoveDependencies_v2", of, *pair, plain, 1)
    assert not edges(of)
    assert code("cuStreamBeginCaptureToGraph", on, of, pair[0], programmatic, 1, GLOBAL) == 801
    call("cuStreamBeginCaptureToGraph", on, of, pair[0], plain, 1, GLOBAL)
    assert code("cuStreamUpdateCaptureDependencies_v2", on, pair[1], programmatic, 1, ctypes.c_uint(1)) == 801
    call("cuStreamUpdateCaptureDependencies_v2", on, pair[1], plain, 1, ctypes.c_uint(1))
    assert end(on) == of


def test_attributes_of_streams_are_kept_and_copied(kernels: Kernels) -> None:
    one, other = out("cuStreamCreateWithPriority", ctypes.c_uint(1), ctypes.c_int(-2)), stream()

    def told(of: int, id: int) -> int:
        return attribute(of, id, "cuStreamGetAttribute")

    def change(of: int, id: int, *words: int) -> int:
        return code("cuStreamSetAttribute", of, ctypes.c_uint(id), (ctypes.c_uint64 * 8)(*words))

    window, policy, domain_map, domain = 1, 3, 9, 10
    assert [told(one, id) for id in (window, policy, PRIORITY, domain_map, domain)] == [0, 1, 0xFFFFFFFE, 0, 0]
    assert change(one, window, 0x1000, 64) == change(one, policy, 4) == change(one, domain, 1) == 0
    assert change(one, PRIORITY, -9 & 0xFFFFFFFF) == 0
    assert [told(one, id) for id in (window, policy, domain, PRIORITY)] == [0x1000, 4, 1, 0xFFFFFFFB]
    assert out("cuStreamGetPriority", one, kind=ctypes.c_int, last=True) == -5
    assert [change(one, *bad) for bad in ((policy, 0), (policy, 5), (domain, 2), (domain_map, 0x100), (COOPERATIVE, 1))] == [1] * 5
    call("cuStreamCopyAttributes", other, one)
    assert [told(other, id) for id in (window, policy, domain, PRIORITY)] == [0x1000, 4, 1, 0xFFFFFFFB]
    assert code("cuStreamGetAttribute", other, ctypes.c_uint(COOPERATIVE), (ctypes.c_uint64 * 8)()) == 1


class CopyAttributes(ctypes.Structure):
    _fields_ = [("order", ctypes.c_uint), ("source", ctypes.c_int * 2), ("target", ctypes.c_int * 2), ("flags", ctypes.c_uint)]


def test_a_batch_of_copies_with_attributes() -> None:
    on = out("cuStreamCreate", ctypes.c_uint(1))
    source = out("cuMemHostAlloc", DATA.nbytes, ctypes.c_uint(0))
    mine = numpy.frombuffer((ctypes.c_char * DATA.nbytes).from_address(source), numpy.float32)
    made = [array(numpy.zeros_like(DATA)) for _ in range(3)]

    def batch(attributes: list[CopyAttributes], first: list[int], name: str = "cuMemcpyBatchAsync_v2") -> int:
        tables = [(ctypes.c_uint64 * 3)(*made), (ctypes.c_uint64 * 3)(*[source] * 3), (ctypes.c_uint64 * 3)(*[DATA.nbytes] * 3)]
        given = (CopyAttributes * len(attributes))(*attributes) if attributes else None
        failed = [ctypes.byref(ctypes.c_size_t())] if name == "cuMemcpyBatchAsync" else []
        return code(name, *tables, 3, given, (ctypes.c_uint64 * len(first))(*first), len(first), *failed, on)

    during, in_order = CopyAttributes(order=2), CopyAttributes(order=1, flags=1)
    for name in ("cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2"):
        mine[:] = DATA
        assert batch([during, in_order], [0, 2], name) == 0
        mine[:] = 0  # The copies read their sources during the call.
        call("cuStreamSynchronize", on)
        assert all((read(place, DATA) == DATA).all() for place in made)
    wrong = [([CopyAttributes(order=0)], [0]), ([CopyAttributes(order=4)], [0]), ([CopyAttributes(order=1, flags=2)], [0]),
             ([during], [1]), ([during, during], [0, 0]), ([during, during], [0, 3])]
    assert [batch(*one) for one in wrong] == [1] * len(wrong)
    assert batch([], []) == 0
    call("cuStreamSynchronize", on)
    call("cuMemFreeHost", source)


def test_synchronous_copies_of_a_pointer_are_a_choice_that_is_kept() -> None:
    a, wanted = array(DATA), ctypes.c_uint(1)
    assert out("cuPointerGetAttribute", ctypes.c_uint(6), a, kind=ctypes.c_uint) == 0
    call("cuPointerSetAttribute", ctypes.byref(wanted), ctypes.c_uint(6), a)
    assert out("cuPointerGetAttribute", ctypes.c_uint(6), a, kind=ctypes.c_uint) == 1
    assert code("cuPointerSetAttribute", ctypes.byref(wanted), ctypes.c_uint(2), a) == 1
    assert code("cuPointerSetAttribute", ctypes.byref(wanted), ctypes.c_uint(6), 0) == 1


def test_one_device_has_no_peers_and_no_parts(context: int) -> None:
    zero, place = ctypes.c_int(0), ctypes.c_uint64()
    number = ctypes.byref(ctypes.c_int())
    other = out("cuCtxCreate_v2", ctypes.c_uint(0), zero)
    assert code("cuCtxEnablePeerAccess", context, ctypes.c_uint(0)) == 217 and code("cuCtxDisablePeerAccess", context) == 705
    assert code("cuCtxEnablePeerAccess", context, ctypes.c_uint(1)) == 1 and code("cuCtxEnablePeerAccess", other, ctypes.c_uint(0)) == 201
    call("cuCtxDestroy_v2", other)
    assert [code("cuDeviceGetP2PAttribute", number, ctypes.c_uint(id), zero, zero) for id in (1, 5, 0, 6)] == [101, 101, 1, 1]
    assert code("cuDeviceGetP2PAttribute", None, ctypes.c_uint(1), zero, zero) == 1
    part = (ctypes.c_uint * 2)(0, 4)
    for affinity, count, expected in ((part, 1, 224), (part, 0, 1), (None, 1, 1)):
        assert code("cuCtxCreate_v3", ctypes.byref(place), affinity, ctypes.c_int(count), ctypes.c_uint(0), zero) == expected
    made = out("cuCtxCreate_v3", None, zero, ctypes.c_uint(0), zero)
    call("cuCtxDestroy_v2", made)
    call("cuCtxDestroy_v2", out("cuCtxCreate_v4", None, ctypes.c_uint(0), zero))
    call("cuCtxSetCurrent", context)
    call("cuProfilerStart")
    call("cuProfilerStop")
    call("cuCtxSetCurrent", 0)
    assert code("cuProfilerStart") == code("cuProfilerStop") == 201
    call("cuCtxSetCurrent", context)
