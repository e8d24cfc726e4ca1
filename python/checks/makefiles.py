"""Looks in makefiles for paths that a folder with a space in its name would break.

A path that is made of the folder of the checkout, of cargo's target directory or of another folder that the user chooses may have a space
in it. make splits names of targets and prerequisites at spaces and has no way to quote them, so such a path must not stand there. The shell
splits at spaces too, so in a recipe the path must be in quotation marks. A variable that contains such a path is one itself.
"""

import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ("Makefile", "make/*.mk", "ctests/Makefile")
# What the user, make or the environment chooses.
CHOSEN = frozenset({"CURDIR", "CARGO_TARGET_DIR", "DESTDIR", "PREFIX"})
ASSIGNMENT = re.compile(r"^(?:export |override )*(\w+)\s*(?:[:?+]?=)\s*(.*)$")
RULE = re.compile(r"^[^\t#\s][^#=]*?:(?!=)")
REFERENCE = re.compile(r"\$[({](\w+)[)}]")
# Functions of make that look at a text and do not split it.
INSIDE = re.compile(r"^(ifn?eq|ifdef|ifndef|else|endif|include|define|endef|export \w+$|\.\w+:)|^\$\((error|warning|info) ")


def bare(text: str, names: frozenset[str]) -> Iterator[str]:
    """The references to these variables that stand outside of quotation marks."""
    quote = ""
    for at, letter in enumerate(text):
        if letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        found = REFERENCE.match(text, at) if letter == "$" and not quote else None
        if found and found[1] in names and not taken_whole(text[:at]):
            yield found[1]


def taken_whole(before: str) -> bool:
    """Whether a reference is an argument of `subst` or the question of an `if`, which take a text as a whole."""
    start = before.rfind("$(subst ")
    return before.endswith("$(if ") or start >= 0 and before.count("(", start) > before.count(")", start)


def lines(makefile: str) -> Iterator[tuple[int, str]]:
    """The lines of a makefile with their numbers. A line that goes on behind a backslash is one line."""
    number, joined = 0, ""
    for count, line in enumerate(makefile.split("\n"), 1):
        number = number if joined else count
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        yield number, joined + line
        joined = ""


def whole(makefile: str) -> frozenset[str]:
    """The variables whose values may have a space in them."""
    names = CHOSEN
    assigned = [found.groups() for _, line in lines(makefile) if (found := ASSIGNMENT.match(line))]
    while more := {name for name, value in assigned if any(bare(value, names))} - names:
        names |= more
    return names


def broken(makefile: str, names: frozenset[str]) -> Iterator[tuple[int, str]]:
    """The lines that would break, each with what is wrong."""
    for number, line in lines(makefile):
        if line.lstrip().startswith("#") or INSIDE.match(line) or (ASSIGNMENT.match(line) and not line.startswith("\t")):
            continue
        if RULE.match(line):
            head = line.split("##")[0]
            yield from ((number, f"$({name}) is the name of a file of a rule, where make splits it at spaces")
                        for name in REFERENCE.findall(head) if name in names)
        else:
            yield from ((number, f"$({name}) is not in quotation marks") for name in bare(line, names))


def proof() -> Iterator[str]:
    """What is wrong with the rule itself, tried on samples."""
    wrong = ["all:\n\tcp a $(CURDIR)/b\n", "A := $(CURDIR)/a\nB := $(A)/b\nall:\n\tcp $(B) c\n", "all: $(CARGO_TARGET_DIR)/a\n",
             "all:\n\tcp 'a' $(PREFIX)\n", "all:\n\tcp a \\\n\t  $(DESTDIR)/b\n", "all:\n\tcp \"a\" '$$x' $(CURDIR)\n"]
    right = ["all:\n\tcp a \"$(CURDIR)/b\"\n", "A := \"$(CURDIR)/a\"\nall:\n\tcp $(A) c\n",
             "A := $(subst $(CURDIR)/,,$(CARGO_TARGET_DIR))\nall: $(A)\n",
             "# $(CURDIR)\nexport A := $(CURDIR)\n", "all:\n\tcp '$(CURDIR)/a' b $(if $(DESTDIR),c)\n"]
    yield from (f"makefiles.py does not see {text!r}" for text in wrong if not list(broken(text, whole(text))))
    yield from (f"makefiles.py objects to {text!r}" for text in right if list(broken(text, whole(text))))


def main() -> int:
    """Returns 0 if no line would break."""
    found, files = list(proof()), [path for pattern in FILES for path in sorted(ROOT.glob(pattern))]
    ours = whole("\n".join(path.read_text() for path in files if path.parent.name != "ctests"))
    for path in files:
        text = path.read_text()
        names = whole(text) if path.parent.name == "ctests" else ours
        found += [f"{path.relative_to(ROOT)}:{number}: {what}" for number, what in broken(text, names)]
    print("\n".join(found) or f"makefiles: {len(files)} files work in a folder with a space in its name")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
