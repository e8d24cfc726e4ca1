"""Man page and completions of `tegrarm`, made of its own grammar: `make docs` writes them, `make lint` compares them.

    python packaging/manual.py DIRECTORY

Those of `tegrarm-sim` come from `tegrarm-sim manual DIRECTORY`. Nothing here depends on the width of a terminal or on the day.
"""

import argparse
import pathlib
import sys

from tegrarm.__main__ import parser
from tegrarm.info import package_version
from tegrarm.pool.cli import parser as pool_parser


def roff(text: str) -> str:
    """Text as roff reads it."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(("\\&" + line if line[:1] in ".'" else line) for line in text.splitlines())


def commands(grammar: argparse.ArgumentParser) -> list[tuple[str, str, argparse.ArgumentParser]]:
    """Name, help and grammar of each subcommand. That of `pool` is its module's: the command only hands it the words."""
    found = [a for a in grammar._actions if isinstance(a, argparse._SubParsersAction)]
    of_pool = {"pool": pool_parser()} if grammar.prog == "tegrarm" else {}
    return [(choice.dest, choice.help or "", of_pool.get(choice.dest, action.choices[choice.dest]))
            for action in found for choice in action._choices_actions]


def options(grammar: argparse.ArgumentParser) -> list[argparse.Action]:
    """What begins with a dash."""
    return [a for a in grammar._actions if a.option_strings]


def synopsis(action: argparse.Action) -> str:
    """An option with its value."""
    value = "" if action.nargs == 0 else " " + (action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices
                                                                   else action.dest.upper()))
    return ", ".join(action.option_strings) + value


def described(words: str, text: str, grammar: argparse.ArgumentParser) -> list[str]:
    """A section of the page: a command with its options."""
    places = [a.metavar or a.dest for a in grammar._actions if not a.option_strings]
    lines = [".SS " + roff(" ".join([words, *(p.upper() for p in places)])), roff(text[0].upper() + text[1:] + ".")]
    for action in options(grammar):
        if "--help" not in action.option_strings:
            lines += [".TP", ".B " + roff(synopsis(action)), roff((action.help or "").strip())]
    return lines


def man(grammar: argparse.ArgumentParser) -> str:
    """The page."""
    lines = [f'.TH TEGRARM 1 "" "tegrarm {package_version()}" "libtegrarm"', ".SH NAME", roff("tegrarm - " + grammar.description),
             ".SH SYNOPSIS", ".B tegrarm", "COMMAND [OPTION...] [ARGUMENT...]", ".SH COMMANDS"]
    for name, text, below in commands(grammar):
        for words, what, of in [(name, text, below), *((f"{name} {more}", what, of) for more, what, of in commands(below))]:
            lines += described(words, what, of)
    examples, _, status = grammar.epilog.partition("\n\n")
    lines += [".SH EXAMPLES", ".nf", roff(examples.partition("\n")[2]), ".fi", ".SH EXIT STATUS", roff(status.partition(": ")[2]),
              ".SH SEE ALSO", ".BR tegrarm\\-sim (1)"]
    return "\n".join(lines) + "\n"


def names(grammar: argparse.ArgumentParser) -> str:
    """The names of its subcommands."""
    return " ".join(name for name, _, _ in commands(grammar))


def words_of(grammar: argparse.ArgumentParser) -> str:
    """The options of a command, and the values that an argument may have."""
    values = [str(choice) for a in grammar._actions if not a.option_strings and a.choices and not commands(grammar) for choice in a.choices]
    return " ".join([*(o for a in options(grammar) for o in a.option_strings), *values])


def bash_case(name: str, below: argparse.ArgumentParser) -> str:
    """What is offered behind a command."""
    if name == "sim":  # the completion of tegrarm-sim knows the rest
        return "        sim) _tegrarm_sim; return ;;"
    if not commands(below):
        return f"        {name}) words='{words_of(below)}' ;;"
    cases = "\n".join(f"                {more}) words='{words_of(of)}' ;;" for more, _, of in commands(below))
    return f"""        {name})
            if [ "$COMP_CWORD" = 2 ]; then
                mapfile -t COMPREPLY < <(compgen -W '{names(below)} {words_of(below)}' -- "$current")
                return
            fi
            case ${{COMP_WORDS[2]}} in
{cases}
            esac ;;"""


