"""tegrarm cdi: the specification names every node of a board, and is one by the rules of the Container Device Interface."""

import json
import os
import subprocess
import sys

import jsonschema
import pytest
from conftest import TEGRARM_SIM
from machines import build

needs_sim = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")

# The Container Device Interface 0.7.0 as a JSON schema: which fields a specification has, and which values they take.
TEXT = {"type": "string", "minLength": 1}
PATH = {"type": "string", "pattern": "^/"}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 0xFFFFFFFF}
TEXTS = {"type": "array", "items": TEXT}


def record(required, **fields):
    """An object of the schema with these fields and no others."""
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


NODE = record(["path"], path=PATH, hostPath=PATH, type={"enum": ["b", "c", "u", "p"]}, major={"type": "integer"},
              minor={"type": "integer"}, fileMode=NUMBER, permissions={"type": "string", "pattern": "^[rwm]{1,3}$"}, uid=NUMBER, gid=NUMBER)
MOUNT = record(["hostPath", "containerPath"], hostPath=PATH, containerPath=PATH, options=TEXTS, type=TEXT)
HOOK = record(["hookName", "path"], path=PATH, args=TEXTS, env=TEXTS, timeout={"type": "integer"}, hookName={
    "enum": ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"]})
RDT = record([], closID=TEXT, l3CacheSchema=TEXT, memBwSchema=TEXT, enableCMT={"type": "boolean"}, enableMBM={"type": "boolean"})
EDITS = {**record([], env={"type": "array", "items": {"type": "string", "pattern": "^[^=]+=.*$"}},
                  deviceNodes={"type": "array", "items": NODE, "minItems": 1}, mounts={"type": "array", "items": MOUNT, "minItems": 1},
                  hooks={"type": "array", "items": HOOK, "minItems": 1}, intelRdt=RDT,
                  additionalGids={"type": "array", "items": {**NUMBER, "minimum": 1}, "uniqueItems": True}),
         "minProperties": 1}
ANNOTATIONS = {"type": "object", "additionalProperties": {"type": "string"}}
DEVICE = record(["name", "containerEdits"], name={"type": "string", "pattern": "^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$"},
                annotations=ANNOTATIONS, containerEdits=EDITS)
SCHEMA = {
    **record(["cdiVersion", "kind", "devices"],
             cdiVersion={"type": "string", "pattern": r"^(0\.[3-8]\.\d+|1\.\d+\.\d+)$"},
             kind={"type": "string", "pattern": "^[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?$"},
             annotations=ANNOTATIONS, devices={"type": "array", "items": DEVICE, "minItems": 1}, containerEdits=EDITS),
}


def tegrarm(*arguments):
    return subprocess.run([sys.executable, "-m", "tegrarm", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def nodes_of(specification):
    return {node["path"] for node in specification["devices"][0]["containerEdits"]["deviceNodes"]}


def test_a_specification_follows_the_schema(tmp_path):
    done = tegrarm("cdi", "--root", build(tmp_path))
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    jsonschema.validate(made, SCHEMA)
    assert made["kind"] == "libtegrarm/gpu" and [d["name"] for d in made["devices"]] == ["0", "all"]
    assert {"/dev/nvmap", "/dev/nvgpu/igpu0/ctrl", "/dev/nvgpu/igpu0/as", "/dev/nvgpu/igpu0/tsg", "/dev/dma_heap/system"} == nodes_of(made)
    assert made["devices"][0]["containerEdits"]["mounts"][0]["hostPath"] == "/etc/nv_tegra_release"


@pytest.mark.parametrize("spoil", [
    lambda s: s.pop("kind"), lambda s: s.update(kind="gpu"), lambda s: s.update(cdiVersion="7"), lambda s: s.update(devices=[]),
    lambda s: s["devices"][0].pop("name"), lambda s: s["devices"][0].update(containerEdits={}),
    lambda s: s["devices"][0]["containerEdits"]["deviceNodes"][0].update(path="dev/nvmap"),
    lambda s: s["devices"][0]["containerEdits"].update(additionalGids=[0]), lambda s: s.update(more=1)])
def test_the_schema_finds_mistakes(tmp_path, spoil):
    made = json.loads(tegrarm("cdi", "--root", build(tmp_path)).stdout)
    spoil(made)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(made, SCHEMA)


def test_the_group_of_the_nodes_is_given_to_the_container(tmp_path):
    root = build(tmp_path)
    for node in root.glob("dev/nvgpu/igpu0/*"):
        node.chmod(0o660)
    gid = (root / "dev/nvgpu/igpu0/ctrl").stat().st_gid
    edits = json.loads(tegrarm("cdi", "--root", root).stdout)["devices"][0]["containerEdits"]
    assert edits.get("additionalGids", []) == ([gid] if gid else [])


def test_it_can_be_written_and_says_what_comes_next(tmp_path):
    root, file = build(tmp_path / "root"), tmp_path / "tegrarm.json"
    done = tegrarm("cdi", "--root", root, "--output", file)
    assert done.returncode == 0 and "docker run --device libtegrarm/gpu=0" in done.stdout
    jsonschema.validate(json.loads(file.read_text()), SCHEMA)
    refused = tegrarm("cdi", "--root", root, "--output", tmp_path / "none" / "x.json")
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1


def test_a_machine_without_a_gpu_is_refused_in_a_sentence(tmp_path):
    done = tegrarm("cdi", "--root", tmp_path)
    assert done.returncode == 2 and "/dev/nvmap does not exist" in done.stderr and len(done.stderr.splitlines()) == 1


@needs_sim
def test_the_virtual_orins_nodes_are_found():
    done = subprocess.run([TEGRARM_SIM, "run", "--", sys.executable, "-m", "tegrarm", "cdi"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    jsonschema.validate(made, SCHEMA)
    assert {"/dev/nvmap", "/dev/nvgpu/igpu0/ctrl", "/dev/nvgpu/igpu0/tsg", "/dev/nvgpu/igpu0/channel"} <= nodes_of(made)
