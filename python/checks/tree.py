"""Checks those house rules of CONTRIBUTING.md that a program can check by reading text.

Every rule is a row of `RULES`. A row has samples: text to which it must object, and text that it must accept. They are tried before the
tree is checked, so that a rule whose pattern no longer finds anything fails here and does not pass. A rule that applies to no file fails,
and so does an exception that no file needs any more.
"""

import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import test_bodies

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = "python/checks/tree.py"  # The file itself quotes what it forbids.

Finder = Callable[[str, str], Iterator[tuple[int, str]]]


@dataclass(frozen=True)
class Rule:
    """One house rule: the files to which it applies, the function that finds violations, and samples that prove that the function works."""

    says: str
    where: str  # a pattern of paths
    find: Finder  # (path, text) -> (line, what is there)
    wrong: tuple[tuple[str, str], ...]  # (path, text): each must be found
    right: tuple[tuple[str, str], ...] = ()  # (path, text): none may be found
    allowed: dict[str, str] = field(default_factory=dict)  # a pattern of paths -> why the rule does not hold there

    def applies(self, path: str) -> bool:
        """Whether the rule applies to a file."""
        return path != HERE and re.search(self.where, path) is not None

    def exception(self, path: str) -> str | None:
        """The exception for a file, if there is one."""
        return next((pattern for pattern in self.allowed if re.search(pattern, path)), None)


def lines(pattern: str, flags: int = 0) -> Finder:
    """Finds the lines that match a pattern."""
    compiled = re.compile(pattern, flags)

    def find(_: str, text: str) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(text.splitlines(), 1):
            if compiled.search(line):
                yield number, line.strip()[:90]

    return find


def too_long(path: str, text: str) -> Iterator[tuple[int, str]]:
    count = text.count("\n")
    if count > 500:
        yield 500, f"{count} lines"


