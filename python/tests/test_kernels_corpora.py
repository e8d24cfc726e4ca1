"""A sample of the corpora of programs; `make test-kernels` runs all of them in every way."""

import importlib.util
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "suite" / "corpora"
sys.path.insert(0, str(FOLDER))
SPEC = importlib.util.spec_from_file_location("corpora", FOLDER / "__main__.py")
corpora = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(corpora)


@pytest.mark.parametrize(("name", "way"), [
    ("programs/hash table", "-G"),
    ("programs/radix sort", "default"),
    ("programs/FFT", "fast math"),
    ("programs/conjugate gradients", "default"),
    ("programs/n-body", "fast math"),
    ("programs/quicksort", "default"),
    ("groups/labelled", "default"),
    ("libcu++/semaphores", "default"),
    ("gemm/wmma col", "default"),
    ("gemm/cp.async, ldmatrix, mma: bf16, 3 stages, 100x72x136", "default"),
    ("gemm/tiles of double", "-G"),
    ("cub/look-back scan/int", "default"),
])
def test_programs(name, way):
    assert corpora.judged(name, way, "12") == "passed"


def test_names_are_names():
    names = [case.name for case in corpora.cases([])]
    assert len(names) == len(set(names)) > 100
