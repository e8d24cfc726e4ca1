"""Checks what include/tegrarm.h says to people who write C: every name in it exists, and every error has its name and its condition."""

import re

import pytest
from conftest import ROOT

INCLUDE = ROOT / "include"
TEXT = (INCLUDE / "tegrarm.h").read_text()
TOP = TEXT[:TEXT.index("*/")]
FUNCTIONS = {name: (doc, result.strip(), arguments) for doc, result, name, arguments in
             re.findall(r"/\*\*((?:(?!\*/).)*)\*/\s*([\w][\w\s]*?[\s*]+)(\w+)\s*\(([^()]*)\)\s*;", TEXT, flags=re.S)}
STATUS = [name for name, (_, result, _) in FUNCTIONS.items() if result == "NV_STATUS"]
DOCS = re.findall(r"/\*.*?\*/", TEXT, flags=re.S)
# Words that Rust's documentation uses and C's does not.
RUST = [r"# (Safety|Errors|Panics)", r"\bOption\b", r"\bResult<", r"\bVec\b", r"\bArc\b", r"&mut\b", r"\[`", r"`\]", r"\b(Ok|Err|Some)\(",
        r"\w::\w", r"\b[iu](8|16|32|64|size)\b", r"\bunsafe\b", r"\bpanic", r"caller's promise"]
# Words in backticks that are names in C, in Linux or in CUDA and not in this interface.
FOREIGN = {"MAP_FAILED", "O_CLOEXEC", "errno", "extern", "malloc", "printf", "__device__", "__constant__", "sizeof",
           "TEGRARM_HEAP_SIZE", "TEGRARM_PRINTF_SIZE", "TEGRARM_", "TEGRARM_BACKEND",
           "TEGRARM_LOG", "NVGPU_CHANNEL_", "NV_ERR_", "enum", "struct", "major", "minor", "hww_warp_esr", "GPPut",
           "nvgpu", "sim", "make", "header"}


def names(header: str) -> set[str]:
    """Everything that a header declares: macros, types, members and enumerators."""
    text = re.sub(r"/\*.*?\*/", "", (INCLUDE / header).read_text(), flags=re.S)
    return set(re.findall(r"\w+", text))


KNOWN = names("tegrarm.h") | names("tegrarm_status.h") | names("tegrarm_abi.h") | FOREIGN


def errors(doc: str) -> list[str]:
    """The items in a function's list of errors."""
    _, found, listed = doc.partition("Errors")
    return re.findall(r"^ \* - (.*?)(?=^ \* ?-|^ \*$|\Z)", listed, flags=re.S | re.M) if found else []


def test_the_functions_were_found():
    assert len(FUNCTIONS) == len(re.findall(r"^\S.*\b(?:rm|tegrarm)_\w+\(", re.sub(r"/\*.*?\*/", "", TEXT, flags=re.S), flags=re.M)) > 50
    assert len(STATUS) > 35


@pytest.mark.parametrize("name", STATUS)
def test_errors_have_their_names_and_conditions(name):
    doc, _, _ = FUNCTIONS[name]
    assert re.search(r"\bNV_ERR_\w+", doc), "a status that the function returns"
    for item in errors(doc):
        assert re.match(r"(`NV_ERR_\w+`(, )?)+: \S", item), f"{item!r}: the status, a colon, the condition"
        assert item.rstrip().endswith("."), f"{item!r} is a sentence"
    assert errors(doc) or name == "tegrarm_shutdown"


@pytest.mark.parametrize("name", ["rm_open", "rm_ioctl", "rm_mmap", "rm_close"])
def test_system_calls_name_their_errnos(name):
    items = errors(FUNCTIONS[name][0])
    assert len(items) >= 2 and all(re.match(r"(`E\w+`(, )?)+: \S|any ", item) for item in items)


@pytest.mark.parametrize("pattern", RUST)
def test_nothing_is_said_in_rust(pattern):
    assert [doc for doc in DOCS if re.search(pattern, doc)] == []


def test_no_status_is_a_bare_number():
    assert [doc for doc in DOCS if re.search(r"\b0x[0-9A-Fa-f]{1,2}\b", doc)] == []


def test_every_status_and_constant_that_is_named_exists():
    named = {word for doc in DOCS for word in re.findall(r"\b(?:NV|TEGRARM|rm|tegrarm)_?\w*_\w+\b", doc)}
    files = {"tegrarm_abi", "tegrarm_status"}
    assert {word for word in named if not word.endswith("_")} - KNOWN - files == set()
    assert len(named) > 80


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_words_in_backticks_are_names(name):
    """No sentence names an argument that was renamed or removed."""
    doc, _, arguments = FUNCTIONS[name]
    own = set(re.findall(r"(\w+)\s*(?:,|$)", arguments))
    quoted = [text for text in re.findall(r"`([^`]*)`", doc) if not re.search(r'[/"]|^cc |\(\d\)', text)]
    words = {word for text in quoted for word in re.findall(r"[A-Za-z_]\w*", text)}
    unknown = {word for word in words - own - KNOWN if not re.fullmatch(r"E[A-Z]+|0x\w+", word)}
    assert unknown == set()


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_pointer_arguments_are_explained(name):
    doc, _, arguments = FUNCTIONS[name]
    pointers = [a for a in re.findall(r"\*\s*(\w+)\s*(?:,|$)", arguments)]
    assert [p for p in pointers if not re.search(rf"\b{p}\b", doc)] == []


@pytest.mark.parametrize("heading", ["STATUSES", "POINTERS", "THREADS", "FORK", "LIFETIME", "ABI"])
def test_the_top_has_what_holds_for_all_functions(heading):
    assert re.search(rf"^ \* {heading}$", TOP, flags=re.M)


def test_enumerations_that_are_named_are_declared():
    named = set(re.findall(r"`enum (\w+)`", TEXT))
    declared = set(re.findall(r"^enum (\w+) \{", TEXT, flags=re.M))
    assert named == declared and len(declared) == 8
