"""The disassembler writes the same text as NVIDIA's. This test compares a sample, and `make test-disasm` compares everything."""

import importlib.util
import os
import pathlib

import pytest

SUITE = pathlib.Path(__file__).parents[1] / "suite"
SIMULATOR = pathlib.Path(os.environ.get("TEGRARM_LIB", "")).with_name("tegrarm-sim")


@pytest.fixture(scope="module")
def disasm():
    if not SIMULATOR.exists():
        pytest.skip("no tegrarm-sim beside the library: cargo build --release -p tegra-sim")
    spec = importlib.util.spec_from_file_location("disasm", SUITE / "disasm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_family_of_intrinsics(disasm):
    count, differences = disasm.compare(SIMULATOR, disasm.intrinsics())
    assert not differences and count > 5000


@pytest.mark.parametrize("target", ["TEGRA+NV:CUDA", "TEGRA+NV:NAK"])
def test_kernels_of_tinygrad(disasm, python, target, tmp_path):
    python("""
import tegrarm.tinygrad
import numpy as np
from tinygrad import Tensor, dtypes
x = Tensor(np.arange(60, dtype=np.int32).reshape(6, 10)).realize()
for t in (dtypes.float32, dtypes.int32, dtypes.half, dtypes.int64):
    y = x.cast(t).contiguous().realize()
    (y * 3 + 1).realize(); y.sum(0).realize(); (y.cast(dtypes.float32).sin() / 7).cast(t).realize(); (y @ y.T).realize()
(x // 7 + x % 5).realize(); x.float().softmax().realize(); (x < 30).where(x, -x).max(1).realize()
""", env={"DEV": target, "CACHEDB": str(tmp_path / "kernels.db")})
    kernels = disasm.kept_kernels(tmp_path / "kernels.db")
    count, differences = disasm.compare(SIMULATOR, kernels)
    assert not differences and count > 500 and len(kernels) > 15


def test_the_cubins_in_the_tree(disasm):
    count, differences = disasm.compare(SIMULATOR, disasm.committed())
    assert not differences and count > 5000


@pytest.mark.parametrize(("wanted", "every"), [
    ("mma.sp", 4), ("s32.b1.b1.s32", 4), ("prefetch.local", 4), ("add.sat.s32", 4), ("m8n8k4.rp.f64", 4), ("cache_hint", 20),
    ("xorsign.abs.f16", 1)])
def test_forms_that_compilers_do_not_make(disasm, wanted, every):
    """HMMA.SP and IMMA.SP, BMMA, CCTLL, UPLOP3 on signs, DMMA that rounds, descriptors, absolute halves: no kernel of tinygrad has them."""
    count, differences = disasm.compare(SIMULATOR, disasm.forms(every, wanted))
    assert not differences and count > 100


def test_a_difference_is_found(disasm, tmp_path):
    fake = tmp_path / "simulator"
    fake.write_text("#!/bin/sh\necho '  0x0000  NOPE    0000000000007918 000fc00000000000'\n")
    fake.chmod(0o755)
    word = (0x000fc000000000000000000000007918).to_bytes(16, "little")
    assert disasm.compare(fake, [word]) == (1, ["0000000000007918 000fc00000000000: 'NOPE', not 'NOP'"])
