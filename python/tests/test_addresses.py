"""The GPU addresses that TEGRA+NV gives out, and takes back."""

import importlib.util
import pathlib

import pytest

PATH = pathlib.Path(__file__).parents[1] / "tegrarm" / "tinygrad" / "nv" / "addresses.py"  # its package loads tinygrad's NV device


@pytest.fixture
def module():
    spec = importlib.util.spec_from_file_location("addresses", PATH)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_ranges_do_not_meet_and_are_aligned(module):
    addresses = module.Addresses()
    taken = []
    for size, alignment in [(1, 4096), (5000, 4096), (8 << 20, 2 << 20), (100, 2 << 20), (3 << 20, 4096)] * 20:
        start = addresses.alloc(size, alignment)
        assert start % alignment == 0
        taken.append((start, start + size))
    assert all(a[1] <= b[0] for a, b in zip(sorted(taken), sorted(taken)[1:], strict=False))


def test_a_range_is_given_out_again(module):
    addresses = module.Addresses()
    start = addresses.alloc(100_000)
    addresses.release(start)
    assert addresses.alloc(101_000) == start, "sizes that are close to each other share ranges"
    addresses.release(0x1234)
    for size in range(1, 5_000_000, 7919):
        addresses.release(addresses.alloc(size))
    assert addresses.next < module.START + (1 << 28), "a run of any length needs as much as it uses at a time"


def test_addresses_that_have_run_out(module):
    addresses = module.Addresses(0x10_0000_0000, 0x10_0001_0000)
    addresses.alloc(0xf000)
    with pytest.raises(MemoryError, match="no GPU addresses are left for 0x2000 bytes"):
        addresses.alloc(0x2000)
    with pytest.raises(ValueError, match="aligned to 0x200000 at most"):
        addresses.alloc(1, 1 << 30)


@pytest.mark.parametrize("size", [1, 4096, 4097, 65536, 65537, 1 << 20, (1 << 20) + 1, 3 << 30])
def test_little_is_lost(module, size):
    assert size <= module.rounded(size) <= size + max(4096, size // 8)
    assert module.rounded(size) % 4096 == 0
