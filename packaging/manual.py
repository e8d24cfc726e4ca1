"""Man page and completions of `tegrarm`, made of its own grammar: `make docs` writes them, `make lint` compares them.

    python packaging/manual.py DIRECTORY

Those of `tegrarm-sim` come from `tegrarm-sim manual DIRECTORY`. Nothing here depends on the width of a terminal or on the day.
"""

import argparse
import pathlib
import sys

from tegrarm.__main__ import parser
from tegrarm.info import package_version


def roff(text: str) -> str:
    """Text as roff reads it."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(("\\&" + line if line[:1] in ".'" else line) for line in text.splitlines())


def commands(grammar: argparse.ArgumentParser) -> list[tuple[str, str, argparse.ArgumentParser]]:
    """Name, help and grammar of each subcommand."""
    found = next(a for a in grammar._actions if isinstance(a, argparse._SubParsersAction))
    return [(choice.dest, choice.help or "", found.choices[choice.dest]) for choice in found._choices_actions]


def options(grammar: argparse.ArgumentParser) -> list[argparse.Action]:
    """What begins with a dash."""
    return [a for a in grammar._actions if a.option_strings]


def synopsis(action: argparse.Action) -> str:
    """An option with its value."""
    value = "" if action.nargs == 0 else " " + (action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices
                                                                   else action.dest.upper()))
    return ", ".join(action.option_strings) + value


def man(grammar: argparse.ArgumentParser) -> str:
    """The page."""
    lines = [f'.TH TEGRARM 1 "" "tegrarm {package_version()}" "libtegrarm"', ".SH NAME", roff("tegrarm - " + grammar.description),
             ".SH SYNOPSIS", ".B tegrarm", "COMMAND [OPTION...] [ARGUMENT...]", ".SH COMMANDS"]
    for name, text, below in commands(grammar):
        places = [a.metavar or a.dest for a in below._actions if not a.option_strings]
        lines += [".SS " + roff(" ".join([name, *(p.upper() for p in places)])), roff(text[0].upper() + text[1:] + ".")]
        for action in options(below):
            if "--help" not in action.option_strings:
                lines += [".TP", ".B " + roff(synopsis(action)), roff((action.help or "").strip())]
    examples, _, status = grammar.epilog.partition("\n\n")
    lines += [".SH EXAMPLES", ".nf", roff(examples.partition("\n")[2]), ".fi", ".SH EXIT STATUS", roff(status.partition(": ")[2]),
              ".SH SEE ALSO", ".BR tegrarm\\-sim (1)"]
    return "\n".join(lines) + "\n"


def bash(grammar: argparse.ArgumentParser) -> str:
    """Completion for bash: commands, then their options and files."""
    cases = "\n".join(f"        {name}) words='{' '.join(o for a in options(below) for o in a.option_strings)}' ;;"
                      for name, _, below in commands(grammar))
    return f"""_tegrarm() {{
    local words current=${{COMP_WORDS[COMP_CWORD]}}
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W '{' '.join(n for n, _, _ in commands(grammar))} --help --version' -- "$current")
        return
    fi
    case ${{COMP_WORDS[1]}} in
{cases}
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"; compgen -f -- "$current")
}}
complete -o filenames -F _tegrarm tegrarm
"""


def quoted(text: str) -> str:
    """Text between single quotes, for zsh and fish."""
    return text.replace("\\", "").replace("'", "").replace("[", "(").replace("]", ")").replace(":", ",")


def zsh(grammar: argparse.ArgumentParser) -> str:
    """The same for zsh."""
    words = "\n".join(f"        '{name}:{quoted(text)}'" for name, text, _ in commands(grammar))
    cases = "\n".join("        {}) _arguments {} '*:file:_files' ;;".format(
        name, " ".join(f"'{o}[{quoted(a.help or '')}]'" for a in options(below) for o in a.option_strings))
        for name, _, below in commands(grammar))
    return f"""#compdef tegrarm
_tegrarm() {{
    local -a commands
    commands=(
{words}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words; (( CURRENT-- ))
    case $command in
{cases}
    esac
}}
_tegrarm "$@"
"""


def fish(grammar: argparse.ArgumentParser) -> str:
    """The same for fish."""
    lines = [f"complete -c tegrarm -n __fish_use_subcommand -a {name} -d '{quoted(text)}'" for name, text, _ in commands(grammar)]
    for name, _, below in commands(grammar):
        for action in options(below):
            names = " ".join(f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in action.option_strings)
            value = "" if action.nargs == 0 else " -r"
            lines.append(f"complete -c tegrarm -n '__fish_seen_subcommand_from {name}' {names}{value} -d '{quoted(action.help or '')}'")
    return "\n".join(lines) + "\n"


def main(directory: str) -> None:
    """Writes the four files."""
    grammar, place = parser(), pathlib.Path(directory)
    files = {"man/tegrarm.1": man, "completions/tegrarm.bash": bash, "completions/_tegrarm": zsh, "completions/tegrarm.fish": fish}
    for name, made in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made(grammar), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
