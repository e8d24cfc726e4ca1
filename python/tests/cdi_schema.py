"""The Container Device Interface 0.7.0 as a JSON schema: which fields a specification has, and which values they take."""

TEXT = {"type": "string", "minLength": 1}
PATH = {"type": "string", "pattern": "^/"}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 0xFFFFFFFF}
TEXTS = {"type": "array", "items": TEXT}


def record(required: list[str], **fields) -> dict:
    """An object with these fields and no others."""
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
