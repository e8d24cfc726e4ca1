"""Pictures for the book, made by the commands that they show: ``make screens`` writes docs/images.

    python packaging/book/screens.py DIRECTORY [doctor|top|trace ...]

`doctor.svg` and `top.svg` are recordings of a terminal, drawn by rich. `trace.png` is the page of `tegrarm trace --html` in a headless
browser. Everything runs on the virtual Orin.
"""

import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile

from rich.console import Console
from rich.text import Text

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = """
from tinygrad import Tensor, TinyJit

@TinyJit
def step(x): return (x @ x.T).relu().sum().realize()

for i in range(3): print(step(Tensor.full((16, 16), float(i)).contiguous().realize()).item())
"""
WATCHED = """
import json, os, subprocess, sys
import tegrarm.tinygrad
from tinygrad import Tensor
Tensor([2]).contiguous().realize()
command = [sys.executable, "-m", "tegrarm", "top", "--json", "-n", "1"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
    while top.poll() is None:
        (Tensor([1.0]).realize() + 1).realize()
    seen = json.load(top.stdout)
print(json.dumps({**seen, "processes": [p for p in seen["processes"] if p["pid"] == os.getpid()]}))
"""


def environment(**more: str) -> dict[str, str]:
    """The virtual Orin, and a terminal that has colours."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TEGRARM_SIM") and k != "NO_COLOR"}
    path = os.pathsep.join(filter(None, [str(ROOT / "python"), env.get("PYTHONPATH")]))
    return {**env, "TEGRARM_BACKEND": "sim", "PYTHONPATH": path, "TERM": "xterm-256color", **more}


def on_a_terminal(command: list[str]) -> str:
    """What a command prints where a person looks at it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, env=environment(COLUMNS="120"))
    os.close(theirs)
    printed = b""
    while True:
        try:
            some = os.read(ours, 65536)
        except OSError:  # how a terminal says that nobody writes any more
            break
        if not some:
            break
        printed += some
    process.wait()
    os.close(ours)
    return printed.decode(errors="replace").replace("\r\n", "\n")


def drawn(title: str, content, path: pathlib.Path) -> None:
    """A picture of a terminal."""
    console = Console(record=True, width=120, file=open(os.devnull, "w"), force_terminal=True, color_system="truecolor")
    console.print(content)
    # The identifier of the drawing is a hash of the contents, so that the same contents are the same picture.
    path.write_text(console.export_svg(title=title, unique_id=f"tegrarm-{path.stem}"))


def plain(text: str) -> str:
    """Without what is this computer's own: its directories."""
    text = text.replace(str(ROOT), "~/libtegrarm").replace(str(pathlib.Path(sys.prefix).parent), "~/libtegrarm")
    return re.sub(r"(?<![\w~])/(?!usr/|dev/|proc/|sys/)\S+/([^\s/]+)", r"…/\1", text.replace(str(pathlib.Path.home()), "~"))


def doctor(to: pathlib.Path) -> None:
    """`tegrarm doctor` on the virtual Orin."""
    said = plain(on_a_terminal([sys.executable, "-m", "tegrarm", "doctor"]))
    drawn("tegrarm doctor", Text.from_ansi(said), to / "doctor.svg")


def top(to: pathlib.Path) -> None:
    """`tegrarm top`, while a program of tinygrad has the GPU."""
    sys.path.insert(0, str(ROOT / "python"))
    from tegrarm import dashboard, sim
    env = environment(TEGRARM_BACKEND="nvgpu", DEV="TEGRA+NV")
    done = subprocess.run([sim.program(), "run", "--", sys.executable, "-c", WATCHED], env=env, capture_output=True, text=True, check=True)
    drawn("tegrarm top", dashboard.view(json.loads(done.stdout)), to / "top.svg")


def trace(to: pathlib.Path) -> None:
    """The page of `tegrarm trace --html`, as a browser shows it."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"trace.png needs one of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory() as place:
        (pathlib.Path(place) / "product.py").write_text(PROGRAM)
        command = [sys.executable, "-m", "tegrarm", "trace", "--html", "page.html", "product.py"]
        for _ in range(2):  # the first run also compiles, and most of its time is the compiler's
            subprocess.run(command, cwd=place, env=environment(), capture_output=True, check=True)
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1180,720",
                        "--virtual-time-budget=3000", f"--screenshot={to / 'trace.png'}", f"file://{place}/page.html"],
                       capture_output=True, check=True, timeout=120)


PICTURES = {"doctor": doctor, "top": top, "trace": trace}


def main(argv: list[str]) -> None:
    """Makes the pictures that are asked for, or all."""
    to = pathlib.Path(argv[0]).resolve()
    for name in argv[1:] or PICTURES:
        PICTURES[name](to)


if __name__ == "__main__":
    main(sys.argv[1:])
