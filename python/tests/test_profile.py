"""tegrarm profile: the page, the data with its schema, SARIF, and the comparison of two profiles."""

import base64
import contextlib
import gzip
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

import jsonschema
import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm import profile, timeline

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SOURCE = '''
extern "C" __global__ void reduce(const float *x, float *sums) {
    __shared__ float tile[256];
    tile[threadIdx.x] = x[threadIdx.x * gridDim.x + blockIdx.x];  // FAR
    __syncthreads();
    for (int step = 1; step < 256; step *= 2) {
        int at = 2 * step * threadIdx.x;
        if (at < 256)
            tile[at] += tile[at + step];  // BANKS
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x + (sums == nullptr)] = tile[0];
}
extern "C" __global__ void scale(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f; }
extern "C" __global__ void beyond(float *x) { x[threadIdx.x + 1] = 1.0f; }  // BUG
'''
PROGRAM = f'''
import numpy as np, tegrarm
SOURCE = """{SOURCE}"""
with tegrarm.Device() as device:
    module = device.compile(SOURCE, name="reduce.cu", options=["--generate-line-info"])
    x, sums = device.array(np.ones(256 * 64, dtype=np.float32)), device.array(np.zeros(64, dtype=np.float32))
    for _ in range(3):
        module["reduce"][64, 256](x, sums)
    module["scale"][64, 256](x)
    print(sums.numpy()[5])
    if "beyond" in __import__("sys").argv:
        module["beyond"][1, 64](sums)
        sums.numpy()
'''


def line_of(mark):
    return next(number for number, line in enumerate(SOURCE.splitlines(), 1) if mark in line)