def unrun_examples(_: str, text: str) -> Iterator[tuple[int, str]]:
    """Finds examples in Rust: a fence without a language opens one, and so does one with a word of rustdoc."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if fence := re.match(r"\s*//[/!] ?```(\w*)", line):
            if not inside and fence[1] in ("", "rust", "no_run", "should_panic", "compile_fail", "ignore"):
                yield number, line.strip()
            inside = not inside


def bad_name(path: str, _: str) -> Iterator[tuple[int, str]]:
    if re.search(r"(^|/)(utils?|helpers?|misc|stuff|extras?)(/|\.\w+$)", path):
        yield 1, path


def without_lints(_: str, text: str) -> Iterator[tuple[int, str]]:
    if "[package]" in text and not re.search(r"^\[lints\]\nworkspace = true$", text, re.M):
        yield 1, "no `[lints] workspace = true`"


# These functions return a constant and call nothing that could panic.
CONSTANTS = {"tegrarm_version", "tegrarm_status_name"}


def unguarded(_: str, text: str) -> Iterator[tuple[int, str]]:
    """The exported functions whose body does not begin with the guard that catches panics."""
    for export in re.finditer(r'#\[unsafe\(no_mangle\)\]\n(?:#.*\n)*pub (?:unsafe )?extern "C" fn (\w+)[^{]*\{\s*', text):
        body = re.sub(r"^(\s*(//.*\n|let _ = \w+;))*\s*", "", text[export.end():])
        if export[1] not in CONSTANTS and not re.match(r"(status|attempt_or|attempt_now|errno|last_error)\(", body):
            yield text.count("\n", 0, export.start()) + 1, export[1]


def opcode_lists(_: str, text: str) -> Iterator[tuple[int, str]]:
    """Patterns and arrays with several operations of the instruction set, and names that stand for them."""
    several = r'\bOp::\w+\s*(?:[|,]|=>[^\n]*\n)\s*(?:isa::)?Op::\w|\buse [^;\n]*\bOp::(?:\*|\{)|"[A-Z][A-Z0-9.]+"\s*\|\s*"[A-Z][A-Z0-9.]+"'
    for found in re.finditer(several, text):
        yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split())[:90]


CODE = r"\.(rs|py|c|cc|h|sh)$"
TEXT = r"\.(rs|py|c|cc|h|sh|md|toml|txt|yml|cu|in|mk)$|(^|/)(Makefile|run)$"
TESTS = r"^(tests|ctests|python/tests|crates/[^/]+/tests)/.*\.(rs|py|c|h)$"

# The design allows `unsafe` in these places: the C interface, the Linux boundary, memory that devices write, the engine, and tests of
# these.
UNSAFE = {
    r"^src/capi/": "the C interface",
    r"^src/runtime/memory/(doorbell|mod|place)\.rs$": "memory that the GPU writes",
    r"^crates/tegrarm-kmd/src/": "the Linux boundary",
    r"^crates/tegrarm-output/src/": "signals that a write raises",
    r"^crates/tegrarm-lock/src/": "locks are made of atomic words and a system call",
    r"^crates/tegrarm-preload/src/": "it stands in for libc's functions",
    r"^crates/tegrarm-nvml/(src/|build\.rs$)": "the C interface of NVML",
    r"^crates/tegrarm-client/src/": "it calls the C interface, whose functions it finds by name",
    r"^crates/tegrarm-cuda/(build|src/(api|driver|exports|jit|kernels|machine|pointers|stack|symbols))\.rs$": "the interface of CUDA",
    r"^crates/tegrarm-cudart/(build|src/(calls|images|lib|libcudart1[23]))\.rs$": "the interface of CUDA for programs of nvcc",
    r"^crates/sm87/src/exec/": "the engine's registers and memory",
    r"^crates/sm87-simd/src/(avx2|converted|hmma|lib|one|tests/hmma)\.rs$": "vectors of the host, and memory that they load and store",
    r"^crates/sm87-native/src/(code|tests)\.rs$": "machine code that was made for this host, and its calls",
    r"^crates/tegra-mm/src/": "the simulator's memory",
    r"^crates/tegra-gpu/src/(checks|mem|profile|stats)\.rs$": "the simulator's memory; what is printed or written when the process ends",
    r"^crates/tegra-kernel/src/process/in_process\.rs$": "memory of the calling process",
    r"^crates/tegra-sim/src/(board|supervisor/(bus|opened|outer|spawn|sys))\.rs$": "system calls",
    r"^(crates/[^/]+/)?tests/": "tests look at memory through addresses and make system calls of their own",
    r"^examples/rust/": "calls of CUDA's C interface",
    r"^fuzz/": "fuzz targets make the calls of the C interface",
    r"^judge/src/": "calls of a shared library that is built from C",
}

RULES = {
    "unfinished": Rule(
        "finish it, or refuse with a status and a reason",
        TEXT,
        lines(r"\b(todo|unimplemented)!|\bNotImplementedError\b|\b(TODO|FIXME|XXX|HACK)\b"),
        wrong=(
            ("a.rs", "    todo!()"),
            ("a.rs", 'unimplemented!("later")'),
            ("a.py", "raise NotImplementedError"),
            ("a.c", "/* TODO */"),
        ),
        right=(("a.md", "all is done"),),
    ),
    "examples in Rust": Rule(
        "only tegrarm-kmd's examples are run (doctest in Cargo.toml): set doctest there, or say what the block is (```text)",
        r"^(src|crates/[^/]+/src)/.*\.rs$",
        unrun_examples,
        wrong=(
            ("src/a.rs", "//! ```\n//! let a = 1;\n//! ```"),
            ("src/a.rs", "    /// ```no_run\n    /// open();\n    /// ```"),
            ("src/a.rs", "/// ```text\n/// a\n/// ```\n/// ```\n/// b\n/// ```"),
        ),
        right=(("src/a.rs", "//! ```text\n//! a\n//! ```\nfn a() {}"),),
        allowed={r"^crates/tegrarm-kmd/": "its examples are run"},
    ),
    "conflict": Rule(
        "finish the merge",
        TEXT,
        lines(r"^(<{7}|>{7}|\|{7}) "),
        wrong=(("a.rs", "<<<<<<< HEAD"), ("a.md", ">>>>>>> 1234567 (Subject)")),
        right=(("a.md", "======="), ("a.rs", "a << 7")),
    ),
    "placeholder": Rule(
        "fill in what a document was to say",
        r"\.md$",
        lines(r"@[A-Z][A-Z_]+@|\b(TBD|TBC)\b"),
        wrong=(("a.md", "| `make check` | @CHECK@ |"), ("a.md", "TBD")),
        right=(("a.md", "maintainer@EXAMPLE.org"),),
    ),
    "unsafe-place": Rule(
        "`unsafe` belongs into the places that CONTRIBUTING.md names; elsewhere use what they offer",
        r"\.rs$",
        lines(r"^[^/\"]*\bunsafe\s*(\{|fn\b|impl\b|extern\b|\()|allow\(unsafe_code"),
        wrong=(("src/files/a.rs", "unsafe { x() }"), ("src/files/b.rs", "unsafe fn f()"), ("src/files/a.rs", "#![allow(unsafe_code)]")),
        right=(("src/files/a.rs", "// no unsafe { } here"),),
        allowed=UNSAFE,
    ),
    "half-done": Rule(
        "a child that is forked while a thread makes the value waits for ever: use once_cell::race, which never waits",
        r"^(src|crates/[^/]+/src)/.*\.rs$",
        lines(r"\bstatic [A-Z_]+: (\w+::)*(OnceLock|Once|LazyLock|OnceCell|Lazy)\b"),
        wrong=(
            ("src/a.rs", "    static ONCE: Once = Once::new();"),
            ("crates/a/src/b.rs", "pub static ALL: std::sync::OnceLock<Vec<u8>> = OnceLock::new();"),
        ),
        right=(("src/a.rs", "static ALL: OnceBox<Vec<u8>> = OnceBox::new();"),),
        allowed={r"^crates/tegra-sim/src/supervisor/": "the supervisor forks no child that goes on with its threads' work"},
    ),
    "unsafe-lints": Rule(
        "every crate inherits the workspace's lints; they deny `unsafe` without `// SAFETY:`",
        r"(^|crates/[^/]+/)Cargo\.toml$",
        without_lints,
        wrong=(("crates/a/Cargo.toml", '[package]\nname = "a"\n'),),
        right=(("crates/a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n"),),
    ),
    "unsafe-silence": Rule(
        "do not silence the lint that asks for `// SAFETY:`; say why the block is sound",
        r"\.rs$",
        lines(r"(allow|expect)\([^)]*(undocumented_unsafe_blocks|missing_safety_doc)"),
        wrong=(("a.rs", "#[allow(clippy::undocumented_unsafe_blocks)]"),),
        allowed={r"^src/capi/mod\.rs$": "its functions are documented for C: what pointers must be is said without Rust's heading"},
    ),
    "length": Rule(
        "split a file over 500 lines by duty",
        CODE + r"|(^|/)Makefile$|\.mk$",
        too_long,
        wrong=(("a.rs", "x\n" * 501),),
        right=(("a.rs", "x\n" * 500),),
        allowed={
            r"^include/tegrarm(_abi)?\.h$": "made from the source by `make header`",
            r"^crates/tegrarm-client/src/header\.rs$": "made from the header by `make header`",
        },
    ),
    "names": Rule(
        "name a file or module by its duty",
        CODE,
        bad_name,
        wrong=(("src/utils.rs", ""), ("python/helpers/a.py", ""), ("src/extra.rs", "")),
        right=(("src/utilisation.rs", ""), ("python/suite/stand_ins/test.py", "")),
        allowed={
            r"^python/suite/stand_ins/": "they bear the names that tinygrad's tests import",
        },
    ),
    "word": Rule(
        "use the field's word for it, which the list in CONTRIBUTING.md has",
        r"^(src|crates/(tegra-|tegrarm-)[^/]+/src)/.*\.rs$",
        lines(
            r"(?i:\b(heralds?|porters?|bury|clues?|errands?|deeds?|drawers?|leash(es)?|patience|verdicts?)\b)"
            r"|\b(struct|enum|trait|type) Lanes?\b"
        ),
        wrong=(
            ("src/runtime/a.rs", "pub struct Lane {"),
            ("src/runtime/a.rs", "self.bury();"),
            ("crates/tegra-mm/src/a.rs", "struct Drawer"),
        ),
        right=(("src/runtime/a.rs", "// The lanes of a warp."),),
    ),
    "standard-error": Rule(
        "use tegrarm_output: Rust's own lock stays locked in a forked child, and eprintln! panics where it is closed",
        r"^(src|crates/[^/]+/src)/(?!(.*/)?(bin/|tests/|tests\.rs)).*\.rs$",
        lines(r"\beprint(ln)?!|\bdbg!|stderr\(\)\.(lock|write)|write(ln)?!\((std::)?io::stderr"),
        wrong=(("src/a.rs", 'eprintln!("x");'), ("crates/a/src/b.rs", "io::stderr().write_all(b)")),
        right=(("src/a.rs", "if std::io::stderr().is_terminal() {"),),
    ),
    "machine-path": Rule(
        "no path of one machine",
        TEXT,
        lines(r"/root/|/home/\w+/|\.pyenv|(?<![\w.$}/)])/work/"),
        wrong=(("a.py", "open('/root/x')"), ("a.md", "see /home/joe/x"), ("a.sh", "cd /work/main")),
        right=(("a.sh", "$HOME/work/x"), ("a.py", "tmp_path/work/x")),
    ),
    "host": Rule(
        "name no host but the public ones that the project needs",
        TEXT,
        lines(r"https?://(?!(github\.com|sh\.rustup\.rs|www\.apache\.org|www\.w3\.org|ports\.ubuntu\.com|example\.com)(?![\w.-]))[\w.-]+\w"),
        wrong=(("a.toml", 'index = "https://registry.corp.test/index"'), ("a.md", "http://10.0.0.1/")),
        right=(("a.md", "https://github.com/tinygrad/tinygrad"),),
    ),
    "timed-test": Rule(
        "a test counts what happens; it does not look at the clock",
        TESTS,
        lines(r"\bInstant\b|\bSystemTime\b|\.elapsed\(|clock_gettime|perf_counter|\bmonotonic\(|\btime\.time\("),
        wrong=(
            ("tests/a.rs", "let t = Instant::now();"),
            ("python/tests/test_a.py", "t = time.time()"),
            ("ctests/a.c", "clock_gettime(c, &t)"),
        ),
        right=(("tests/a.rs", "thread::sleep(SHORT)"),),
        allowed={
            r"^crates/[^/]+/tests/kernel/support/running\.rs$": "how long a test waits before it says that something never happened",
            r"^crates/[^/]+/tests/kernel/channel_rare\.rs$": "the kernel's clock is what it is about",
            r"^python/tests/pool/test_planner\.py$": "planning a thousand devices has a bound of ten seconds; only `make test-pool` looks",
        },
    ),
    "hidden-test": Rule(
        "a test that does not run is deleted or says at run time why it is left out",
        r"\.(rs|py)$",
        lines(r"#\[ignore|pytest\.mark\.(skip|xfail)\b(?!if)|@unittest\.skip\b"),
        wrong=(("a.rs", "#[ignore]"), ("a.py", "@pytest.mark.skip"), ("a.py", "@pytest.mark.xfail(reason='x')")),
        right=(("a.py", "@pytest.mark.skipif(not CLANG, reason='no clang')"),),
    ),
    "test-cannot-fail": Rule(
        "a test asserts something, itself or in a function that it calls",
        r"\.(rs|py)$",
        test_bodies.that_cannot_fail,
        wrong=(
            ("a.rs", "#[test]\nfn runs() {\n    f();\n}\n"),
            ("a.rs", "#[test]\nfn runs() {\n    step();\n}\nfn step() {\n    f();\n}\n"),
            ("test_a.py", "def test_runs():\n    f()\n"),
        ),
        right=(
            ("a.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n"),
            ("a.rs", "#[test]\nfn runs() {\n    step();\n}\nfn step() {\n    f().unwrap();\n}\n"),
            ("test_a.py", "def test_adds():\n    assert 1 + 1 == 2\n"),
        ),
    ),
    "one-way": Rule(
        "the simulator never imports the library",
        r"^crates/.*\.(rs|toml)$",
        lines(r"^\s*(pub )?use tegrarm(::|;)|[^\"\w]tegrarm::(rm|files|capi|runtime|tegra|backend|status)\b|^tegrarm(\.workspace)? *="),
        wrong=(
            ("crates/a/src/b.rs", "use tegrarm::rm::Rm;"),
            ("crates/a/src/b.rs", "let x = tegrarm::rm::f();"),
            ("crates/a/Cargo.toml", "tegrarm.workspace = true"),
        ),
        right=(("crates/a/src/b.rs", 'target: "tegrarm::kmd"'), ("crates/a/Cargo.toml", "tegrarm-abi.workspace = true")),
    ),
    "one-backend": Rule(
        "only the backend knows the simulator",
        r"^(src|crates/tegrarm-rm/src)/.*\.rs$",
        lines(r"\btegra_sim(\b|_)|TEGRARM_SIM|virtual Orin"),
        wrong=(
            ("crates/tegrarm-rm/src/rm/a.rs", "use tegra_sim::Kernel;"),
            ("src/runtime/a.rs", 'let file = "device/tegra_sim_checks";'),
            ("src/runtime/a.rs", 'std::env::var_os("TEGRARM_SIM_CHECK")'),
            ("src/capi/a.rs", "/// True for the virtual Orin, false for a board."),
        ),
        right=(("src/capi/a.rs", "/// True for a simulated GPU, false for a board."),),
        allowed={r"^src/backend\.rs$": "it chooses between the kernels"},
    ),
    "opcode-list": Rule(
        "what an instruction does stands in its row (`isa/table.rs`); ask the row's effects",
        r"^crates/sm87(?!-num)[^/]*/src/.*\.rs$",
        opcode_lists,
        wrong=(
            ("crates/sm87/src/exec/a.rs", "matches!(op, Op::Ld | Op::Ldg)"),
            ("crates/sm87/src/exec/a.rs", "match op {\n    Op::Ld\n    | Op::Ldg => 1,\n}"),
            ("crates/sm87/src/exec/a.rs", "match op {\n    Op::Ld => 1,\n    Op::Ldg => 2,\n}"),
            ("crates/sm87/src/exec/a.rs", "const LOADS: [Op; 2] = [Op::Ld, Op::Ldg];"),
            ("crates/sm87/src/exec/a.rs", "use crate::isa::Op::*;"),
            ("crates/sm87/src/exec/a.rs", "    use Op::{Ld, Ldg};"),
            ("crates/sm87/src/exec/a.rs", 'matches!(row.name, "LDG" | "STG")'),
        ),
        right=(
            ("crates/sm87/src/exec/a.rs", "row.op == Op::Ffma"),
            ("crates/sm87/src/exec/a.rs", "(plain(Op::Ffma, next.multiplying), plain(Op::Fadd, next.adding))"),
        ),
        allowed={r"^crates/sm87/src/exec/dispatch\.rs$": "one handler for each operation; the compiler sees that none is missing"},
    ),
    "bare-status": Rule(
        "name a status as its header does: INVALID_CLIENT, not 0x23",
        r"^docs/.*\.md$|^src/.*\.rs$",
        lines(r"(answers?|answer is|refused with|status is|fails with) 0x[0-9A-Fa-f]{2}\b|^\s*///.*\b0x[0-9A-Fa-f]{2} (for|when|if) "),
        wrong=(("docs/a.md", "An unknown client is refused with 0x23."), ("src/a.rs", "    /// 0x57 for an unknown object.")),
        right=(("docs/a.md", "an unknown client is refused with INVALID_CLIENT, class 0x3E too"), ("src/a.rs", "/// Class 0x3E."),),
    ),
    "panic-guard": Rule(
        "a C function's body begins with the guard, so that no panic crosses the C interface",
        r"^src/capi/.*\.rs$",
        unguarded,
        wrong=(("src/capi/a.rs", '#[unsafe(no_mangle)]\npub extern "C" fn f() -> u32 {\n    work()\n}\n'),),
        right=(("src/capi/a.rs", '#[unsafe(no_mangle)]\npub extern "C" fn f() -> u32 {\n    status(|| work())\n}\n'),),
    ),
}


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True, text=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def proof(name: str, rule: Rule) -> Iterator[str]:
    """The mistakes in the rule itself, found with its samples."""
    for path, text in rule.wrong:
        if not list(rule.find(path, text)):
            yield f"rule {name} does not object to its own sample: {text[:60]!r}"
    for path, text in rule.right:
        if list(rule.find(path, text)):
            yield f"rule {name} objects to a sample that is right: {text[:60]!r}"


def broken(name: str, rule: Rule, texts: dict[str, str]) -> Iterator[str]:
    """The places in the tree that break the rule."""
    about = [path for path in texts if rule.applies(path)]
    if not about:
        yield f"rule {name} has no file to look at: {rule.where}"
    needed = set()
    for path in about:
        exception = rule.exception(path)
        for line, what in rule.find(path, texts[path]):
            if exception:
                needed.add(exception)
            else:
                yield f"{path}:{line}: {what}\n    {name}: {rule.says}"
    for pattern in rule.allowed.keys() - needed:
        yield f"rule {name} has an exception that no file needs: {pattern}"


def main() -> int:
    found = [problem for name, rule in RULES.items() for problem in proof(name, rule)]
    texts = {path: (ROOT / path).read_text(errors="replace") for path in tracked() if re.search(TEXT, path)}
    test_bodies.learn(texts)
    found += [problem for name, rule in RULES.items() for problem in broken(name, rule, texts)]
    print("\n".join(found) or f"tree: {len(RULES)} rules hold in {len(texts)} files")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
