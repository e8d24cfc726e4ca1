"""The pictures of the book: the script makes them, and they show what they are said to show."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM

pytestmark = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")
SHOWS = {"doctor.svg": ("library", "NVRTC", "the GPU took a command and answered", "all is well"),
         "top.svg": ("load", "clock", "temperature", "channels", "launches/s", "python")}


def words(svg: str) -> str:
    """The text of a picture."""
    text = "\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    return text.replace("&#160;", " ").replace("&#x27;", "'")


@pytest.mark.parametrize("name", SHOWS)
def test_a_picture_is_made_and_shows_what_the_books_does(name, tmp_path):
    command = [sys.executable, ROOT / "packaging/book/screens.py", tmp_path, name.partition(".")[0]]
    subprocess.run(list(map(str, command)), check=True, timeout=300)
    for svg in ((tmp_path / name).read_text(), (ROOT / "docs" / "images" / name).read_text()):
        for wanted in SHOWS[name]:
            assert wanted in words(svg), (name, wanted)
        assert str(ROOT) not in svg and "/tmp/" not in svg and "problem" not in words(svg)


def test_the_book_has_the_pictures():
    page = (ROOT / "docs" / "cli.md").read_text()
    for name in (*SHOWS, "trace.png"):
        assert f"(images/{name})" in page and (ROOT / "docs" / "images" / name).stat().st_size > 1000


@pytest.mark.skipif(not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), reason="not installed: chromium")
def test_the_page_of_trace_is_photographed(tmp_path):
    subprocess.run([sys.executable, str(ROOT / "packaging/book/screens.py"), str(tmp_path), "trace"], check=True, timeout=300)
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG") and (tmp_path / "trace.png").stat().st_size > 20_000
