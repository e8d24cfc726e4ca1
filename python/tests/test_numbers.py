"""No number is cut off on its way to C, and what is no number, or has no end, is refused before it takes memory."""

import ast
import ctypes
import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from conftest import ROOT

import tegrarm
from tegrarm import _checked, _ffi

PACKAGE = ROOT / "python" / "tegrarm"
# Types of ctypes that cut off what does not fit.
CUTTING = {f"c_{sign}int{bits}" for sign in ("", "u") for bits in ("", 8, 16, 32, 64)} | {
    "c_byte", "c_ubyte", "c_short", "c_ushort", "c_long", "c_ulong", "c_longlong", "c_ulonglong", "c_size_t", "c_ssize_t", "c_void_p"}


@pytest.fixture(scope="module")
def dev():
    with tegrarm.Device() as device:
        yield device


# *** the one place ***


def integers():
    """Every argument of every function that is an integer or an address."""
    for name, (_, arguments) in _ffi.SIGNATURES.items():
        for index, (argument, type_) in enumerate(arguments.items()):
            if type_ in _checked.INTEGERS or type_ is ctypes.c_void_p:
                yield name, index, argument, type_


def test_every_integer_of_every_function_is_checked():
    rows = list(integers())
    assert len(rows) > 150
    for name, index, argument, type_ in rows:
        low, high = _checked.limits(type_) if type_ in _checked.INTEGERS else (0, _checked.POINTER_LIMIT)
        for wrong in (low - 1, high + 1, 1 << 20_000):
            values = [0 if t in _checked.INTEGERS else None for t in _ffi.SIGNATURES[name][1].values()]
            values[index] = wrong
            with pytest.raises(OverflowError, match=f"^{name}: {argument} is .*: it has to be from {low} to {high}$"):
                getattr(_ffi.lib(), name)(*values)
        if type_ in _checked.INTEGERS:
            for wrong in (1.5, "1", None, b"1"):
                values[index] = wrong
                with pytest.raises(TypeError, match=f"^{name}: {argument} is .*: it has to be a whole number$"):
                    getattr(_ffi.lib(), name)(*values)


def test_numbers_of_numpy_and_ctypes_are_numbers():
    fit = _ffi.lib().tegrarm_status_name
    assert fit(np.int64(0)) == fit(np.uint8(0)) == fit(ctypes.c_uint32(0)) == fit(False) == b"NV_OK"
    with pytest.raises(OverflowError, match="status is -1"):
        fit(np.int64(-1))
    with pytest.raises(TypeError, match="a float"):
        fit(np.float64(0).item())


def test_texts_are_texts():
    with pytest.raises(ValueError, match="rm_open: path is .*has no NUL"):
        _ffi.lib().rm_open(b"/dev/nvidiactl\0x", 0)
    with pytest.raises(TypeError, match="rm_open: path is a str"):
        _ffi.lib().rm_open("/dev/nvidiactl", 0)
    with pytest.raises(TypeError, match="rm_open takes 2 arguments .path, flags., and 1 were given"):
        _ffi.lib().rm_open(b"/dev/nvidiactl")
    with pytest.raises(TypeError, match="pAllocParams is a str"):
        _ffi.lib().rm_alloc(0, 0, None, 0x41, "parameters", 0)
    with pytest.raises(AttributeError, match="declares no function 'rm_alok'"):
        _ = _ffi.lib().rm_alok


@pytest.mark.parametrize("cls", [c for c in vars(_ffi).values() if isinstance(c, type) and issubclass(c, _checked.Structure)
                                 and c is not _checked.Structure], ids=lambda c: c.__name__)
def test_every_field_of_every_structure_is_checked(cls):
    checked = 0
    for name, type_ in cls._fields_:
        if type_ in _checked.INTEGERS or type_ is ctypes.c_void_p:
            low, high = _checked.limits(type_) if type_ in _checked.INTEGERS else (0, _checked.POINTER_LIMIT)
            for wrong in (low - 1, high + 1):
                with pytest.raises(OverflowError, match=f"{cls.__name__}.{name} is {wrong}"):
                    setattr(cls(), name, wrong)
                with pytest.raises(OverflowError, match=f"{cls.__name__}.{name} is {wrong}"):
                    cls(**{name: wrong})
            made = cls(**{name: np.uint64(high) if low == 0 and type_ is not ctypes.c_void_p else high})
            assert getattr(made, name) == high
            checked += 1
    assert checked
    with pytest.raises(AttributeError, match="no field 'sise'"):
        cls(sise=1)


