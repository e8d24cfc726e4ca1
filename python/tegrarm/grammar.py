"""The grammar of a command line whose mistakes are sentences, with the usage of the command in which they are."""

from __future__ import annotations

import argparse
import sys

from .say import Refused


class Grammar(argparse.ArgumentParser):
    """A grammar whose errors are ours: with --json, programs read them."""

    def error(self, message: str):
        """Shows how the command is used."""
        self.print_usage(sys.stderr)
        raise Refused(f"{self.prog.removeprefix('tegrarm').strip() or 'the command line'}: {message}")

    def parse_args(self, args=None, namespace=None):
        """Reads the command line. What a subcommand does not know is its own error. argparse makes it one of the whole program."""
        known, unknown = self.parse_known_args(args, namespace)
        if unknown:
            chosen = self
            while below := chosen.chosen_below(known):
                chosen = below
            chosen.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known

    def chosen_below(self, known: argparse.Namespace) -> Grammar | None:
        """The grammar of the subcommand that was given."""
        below = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))
        return next((action.choices.get(getattr(known, action.dest, None)) for action in below), None)
