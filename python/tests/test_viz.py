"""``VIZ=1``: tinygrad's viewer shows our kernels and copies. The viewer reads the files that a program leaves for it."""

import json
import re

import pytest
from run_tinygrad_releases import nvrtc

PROGRAM = """
import tegrarm.tinygrad, warnings
import numpy as np
from tinygrad import Tensor, dtypes
from tinygrad.device import Buffer, Device
warnings.simplefilter("ignore")  # VIZ=2 asks for PMA, which is refused with a warning; test_tinygrad.py checks it
d = Device[Device.DEFAULT]
buffer = Buffer(Device.DEFAULT, 1024, dtypes.float32).ensure_allocated()
d.allocator._copyin(buffer._buf, memoryview(bytearray(4096)))
d.allocator._copyout(memoryview(bytearray(4096)), buffer._buf)
for i in range(3): assert ((Tensor([1, 2, i]).realize() + 1) * 2).tolist() == [4, 6, 2 * i + 2]
"""
# The rows that the viewer makes from the files, with the events in each.
LOOK = """
import json, os
os.environ["VIZ"] = "0"
from tinygrad.helpers import ansistrip, temp
from tinygrad.uop.ops import RewriteTrace
from tinygrad.viz import cli, serve
data = serve.VizData(serve.load_pickle(temp("rewrites.pkl", append_user=True), default=RewriteTrace([], [], {})))
serve.load_rewrites(data)
layout = cli.decode_profile(serve.get_profile(data, serve.load_pickle(temp("profile.pkl", append_user=True), default=[])))["layout"]
rows = {row: [(ansistrip(e["name"]), e["dur"], e["ref"]) for e in v["events"]] for row, v in layout.items() if v["event_type"] == 0}
print(json.dumps(rows))
"""


@pytest.mark.parametrize("level", ["1", "2"])
@pytest.mark.parametrize("dev,row", [("TEGRA", "TEGRA"), ("TEGRA+NV", "NV")])
def test_the_viewer_shows_kernels_and_copies_with_names_and_times(python, tmp_path, dev, row, level):
    where = {"TMPDIR": str(tmp_path), "DEV": dev, "CACHELEVEL": "0"}
    assert "saved viz files" in python(PROGRAM, env={**where, "VIZ": level})
    viewer = {**where, **nvrtc(), "DEV": "PYTHON"}  # the viewer reads files and opens no GPU, but it must find the compiler
    rows = json.loads(python(LOOK, env=viewer))
    ours = {name: events for name, events in rows.items() if name == row or name.startswith(row + ":")}
    kernels = [e for name, events in ours.items() if "COPY" not in name for e in events]
    copies = [e for name, events in ours.items() if "COPY" in name for e in events]
    ran = [e for e in kernels if e[0].startswith("E_")]
    assert len(ran) >= 3 and all(dur > 0 for _, dur, _ in ran), rows
    assert all(ref is not None for _, _, ref in ran), "a kernel leads to its source"
    assert {f"TINY -> {row}", f"{row} -> TINY"} <= {name for name, _, _ in copies}, rows
    assert all(dur > 0 for _, dur, _ in copies), rows
    # The viewer's own command shows the same.
    out = python(["-m", "tinygrad.viz.cli", "--json"], env=viewer)
    shown = [json.loads(re.sub(r"\\u001b\[\d+m", "", line)) for line in out.splitlines()]  # names are coloured
    assert any(e.get("device") == row and e["name"].startswith("E_") and e["dur_ms"] > 0 for e in shown), out
