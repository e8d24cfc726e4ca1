"""make replay-board: files made on the simulator with rules that were changed on purpose. Each change is found, and its rule is named."""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm.validate import board, compare, evidence, note, rules, runner

pytestmark = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")
STRUCTS = json.loads((ROOT / "crates/tegrarm-abi/tests/data/abi/nvgpu-r36.json").read_text())["structs"]
STEPS = ("abi", "open", "allocate", "channels", "launch", "windows", "coherence", "release", "fault-read")


def made_on(place, **env):
    """A file of some steps, made on a virtual board."""
    command = [sys.executable, "-m", "tegrarm", "validate", "--yes", "--no-simulator", "--output", str(place)]
    command += [word for step in STEPS for word in ("--only", step)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, "TEGRARM_BACKEND": "sim", **env})
    assert done.returncode == 0, done.stderr
    file, = place.glob("orin-*.tar.zst")
    return file


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return made_on(tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def unpacked(file):
    return evidence.unpack(file)


def recording(step):
    return f"{runner.MACHINE}/{step}/{runner.RECORDING}"


def answers(step):
    return f"{runner.MACHINE}/{step}/{note.NAME}"


def edited(data, call, change, which=0):
    """A recording in which one ioctl of a name is changed."""
    lines = [json.loads(line) for line in data.decode().splitlines()]
    matching = [line for line in lines if line.get("name") == call and "err" not in line]
    assert matching, f"there is no {call} in the recording"
    change(matching[which])
    return ("\n".join(map(json.dumps, lines)) + "\n").encode()


def field(structure, name, add):
    """A change of a field of what came back."""
    where = next(f for f in STRUCTS[structure]["fields"] if f["name"] == name)
    at, size = where["offset"], where["size"]

    def change(line):
        after = bytearray.fromhex(line["out"]["bytes"])
        value = int.from_bytes(after[at:at + size], "little") + add
        after[at:at + size] = value.to_bytes(size, "little")
        line["out"]["bytes"] = after.hex()
    return change


def fails(errno):
    """The call fails."""
    def change(line):
        del line["ret"]
        line["err"] = errno
    return change


def behind_pointer(at, value):
    """A byte of the memory that the kernel wrote is another one."""
    def change(line):
        memory = next(iter(line["out"]["memory"].values()))
        data = bytearray.fromhex(memory["bytes"])
        assert data[at] != value
        data[at] = value
        memory["bytes"] = data.hex()
    return change


def offset_of(structure, name):
    return next(f["offset"] for f in STRUCTS[structure]["fields"] if f["name"] == name)


# What is changed in a recording: the step, the call, the change, the rule, and what the difference is called.
CHANGED = [
    ("open", "NVGPU_IOCTL_CHANNEL_SETUP_BIND", field("nvgpu_channel_setup_bind_args", "work_submit_token", 3),
     "nvgpu-ctrl.md#work-submit-token", "work_submit_token"),
    ("open", "NVGPU_IOCTL_CHANNEL_SETUP_BIND", fails("EINVAL"), "nvgpu-channel.md#setup-bind", "result"),
    ("open", "NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX", fails("EINVAL"), "nvgpu-channel.md#alloc-obj-ctx", "result"),
    ("open", "NVGPU_AS_IOCTL_MAP_BUFFER_EX", field("nvgpu_as_map_buffer_ex_args", "offset", 0x1000),
     "nvgpu-address-space.md#va-picker", "offset"),
    ("open", "NVGPU_GPU_IOCTL_ALLOC_AS", fails("ENOMEM"), "nvgpu-address-space.md#alloc-as", "result"),
    ("open", "NVGPU_GPU_IOCTL_OPEN_TSG", fails("ENOSPC"), "nvgpu-ctrl.md#open-tsg", "result"),
    ("open", "NVGPU_GPU_IOCTL_OPEN_CHANNEL", fails("EBUSY"), "nvgpu-ctrl.md#open-channel", "result"),
    ("interface", "NVGPU_GPU_IOCTL_GET_CHARACTERISTICS", behind_pointer(offset_of("nvgpu_gpu_characteristics", "num_gpc"), 7),
     "nvgpu-ctrl.md#characteristics-layout", "num_gpc"),
    ("allocate", "NVMAP_IOC_ALLOC", fails("ENOMEM"), "nvmap.md#alloc", "result"),
    ("allocate", "NVMAP_IOC_GET_FD", fails("EMFILE"), "nvmap.md#get-fd", "result"),
]


@pytest.mark.parametrize("step, call, change, rule, name", CHANGED, ids=lambda value: value if isinstance(value, str) else "")
def test_a_changed_recording_is_found_and_its_rule_is_named(unpacked, step, call, change, rule, name):
    about, members = unpacked
    changed = {**members, recording(step): edited(members[recording(step)], call, change)}
    found = [d for d in board.replay(about, changed, scripts=False).differences if call in d.what]
    assert found, f"the change of {call} was not found"
    assert rules.short(found[0].rule) == rule and found[0].what.endswith(name) and found[0].step == step
    assert rule in compare.text(found)


def test_the_first_difference_does_not_hide_the_next_ones(unpacked):
    about, members = unpacked
    call, token = "NVGPU_IOCTL_CHANNEL_SETUP_BIND", ("nvgpu_channel_setup_bind_args", "work_submit_token")
    data = edited(edited(members[recording("open")], call, field(*token, 1)), call, field(*token, 2), -1)
    found = board.replay(about, {**members, recording("open"): data}, scripts=False).differences
    assert [d.what.endswith("work_submit_token") for d in found] == [True, True]


def test_handles_that_a_board_counts_on_are_no_other_rule(unpacked):
    """nvmap counts its handles from process to process: all of them are others, and nothing else is."""
    about, members = unpacked
    lines = []
    for text in members[recording("allocate")].decode().splitlines():
        line = json.loads(text)
        if line.get("node") == "nvmap" and "err" not in line:
            shift(line, 0x100)
        lines.append(json.dumps(line))
    changed = {**members, recording("allocate"): ("\n".join(lines) + "\n").encode()}
    assert changed[recording("allocate")] != members[recording("allocate")]
    found = board.replay(about, changed, scripts=False).differences
    assert found and {d.kind for d in found} == {"counted"} and {rules.short(d.rule) for d in found} == {"nvmap.md#handle-ids"}


def shift(line, by):
    """Moves the handles of one of nvmap's calls, as another process before ours would have moved them."""
    names = {"NVMAP_IOC_CREATE": 4, "NVMAP_IOC_CREATE_64": 4, "NVMAP_IOC_GET_FD": 4, "NVMAP_IOC_ALLOC": 0, "NVMAP_IOC_FROM_FD": 4}
    sides = ("in", "out")
    if line["name"] == "NVMAP_IOC_FREE":
        for side in filter(line.__contains__, sides):
            line[side]["value"] += by
        return
    assert line["name"] in names, f"{line['name']} has handles that this test does not know"
    at = names[line["name"]]
    created = line["name"].startswith(("NVMAP_IOC_CREATE", "NVMAP_IOC_FROM"))
    for side in (side for side in (sides[1:] if created else sides) if side in line):
        data = bytearray.fromhex(line[side]["bytes"])
        data[at:at + 4] = (int.from_bytes(data[at:at + 4], "little") + by).to_bytes(4, "little")
        line[side]["bytes"] = data.hex()


# What is changed in the answers: the step, the key, another value, the rule.
ANSWERED = [
    ("fault-read", "fault.code", 13, "nvgpu-faults.md#error-notifier-codes"),
    ("fault-read", "fault.warp_error", 9, "nvgpu-faults.md#warp-esr-codes"),
    ("fault-read", "more_work.status", "NV_OK", "nvgpu-faults.md#after-death"),
    ("windows", "generic.shared_base", "0xfe000000", "gpu-launch-abi.md#generic-windows"),
    ("allocate", "cached.4096.address", "0x1000", "nvgpu-address-space.md#va-picker"),
    ("allocate", "cached.4096.clear", False, "nvmap.md#alloc-memory"),
    ("interface", "characteristics.L2_cache_size", "0x1", "nvgpu-ctrl.md#characteristics-layout"),
    ("interface", "kernel.release", "R35", "nvgpu-releases.md#probing"),
    ("open", "profile.compute_units", 12, "nvgpu-nodes.md#orin-modules"),
    ("launch", "add.33.wrong", 4, "gpu-launch-descriptor.md#launch-order"),
    ("launch", "copy.right", False, "gpu-copy-engine.md#launch-dma"),
    ("channels", "copy.high.status", "NV_ERR_TIMEOUT", "nvgpu-tsg.md#timeslice-and-interleave"),
    ("coherence", "write_combined.seen_late_by_the_gpu", 12, "rm-mappings.md#cpu-cache-attribute"),
    ("coherence", "from_va.seen_late_by_the_cpu", 3, "nvmap.md#from-va-mapping"),
    ("release", "cached.not_there_for_the_cpu", 1, "gpu-launch-descriptor.md#release-fields"),
    ("abi", "/dev/nvmap.PARAM of handle 0", "EPERM", "nvmap.md#ioctls"),
    ("abi", "/dev/nvgpu/igpu0/ctrl.GET_VOLTAGE", "0", "nvgpu-ctrl.md#absent-features"),
]


def with_answer(members, step, key, value):
    """Members in which an answer is another one."""
    lines = [json.loads(line) for line in members[answers(step)].decode().splitlines()]
    line, = (line for line in lines if line.get("key") == key)
    assert line["value"] != value
    line["value"] = value
    return {**members, answers(step): ("\n".join(map(json.dumps, lines)) + "\n").encode()}


@pytest.fixture(scope="module")
def other_answers(unpacked):
    """All answers changed at once, and the scripts run again."""
    about, members = unpacked
    for step, key, value, _ in ANSWERED:
        members = with_answer(members, step, key, value)
    # The virtual board is chosen by the interface's release, which is changed here, too.
    about = {**about, "simulator": {"module": "agx-orin", "l4t": "r36"}}
    return [d for d in board.replay(about, members).differences if not d.what.startswith("line ")]


@pytest.mark.parametrize("step, key, value, rule", ANSWERED, ids=lambda value: str(value))
def test_a_changed_answer_is_found_and_its_rule_is_named(other_answers, step, key, value, rule):
    found, = (d for d in other_answers if (d.step, d.what) == (step, key))
    assert rules.short(found.rule) == rule and found.machine == compare.said(value)


def test_nothing_else_is_found(other_answers):
    assert {(d.step, d.what) for d in other_answers} == {(step, key) for step, key, _, _ in ANSWERED}


def test_what_the_sms_report_is_compared_with_another_run(unpacked, tmp_path):
    """In a replay the GPU does no work. Therefore the records of two runs are compared; here one record is changed."""
    _, members = unpacked
    ours, theirs = tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"
    ours.write_bytes(members[recording("fault-read")])
    assert len(compare.sm_records(ours)) == 1 and compare.records("fault-read", ours, ours) == []
    lines = [json.loads(line) for line in ours.read_text().splitlines()]
    memory = next(m for line in lines if "SM_ERROR_STATE" in line.get("name", "") for m in line["out"]["memory"].values()
                  if m["bytes"].strip("0"))
    memory["bytes"] = memory["bytes"][:8] + "10" + memory["bytes"][10:]
    theirs.write_text("\n".join(map(json.dumps, lines)) + "\n")
    found, = compare.records("fault-read", ours, theirs)
    assert rules.short(found.rule) == "nvgpu-faults.md#sm-error-records" and found.what == "SM record 0: warp_esr"
    assert (found.machine, found.simulator) == ("0x00000020", "0x00000010")


def test_results_of_instructions_are_shown_by_value(tmp_path):
    from tegrarm.validate import instructions
    opened = instructions.archive()
    about = json.loads(opened.read("approximate.json"))
    _, at, width = instructions.columns(about)[-1]
    data = bytes(at + width * about["items"])
    for side in ("a", "b"):
        (tmp_path / side).mkdir()
        (tmp_path / side / "approximate.out").write_bytes(data)
    form, at, width = instructions.columns(about)[2]
    wrong = bytearray(data)
    wrong[at + 5 * width] = 0x80
    (tmp_path / "b" / "approximate.out").write_bytes(wrong)
    found, = compare.results(tmp_path / "a", tmp_path / "b")
    assert (found["form"], found["different"], found["first"][0]["item"]) == (form, 1, 5)
    assert (found["first"][0]["machine"], found["first"][0]["simulator"]) == ("0x0", "0x80")
    assert rules.short(rules.of_answer("instructions", f"approximate.{form}")) == "sm87-float.md#mufu"
    assert rules.short(rules.of_answer("instructions", "matrix_half.x")) == "sm87-half-and-tensor.md#hmma-arithmetic"


@pytest.mark.parametrize("setting, rule", [({"TEGRARM_SIM_CHIP": "orin-nano"}, "nvgpu-nodes.md#orin-modules"),
                                           ({"TEGRARM_SIM_L4T": "r35"}, "nvgpu-ctrl.md#characteristics-layout")], ids=["chip", "release"])
def test_another_board_under_the_same_name_is_found(tmp_path, setting, rule):
    """A simulator with other settings stands for a board that does not do what its name says."""
    about, members = evidence.unpack(made_on(tmp_path, **setting))
    about = {**about, "simulator": {"module": "agx-orin", "l4t": "r36"}}
    steps = [s for s in about["steps"] if s["name"] in ("interface", "open")]
    found = board.replay({**about, "steps": steps}, members).differences
    assert rule in {rules.short(d.rule) for d in found}, compare.text(found)


# --- filing ---------------------------------------------------------------------------------------------------------------------------

def test_a_file_is_filed_and_its_calls_are_made_again_from_then_on(file, tmp_path):
    into = tmp_path / "boards"
    assert board.main([str(file), "--into", str(into)]) == 2, "a simulator is no board"
    assert not into.exists()
    assert board.main([str(file), "--into", str(into), "--simulated", "--recordings-only"]) == 0
    place, = into.iterdir()
    assert place.name == file.name.removesuffix(".tar.zst") and board.regression(place, scripts=False) == []
    # The simulator changes: here the recording does, which is the same from its side.
    path = place / (recording("open") + ".zst")
    data = edited(evidence.decompressed(path.read_bytes(), ""), "NVGPU_IOCTL_CHANNEL_SETUP_BIND",
                  field("nvgpu_channel_setup_bind_args", "work_submit_token", 3))
    path.write_bytes(evidence.compressed(data))
    told = board.regression(place, scripts=False)
    assert len(told) == 1 and told[0].startswith("new: nvgpu-ctrl.md#work-submit-token: open: ")


def test_the_page_has_a_row_for_each_filed_board(file, tmp_path):
    about, members = evidence.unpack(file)
    about = {**about, "simulator": {"module": "agx-orin", "l4t": "r36"}}
    data = edited(members[recording("open")], "NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX", fails("EINVAL"))
    result = board.replay(about, {**members, recording("open"): data}, scripts=False)
    board.file_it(file, result, tmp_path)
    text = board.page_with((ROOT / "docs" / "validated-on.md").read_text(), board.table(tmp_path))
    line, = (line for line in text.splitlines() if line.startswith(f"| `{file.name.removesuffix('.tar.zst')}` |"))
    assert "[nvgpu-channel#alloc-obj-ctx](hardware/nvgpu-channel.md#alloc-obj-ctx): 1" in line
    assert "Nothing was seen on a board yet" in board.table(tmp_path / "none")


def test_the_page_is_that_of_the_filed_boards():
    text = (ROOT / "docs" / "validated-on.md").read_text()
    assert board.page_with(text, board.table(board.ACCEPTED)) == text, "`make replay-board` writes it"


@pytest.mark.parametrize("place", sorted(board.ACCEPTED.glob("orin-*")) if board.ACCEPTED.is_dir() else [], ids=lambda p: p.name)
def test_a_filed_board_still_agrees(place):
    assert board.regression(place, scripts=False) == []


def test_a_file_that_is_none_is_refused_in_a_sentence(tmp_path, capsys):
    (tmp_path / "x.tar.zst").write_bytes(b"notes")
    assert board.main([str(tmp_path / "x.tar.zst"), "--look"]) == 2
    assert "no zstd file" in capsys.readouterr().err
