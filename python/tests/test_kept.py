"""Compiled kernels are kept in files: what is found again is what the compiler would make, and nothing else is found."""

import os
import subprocess
import sys

import pytest

from tegrarm import compile, kept
from tegrarm.say import Refused

SOURCE = b"template <class T> __global__ void scale(T *x) { x[threadIdx.x] *= 3; }\n"
HALVES = b"#include <cuda_fp16.h>\n" + b'extern "C" __global__ void k(__half *x) { x[0] = __hadd(x[1], x[2]); }\n'


def made(source=SOURCE, name="scale.cu", options=("-default-device",), expressions=("scale<float>",)):
    return compile.program(source, name, "sm_87", tuple(options), tuple(expressions))


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TEGRARM_COMPILED", str(tmp_path / "kept"))
    return tmp_path / "kept"


@pytest.fixture
def no_compiler(monkeypatch):
    """From the call of the result on, a use of the compiler is an error."""
    def refuse():
        raise AssertionError("the compiler was used")
    return lambda: monkeypatch.setattr(compile, "nvrtc", refuse)


def test_the_same_source_is_compiled_once(place, no_compiler):
    first = made()
    assert first.cubin.startswith(b"\x7fELF") and ".entry" in first.ptx and first.names["scale<float>"].startswith("_Z5scale")
    assert len(list(place.iterdir())) == 1
    no_compiler()
    assert made() == first
    other = [{"source": SOURCE + b" "}, {"name": "other.cu"}, {"options": ("-default-device", "-DX=1")}, {"expressions": ("scale<int>",)}]
    for what in other:
        with pytest.raises(AssertionError, match="was used"):
            made(**what)


def test_another_process_finds_it():
    code = ("import sys; from tegrarm import compile, kept\n"
            "made = compile.program(sys.argv[1].encode(), 'scale.cu', 'sm_87', (), ())\n"
            "print(compile.nvrtc.cache_info().currsize, len(made.cubin))")
    source = 'extern "C" __global__ void k(int *x) { x[0] = 7; }'
    run = [sys.executable, "-c", code, source]
    said = [subprocess.run(run, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert [loaded for loaded, _ in said] == ["1", "0"] and said[0][1] == said[1][1]


def test_headers_of_cuda_are_known_and_other_files_are_not(place, no_compiler, tmp_path):
    headers = compile.headers()
    if not headers:
        pytest.skip("CUDA's headers are not installed")
    options = [f"--include-path={path}" for path in headers]
    first = made(HALVES, "halves.cu", options, ())
    (tmp_path / "own.h").write_text("#define OWN 3\n")
    for source, more in ((b'#include "own.h"\n' + HALVES, [f"-I{tmp_path}"]), (HALVES, [f"--include-path={tmp_path}"]),
                         (b"#include <own.h>\n" + HALVES, [f"-I{tmp_path}"]), (HALVES, [f"-include={tmp_path}/own.h"])):
        made(source, "halves.cu", [*options, *more], ())
    assert len(list(place.iterdir())) == 1, "what depends on other files is not kept"
    no_compiler()
    assert made(HALVES, "halves.cu", options, ()) == first


@pytest.mark.parametrize("text", [b'#include "x.h"', b"  # include <x.h>", b"#import <x.h>", b"#embed <x>", b"#if __has_include(<x.h>)",
                                  b'%:include "x.h"', b"#include_next <cuda_fp16.h>", b"#include NAME", b"\\\n#include <x.h>"])
def test_a_source_that_reads_a_file_has_no_key(text):
    assert kept.key(text + b"\n" + SOURCE, "a.cu", (), (), sys.executable, compile.headers()) == ""


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-1], lambda data: data[:-9] + b"x" + data[-8:],
                                    lambda data: b"{}\n" + data, lambda data: b"\xff" + data])
def test_a_damaged_file_is_made_again(place, damage):
    first = made()
    file, = place.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    assert made() == first and file.read_bytes() == whole


def test_a_compiler_that_has_changed_compiles_again(tmp_path):
    compiler = tmp_path / "libnvrtc.so"
    compiler.write_bytes(b"one")
    keys = [kept.key(SOURCE, "a.cu", (), (), str(compiler), [])]
    compiler.write_bytes(b"another")
    keys += [kept.key(SOURCE, "a.cu", (), (), str(compiler), []), kept.key(SOURCE, "a.cu", (), (), str(tmp_path / "none"), [])]
    assert keys[0] != keys[1] and keys[2] == ""


def test_nothing_is_kept_where_nobody_wants_it_or_nothing_can_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for value in ("0", str(tmp_path / "file" / "below")):
        monkeypatch.setenv("TEGRARM_COMPILED", value)
        assert made().names
    assert os.listdir(tmp_path) == ["file"]
    monkeypatch.delenv("TEGRARM_COMPILED")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kept.folder() == tmp_path / "tegrarm" / "compiled"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kept.folder() == tmp_path / ".cache" / "tegrarm" / "compiled"


def test_the_oldest_go_when_there_are_too_many(place, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 20)
    for n in range(21):
        kept.save(f"{n:064}", (b"cubin", "ptx", {}))
        os.utime(place / f"{n:064}", (n, n)) if (place / f"{n:064}").exists() else None
    left = sorted(int(file.name) for file in place.iterdir())
    assert left == list(range(2, 21)) and kept.load(f"{20:064}") == (b"cubin", "ptx", {})


def test_a_refusal_is_not_kept(place):
    with pytest.raises(Refused):
        made(b"nonsense")
    assert not place.exists()
