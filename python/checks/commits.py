"""Checks the subjects and bodies of the newest commits: a subject is one line of at most 72 characters, and the body says why."""

import pathlib
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEWEST = 20
LONGEST = 72
# This is the last commit before this rule.
BEFORE = "c536d0dc3f90739aec305529ecf1c6cc5e5d6fe5"


def git(*arguments: str) -> str | None:
    """The output of git, or `None` if git fails."""
    said = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return said.stdout if said.returncode == 0 else None


def messages() -> list[tuple[str, str]] | None:
    """The hash and message of each of the newest commits that are not merges. A shallow clone has few of them."""
    known = git("rev-parse", "--verify", "--quiet", f"{BEFORE}^{{commit}}")
    newer = [f"^{known.strip()}"] if known else []
    log = git("log", "--no-merges", f"-{NEWEST}", "--format=%h%x00%B%x01", "HEAD", *newer)
    if log is None:
        return None
    entries = [entry.strip().split("\0") for entry in log.split("\1") if entry.strip()]
    return [(name, message.strip()) for name, message in entries]


def problems(message: str) -> Iterator[str]:
    subject, _, rest = message.partition("\n")
    if len(subject) > LONGEST:
        yield f"the subject has {len(subject)} characters, {LONGEST} fit: {subject!r}"
    if subject.lower().startswith(("wip", "fixup!", "squash!")):
        yield f"unfinished: {subject!r}"
    if rest.startswith("\n"):
        rest = rest[1:]
    elif rest:
        yield f"no empty line below the subject: {subject!r}"
    if not rest.strip():
        yield f"no body that says why: {subject!r}"


def proof() -> Iterator[str]:
    right = "Count what a process holds\n\nThe leak checks compared nothing with nothing.\n"
    wrong = {"a long subject": "x" * 73 + "\n\nwhy\n", "no body": "Count\n", "no empty line": "Count\nwhy\n", "wip": "wip\n\nwhy\n"}
    yield from (f"commits.py does not see {what}" for what, message in wrong.items() if not list(problems(message)))
    yield from (f"commits.py objects to a commit that is right: {what}" for what in problems(right))


def main() -> int:
    found, entries = list(proof()), messages()
    if entries is None:
        print("\n".join(found) or "commits: SKIPPED, this is no git repository")
        return 1 if found else 0
    found += [f"{name}: {what}" for name, message in entries for what in problems(message)]
    print("\n".join(found) or f"commits: the newest {len(entries)} say what and why")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