def test_an_array_in_a_structure_is_checked():
    with pytest.raises(OverflowError, match=r"KernelAttributes.required_block\[1\] is 4294967296"):
        _ffi.KernelAttributes(required_block=(1, 1 << 32, 1))
    made = _ffi.KernelAttributes(required_block=(1, np.int64(2), 3))
    assert list(made.required_block) == [1, 2, 3]
    with pytest.raises(ValueError, match="required_block has 3 items, and 4 were given"):
        made.required_block = (1, 2, 3, 4)
    made.required_block = [7]
    assert list(made.required_block) == [7, 0, 0]


@pytest.mark.parametrize("of", [lambda: _ffi.KernelAttributes().required_block, lambda: _checked.array(ctypes.c_uint32, [0, 0], "it", 3)])
def test_an_item_of_an_array_is_checked(of):
    items = of()
    for wrong in (1 << 32, -1):
        with pytest.raises(OverflowError, match=f"item 1 is {wrong}: it has to be from 0 to 4294967295"):
            items[1] = wrong
        with pytest.raises(OverflowError, match=f"item 2 is {wrong}"):
            items[1:] = [5, wrong]
    for wrong in (1.5, "1", None):
        with pytest.raises(TypeError, match="item 0 is .* has to be a whole number"):
            items[0] = wrong
    with pytest.raises(ValueError, match="argument"):
        items[:] = [1, 2]
    with pytest.raises(IndexError):
        items[3] = 1
    assert list(items) == [0, 0, 0]
    items[-1], items[:2] = np.uint32(9), (7, 8)
    assert list(items) == [7, 8, 9] and bytes(items)[:4] == b"\7\0\0\0"


# *** no other place ***


def cut_offs(text):
    """Where Python makes an integer or an array of ctypes of values that it has not checked: (line, source)."""
    def cutting(node):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        return name in CUTTING

    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not node.args or all(isinstance(a, (ast.Constant, ast.UnaryOp)) for a in node.args):
            continue
        function = node.func
        if cutting(function):
            # The number that Python has just taken out of a ctypes object fits again.
            if not (isinstance(node.args[0], ast.Attribute) and node.args[0].attr == "value"):
                yield node.lineno, ast.unparse(node)
        elif isinstance(function, ast.BinOp) and isinstance(function.op, ast.Mult) and cutting(function.left):
            addresses = ast.unparse(function.left).endswith("c_void_p")
            if not addresses:
                yield node.lineno, ast.unparse(node)


def test_the_search_finds_what_cuts_off():
    assert list(cut_offs("x = ctypes.c_uint32(n)")) and list(cut_offs("x = (c_uint64 * 3)(*grid)")) and list(cut_offs("c_void_p(at)"))
    assert not list(cut_offs("x = ctypes.c_uint32(); y = (c_uint64 * n)(); z = c_void_p(-1); w = c_uint64(number(c_size_t, n).value)"))


def test_no_module_makes_a_number_of_c_without_a_check():
    found = [f"{path.relative_to(ROOT)}:{line}: {what}" for path in sorted(PACKAGE.rglob("*.py")) if path.name != "_checked.py"
             for line, what in cut_offs(path.read_text())]
    assert found == [], "use tegrarm._checked.number or array"


# *** sizes ***


@pytest.mark.parametrize("shape", [(1 << 62) + 1, (1 << 62, 4), (3, (1 << 62) + 1), (0, 1 << 62), (1 << 62, 0), 1 << 64, 1 << 70,
                                   [1 << 40, 1 << 40]])
def test_a_size_that_no_process_could_address_is_refused(dev, shape):
    with pytest.raises(OverflowError, match="the size in bytes of .* items of float32 is"):
        dev.empty(shape)


