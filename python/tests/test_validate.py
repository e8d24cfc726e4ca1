"""tegrarm validate: the steps, the file, and what keeps a file honest. On the virtual Orin both sides are the same."""

import gzip
import hashlib
import io
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib

import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm import say
from tegrarm.validate import collect, compare, evidence, identity, instructions, note, published, report, rules, runner, scrub
from tegrarm.validate.steps import BY_NAME, FREEZES, STEPS, chosen

pytestmark = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")
DATA = ROOT / "python" / "tegrarm" / "validate" / "data"


def validate(place, *arguments, stdin=subprocess.DEVNULL, **env):
    command = [sys.executable, "-m", "tegrarm", "validate", "--output", place, *arguments]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=900, stdin=stdin,
                          env={**os.environ, "TEGRARM_BACKEND": "sim", **env})
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_results_of_whole_kernels_are_those_of_pythons_own_functions(unpacked):
    """Checksums of zlib, mathematics of math, and what a block makes together, by their hashes."""
    words = [int(n) for (n,) in struct.iter_unpack("<I", instructions.archive(instructions.KERNELS).read("whole.in"))]
    items = list(zip(*[iter(words)] * 4, strict=True))
    a, blocks = [item[0] for item in items], [items[at:at + 64] for at in range(0, 256, 64)]
    expected = {"crc": [zlib.crc32(struct.pack("<4I", *item)) for item in items],
                "adler": [zlib.adler32(struct.pack("<4I", *item)) for item in items],
                "gcd": [math.gcd(item[0] | 1, item[1] | 1) + item[2] & 0xFFFFFFFF for item in items],
                "isqrt": [math.isqrt(n) for n in a],
                "warp_scan": [sum(a[i // 32 * 32:i + 1]) & 0xFFFFFFFF for i in range(256)],
                "block_sort": [n for block in blocks for n in sorted(item[0] for item in block)],
                "histogram": [sum(item[0] % 16 == k for item in block) + 3 * sum(item[1] >> 4 & 63 == k for item in block)
                              for block in blocks for k in range(64)],
                "block_scan": [sum(a[i // 64 * 64:i + 1]) & 0xFFFFFFFF for i in range(256)],
                "product_of_integers": [sum(block[t // 8 * 8 + k][0] * block[8 * k + t % 8][1] for k in range(8)) + block[t][2] & 0xFFFFFFFF
                                        for block in blocks for t in range(64)]}
    found = report.answers_of(unpacked[1], runner.MACHINE, "kernels")
    for name, results in expected.items():
        assert found[f"{name}.kernel -> result"] == hashlib.sha256(struct.pack("<256I", *results)).hexdigest()[:16], name


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A file with every step, the risky ones too."""
    place = tmp_path_factory.mktemp("validate")
    done = validate(place, "--risky", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    file, = place.glob("orin-*.tar.zst")
    return file, done


@pytest.fixture(scope="module")
def unpacked(made):
    return evidence.unpack(made[0])


def test_every_step_is_done_and_the_simulator_agrees_with_itself(unpacked):
    about, members = unpacked
    assert {s["name"]: s["state"] for s in about["steps"]} == {step.name: runner.DONE for step in STEPS}
    found = report.differences_of(members)
    assert found == [], compare.text(found)
    assert about["kind"] == "in-process" and about["simulator"] == {"module": "agx-orin", "l4t": "r36"}


def test_measurements_are_put_beside_published_ones(made, unpacked, tmp_path):
    done = validate(tmp_path, "--compare", made[0])
    assert done.returncode == 0 and "fence.round_trip.p50" in done.stdout and "a simulator's" in done.stdout
    about, members = unpacked
    found = {row["what"]: row for row in published.rows(members)}
    assert found["rooflines: scalar.float32_ops_per_s"]["file"] > 0 and found["timings: warm_up.clock_hz"]["virtual"] > 0
    # On an AGX Orin there are figures to stand beside them.
    identity = f"{runner.MACHINE}/identity/{note.NAME}"
    model = json.dumps({"key": "machine.model", "value": "NVIDIA Jetson AGX Orin Developer Kit"}).encode() + b"\n"
    shown = published.table({**about, "kind": "board"}, {**members, identity: model})
    assert "183.30 GB/s" in shown and "5000.00 Gops/s" in shown and "ApxInf pull request 74" in shown


def test_answers_are_right(unpacked):
    _, members = unpacked

    def of(step):
        return report.answers_of(members, runner.MACHINE, step)
    assert of("interface")["characteristics.size"] == 328 and of("interface")["kernel.release"] == "R36"
    assert of("launch")["add.65536.wrong"] == 0 and of("launch")["copy.right"] is True
    assert of("from-va")["gpu_reads.right"] is True and of("from-va")["gpu_writes.right"] is True
    assert of("windows")["generic.shared_is_the_profiles"] is True and of("windows")["generic.local_is_the_profiles"] is True
    assert {v for k, v in of("coherence").items() if "late" in k} == {0}
    assert of("fault-read")["work.status"] == "NV_ERR_RESET_REQUIRED" and of("fault-read")["fault.code"] == 31
    assert of("fault-misaligned")["fault.warp_error"] & 0xFFFF == 0xF and of("fault-window")["fault.warp_error"] & 0xFFFF == 0x10
    assert of("fault-trap")["new_device.status"] == "NV_OK"
    assert of("hang-released")["wait.status"] == "NV_ERR_TIMEOUT" and of("hang-released")["released.status"] == "NV_OK"
    assert of("hang-endless")["fault.code"] == 8
    assert of("large-ring")["engine.status"] == "NV_OK"
    statuses = {v for step in ("open", "allocate", "channels", "timings", "bandwidth") for k, v in of(step).items()
                if k.endswith("status") and not k.startswith("too_large")}
    assert statuses == {"NV_OK"}
    families = {k.split(".")[0] for k in of("instructions")}
    assert {"approximate", "matrix_half", "matrix_nibbles", "single", "atomic_global", "warp"} <= families and len(families) >= 31
    assert len(of("kernels")) >= 100 and {"tensor_half.kernel -> result", "block_sort.kernel -> result"} <= of("kernels").keys()
    assert of("abi")["/dev/nvgpu/igpu0/ctrl.a number that is not known"] in ("ENOTTY", "EINVAL")


def test_recordings_and_measurements_are_in_the_file(unpacked):
    _, members = unpacked
    for step in STEPS:
        recorded = f"{runner.MACHINE}/{step.name}/{runner.RECORDING}" in members
        assert recorded == step.recorded, step.name
    recordings = [data for name, data in members.items() if name.endswith(runner.RECORDING)]
    assert recordings and not any(b'"call":"memory"' in data for data in recordings), "contents of memory do not leave the machine"
    figures = dict(report.measurements(members))
    assert "timings: fence.round_trip.p50" in figures and figures["bandwidth: copy_engine.copy"].endswith("GB/s")
    assert b"<script" not in members["report.html"] and b"report" not in members.get("none", b"")


def test_identifiers_are_hashed_everywhere(unpacked):
    about, members = unpacked
    for name in scrub.identifiers():
        for member, data in members.items():
            assert name.encode() not in data, (name, member)
        assert name not in json.dumps(about)


def test_the_text_is_shown_and_nothing_is_written_without_agreement(tmp_path):
    done = validate(tmp_path, "--only", "open", "--no-simulator")
    assert done.returncode == 1 and not list(tmp_path.glob("orin-*.tar.zst"))
    assert "Nobody is here to agree" in done.stderr and "machine.kernel = " in done.stdout and "Members of the file" in done.stdout


def test_a_file_is_checked_and_summarized(made):
    done = validate(made[0].parent, "--check", made[0])
    assert done.returncode == 0 and "A simulator, no board." in done.stdout and "no differences" in done.stdout
    told = json.loads(validate(made[0].parent, "--check", made[0], "--json").stdout)
    assert told["kind"] == "in-process"


def repacked(file, change):
    """The bytes of a file after `change` was applied to its members, the manifest left as it was."""
    text = evidence.decompressed(file.read_bytes(), "")
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(text)) as old, tarfile.open(fileobj=out, mode="w") as new:
        for entry in old.getmembers():
            name, data = change(entry.name, old.extractfile(entry).read())
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            new.addfile(entry, io.BytesIO(data))
    return evidence.compressed(out.getvalue())


def archive_of(*entries):
    """The bytes of a file with some members, none of which has contents."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, size, headers in entries:
            entry = tarfile.TarInfo(name)
            entry.size, entry.pax_headers = size, headers
            archive.addfile(entry)
    return evidence.compressed(out.getvalue() + bytes(1 << 20))


SPARSE = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": f"0,0,{12 << 30},0", "GNU.sparse.size": str(12 << 30)}

BAD = [
    (lambda file: b"", "no tar archive"),
    (lambda file: file.read_bytes()[:200], "tar|zstd"),
    (lambda file: b"notes", "no zstd file"),
    (lambda file: evidence.compressed(b"notes"), "tar"),
    (lambda file: repacked(file, lambda n, d: ("../" + n if n.endswith("values.json") else n, d)), "plain file"),
    (lambda file: repacked(file, lambda n, d: (n, d + b" " if n.endswith("launch/answers.jsonl") else d)), "answers.jsonl is not what"),
    (lambda file: repacked(file, lambda n, d: ("x" + n if n == "values.json" else n, d)), "values.json is not what"),
    (lambda file: repacked(file, lambda n, d: (n, d.replace(b'"format": 1', b'"format": 9'))), "its format is 9"),
    (lambda file: repacked(file, lambda n, d: ("m" if n == evidence.MANIFEST else n, d)), "it has no manifest.json"),
    (lambda file: archive_of(("values.json", 0, SPARSE)), "values.json is no plain file"),
    (lambda file: archive_of(("values.json", evidence.MOST + 1, {})), "its members have more than 512 MiB"),
    (lambda file: evidence.compressed(gzip.compress(evidence.decompressed(file.read_bytes(), ""))), "no tar archive"),
    (lambda file: repacked(file, lambda n, d: (n, b"[" * 200_000 if n == evidence.MANIFEST else d)), "its manifest.json cannot be read"),
]


@pytest.mark.parametrize("spoil, says", BAD, ids=range(len(BAD)))
def test_a_file_that_was_changed_is_refused(made, tmp_path, spoil, says):
    path = tmp_path / "board.tar.zst"
    path.write_bytes(spoil(made[0]))
    with pytest.raises(say.Refused, match=says):
        evidence.unpack(path)


def test_a_file_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(evidence, "MOST", 1 << 20)
    with pytest.raises(say.Refused, match="it has more than 1 MiB"):
        evidence.unpack(pathlib.Path("/dev/zero"))


def test_a_renamed_file_is_refused(made, tmp_path):
    path = tmp_path / "orin-0123456789ab.tar.zst"
    path.write_bytes(made[0].read_bytes())
    with pytest.raises(say.Refused, match="it was renamed, or changed"):
        evidence.unpack(path)


def test_a_recording_that_was_cut_off_is_read_to_its_last_whole_line():
    head, memory = '{"recording":1}\n', '{"seq":2,"call":"memory","runs":[]}\n'
    assert collect.calls_alone(head + '{"seq":1,"call":"close"}\n' + memory + '{"seq":3,"ca') == head + '{"seq":1,"call":"close"}\n'


# --- deadlines, freezes, order ------------------------------------------------------------------------------------------------------

def test_steps_go_from_harmless_to_risky():
    order = [step.risk for step in STEPS]
    assert order == sorted(order, key=list(dict.fromkeys(order)).index) and order[-1] == FREEZES
    assert not any(s.risk == FREEZES for s in chosen(False, [])) and chosen(True, []) == list(STEPS)
    assert [s.name for s in chosen(False, ["launch"])] == ["identity", "interface", "launch"]


def test_a_step_is_ended_at_its_deadline_and_its_part_is_known(tmp_path):
    code = ("import sys, time, pathlib\nfrom tegrarm.validate.note import Note\nn = Note(pathlib.Path(sys.argv[1]))\n"
            "n.begin('sleeps')\nprint('begun', flush=True)\ntime.sleep(600)")
    process = subprocess.Popen([sys.executable, "-c", code, tmp_path], start_new_session=True, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    assert runner.ended(process, 0.2) == runner.LATE and process.returncode == -9
    assert note.last_part(tmp_path) == "sleeps"


def test_a_freeze_names_its_step_and_the_rest_is_kept(tmp_path):
    """The journal of a run that the machine did not outlive: `launch` began and never ended."""
    assert validate(tmp_path, "--only", "open", "--no-simulator").returncode == 1
    work = tmp_path / "orin-validate"
    with open(work / runner.JOURNAL, "a") as journal:
        journal.write(json.dumps({"step": "launch", "begins": True}) + '\n{"step": "fro')
    done = validate(tmp_path, "--only", "open", "--only", "launch", "--only", "windows", "--no-simulator", "--yes")
    assert "The last run ended in launch" in done.stderr and done.returncode == 0
    about, members = evidence.unpack(next(tmp_path.glob("orin-*.tar.zst")))
    states = {s["name"]: s["state"] for s in about["steps"]}
    assert states == {"identity": "done", "interface": "done", "open": "done", "launch": "froze", "windows": "done"}
    assert f"{runner.MACHINE}/open/{note.NAME}" in members and not work.exists()


def test_the_name_of_a_step_is_on_the_disk_before_it_starts(tmp_path):
    seen = []
    journal = runner.Journal(tmp_path)
    journal.begins(BY_NAME["open"])
    seen.append((tmp_path / runner.JOURNAL).read_text())
    journal.close()
    assert json.loads(seen[0]) == {"step": "open", "begins": True}
    assert runner.Journal(tmp_path).unfinished() == ["open"]


def test_an_exception_in_a_step_is_evidence(tmp_path):
    code = ("import sys\nfrom tegrarm.validate import child, steps\n"
            "steps.BY_NAME['none'] = steps.Step('none', '', '', 30, 'scripts:none')\n")
    done = subprocess.run([sys.executable, "-c", f"{code}sys.exit(child.main(['none', {str(tmp_path)!r}]))"])
    assert done.returncode == 1 and "AttributeError" in note.answers(tmp_path)["exception"]


BAD_INPUT = [
    (("--only", "none"), "there is no step none"), (("--check", "/none"), "/none: No such file"),
    (("--output", "/none"), "no directory /none"),
]


@pytest.mark.parametrize("arguments, says", BAD_INPUT)
def test_bad_input_is_one_sentence(tmp_path, arguments, says):
    done = validate(tmp_path, *arguments)
    assert done.returncode == 2 and says in done.stderr and len(done.stderr.splitlines()) == 1


# --- what is scrubbed, tables ---------------------------------------------------------------------------------------------------------

def test_what_identifies_becomes_a_hash():
    clean = scrub.Scrubber(["tegra-ubuntu", "1422321022334"], "0102030405060708")
    text = clean.text("on tegra-ubuntu, 1422321022334: 0102030405060708 and 0x807060504030201, 0807060504030201")
    assert not any(word in text for word in ("tegra-ubuntu", "1422321022334", "0102030405060708", "807060504030201"))
    assert scrub.hashed("tegra-ubuntu") in text and len(scrub.hashed_hex("0102030405060708")) == 16
    assert clean.text("nothing here") == "nothing here" and scrub.Scrubber([], "0" * 16).text("0" * 16) == "0" * 16


def test_every_rule_that_is_named_exists():
    for _, rule in (*rules.CALLS, *rules.ANSWERS):
        page, _, anchor = rule.partition("#")
        assert f'<a id="{anchor}"></a>' in (ROOT / page).read_text(), rule


def test_every_answer_and_every_recorded_call_has_a_rule(unpacked):
    _, members = unpacked
    for step in STEPS:
        if step.alone:
            continue
        for key in report.answers_of(members, runner.MACHINE, step.name):
            assert rules.of_answer(step.name, key) != rules.NONE, (step.name, key)
        for line in members.get(f"{runner.MACHINE}/{step.name}/{runner.RECORDING}", b"").decode().splitlines()[1:]:
            call = json.loads(line)
            if call["call"] == "ioctl":
                assert rules.of_call(call["name"], "result") != rules.NONE, call["name"]


def test_layouts_are_those_of_the_abi_tables():
    for release in ("r35", "r36", "r39"):
        tables = json.loads((ROOT / f"crates/tegrarm-abi/tests/data/abi/nvgpu-{release}.json").read_text())
        layout = tables["structs"]["nvgpu_gpu_characteristics"]
        fields = [[f["name"], f["offset"], f["size"]] for f in layout["fields"] if not f["name"].startswith("_pad")]
        assert identity.layouts()[layout["size"]] == fields
        assert any(name == compare.IDENTIFYING for name, _, _ in fields)


def test_numbers_of_the_probes_are_those_of_the_abi_tables():
    from tegrarm.validate import abi
    known = json.loads((ROOT / "crates/tegrarm-abi/tests/data/abi/nvgpu-r36.json").read_text())["ioctls"]
    by_number = {int(row["number"], 16): (name, row["size"]) for name, row in known.items()}
    for probe in abi.PROBES:
        word = probe.name.split()[0]
        if word.isupper():
            name, size = by_number[probe.request]
            assert name.endswith(f"_{word}") and len(probe.argument if probe.argument is not None else bytes(size)) == size, probe
        else:
            assert probe.request not in by_number or probe.name.startswith("another node"), probe


def test_parameters_of_the_risky_steps_lie_where_the_header_says():
    from tinygrad.runtime.autogen import nv_570 as nv

    from tegrarm.validate import risky
    text = pathlib.Path(risky.__file__).read_text()
    for structure, fields in {
        nv.NV_MEMORY_ALLOCATION_PARAMS: {"owner": 0, "size": 64, "alignment": 72},
        nv.NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS: {"hObjectBuffer": 4, "gpFifoOffset": 8, "gpFifoEntries": 16, "hContextShare": 24,
                                                    "hUserdMemory": 32, "userdOffset": 64},
        nv.NV_CTXSHARE_ALLOCATION_PARAMETERS: {"hVASpace": 0, "flags": 4},
        nv.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS: {"hVASpace": 16},
    }.items():
        for field, at in fields.items():
            assert getattr(structure, field).offset == at, field
            assert f"({at}, " in text


def test_the_data_is_what_its_sources_make(tmp_path):
    """One family and all kernels of probe.cu, made again by the same compilers."""
    subprocess.run([sys.executable, ROOT / "python/suite/evidence.py", "--to", tmp_path, "approximate"], check=True, timeout=300)
    for name in ("probe.cubin", "characteristics.json"):
        assert (tmp_path / name).read_bytes() == (DATA / name).read_bytes(), f"{name}: `make evidence-data` writes it"
    with zipfile.ZipFile(tmp_path / "instructions.zip") as made:
        assert len(made.namelist()) == 3
        for name in made.namelist():
            assert made.read(name) == instructions.archive().read(name), f"{name}: `make evidence-data` writes it"


def test_the_whole_kernels_are_those_of_their_text():
    """NVRTC takes seconds for all of them, so that the hash of the text is compared."""
    sys.path.insert(0, str(ROOT / "python/suite/silicon"))
    try:
        import whole
    finally:
        sys.path.pop(0)
    packed = instructions.archive(instructions.KERNELS)
    assert packed.read("whole.sha256").decode() == hashlib.sha256(whole.source().encode()).hexdigest(), "`make evidence-data` writes it"
    assert packed.read("whole.in") == whole.words() and set(instructions.families(packed)) == set(whole.kernels())
    assert not set(instructions.families(packed)) & set(instructions.families(instructions.archive())), "results are files with these names"
