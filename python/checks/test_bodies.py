"""Finds tests that cannot fail, because neither they nor a function of the tests that they call asserts anything.

Python is parsed. Rust is read as text: a function ends at a line that closes it at its own indentation, as rustfmt formats it.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

RUST_ITEM = re.compile(
    r"^(?P<indent> *)(?:pub(?:\([^)]*\))? )?(?:(?:const |unsafe |extern \"C\" )*fn|macro_rules!) (?P<name>\w+)\b", re.M
)
RUST_ATTRIBUTES = re.compile(r"(?:^ *(?:#\[|//).*\n)+\Z", re.M)
RUST_ASSERTS = re.compile(r"assert\w*!|\.(unwrap|expect)(_err)?\(|panic!|unreachable!|\?[;.)]")
PYTHON_ASSERTS = {"raises", "warns", "fail", "check_call", "check_output"}


@dataclass(frozen=True)
class Function:
    """A function or a macro: whether it is a test, whether it asserts something, and which functions it calls."""

    name: str
    line: int
    is_test: bool
    asserts: bool
    calls: frozenset[str]


def _rust(text: str) -> Iterator[Function]:
    for item in RUST_ITEM.finditer(text):
        above = RUST_ATTRIBUTES.search(text, 0, item.start())
        attributes = above[0] if above else ""
        first_line_end = text.find("\n", item.end())
        if text[item.end():first_line_end].rstrip().endswith("}"):
            end = first_line_end
        else:
            end = text.find(f"\n{item['indent']}}}", item.end())
        body = text[item.end():end if end >= 0 else len(text)]
        calls = frozenset(re.findall(r"\b(\w+)(?:::<[^>]*>)?!?\s*[({]", body))
        asserts = "#[should_panic" in attributes or RUST_ASSERTS.search(body) is not None
        yield Function(item["name"], text.count("\n", 0, item.start()) + 1, "#[test]" in attributes, asserts, calls)


def _python(text: str) -> Iterator[Function]:
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        inside = list(ast.walk(function))
        called = [node.func for node in inside if isinstance(node, ast.Call)]
        calls = frozenset(f.id if isinstance(f, ast.Name) else f.attr for f in called if isinstance(f, ast.Name | ast.Attribute))
        checked = any(isinstance(node, ast.keyword) and node.arg == "check" for node in inside)
        asserts = checked or any(isinstance(node, ast.Assert | ast.Raise) for node in inside) or bool(calls & PYTHON_ASSERTS)
        yield Function(function.name, function.lineno, function.name.startswith("test_"), asserts, calls)


def _functions(path: str, text: str) -> list[Function]:
    return list(_rust(text) if path.endswith(".rs") else _python(text))


def _asserting(functions: list[Function]) -> set[str]:
    """The names of functions that assert, or that call one that asserts."""
    found = {function.name for function in functions if function.asserts}
    while more := {f.name for f in functions if f.name not in found and f.calls & found}:
        found |= more
    return found


# The names of the tests' functions that assert, directly or through others. `learn` fills the set.
_known: set[str] = set()


def learn(texts: dict[str, str]) -> None:
    """Notes the functions of the tests. Those of the tested code do not count, because a test must check the result itself."""
    ours = [(path, text) for path, text in texts.items() if re.search(r"test.*\.(rs|py)$", path)]
    _known.update(_asserting([function for path, text in ours for function in _functions(path, text)]))


def that_cannot_fail(path: str, text: str) -> Iterator[tuple[int, str]]:
    """The line and name of each test in a file that asserts nothing."""
    functions = _functions(path, text)
    asserting = _known | _asserting(functions)
    for function in functions:
        if function.is_test and not (function.asserts or function.calls & asserting):
            yield function.line, f"{function.name} asserts nothing"
