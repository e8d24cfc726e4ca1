"""tegrarm trace: the table, the timeline for Perfetto, and the page that needs nothing else."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm import profile, timeline, trace

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_sim = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")
SCRIPT = "from tinygrad import Tensor\nprint((Tensor([2.0, 3.0]) @ Tensor([[1.0], [2.0]])).tolist())\n"


@pytest.fixture(scope="module", params=["TEGRA+NV", "TEGRA"])
def traced(tmp_path_factory, request):
    """A run with everything that trace can write, on each of tinygrad's devices."""
    folder = tmp_path_factory.mktemp("trace")
    (folder / "s.py").write_text(SCRIPT)
    options = ["-o", "calls.jsonl", "--html", "page.html", "--perfetto", "timeline.json"]
    env = {**os.environ, "TEGRARM_BACKEND": "sim", "PYTHONPATH": str(ROOT / "python"), "DEV": request.param}
    command = [sys.executable, "-m", "tegrarm", "trace", *options, "s.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0 and done.stdout == "[8.0]\n", done.stdout + done.stderr
    folder.joinpath("stderr").write_text(done.stderr)
    return folder


def data_of(html: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)[1])


@needs_sim
def test_the_timeline_has_rm_calls_above_kernel_calls_and_the_gpus_work(traced):
    events = json.loads((traced / "timeline.json").read_text())["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert list(tracks.values())[:2] == ["RM calls", "kernel calls"]
    assert any(re.fullmatch(r"channel \d+ \(.*\bcompute\b.*\)", name) for name in tracks.values()), tracks
    on = {name: [e for e in events if e["ph"] != "M" and tracks[e["tid"]] == name] for name in tracks.values()}
    above = next(e for e in on["RM calls"] if e["name"] == "rm_alloc AMPERE_CHANNEL_GPFIFO_A")
    inside = [e["name"] for e in on["kernel calls"] if above["ts"] <= e["ts"] <= above["ts"] + above["dur"]]
    assert "NVGPU_IOCTL_CHANNEL_SETUP_BIND" in inside
    assert above["args"]["kernel calls"] >= 10


MARKED = '''
import nvtx, tegrarm
with tegrarm.Device() as device:
    kernel = device.compile('extern "C" __global__ void fill(int *x) { x[threadIdx.x] = 1; }')["fill"]
    x, second = device.zeros(32, "int32"), device.queue()
    with nvtx.annotate("a step"):
        kernel[1, 32, 0, second](x)
        device.wait()
    second.close()
    third = device.queue("copy")
    third.copy(device.zeros(32, "int32"), x)
    device.wait()
'''


@needs_sim
def test_queues_and_marked_ranges_have_their_names(tmp_path):
    pytest.importorskip("nvtx", reason="not installed: nvtx")
    (tmp_path / "s.py").write_text(MARKED)
    env = {**os.environ, "TEGRARM_BACKEND": "sim", "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "tegrarm", "trace", "--perfetto", "timeline.json", "s.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr
    events = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    tracks = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    of = {tracks[e["tid"]]: e for e in events if e["ph"] == "X" and e["name"] in ("a step", "fill", "copy")}
    names = sorted(re.sub(r"\d+", "N", name) for name in of)
    # The channel of the second queue may be that of the third one, too.
    assert [name.split(", ")[0] for name in names] == ["channel N (copy queue N", "channel N (queue N", "ranges of thread N"], of
    step, fill = (next(e for e in of.values() if e["name"] == name) for name in ("a step", "fill"))
    assert step["ts"] <= fill["ts"] <= step["ts"] + step["dur"]


@needs_sim
def test_kernels_have_their_names_and_ring_entries_are_decoded(traced):
    spans = data_of((traced / "page.html").read_text())["spans"]
    launches = [s for s in spans if "warp_instructions" in s[4]]
    assert launches and all(s[1].startswith(("r_", "E_")) for s in launches), launches
    assert "blocks of" in launches[0][4]["grid"]
    entries = [s for s in spans if s[1] == "ring entry"]
    assert entries and all(int(s[4]["pushbuffer"], 0) % 4 == 0 and s[4]["words"] > 0 for s in entries)


def test_a_ring_entry_in_words():
    entry = 0x7F_0000_1000 | 1 << 41 | 12 << 42 | 1 << 63
    assert timeline.ring_entry(hex(entry)) == {"pushbuffer": "0x7f00001000", "words": 12, "subroutine": True, "sync": True}
    assert "control entry" in timeline.ring_entry("0x0")


def test_memory_that_is_used_again_bears_the_newer_name():
    known = [{"name": "old", "address": 0x1000, "size": 0x100}, {"name": "new", "address": 0x1000, "size": 0x80}]
    assert [timeline.name_of(at, known) for at in (0x1000, 0x1080, 0x1100)] == ["new", "old", ""]


def test_without_the_simulators_timeline_order_is_the_clock():
    calls = [{"call": "open", "path": "/dev/nvmap", "rm": "a"}, {"call": "ioctl", "name": "X", "on": "f", "rm": "a"},
             {"call": "ioctl", "name": "Y", "on": "f", "rm": "b"}]
    spans = timeline.build(calls, [], [])
    assert [(s.name, s.start, s.length) for s in spans if s.track == "RM calls"] == [("a", 0, 2), ("b", 2, 1)]
    assert "a recording has no clock" in trace.page(spans, {}, timed=False)


def test_the_page_needs_nothing_else_and_shows_text_as_text():
    spans = [timeline.Span("kernel calls", "</script><b>", 0, 1, {"path": "<i>&"})]
    text = trace.page(spans, {"<rm>": {"<kernel>": 2}}, timed=True)
    assert not re.search(r"""(src|href)\s*=|https?://|url\(|@import""", text)
    assert text.count("</script>") == 2 and "&lt;rm&gt;" in text and "<kernel>" not in text
    assert data_of(text)["spans"][0][1] == "</script><b>" and "@" not in re.sub(r"@media|data:", "", text.split("<script")[0])


@needs_sim
@pytest.mark.skipif(not BROWSER, reason="not installed: chromium")
def test_a_browser_draws_the_page(traced):
    done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom",
                           f"file://{traced / 'page.html'}"], capture_output=True, text=True, timeout=120)
    drawn = re.search(r'data-drawn="(\d+)"', done.stdout)
    assert drawn and int(drawn[1]) == len(data_of((traced / "page.html").read_text())["spans"]), done.stderr
    assert "kernel calls," in re.search(r'<p id="summary">(.*?)</p>', done.stdout)[1]


