"""The archives of the fuzz targets' seeds: one for each target, and the same inputs give the same bytes."""

import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("fuzz_seeds", ROOT / "packaging/fuzz_seeds.py")
fuzz_seeds = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzz_seeds)

TARGETS = re.findall(r'^\[\[bin\]\]\nname = "(\w+)"', (ROOT / "fuzz/Cargo.toml").read_text(), re.M)


def test_every_target_has_an_archive_and_nothing_else_is_there():
    assert TARGETS and sorted(f"{name}.tar.bz2" for name in TARGETS) == sorted(path.name for path in (ROOT / "fuzz/seeds").iterdir())


@pytest.mark.parametrize("target", TARGETS)
def test_unpacked_seeds_make_the_same_archive_again(target, tmp_path):
    committed = ROOT / f"fuzz/seeds/{target}.tar.bz2"
    fuzz_seeds.unpack(committed, tmp_path / "seeds")
    fuzz_seeds.pack(tmp_path / "seeds", tmp_path / "again.tar.bz2")
    assert (tmp_path / "again.tar.bz2").read_bytes() == committed.read_bytes()


def test_names_and_order_of_the_files_do_not_matter(tmp_path):
    for folder, contents in (("one", [b"x", b"y", b""]), ("other", [b"", b"y", b"x", b"y"])):
        (tmp_path / folder).mkdir()
        for index, content in enumerate(contents):
            (tmp_path / folder / f"found-{index}").write_bytes(content)
        fuzz_seeds.pack(tmp_path / folder, tmp_path / f"{folder}.tar.bz2")
    assert (tmp_path / "one.tar.bz2").read_bytes() == (tmp_path / "other.tar.bz2").read_bytes()
    assert sorted(fuzz_seeds.inputs((tmp_path / "one.tar.bz2").read_bytes())) == [b"", b"x", b"y"]


def test_an_empty_folder_does_not_delete_all_seeds(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match="has no files"):
        fuzz_seeds.pack(tmp_path / "empty", tmp_path / "seeds.tar.bz2")
    assert not (tmp_path / "seeds.tar.bz2").exists()
    fuzz_seeds.unpack(tmp_path / "absent.tar.bz2", tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_spoilt_archive_is_refused():
    spoilt = fuzz_seeds.archive([b"x"])
    renamed = fuzz_seeds.bz2.compress(fuzz_seeds.bz2.decompress(spoilt).replace(b"x", b"z", 1))
    with pytest.raises(SystemExit, match="is not the SHA-1 of its 1 bytes"):
        fuzz_seeds.inputs(renamed)
