"""Writes docs/nvml-functions.md: what libnvidia-ml.so.1 of this project does with each function of NVML (`make docs`)."""

from __future__ import annotations

import collections
import pathlib
import sys

CRATE = pathlib.Path(__file__).resolve().parent.parent / "crates/tegrarm-nvml"
HEAD = """# NVML's functions

This page is made by `make docs` from the tables from which the build makes the library. [NVML](nvml.md) says how it is used.

{functions} functions, all of them exported: {done} done, {partly} done in part, {refused} refused. A function that the header of
CUDA 12 does not have yet is marked with 13.

## Answered

| function | state | what the answer is |
|---|---|---|
"""
REFUSED = """
## Refused

A call with a wrong handle of a device returns `NVML_ERROR_INVALID_ARGUMENT`, and any call before `nvmlInit` returns
`NVML_ERROR_UNINITIALIZED`.

| result, and why | functions |
|---|---|
"""
STATES = {"done": "done", "partly": "in part"}


def rows(name: str) -> list[list[str]]:
    """The rows of a table of the crate."""
    return [line.split("\t") for line in (CRATE / name).read_text().splitlines() if not line.startswith("#")]


def page() -> str:
    """The text of the page."""
    since = {name: number for name, number, _ in rows("functions.tsv")}
    states = rows("states.tsv")
    counts = collections.Counter(state for _, state, _, _ in states)

    def shown(name: str) -> str:
        return f"`{name}`{' (13)' if since[name] == '13' else ''}"

    text = HEAD.format(functions=len(states), **counts)
    text += "".join(f"| {shown(name)} | {STATES[state]} | {'' if why == '-' else why} |\n"
                    for name, state, _, why in sorted(states) if state in STATES)
    refused: dict[tuple[str, str], list[str]] = {}
    for name, state, answer, why in sorted(states):
        if state == "refused":
            refused.setdefault((why, answer), []).append(shown(name))
    text += REFUSED + "".join(f"| {why}: `{answer}` | {', '.join(names)} |\n" for (why, answer), names in sorted(refused.items()))
    return text


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(page())