def test_a_size_that_the_device_does_not_have_is_refused(dev):
    with pytest.raises(tegrarm.RmNoMemory):
        dev.empty(1 << 50)


@pytest.mark.parametrize(("shape", "error", "says"), [
    (2.5, TypeError, "the shape is 2.5, a float"), ("3", TypeError, "the shape is a str"), (b"ab", TypeError, "the shape is a bytes"),
    ({2: 3}, TypeError, "the shape is a dict"), ((2, 1.5), TypeError, r"the shape\[1\] is 1.5"), (None, TypeError, "the shape is None"),
    (-1, ValueError, "negative"), (itertools.count(1), ValueError, "more than 64 sizes"), ([1] * 65, ValueError, "more than 64 sizes"),
    (np.float32(2), TypeError, "a float32"), ("abc", TypeError, "a str")])
def test_what_is_no_shape(dev, shape, error, says):
    with pytest.raises(error, match=says):
        dev.empty(shape)


def test_sizes_of_numpy(dev):
    for three in (np.int64(3), np.array([3]), [np.uint8(3)], np.array(3)):
        assert dev.empty(three).shape == (3,)
    for sizes in ((np.int64(2), -1), (np.array([2, 3]),)):
        assert dev.empty(6).reshape(*sizes).shape == (2, 3)


@pytest.mark.parametrize(("grid", "block", "error", "says"), [
    ((1 << 32) + 1, 32, OverflowError, r"the grid\[0\] is 4294967297"), (1, (1, 1 << 32), OverflowError, r"the block\[1\] is 4294967296"),
    (-1, 1, OverflowError, "the grid.* is -1"), (1.5, 1, TypeError, "the grid is 1.5"), ("1", 1, TypeError, "the grid is a str"),
    (1, {1: 2}, TypeError, "the block is a dict"), ((1, 1, 1, 1), 1, ValueError, "more than 3 sizes"), ((), 1, ValueError, "no sizes"),
    (itertools.repeat(1), 1, ValueError, "more than 3 sizes")])
def test_what_is_no_size_of_a_launch(dev, grid, block, error, says):
    kernel = dev.compile('extern "C" __global__ void one(int *x) { x[0] += 1; }')["one"]
    x = dev.zeros(1, "int32")
    with pytest.raises(error, match=says):
        kernel[grid, block](x)
    with pytest.raises(error, match=says.replace("grid", "block")):
        kernel.occupancy(block if "block" in says else grid)
    for shared in (1 << 32, -1):
        with pytest.raises(OverflowError, match=f"shared_mem_bytes is {shared}"):
            kernel[1, 1, shared](x)
    kernel[np.int64(1), np.array([1])](x)
    assert x.tolist() == [1]


def test_other_numbers_of_the_runtime(dev):
    with pytest.raises(OverflowError, match="timeslice_us is 4294967296"):
        dev.queue(timeslice_us=1 << 32)
    with pytest.raises(OverflowError, match="fd is 4294967296"):
        dev.import_dmabuf(1 << 32, 1)
    with pytest.raises(OverflowError, match="offset is -4"):
        descriptor, _ = dev.empty(4096).export()
        dev.import_dmabuf(descriptor, 1, "float32", -4)
    with pytest.raises(tegrarm.RmError, match="NV_ERR_INVALID_BASE"):
        dev.import_dmabuf(descriptor, 1 << 30, "float32")
    with pytest.raises(OverflowError, match="id is 4294967296"):
        dev.default_queue.after_syncpoint(1 << 32, 0)
    with pytest.raises(OverflowError, match="index is -1"):
        tegrarm.Device(-1)
    with pytest.raises(ValueError, match="nan"):
        dev.fence().wait(float("nan"))
    dev.fence().wait(float("inf"))
    dev.fence().wait(1e30)
    with pytest.raises(TypeError, match="the index of axis 0 is 1.5"):
        _ = dev.empty(3)[1.5]