def test_the_table_stays_what_it_was(traced):
    text = (traced / "stderr").read_text()
    assert re.search(r"^rm_alloc AMPERE_COMPUTE_B +NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX +1$", text, re.M)
    assert "every call: calls.jsonl" in text and "the page: page.html" in text


OPENS = "import os; print(os.open('/dev/nvidiactl', os.O_RDWR) > 0)"


@pytest.mark.parametrize("options", [[], ["--json"], ["--preload", "--"]], ids=["table", "json", "preload"])
def test_a_trace_shows_the_calls_and_leaves_nothing_behind(options, tmp_path):
    (tmp_path / "s.py").write_text(SCRIPT)
    (tmp_path / "t").mkdir()
    traced = [sys.executable, "-c", OPENS] if "--preload" in options else ["s.py"]
    done = subprocess.run([sys.executable, "-m", "tegrarm", "trace", *options, *traced], cwd=tmp_path, capture_output=True, text=True,
                          timeout=300, env={**os.environ, "TEGRARM_BACKEND": "sim", "PYTHONPATH": str(ROOT / "python"),
                                            "TMPDIR": str(tmp_path / "t")})
    assert done.returncode == 0 and done.stdout == ("True\n" if "--preload" in options else "[8.0]\n"), done.stdout + done.stderr
    if "--json" in options:
        assert json.loads(done.stderr)["recording"] is None
    else:
        assert re.search(r"NVGPU_\w+ +\d+$", done.stderr, re.M) and "every call: -o FILE keeps them" in done.stderr
    assert list((tmp_path / "t").iterdir()) == []


@needs_sim
def test_a_full_disk_is_a_sentence(tmp_path):
    """What is written at the end cannot be tried before."""
    (tmp_path / "s.py").write_text("print(7)\n")
    for option in ("--html", "--perfetto"):
        done = subprocess.run([sys.executable, "-m", "tegrarm", "trace", option, "/dev/full", "s.py"], cwd=tmp_path, capture_output=True,
                              text=True, timeout=300, env={**os.environ, "TEGRARM_BACKEND": "sim", "PYTHONPATH": str(ROOT / "python")})
        assert (done.returncode, done.stdout) == (2, "7\n"), done.stderr
        assert done.stderr.splitlines()[-1] == f"tegrarm: trace {option}: /dev/full: No space left on device"


@pytest.mark.parametrize(("ends", "status"), [("exit 7", 7), ("kill -TERM $$", 143)], ids=["a status", "a signal"])
def test_the_status_is_the_programs(ends, status):
    done = subprocess.run([sys.executable, "-m", "tegrarm", "trace", "--preload", "--", "sh", "-c", ends], timeout=300,
                          env={**os.environ, "TEGRARM_BACKEND": "sim", "PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == status


def test_long_files_are_shown_where_code_comes_from(tmp_path):
    (tmp_path / "long.h").write_text("\n".join(str(number) for number in range(1, 20_001)))
    lines = profile.source_of(str(tmp_path / "long.h"), {}, {10_000})
    assert [lines[0], lines[-1]] == [[9992, "9992"], [10008, "10008"]]
