"""Breaks one rule of the simulated kernel after the other, and sees that the replayed answers of NVIDIA's driver notice each.

`make test-driver-mutants` runs this. Each mutant is a line of a source file and what stands there instead. The file is put back
afterwards, also after an interruption. `make lint` sees with `--check` that the lines still stand in their files, once.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]

# The family, the file, the line's text, and the wrong text.
MUTANTS = [
    ("spaces", "crates/tegra-mm/src/buddy.rs", "_ => pieces.push_front(block)", "_ => pieces.push_back(block)"),
    ("spaces", "crates/tegra-kernel/src/space/remap.rs", "..*last }", "..*op }"),
    ("spaces", "crates/tegra-mm/src/page_table.rs", "(VOLATILE, !cacheable)", "(VOLATILE, !cacheable && self.writable)"),
    ("spaces", "crates/tegra-kernel/src/space/map.rs", "kind: kind as u8,", "kind: (kind & 1) as u8,"),
    (
        "addresses",
        "crates/tegra-mm/src/buddy.rs",
        "if page < self.nodes[right].page { left } else { right };\n        }\n        Some(block)",
        "if page <= self.nodes[right].page { left } else { right };\n        }\n        Some(block)",
    ),
    ("addresses", "crates/tegra-mm/src/buddy.rs", "if order < PDE_ORDER { Some(class)", "if order <= PDE_ORDER { Some(class)"),
    ("channels", "crates/tegra-kernel/src/channel/state.rs", ".filter(|_| serviceable)", ".filter(|_| !serviceable)"),
    (
        "groups",
        "crates/tegra-kernel/src/ioctl_tsg/bind.rs",
        "*group.runlist.get_or_insert(channel.runlist) != channel.runlist",
        "group.runlist.replace(channel.runlist).is_none_or(|old| old == u32::MAX) && group.members.len() > 128",
    ),
    ("ctrl", "crates/tegra-kernel/src/clears.rs", "(entry.value, entry.format) == (value, format)", "entry.value == value"),
    ("ctrl", "crates/tegra-kernel/src/clocks.rs", ".map(|(_, mhz)| *mhz).max()", ".map(|(_, mhz)| *mhz).min()"),
    (
        "spaces",
        "crates/tegra-kernel/src/space/remap.rs",
        "pages.iter().any(|pages| *pages > most)",
        "pages.iter().any(|pages| *pages > most << 8)",
    ),
    ("nvmap", "crates/tegra-kernel/src/nvmap/mod.rs", "args.access_flags == NVMAP_HANDLE_RO;", "args.access_flags & NVMAP_HANDLE_RO != 0;"),
    ("nvmap", "crates/tegra-kernel/src/nvmap/heaps.rs", "args.heap_number = NO_PEER;", "args.heap_number = 0 & NO_PEER;"),
    (
        "failures",
        "crates/tegra-hw/src/tsg.rs",
        "(all > m.ctxsw_timeout_ms.load(Ordering::Relaxed)).then_some(all)",
        "(all >= m.ctxsw_timeout_ms.load(Ordering::Relaxed)).then_some(all)",
    ),
    (
        "failures",
        "crates/tegra-hw/src/tsg.rs",
        "m.stalled_ms.fetch_add(ms, Ordering::Relaxed).saturating_add(ms)",
        "m.stalled_ms.fetch_add(ms, Ordering::Relaxed).max(ms)",
    ),
    ("failures", "crates/tegra-gpu/src/fault.rs", "fault.va & !0xfff;", "fault.va & !0xff;"),
    ("failures", "crates/tegra-gpu/src/fault.rs", 'name: "grcopy/ce2"', 'name: "ce2"'),
    ("channels", "crates/tegra-kernel/src/channel/context.rs", "if group.zcull_va == 0 {", "if group.zcull_va != 1 {"),
    (
        "failures",
        "crates/tegra-gpu/src/fault.rs",
        "Interrupt { recovered: false, ..intr }",
        "Interrupt { recovered: intr.bit > 20, ..intr }",
    ),
    ("failures", "crates/tegra-gpu/src/core.rs", "!self.config.r35 || fault.code", "self.config.r35 || fault.code"),
    ("r35", "crates/tegra-kernel/src/space/map.rs", "request.fixed && request.offset != 0", "request.fixed && request.offset != 1"),
    ("r35", "crates/tegra-kernel/src/channel/control.rs", "None if call.is_r35() => {}", "None if !call.is_r35() => {}"),
    (
        "threads",
        "crates/tegra-kernel/src/ioctl_tsg/mod.rs",
        "file.tsg.hw.timeslice_us.load(Ordering::Relaxed);",
        "file.tsg.hw.timeslice_us.load(Ordering::Relaxed).max(1001);",
    ),
    (
        "malformed",
        "crates/tegra-kernel/src/ioctl_tsg/mod.rs",
        "PerRelease::same(NVGPU_TSG_IOCTL_MAX_ARG_SIZE as usize)",
        "PerRelease::same(8 * NVGPU_TSG_IOCTL_MAX_ARG_SIZE as usize)",
    ),
]


def misplaced() -> list[str]:
    """The mutants whose text is not there, or is there more than once."""
    texts = {name: (ROOT / name).read_text() if (ROOT / name).exists() else "" for _, name, *_ in MUTANTS}
    return [f"{name}: {right}" for _, name, right, _ in MUTANTS if texts[name].count(right) != 1]


def noticed(file: pathlib.Path, right: str, wrong: str, test: list[str]) -> bool:
    """Whether the test fails with the wrong text. A mutant that does not compile counts as an error of this list."""
    text = file.read_text()
    try:
        file.write_text(text.replace(right, wrong))
        if subprocess.run([*test, "--no-run"], cwd=ROOT, capture_output=True).returncode != 0:
            raise SystemExit(f"{file}: the mutant does not compile: {wrong}")
        return subprocess.run(test, cwd=ROOT, capture_output=True).returncode != 0
    finally:
        file.write_text(text)


def main() -> int:
    """Tries every mutant. The status is 1 if one survives, or if the code has moved away from the list."""
    if wrong_places := misplaced():
        print("mutants: the text of a mutant does not stand once in its file:", *wrong_places, sep="\n  ")
        return 1
    if sys.argv[1:] == ["--check"]:
        print(f"mutants: {len(MUTANTS)} stand where the list says")
        return 0
    test = [os.environ.get("CARGO", "cargo"), "test", "--locked", "-p", "tegra-sim", "--test", "judged"]
    survived = 0
    for family, name, right, wrong in MUTANTS:
        seen = noticed(ROOT / name, right, wrong, test)
        survived += not seen
        print(f"{family:10} {name}: {'noticed' if seen else 'SURVIVED'}", flush=True)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