def test_handles_and_addresses_of_the_resource_manager():
    with tegrarm.Client() as client:
        with pytest.raises(OverflowError, match="the handle is 4294967296"):
            client.alloc(0, 0x80, handle=1 << 32)
        with pytest.raises(OverflowError, match="hClass is -1"):
            client.alloc(0, -1)
        with pytest.raises(OverflowError, match="the size, less 1, is -1"):
            client.alloc_os_memory(0, 0x71, 0, 4096, 0)
        with pytest.raises(OverflowError, match="the address is 18446744073709551616"):
            client.map_dma(0, 0, 0, 0, address=1 << 64)
        with pytest.raises(OverflowError, match="pLinearAddress is -1"):
            client.unmap(0, 0, -1)


# *** items ***


class Endless(Sequence):
    """A sequence of sequences that never ends."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return Endless()


class More(Sequence):
    """A sequence that says that it has two items, and gives them for ever."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return 1

    def __iter__(self):
        return itertools.repeat(1)


def inside_itself():
    items = []
    items.append(items)
    return items


@pytest.mark.parametrize("items", [
    "abc", "", ["abc"], [["a", "b"], ["c", "d"]], {"a": 1}, {1, 2}, [{1: 2}], [[1, 2], [3]], [1, [2]], [[1], 2], [None], [b"ab"],
    itertools.count(), iter([1]), (n for n in [1]), Endless(), More(), inside_itself(), object(), [1j], [object()], np.array(["a"]),
], ids=lambda items: type(items).__name__)
def test_what_is_no_array(dev, items):
    with pytest.raises(TypeError):
        dev.array(items)


def test_more_items_than_memory(dev):
    with pytest.raises(MemoryError, match="items are more than the device has memory for"):
        dev.array(range(1 << 60))


@pytest.mark.parametrize("items", ["abc", [1, [2]], {"a": 1}, Endless(), inside_itself(), itertools.count()],
                         ids=lambda items: type(items).__name__)
def test_what_cannot_be_copied_or_stored(dev, items):
    a = dev.zeros(3, "int32")
    with pytest.raises(TypeError):
        a.copy_from(items)
    with pytest.raises(TypeError):
        a[:] = items
    assert a.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("value", "type_", "error", "says"), [
    (700, "int8", OverflowError, "700 is no item of int8, whose items are from -128 to 127"),
    (-1, "uint32", OverflowError, "-1 is no item of uint32"), (1 << 64, "uint64", OverflowError, "18446744073709551616 is no item"),
    (10 ** 200, "int64", OverflowError, "a number of 665 bits"), (1.5, "int32", ValueError, "1.5 is no item of int32, .* whole"),
    (float("nan"), "int32", ValueError, "nan is no item"), (float("inf"), "int32", ValueError, "inf is no item"),
    (1e40, "float32", OverflowError, "too large for an item of float32"), (70000, "float16", OverflowError, "too large"),
    ("1", "int32", TypeError, "'1' is a str, and no number"), (None, "float32", TypeError, "NoneType"),
    (1j, "float32", TypeError, "complex"), (1, "complex64", TypeError, "complex64"), (1, "bfloat16", TypeError, "bfloat16")])
def test_what_is_no_item(dev, value, type_, error, says):
    for make in (lambda: dev.full(3, value, type_), lambda: dev.array([value], type_), lambda: dev.empty(1, type_).fill(value)):
        with pytest.raises(error, match=says):
            make()


def test_items_of_numpy(dev):
    assert dev.array([np.int64(1), 2]).dtype == "int64" and dev.array([np.float32(1), 2]).dtype == "float64"
    assert dev.array([np.bool_(True), False]).tolist() == [True, False] and dev.array(np.int32(5)).item() == 5
    assert dev.full(2, np.float32(1.5)).tolist() == [1.5, 1.5] and dev.full(2, np.int64(7), "int8").tolist() == [7, 7]
    a = dev.zeros(2, "int32")
    a[0] = np.uint8(3)
    a[1] = 4.0
    assert a.tolist() == [3, 4]
    with pytest.raises(OverflowError, match="the items are from 700 to 700, and those of int8 from -128 to 127"):
        dev.array(np.array([700]), "int8")
    with pytest.raises(OverflowError, match="nan"):
        dev.array(np.array([np.nan]), "int8")