def bash(grammar: argparse.ArgumentParser) -> str:
    """Completion for bash: commands, then their options and files."""
    cases = "\n".join(bash_case(name, below) for name, _, below in commands(grammar))
    return f"""_tegrarm_sim() {{
    local here=${{BASH_SOURCE[0]%/*}} previous=tegrarm-sim words=("${{COMP_WORDS[@]:2}}")
    declare -F _tegrarm__sim > /dev/null || . "$here/tegrarm-sim" 2> /dev/null || . "$here/tegrarm-sim.bash" 2> /dev/null || return
    [ "$COMP_CWORD" -lt 3 ] || previous=${{COMP_WORDS[COMP_CWORD - 1]}}
    local COMP_WORDS=(tegrarm-sim "${{words[@]}}") COMP_CWORD=$((COMP_CWORD - 1))
    _tegrarm__sim tegrarm-sim "${{COMP_WORDS[COMP_CWORD]}}" "$previous"
}}
_tegrarm() {{
    local words current=${{COMP_WORDS[COMP_CWORD]}}
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W '{names(grammar)} --help --version' -- "$current")
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


def zsh_case(name: str, below: argparse.ArgumentParser, indent: str = "        ") -> str:
    """What is offered behind a command."""
    if name == "sim":
        return f"{indent}sim) words[1]=tegrarm-sim; _tegrarm-sim ;;"
    if below_it := commands(below):
        listed = " ".join(f"'{more}:{quoted(text)}'" for more, text, _ in below_it)
        cases = "\n".join(zsh_case(more, of, indent + "        ") for more, _, of in below_it)
        return f"""{indent}{name})
{indent}    if (( CURRENT == 2 )); then
{indent}        commands=({listed})
{indent}        _describe command commands
{indent}        return
{indent}    fi
{indent}    command=$words[2]
{indent}    shift words; (( CURRENT-- ))
{indent}    case $command in
{cases}
{indent}    esac ;;"""
    values = {o: "" if a.nargs == 0 else f":value:({' '.join(map(str, a.choices))})" if a.choices else ":value:_files"
              for a in options(below) for o in a.option_strings}
    offered = " ".join(f"'{o}[{quoted(a.help or '')}]{values[o]}'" for a in options(below) for o in a.option_strings)
    return f"{indent}{name}) _arguments {offered} '*:file:_files' ;;"


def zsh(grammar: argparse.ArgumentParser) -> str:
    """The same for zsh."""
    words = "\n".join(f"        '{name}:{quoted(text)}'" for name, text, _ in commands(grammar))
    cases = "\n".join(zsh_case(name, below) for name, _, below in commands(grammar))
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
    """The same for fish. `tegrarm sim` completes as `tegrarm-sim` does."""
    lines = [f"complete -c tegrarm -n __fish_use_subcommand -a {name} -d '{quoted(text)}'" for name, text, _ in commands(grammar)]
    nested = [name for name, _, below in commands(grammar) if commands(below)] + ["sim"]
    for name, _, below in commands(grammar):
        if name == "sim":
            lines.append("complete -c tegrarm -f -n '__fish_seen_subcommand_from sim' "
                         "-a '(complete -C (string join -- \" \" tegrarm-sim (commandline -opc)[3..] (commandline -ct)))'")
            continue
        elsewhere = "" if name in nested else f"; and not __fish_seen_subcommand_from {' '.join(nested)}"  # `pool run` is another `run`
        lines += fish_options(below, f"__fish_seen_subcommand_from {name}{elsewhere}")
        for more, text, of in commands(below):
            lines.append(f"complete -c tegrarm -n '__fish_seen_subcommand_from {name}; and not __fish_seen_subcommand_from {names(below)}' "
                         f"-a {more} -d '{quoted(text)}'")
            lines += fish_options(of, f"__fish_seen_subcommand_from {name}; and __fish_seen_subcommand_from {more}")
    return "\n".join(lines) + "\n"


def fish_options(grammar: argparse.ArgumentParser, when: str) -> list[str]:
    """The options of a command, with their values."""
    lines = []
    for action in options(grammar):
        flags = " ".join(f"-l {o[2:]}" if o.startswith("--") else f"-s {o[1:]}" for o in action.option_strings)
        value = "" if action.nargs == 0 else f" -x -a '{' '.join(map(str, action.choices))}'" if action.choices else " -r"
        lines.append(f"complete -c tegrarm -n '{when}' {flags}{value} -d '{quoted(action.help or '')}'")
    return lines


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
