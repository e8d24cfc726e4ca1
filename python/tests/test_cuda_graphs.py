"""Graphs of the CUDA library: explicit nodes, captured streams, changes of executable graphs. The judge of the numbers is numpy."""

import ctypes
import pathlib
import threading
from collections.abc import Iterator

import cuda_driver as driver
import numpy
import pytest
from cuda_driver import HOST_FUNCTION, array, call, code, out, read

N = 1000
UNSUPPORTED, INVALIDATED, MERGE, UNMATCHED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED_EVENT, WRONG_THREAD = range(900, 909)
GLOBAL, THREAD_LOCAL, RELAXED = (ctypes.c_uint(mode) for mode in range(3))


class KernelNode(ctypes.Structure):
    _fields_ = [("function", ctypes.c_uint64), ("sizes", ctypes.c_uint * 7), ("params", ctypes.c_void_p), ("extra", ctypes.c_void_p)]


class MemsetNode(ctypes.Structure):
    _fields_ = [("dst", ctypes.c_uint64), ("pitch", ctypes.c_size_t), ("value", ctypes.c_uint), ("size", ctypes.c_uint),
                ("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]


class HostNode(ctypes.Structure):
    _fields_ = [("function", HOST_FUNCTION), ("user", ctypes.c_void_p)]


class Memcpy3d(ctypes.Structure):
    _fields_ = [(side + name, ctypes.c_uint64) for side in ("src_", "dst_")
                for name in ("x", "y", "z", "lod", "type", "host", "device", "array", "context", "pitch", "height")] + [
                    (name, ctypes.c_size_t) for name in ("width", "height", "depth")]


class Anything(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint), ("reserved", ctypes.c_int * 3), ("words", ctypes.c_uint64 * 29), ("last", ctypes.c_uint64)]


def copy(to: int, source: int, size: int, kinds: tuple[int, int] = (2, 2)) -> Memcpy3d:
    """A copy of a row; the kinds of memory are 1, of the host, and 2, of the device."""
    made = Memcpy3d(dst_type=kinds[0], src_type=kinds[1], width=size, height=1, depth=1)
    setattr(made, "dst_device" if kinds[0] == 2 else "dst_host", to)
    setattr(made, "src_device" if kinds[1] == 2 else "src_host", source)
    return made


class Kernels:
    """A context with the two kernels, and functions that add nodes."""

    def __init__(self) -> None:
        module = driver.module()
        self.add, self.scale = (driver.function(module, name) for name in ("add", "scale"))
        self.kept: list[object] = []

    def node(self, function: int, address: int, value: float) -> KernelNode:
        params = driver.values(address, value, ctypes.c_int(N))
        self.kept.append(params)
        return KernelNode(function, (8, 1, 1, 128, 1, 1, 0), ctypes.addressof(params), None)

    def launch(self, function: int, stream: int, address: int, value: float) -> None:
        driver.launch(function, 8, 128, stream, address, value, ctypes.c_int(N))


@pytest.fixture
def kernels() -> Iterator[Kernels]:
    with driver.context():
        yield Kernels()


def graph() -> int:
    return out("cuGraphCreate", ctypes.c_uint(0))


def node(kind: str, in_graph: int, after: list[int], given: object, *more: object) -> int:
    argument = ctypes.byref(given) if isinstance(given, ctypes.Structure) else given
    return out(f"cuGraphAdd{kind}Node", in_graph, (ctypes.c_uint64 * len(after))(*after), len(after), argument, *more)


def instantiate(of: int) -> int:
    return out("cuGraphInstantiateWithFlags", of, 0)


def stream() -> int:
    return out("cuStreamCreate", ctypes.c_uint(1))


def handles(name: str, of: int) -> list[int]:
    count = out(name, of, None, kind=ctypes.c_size_t, last=True)
    found, room = (ctypes.c_uint64 * (count + 1))(), ctypes.c_size_t(count + 1)
    call(name, of, found, ctypes.byref(room))
    assert room.value == count and found[count] == 0
    return list(found)[:count]


def edges(of: int) -> set[tuple[int, int]]:
    count = out("cuGraphGetEdges", of, None, None, kind=ctypes.c_size_t, last=True)
    first, last, room = (ctypes.c_uint64 * count)(), (ctypes.c_uint64 * count)(), ctypes.c_size_t(count)
    call("cuGraphGetEdges", of, first, last, ctypes.byref(room))
    return set(zip(first, last, strict=True))


def test_explicit_nodes_of_every_type(kernels: Kernels, tmp_path: pathlib.Path) -> None:
    data = numpy.arange(N, dtype=numpy.float32)
    a, b, pinned = array(data), array(data), numpy.zeros(N, numpy.float32)
    called: list[int] = []
    function = HOST_FUNCTION(lambda user: called.append(user or 0))
    event, of = out("cuEventCreate", ctypes.c_uint(0)), graph()
    empty = out("cuGraphAddEmptyNode", of, None, 0)
    set_ = node("Memset", of, [empty], MemsetNode(a, 0, 0x40000000, 4, N, 1), 0)
    add = node("Kernel", of, [set_], kernels.node(kernels.add, a, 3.0))
    record = node("EventRecord", of, [add], event)
    wait = node("EventWait", of, [record], event)
    move = node("Memcpy", of, [add], copy(b, a, 4 * N), 0)
    down = node("Memcpy", of, [move, wait], copy(pinned.ctypes.data, b, 4 * N, (1, 2)), 0)
    host = node("Host", of, [down], HostNode(function, 9))
    inner = graph()
    node("Kernel", inner, [], kernels.node(kernels.scale, b, 2.0))
    child = node("ChildGraph", of, [host], inner)
    call("cuGraphDestroy", inner)
    every = [empty, set_, add, record, wait, move, down, host, child]
    assert handles("cuGraphGetNodes", of) == every and handles("cuGraphGetRootNodes", of) == [empty]
    kinds = [out("cuGraphNodeGetType", one, kind=ctypes.c_uint, last=True) for one in every]
    assert kinds == [5, 2, 0, 7, 6, 1, 1, 3, 4]
    assert edges(of) == {(empty, set_), (set_, add), (add, record), (record, wait), (add, move), (move, down), (wait, down), (down, host),
                         (host, child)}
    assert sorted(handles("cuGraphNodeGetDependencies", down)) == sorted([move, wait])
    assert sorted(handles("cuGraphNodeGetDependentNodes", add)) == sorted([record, move])
    call("cuGraphDebugDotPrint", of, str(tmp_path / "graph.dot").encode(), ctypes.c_uint(0))
    dot = (tmp_path / "graph.dot").read_text()
    assert dot.count("->") == 9 and "add" in dot and dot.count("subgraph") == 2 and dot.count("{") == dot.count("}")
    ready, on = instantiate(of), stream()
    call("cuGraphUpload", ready, on)
    for turn in range(1, 3):
        call("cuGraphLaunch", ready, on)
        call("cuStreamSynchronize", on)
        assert (pinned == 5).all() and (read(a, data) == 5).all() and (read(b, data) == 10).all() and called == [9] * turn
    call("cuGraphDestroy", of)
    call("cuGraphLaunch", ready, on)
    call("cuStreamSynchronize", on)
    call("cuGraphExecDestroy", ready)
    assert code("cuGraphLaunch", ready, on) == 1 and called == [9] * 3


def test_parameters_are_read_back_and_changed(kernels: Kernels) -> None:
    data = numpy.zeros(N, numpy.float32)
    a, b, of = array(data), array(data), graph()
    first = node("Kernel", of, [], kernels.node(kernels.add, a, 1.0))
    second = node("Memcpy", of, [first], copy(b, a, 4 * N), 0)
    third = node("Memset", of, [second], MemsetNode(a, 0, 7, 1, N, 1), 0)
    got, row, fill = KernelNode(), Memcpy3d(), MemsetNode()
    call("cuGraphKernelNodeGetParams", first, ctypes.byref(got))
    call("cuGraphMemcpyNodeGetParams", second, ctypes.byref(row))
    call("cuGraphMemsetNodeGetParams", third, ctypes.byref(fill))
    assert got.function == kernels.add and list(got.sizes) == [8, 1, 1, 128, 1, 1, 0]
    assert ctypes.c_float.from_address(ctypes.c_void_p.from_address(got.params + 8).value or 0).value == 1.0
    assert (row.dst_device, row.src_device, row.width) == (b, a, 4 * N) and (fill.dst, fill.value, fill.size) == (a, 7, 1)
    ready, on = instantiate(of), stream()
    # An executable graph keeps what it was made with; its own nodes are changed with functions of their own.
    call("cuGraphKernelNodeSetParams", first, ctypes.byref(kernels.node(kernels.add, a, 100.0)))
    call("cuGraphLaunch", ready, on)
    call("cuStreamSynchronize", on)
    assert (read(b, data) == 1).all()
    call("cuMemsetD8_v2", a, ctypes.c_ubyte(0), 4 * N)
    call("cuGraphExecKernelNodeSetParams", ready, first, ctypes.byref(kernels.node(kernels.add, a, 5.0)))
    call("cuGraphNodeSetEnabled", ready, third, ctypes.c_uint(0))
    assert out("cuGraphNodeGetEnabled", ready, third, kind=ctypes.c_uint, last=True) == 0
    for turn in range(1, 3):
        call("cuGraphLaunch", ready, on)
        call("cuStreamSynchronize", on)
        assert (read(b, data) == 5 * turn).all()
    assert code("cuGraphExecMemsetNodeSetParams", ready, first, ctypes.byref(fill), 0) == 1
    anything = Anything()
    call("cuGraphNodeGetParams", third, ctypes.byref(anything))
    assert anything.kind == 2 and anything.words[0] == a
    anything.words[2] = 1 << 32 | 3
    assert out("cuGraphAddNode_v2", of, None, None, 0, ctypes.byref(anything)) in handles("cuGraphGetNodes", of)
    anything.kind = 13
    assert code("cuGraphAddNode", ctypes.byref(ctypes.c_uint64()), of, None, 0, ctypes.byref(anything)) == 801


def test_a_graph_of_the_gpus_work_runs_as_often_as_it_is_launched(kernels: Kernels) -> None:
    data = numpy.zeros(N, numpy.float32)
    a, b, of = array(data), array(data), graph()
    fill = node("Memset", of, [], MemsetNode(a, 0, 0x3F800000, 4, N, 1), 0)  # 1.0
    add = node("Kernel", of, [fill], kernels.node(kernels.add, a, 2.0))
    inner = graph()
    scale = node("Kernel", inner, [], kernels.node(kernels.scale, a, 2.0))
    child = node("ChildGraph", of, [add], inner)
    node("Memcpy", of, [child], copy(b, a, 4 * N), 0)
    ready, on, other = instantiate(of), stream(), stream()
    inside = handles("cuGraphGetNodes", out("cuGraphChildGraphNodeGetGraph", child, last=True))
    assert len(inside) == 1 and inside != [scale]
    # More runs than a channel has entries, while earlier ones go on; and other work between two of them.
    for _ in range(600):
        call("cuGraphLaunch", ready, on)
    kernels.launch(kernels.add, on, b, 1.0)
    call("cuStreamSynchronize", on)
    assert (read(a, data) == 6).all() and (read(b, data) == 7).all()
    # Values change for later launches: of a graph that is still running, and of one that has finished.
    for turn, waits in enumerate((False, True, False, True)):
        call("cuGraphExecKernelNodeSetParams", ready, add, ctypes.byref(kernels.node(kernels.add, a, 3.0 + turn)))
        for _ in range(3):
            call("cuGraphLaunch", ready, on)
        if waits:
            call("cuStreamSynchronize", on)
    assert (read(b, data) == 14).all()
    # Another function has to be recorded anew, and so has a fill.
    call("cuGraphExecKernelNodeSetParams", ready, add, ctypes.byref(kernels.node(kernels.scale, a, 5.0)))
    call("cuGraphLaunch", ready, other)
    call("cuStreamSynchronize", other)
    assert (read(b, data) == 10).all()
    call("cuGraphExecMemsetNodeSetParams", ready, fill, ctypes.byref(MemsetNode(a, 0, 0x40000000, 4, N, 1)), 0)
    call("cuGraphNodeSetEnabled", ready, inside[0], ctypes.c_uint(0))
    for where in (0, other, on):  # the legacy default stream waits for nobody here, and nobody for it
        call("cuGraphLaunch", ready, where)
        call("cuStreamSynchronize", where)
        assert (read(b, data) == 10).all()
    # A graph that ends while it runs.
    for _ in range(50):
        call("cuGraphLaunch", ready, on)
    call("cuGraphExecDestroy", ready)
    call("cuStreamSynchronize", on)
    assert (read(b, data) == 10).all()
    ready = instantiate(of)
    call("cuGraphExecKernelNodeSetParams", ready, add, ctypes.byref(kernels.node(kernels.add, 0x10000, 1.0)))
    call("cuGraphLaunch", ready, on)
    assert code("cuStreamSynchronize", on) == 700 and code("cuGraphLaunch", ready, on) == 700
    call("cuGraphExecDestroy", ready)


def test_clones_and_updates(kernels: Kernels) -> None:
    data = numpy.zeros(N, numpy.float32)
    a, of = array(data), graph()
    first = node("Kernel", of, [], kernels.node(kernels.add, a, 1.0))
    second = node("Kernel", of, [first], kernels.node(kernels.scale, a, 2.0))
    clone, ready, on = out("cuGraphClone", of), instantiate(of), stream()
    copies = [out("cuGraphNodeFindInClone", one, clone) for one in (first, second)]
    assert edges(clone) == {tuple(copies)} and handles("cuGraphGetNodes", clone) == copies
    call("cuGraphKernelNodeSetParams", copies[0], ctypes.byref(kernels.node(kernels.add, a, 10.0)))
    info = (ctypes.c_uint64 * 3)()
    call("cuGraphExecUpdate_v2", ready, clone, info)
    assert list(info) == [0, 0, 0]
    call("cuGraphLaunch", ready, on)
    call("cuStreamSynchronize", on)
    assert (read(a, data) == 20).all()
    call("cuGraphRemoveDependencies", clone, (ctypes.c_uint64 * 1)(copies[0]), (ctypes.c_uint64 * 1)(copies[1]), 1)
    assert edges(clone) == set()
    assert code("cuGraphExecUpdate_v2", ready, clone, info) == 910 and list(info) == [2, copies[1], 0]
    call("cuGraphDestroyNode", copies[1])
    error, result = ctypes.c_uint64(), ctypes.c_uint()
    assert code("cuGraphExecUpdate", ready, clone, ctypes.byref(error), ctypes.byref(result)) == 910 and result.value == 2
    call("cuGraphAddDependencies", of, (ctypes.c_uint64 * 1)(second), (ctypes.c_uint64 * 1)(first), 1)
    log = ctypes.create_string_buffer(100)
    assert code("cuGraphInstantiate_v2", ctypes.byref(ctypes.c_uint64()), of, None, log, 100) == 1 and b"circle" in log.value


def capture(on: int, mode: ctypes.c_uint = GLOBAL) -> None:
    call("cuStreamBeginCapture_v2", on, mode)


def end(on: int) -> int:
    return out("cuStreamEndCapture", on, last=True)


def test_streams_that_fork_and_join_are_captured(kernels: Kernels) -> None:
    data, result = numpy.arange(N, dtype=numpy.float32), numpy.zeros(N, numpy.float32)
    a, b = array(data), array(data)
    called: list[int] = []
    function = HOST_FUNCTION(lambda user: called.append(user or 0))
    main, side, events = stream(), stream(), [out("cuEventCreate", ctypes.c_uint(2)) for _ in range(2)]
    capture(main)
    kernels.launch(kernels.add, main, a, 1.0)
    call("cuEventRecord", events[0], main)
    call("cuStreamWaitEvent", side, events[0], ctypes.c_uint(0))
    call("cuMemcpyDtoDAsync_v2", b, a, 4 * N, side)
    kernels.launch(kernels.scale, main, a, 3.0)
    call("cuLaunchHostFunc", side, function, 4)
    call("cuEventRecord", events[1], side)
    call("cuStreamWaitEvent", main, events[1], ctypes.c_uint(0))
    call("cuMemcpyDtoHAsync_v2", result, b, 4 * N, main)
    call("cuMemsetD32Async", b, ctypes.c_uint(0), N, main)
    assert (read_status(main), read_status(side)) == (1, 1)
    status, number, of, nodes, count = ctypes.c_uint(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_size_t()
    call("cuStreamGetCaptureInfo_v2", main, *map(ctypes.byref, (status, number, of, nodes, count)))
    assert count.value == 1 and number.value
    assert ctypes.c_uint64.from_address(nodes.value or 0).value == handles("cuGraphGetNodes", of.value)[-1]
    captured = end(main)
    assert captured == of.value and (read_status(main), read_status(side)) == (0, 0) and not called
    kinds = [out("cuGraphNodeGetType", one, kind=ctypes.c_uint, last=True) for one in handles("cuGraphGetNodes", captured)]
    assert kinds == [0, 1, 0, 3, 1, 2] and len(edges(captured)) == 6
    ready = instantiate(captured)
    call("cuGraphLaunch", ready, side)
    call("cuStreamSynchronize", side)
    assert (result == data + 1).all() and called == [4] and not read(b, data).any()
    expected = (data + 1) * 3
    assert (read(a, data) == expected).all()
    # A launch of a graph in a captured stream is a child graph.
    capture(main)
    call("cuGraphLaunch", ready, main)
    call("cuGraphLaunch", ready, main)
    twice = end(main)
    assert [out("cuGraphNodeGetType", one, kind=ctypes.c_uint, last=True) for one in handles("cuGraphGetNodes", twice)] == [4, 4]
    call("cuGraphLaunch", instantiate(twice), main)
    call("cuStreamSynchronize", main)
    assert (read(a, data) == ((expected + 1) * 3 + 1) * 3).all() and called == [4] * 3


def read_status(on: int) -> int:
    return out("cuStreamIsCapturing", on, kind=ctypes.c_uint, last=True)


def test_capture_adds_to_a_graph(kernels: Kernels) -> None:
    data = numpy.zeros(N, numpy.float32)
    a, of, on = array(data), graph(), stream()
    first = node("Kernel", of, [], kernels.node(kernels.add, a, 1.0))
    call("cuStreamBeginCaptureToGraph", on, of, (ctypes.c_uint64 * 1)(first), None, 1, GLOBAL)
    kernels.launch(kernels.scale, on, a, 4.0)
    call("cuStreamUpdateCaptureDependencies", on, None, 0, ctypes.c_uint(1))
    call("cuMemsetD8Async", a, ctypes.c_ubyte(0), 0, on)
    assert end(on) == of and len(edges(of)) == 1
    call("cuGraphLaunch", instantiate(of), on)
    call("cuStreamSynchronize", on)
    assert (read(a, data) == 4).all()


def test_what_a_capture_forbids_makes_it_invalid(kernels: Kernels) -> None:
    a = array(numpy.zeros(N, numpy.float32))
    on, other, event = stream(), stream(), out("cuEventCreate", ctypes.c_uint(0))
    outside = out("cuEventCreate", ctypes.c_uint(0))
    call("cuEventRecord", outside, other)
    callback = HOST_FUNCTION(lambda user: None)
    place = ctypes.byref(ctypes.c_uint64())
    for name, arguments, expected in [
            ("cuStreamSynchronize", (on,), UNSUPPORTED), ("cuStreamQuery", (on,), UNSUPPORTED), ("cuCtxSynchronize", (), UNSUPPORTED),
            ("cuMemAlloc_v2", (place, 8), UNSUPPORTED), ("cuMemAllocAsync", (place, 8, on), UNSUPPORTED),
            ("cuStreamAddCallback", (on, callback, None, ctypes.c_uint(0)), UNSUPPORTED),
            ("cuStreamWaitEvent", (on, outside, ctypes.c_uint(0)), ISOLATION), ("cuEventQuery", (event,), CAPTURED_EVENT),
            ("cuEventSynchronize", (event,), CAPTURED_EVENT), ("cuEventQuery", (outside,), UNSUPPORTED)]:
        capture(on)
        call("cuEventRecord", event, on)
        assert code(name, *arguments) == expected, name
        assert read_status(on) == 2, name
        assert code("cuMemsetD8Async", a, ctypes.c_ubyte(0), 8, on) == INVALIDATED, name
        assert code("cuStreamEndCapture", on, place) == INVALIDATED and read_status(on) == 0, name
    call("cuEventRecord", event, on)
    call("cuEventSynchronize", event)


def test_captures_end_where_they_began(kernels: Kernels) -> None:
    a, place = array(numpy.zeros(N, numpy.float32)), ctypes.byref(ctypes.c_uint64())
    on, other, blocking, event = stream(), stream(), out("cuStreamCreate", ctypes.c_uint(0)), out("cuEventCreate", ctypes.c_uint(0))
    assert code("cuStreamBeginCapture_v2", 0, GLOBAL) == UNSUPPORTED and code("cuStreamEndCapture", on, place) == 401
    capture(on)
    assert code("cuStreamBeginCapture_v2", on, GLOBAL) == 401
    kernels.launch(kernels.add, on, a, 1.0)
    call("cuEventRecord", event, on)
    call("cuStreamWaitEvent", other, event, ctypes.c_uint(0))
    kernels.launch(kernels.add, other, a, 1.0)
    assert code("cuStreamEndCapture", on, place) == UNJOINED
    capture(on)
    call("cuEventRecord", event, on)
    call("cuStreamWaitEvent", other, event, ctypes.c_uint(0))
    assert code("cuStreamEndCapture", other, place) == UNMATCHED and code("cuStreamEndCapture", on, place) == INVALIDATED
    capture(on)
    capture(other)
    call("cuEventRecord", event, on)
    assert code("cuStreamWaitEvent", other, event, ctypes.c_uint(0)) == MERGE
    assert [code("cuStreamEndCapture", one, place) for one in (on, other)] == [INVALIDATED] * 2
    capture(blocking)
    assert code("cuMemsetD8_v2", a, ctypes.c_ubyte(0), 8) == IMPLICIT and code("cuStreamEndCapture", blocking, place) == INVALIDATED
    # A stream that is destroyed takes its capture with it.
    capture(other)
    call("cuStreamDestroy_v2", other)
    call("cuCtxSynchronize")


def test_modes_of_threads(kernels: Kernels) -> None:
    on, found = stream(), []

    def elsewhere() -> None:
        call("cuCtxSetCurrent", context)
        found.append(code("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 64))
        found.append(code("cuStreamEndCapture", on, ctypes.byref(ctypes.c_uint64())))

    context = out("cuCtxGetCurrent")
    for mode, expected in [(GLOBAL, [UNSUPPORTED, WRONG_THREAD]), (THREAD_LOCAL, [0, WRONG_THREAD]), (RELAXED, [0, 0])]:
        capture(on, mode)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert found[-2:] == expected
        assert code("cuStreamEndCapture", on, ctypes.byref(ctypes.c_uint64())) == {0: INVALIDATED, 1: 0, 2: 401}[mode.value]
    mode = ctypes.c_uint(2)
    call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    assert mode.value == 0
    capture(on)
    call("cuMemFree_v2", out("cuMemAlloc_v2", 64))
    call("cuGraphDestroy", end(on))
    mode.value = 0
    call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))


def test_user_objects_live_as_long_as_somebody_refers_to_them(kernels: Kernels) -> None:
    ended: list[int] = []
    destroy, of = HOST_FUNCTION(lambda user: ended.append(user or 0)), graph()
    thing = out("cuUserObjectCreate", 5, destroy, ctypes.c_uint(2), ctypes.c_uint(1))
    call("cuGraphRetainUserObject", of, thing, ctypes.c_uint(2), ctypes.c_uint(1))
    call("cuGraphReleaseUserObject", of, thing, ctypes.c_uint(1))
    clone, ready = out("cuGraphClone", of), instantiate(of)
    for name, handle in (("cuGraphDestroy", of), ("cuGraphDestroy", clone)):
        call(name, handle)
        assert not ended
    call("cuGraphExecDestroy", ready)
    assert ended == [5] and code("cuUserObjectRetain", thing, ctypes.c_uint(1)) == 1