def tegrarm(*arguments, status=0, env=None):
    path = os.pathsep.join(filter(None, (str(ROOT / "python"), os.environ.get("PYTHONPATH"))))
    done = subprocess.run([sys.executable, "-m", "tegrarm", *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": path, **(env or {})})
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a profiled run, with everything that ``profile`` can write."""
    pytest.importorskip("nvidia.cuda_nvrtc", reason="not installed: NVRTC")
    folder = tmp_path_factory.mktemp("profile")
    (folder / "program.txt").write_text(PROGRAM)
    files = itertools.chain(*((f"--{name}", folder / file) for name, file in (
        ("output", "page.html"), ("data", "data.json"), ("perfetto", "perfetto.json"), ("sarif", "reports.sarif"))))
    done = tegrarm("profile", "--check", "memory", *files, "--", sys.executable, folder / "program.txt", "beyond")
    assert done.stdout == "256.0\n"
    (folder / "stderr").write_text(done.stderr)
    return folder


@pytest.fixture(scope="module")
def data(run):
    return json.loads((run / "data.json").read_text())


def kernel(data, name):
    return next(kernel for kernel in data["kernels"] if kernel["name"] == name)


def test_the_data_is_what_its_schema_says(data):
    jsonschema.validate(data, json.loads(tegrarm("profile", "--schema").stdout))


def test_kernels_have_names_times_and_shapes(data, run):
    assert [(k["name"], k["launches"]) for k in data["kernels"]] == [("reduce", 3), ("scale", 1), ("beyond", 1)]
    found = kernel(data, "reduce")
    (shape,) = found["shapes"]
    assert (shape["grid"], shape["block"], shape["occupancy"]["limit"]) == ([64, 1, 1], [256, 1, 1], "warps")
    assert abs(sum(k["share"] for k in data["kernels"]) - 1) < 1e-9
    assert found["ns"] == sum(launch["ns"] for launch in data["launches"] if launch["kernel"] == 0) > 3000
    assert re.search(r"\b3  \S+ +reduce$", (run / "stderr").read_text(), re.M)


def at_line(data, name, mark):
    """The instructions of a kernel at the line with a mark."""
    rows = [row for row in kernel(data, name)["rows"] if row["line"] == line_of(mark)]
    assert rows and all(data["files"][row["file"]].endswith("reduce.cu") for row in rows)
    return rows


def test_an_uncoalesced_load_and_a_bank_conflict_are_told_of_at_their_lines(data):
    far = [row for row in at_line(data, "reduce", "FAR") if row["global"]["requests"]]
    assert [(row["global"]["requests"], row["global"]["taken"]) for row in far] == [(3 * 64 * 8, 3 * 64 * 8 * 32)]
    assert far[0]["notes"] == ["uncoalesced: an access of a warp takes 32 sectors of 32 bytes, and its bytes need 4"]
    banks = [row for row in at_line(data, "reduce", "BANKS") if row["shared"]["requests"]]
    assert banks and any("bank conflict" in note for row in banks for note in row["notes"])
    # The step of 1 has two words of a bank for each lane of four warps.
    assert any(row["shared"]["taken"] == 2 * row["shared"]["least"] for row in banks), banks
    clean = [row for row in kernel(data, "scale")["rows"] if row["global"]["requests"]]
    assert len(clean) == 2 and all(row["global"]["taken"] == row["global"]["least"] and not row["notes"] for row in clean)


def test_time_is_accounted_for_by_instruction(data):
    for found in data["kernels"]:
        assert abs(sum(row["share"] for row in found["rows"]) - 1) < 1e-9
        assert found["counters"]["instructions"] == sum(row["issued"] for row in found["rows"])
    assert kernel(data, "reduce")["counters"]["cycles"]["barrier"] > 0
    assert kernel(data, "scale")["counters"]["operations"] == {"fp32": 64 * 256}


def test_sources_of_programs_are_in_the_data(data):
    (lines,) = data["sources"].values()
    assert dict(map(tuple, lines))[line_of("BANKS")].strip() == "tile[at] += tile[at + step];  // BANKS"


def test_reports_name_the_line_in_every_form(data, run):
    (report,) = data["reports"]
    assert report["kind"] == "memory" and data["kernels"][report["kernel"]]["name"] == "beyond"
    assert report["parties"][0]["line"] == line_of("BUG") and report["parties"][0]["file"].endswith("reduce.cu")
    (result,) = json.loads((run / "reports.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "memory" and result["locations"][0]["physicalLocation"]["region"] == {"startLine": line_of("BUG")}


def test_the_timeline_for_perfetto_has_queues_and_calls(run):
    events = json.loads((run / "perfetto.json").read_text())["traceEvents"]
    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert "the default queue" in tracks and any(track.startswith("calls of process ") for track in tracks)
    assert sum(event["name"] == "reduce" for event in events) == 3


def test_the_page_needs_nothing_else(run, data):
    text = (run / "page.html").read_text()
    assert not re.search(r"""(src|href)\s*=\s*["']?(?!["']?#)|url\(|@import""", text)
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    packed = re.search(r'<script type="text/plain" id="data">(.*?)</script>', text, re.S)[1]
    assert json.loads(gzip.decompress(base64.b64decode(packed))) == data


def test_a_page_of_ten_thousand_launches_is_small(data):
    many = [{**data["launches"][at % 4], "begun_ns": 7919 * at, "host_begun_ns": 104729 * at, "ns": 3000 + at * 37 % 4096}
            for at in range(10_000)]
    assert len(profile.page({**data, "launches": many})) < 3 << 20


def test_the_modelled_time_is_that_without_a_profile(data, run):
    done = subprocess.run([sys.executable, run / "program.txt"], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CLOCK": "model",
                               "TEGRARM_SIM_STATS": "1"})
    assert done.returncode == 0, done.stderr
    cost = re.search(r"^ +0x\w+ +3 +(\d+) +\S+ +(\S+) .* reduce$", done.stderr, re.M)
    found = kernel(data, "reduce")
    assert cost and int(cost[1]) == found["counters"]["instructions"], done.stderr
    assert abs(float(cost[2]) * 1e9 - (found["ns"] - 3 * 1024)) < 1000, "the front end takes 1,024 ns for each launch"


@pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")
def test_a_program_that_uses_the_nodes_itself_has_the_same_profile(run, data, tmp_path):
    tegrarm("profile", "--nodes", "-o", tmp_path / "page.html", "--data", tmp_path / "data.json", "--", sys.executable, run / "program.txt")
    other = json.loads((tmp_path / "data.json").read_text())
    jsonschema.validate(other, profile.SCHEMA)
    assert kernel(other, "reduce")["rows"][0]["function"] == "reduce"
    assert kernel(other, "reduce")["counters"] == kernel(data, "reduce")["counters"]
    assert {call["name"] for call in other["calls"]} & {call["name"] for call in data["calls"]}


MARKED = """
import nvtx, numpy as np
with nvtx.annotate("imports", domain="loader"):
    import tegrarm
device = tegrarm.Device()
scale = device.compile('extern "C" __global__ void scale(float *x) { x[threadIdx.x] *= 2.0f; }')["scale"]
x = device.array(np.ones(32, dtype=np.float32))
with nvtx.annotate("two steps"):
    for step in range(2):
        with nvtx.annotate(f"step {step}\\tof two"):
            scale[1, 32](x).wait()
        nvtx.mark("after a step")
everything = nvtx.start_range("written in the end")
print(x.numpy()[0])
nvtx.end_range(everything)
nvtx.push_range("without an end")
"""


@pytest.mark.parametrize("doors", [[], ["--nodes"]])
def test_ranges_that_a_program_marks_are_on_the_timeline(tmp_path, doors):
    pytest.importorskip("nvidia.cuda_nvrtc", reason="not installed: NVRTC")
    pytest.importorskip("nvtx", reason="not installed: nvtx")
    if doors and (not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu")):
        pytest.skip("no tegrarm-sim: make sim")
    (tmp_path / "marked.txt").write_text(MARKED)
    files = ["-o", tmp_path / "page.html", "--data", tmp_path / "data.json", "--perfetto", tmp_path / "perfetto.json"]
    assert tegrarm("profile", *doors, *files, "--", sys.executable, tmp_path / "marked.txt").stdout == "4.0\n"
    made = json.loads((tmp_path / "data.json").read_text())
    jsonschema.validate(made, profile.SCHEMA)
    ranges = made["ranges"]
    names = [(found["domain"], found["name"]) for found in ranges]
    own = "NVTX"  # the domain of the package, if a program names none
    assert [name for domain, name in names if domain in ("", own)] == [
        "step 0 of two", "after a step", "step 1 of two", "after a step", "two steps", "written in the end"], names
    assert names[0] == ("loader", "imports")
    begun, length = "host_begun_ns", "host_ns"
    whole, steps = ranges[5], [ranges[1], ranges[3]]
    for step, launch in zip(steps, made["launches"], strict=True):
        assert whole[begun] <= step[begun] and step[begun] + step[length] <= whole[begun] + whole[length]
        assert launch[begun] + launch[length] <= step[begun] + step[length], "the program waits for the launch in its range"
    assert ranges[2][length] == ranges[4][length] == 0
    events = json.loads((tmp_path / "perfetto.json").read_text())["traceEvents"]
    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert f"ranges of thread {whole['thread']}" in tracks


def test_two_profiles_are_compared_kernel_by_kernel(data, tmp_path):
    before, after = tmp_path / "a.json", tmp_path / "b.json"
    slower = json.loads(json.dumps(data))
    kernel(slower, "reduce")["ns"] *= 2
    slower["kernels"] = [k for k in slower["kernels"] if k["name"] != "scale"]
    before.write_text(json.dumps(data))
    after.write_text(json.dumps(slower))
    assert tegrarm("diff", before, before).stdout.startswith("all kernels: the same, ")
    said = tegrarm("diff", before, after).stdout
    assert re.search(r"^reduce: time \S+ \S+ -> \S+ \S+ \(\+100\.0%\)$", said, re.M) and re.search(r"^scale: only before, ", said, re.M)
    assert tegrarm("diff", "--json", "--most", "50", before, after, status=1).stdout.count('"slower": true') == 1
    refused = tegrarm("diff", before, ROOT / "CHANGELOG.md", status=2)
    assert "is no profile, or is cut off" in refused.stderr


def test_a_run_can_be_shown_later(run, tmp_path):
    raw = tmp_path / "raw.json"
    env = {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CLOCK": "model", "TEGRARM_SIM_PROFILE": str(raw), "PYTHONPATH": str(ROOT / "python")}
    subprocess.run([sys.executable, run / "program.txt"], check=True, timeout=600, env={**os.environ, **env}, capture_output=True)
    tegrarm("profile", "--from", raw, "-o", tmp_path / "page.html")
    assert "data:" not in (tmp_path / "page.html").read_text()[:200]


def test_what_cannot_be_profiled_is_a_sentence(tmp_path):
    for arguments, status, said in ((["--", "true"], 1, "has used no GPU"), ([], 2, "name a program"),
                                    (["--", "./no-such-program"], 127, "No such file"),
                                    (["-o", "/no/such/page.html", "--", "true"], 2, "there is no directory for")):
        done = tegrarm("profile", *(["-o", tmp_path / "page.html"] if "-o" not in arguments else []), *arguments, status=status)
        assert said in done.stderr and "Traceback" not in done.stderr, done.stderr


# What is made of what the virtual Orin writes.


def raw_row(**changes):
    return {"place": 0, "text": "FFMA R0, R0, R1, R2", "unit": "fp32", "stall": 4, "issued": 2, "lanes": 64, "waited": [0, 9],
            "global": [0, 0, 0], "shared": [0, 0, 0], "local": [0, 0, 0], "l2": 0, "dram": 0, "function": "f", "file": 0,
            "line": 3, **changes}


def raw_profile(**changes):
    board = {"module": "agx-orin", "clock": "model", "sms": 16, "hz": 1, "l2_bytes": 1, "dram_bytes_per_second": 1, "moved_per_second": 1,
             "operations_per_cycle": {}, "instructions_per_cycle": 4}
    shape = {"grid": [1, 1, 1], "block": [32, 1, 1], "registers": 8, "shared": 0, "local": 0,
             "occupancy": {"blocks": 16, "warps": 16, "of": 48, "limit": "blocks"}}
    return {"process": 7, "board": board, "units": ["latency", "fp32"], "stalls": ["unit", "memory"], "files": ["a.cu"], "names": ["ioctl"],
            "reports": [],
            "kernels": [{"name": None, "code": "0x1000", "process": 7, "launches": 1, "shapes": [shape], "rows": [raw_row()]}],
            "launches": [[0, 0, 1, 100, 2000, 50, 900, 5, 1, 2, 700]], "copies": [[0, 64, 90, 10, 40, 5]], "waits": [[1, 4096, 30, 8]],
            "queues": ["the default queue", "queue 2"],
            "calls": [[0, 7, 10, 4]], "ranges": [["step", "", 7, 8, 12, 30]],
            "left_out": {"launches": 0, "copies": 0, "waits": 0, "calls": 0, "ranges": 0}, **changes}


def test_names_that_only_python_knows_are_used():
    noted = [{"name": "old", "address": 0x1000, "size": 16}, {"file": "a.cu", "source": "one\ntwo\nthree"},
             {"name": "r_32", "address": 0x1000, "size": 64}]
    made = profile.build([raw_profile()], ["x.py"], noted)
    jsonschema.validate(made, profile.SCHEMA)
    assert made["kernels"][0]["name"] == "r_32" and made["sources"] == {"a.cu": [[1, "one"], [2, "two"], [3, "three"]]}
    assert made["kernels"][0]["rows"][0]["cycles"] == {"issue": 2, "dependency": 6, "unit": 0, "memory": 9}
    assert profile.build([raw_profile()], ["x.py"], [])["kernels"][0]["name"] == "kernel at 0x1000"


def test_processes_are_put_together():
    copy = {"what": "earlier copy in queue 1", "block": None, "thread": None, "pc": "0x0", "place": 0, "text": None, "function": None,
            "file": None, "line": None}
    report = {"kind": "race", "title": "t", "kernel": 0, "parties": [copy]}
    made = profile.build([raw_profile(), raw_profile(process=9, files=["b.cu"], reports=[report], calls=[[0, 9, 10, 4]])], ["x"], [])
    jsonschema.validate(made, profile.SCHEMA)
    assert [launch["kernel"] for launch in made["launches"]] == [0, 1] and made["reports"][0]["kernel"] == 1
    found = profile.sarif(made)["runs"][0]["results"][0]
    assert found["locations"][0]["message"]["text"] == "earlier copy in queue 1"
    assert made["files"][made["kernels"][1]["rows"][0]["file"]] == "b.cu" and made["kernels"][0]["share"] == 0.5
    spans = profile.spans(made)
    assert {span.track for span in spans} == {"the default queue", "queue 2", "the default queue of process 9", "queue 2 of process 9",
                                              "calls of process 7", "calls of process 9", "ranges of thread 8"}
    assert [made["queues"][launch["queue"]] for launch in made["launches"]] == ["queue 2", "queue 2 of process 9"]
    assert min(span.start for span in spans) == 0
    assert timeline.perfetto(spans, "x")["traceEvents"]


@pytest.mark.parametrize(("text", "kind", "count"), [
    ("FFMA R0, R0, R1, R2", "fp32", 128), ("@!P0 FADD R0, R0, R1", "fp32", 64), ("HFMA2.MMA R0, R0, R1, R2", "fp16", 256),
    ("HMMA.16816.F32 R4, R8, R2, R4", "tensor fp16", 2 * 4096), ("HMMA.1688.F32.TF32 R4, R8, R2, R4", "tensor tf32", 2 * 2048),
    ("IMMA.16832.S8.S8 R4, R8, R2, R4", "tensor int8", 2 * 8192), ("IADD3 R0, R1, R2, RZ", "", 0),
    ("HFMA2.MMA R5, -RZ, RZ, 0, 2.3842e-07", "", 0)])
def test_operations_of_an_instruction(text, kind, count):
    assert profile.operations(text, lanes=64, issued=2) == (kind, count)


# The page in a browser.


class Page:
    """A page in a headless browser, through the pipe on which Chromium takes commands."""

    def __init__(self, path, folder):
        (theirs_in, self.to), (self.back, theirs_out) = os.pipe(), os.pipe()
        command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}",
                   "--window-size=1400,1000", "about:blank"]
        # The browser reads from descriptor 3 and writes to 4.
        script = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
        self.browser = subprocess.Popen(["bash", "-c", script, "browser", *command], pass_fds=(theirs_in, theirs_out),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.rest, self.numbers, self.session = b"", itertools.count(1), None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.open(path)

    def open(self, path):
        self.ask("Page.navigate", url=f"file://{path}")
        ready = "document.body?.dataset.ready ?? document.body?.dataset.error"
        while not self.run(f"location.pathname === {json.dumps(str(path))} && ({ready})"):
            pass  # the browser reads the page

    def press(self, key, focused):
        """Presses a key where something has the focus."""
        self.run(f"document.querySelector({json.dumps(focused)}).focus()")
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        code = {"Enter": 13, "ArrowRight": 39, "0": 48}.get(key, 0)
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def ask(self, method, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                piece = os.read(self.back, 1 << 16)
                assert piece, "the browser has ended"
                self.rest += piece
            answer, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(answer)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def run(self, code):
        answer = self.ask("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def close(self):
        with contextlib.suppress(OSError):
            self.ask("Browser.close")
        self.browser.wait(60)
        os.close(self.to)
        os.close(self.back)


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    if not BROWSER:
        pytest.skip("not installed: chromium")
    opened = Page(run / "page.html", tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


NAMES = "[...document.querySelectorAll('#list tbody tr td:first-child')].map(cell => cell.textContent)"


def test_the_page_opens_without_an_error(page):
    assert page.run("document.body.dataset.error ?? null") is None and page.run("document.body.dataset.ready") == "3"
    assert page.run("document.querySelectorAll('#kernel .charts svg').length") == 4
    assert ": 3 kernels, 5 launches, " in page.run("document.getElementById('summary').textContent")
    assert page.run("document.getElementById('summary').textContent").endswith(" 1 report.")
    assert page.run("document.querySelectorAll('#timeline rect').length") >= 3


def test_the_list_sorts_and_filters(page):
    press = "[...document.querySelectorAll('#list th button')].find(button => button.textContent === 'kernel').click()"
    page.run(press)
    assert page.run(NAMES) == ["beyond", "reduce", "scale"]
    page.run(press)
    assert page.run(NAMES) == ["scale", "reduce", "beyond"]
    assert page.run("document.querySelector('#list th[aria-sort=descending]').textContent") == "kernel"
    page.run("const box = document.getElementById('filter'); box.value = 'RED'; box.dispatchEvent(new Event('input'))")
    assert page.run(NAMES) == ["reduce"]
    page.run("document.getElementById('filter').value = ''; document.getElementById('filter').dispatchEvent(new Event('input'))")


def test_a_kernel_is_chosen_with_the_keyboard_and_shows_its_notes_at_their_lines(page):
    page.run("document.querySelector('#list tr[data-kernel=\"0\"]')"
             ".dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))")
    assert page.run("document.querySelector('#kernel h2').textContent") == "reduce"
    notes = page.run("[...document.querySelectorAll('.source tr')].filter(row => row.querySelector('.note'))"
                     ".map(row => [Number(row.cells[0].textContent), row.querySelector('.note').textContent])")
    found = {number: note.split(":")[0] for number, note in notes}
    assert found[line_of("FAR")] == "uncoalesced" and found[line_of("BANKS")] == "bank conflict"


def test_the_keyboard_sorts_and_moves_along_the_timeline(page):
    page.press("Enter", "#list th button")
    first = page.run(NAMES)
    page.press("Enter", "#list th button")
    assert page.run(NAMES) == first[::-1] and len(first) == 3
    ticks = "[...document.querySelectorAll('#timeline text.dim')].map(text => text.textContent)"
    whole = page.run(ticks)
    page.press("+", "#timeline")
    near = page.run(ticks)
    page.press("ArrowRight", "#timeline")
    further = page.run(ticks)
    page.press("0", "#timeline")
    assert len({tuple(seen) for seen in (whole, near, further)}) == 3 and page.run(ticks) == whole


def test_the_page_has_light_and_dark_colours(page):
    seen = {}
    for scheme in ("light", "dark"):
        page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        colours = page.run("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
        seen[scheme] = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours]
    page.ask("Emulation.setEmulatedMedia", features=[])
    assert seen["light"][0] > 600 > 200 > seen["light"][1] and seen["dark"][0] < 200 < 600 < seen["dark"][1], seen


def test_a_report_leads_to_its_line(page):
    page.run("document.querySelector('#reports article button').click()")
    assert page.run("document.querySelector('#kernel h2').textContent") == "beyond"
    assert page.run("document.querySelector('.source tr.chosen').cells[0].textContent") == str(line_of("BUG"))
    assert "STG" in page.run("document.querySelector('#machine tr.chosen .code').textContent")


def test_the_timeline_shows_what_is_clicked(page):
    page.run("document.querySelector('input[value=host]').click()")
    assert page.run("[...document.querySelectorAll('#timeline text')].some(text => text.textContent.startsWith('calls of'))")
    page.run("document.querySelector('#timeline rect').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert page.run("document.getElementById('details').textContent") != "Nothing is chosen."


def test_the_page_fits_on_a_narrow_screen(page):
    page.ask("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=False)
    assert page.run("document.documentElement.scrollWidth") <= 400
    page.ask("Emulation.clearDeviceMetricsOverride")


def test_the_picture_of_the_book_shows_the_page(page, data, tmp_path):
    """With TEGRARM_TEST_WRITE_SCREENS it is the book's from now on."""
    # What is this computer's own is left out: its directories.
    files = {"files": [os.path.basename(file) for file in data["files"]],
             "sources": {os.path.basename(file): lines for file, lines in data["sources"].items()}}
    (tmp_path / "page.html").write_text(profile.page({**data, **files, "command": ["python", "reduce.py"]}))
    page.open(tmp_path / "page.html")
    page.ask("Emulation.setDeviceMetricsOverride", width=1240, height=1000, deviceScaleFactor=1, mobile=False)
    page.run("document.querySelector('#list tr[data-kernel=\"0\"]').click()")
    page.run("document.querySelector('.source tr.chosen, .source tr:has(.note)').click(); scrollTo(0, 0)")
    height = min(1600, page.run("document.getElementById('time').getBoundingClientRect().top"))
    clip = {"x": 0, "y": 0, "width": 1240, "height": height, "scale": 1}
    shown = page.ask("Page.captureScreenshot", format="webp", quality=60, captureBeyondViewport=True, clip=clip)["data"]
    page.ask("Emulation.clearDeviceMetricsOverride")
    picture, ours = base64.b64decode(shown), ROOT / "docs" / "images" / "profile.webp"
    if "TEGRARM_TEST_WRITE_SCREENS" in os.environ:
        ours.write_bytes(picture)
    for made in (picture, ours.read_bytes()):
        assert made[:4] == b"RIFF" and made[8:12] == b"WEBP" and 20_000 < len(made) < 150_000
    assert "(../images/profile.webp)" in (ROOT / "docs" / "simulator" / "profile.md").read_text()


def test_a_page_of_ten_thousand_launches_opens(page, data, tmp_path):
    many = [{**data["launches"][at % 4], "begun_ns": 7919 * at, "host_begun_ns": 104729 * at} for at in range(10_000)]
    (tmp_path / "many.html").write_text(profile.page({**data, "launches": many}))
    page.open(tmp_path / "many.html")
    assert page.run("document.body.dataset.error ?? null") is None
    assert 0 < page.run("document.querySelectorAll('#timeline rect').length") < 4000, "what would be drawn over something is left out"
