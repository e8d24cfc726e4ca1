"""Runs commands at the same time, with one line that says how far they are: what `make demo` waits for.

    python packaging/prepare.py "library=make build" "Python=make venv-demo"

A terminal gets one line that is written anew, anything else a line every now and then. The last line says how long each command took.
What a command printed is shown if it fails.
"""

import re
import shlex
import subprocess
import sys
import threading
import time

# What cargo and pip say while they work, and how a reader is told.
NEWS = (
    (re.compile(r"^\s*Compiling (\S+)"), "compiling {}"),
    (re.compile(r"^\s*Downloaded (\S+)"), "fetched {}"),
    (re.compile(r"^\s*Downloading ([\w.]+)"), "fetching {}"),
    (re.compile(r"^\s*Installing collected packages"), "installing"),
)
EVERY = 15.0  # seconds between two lines where nobody watches
WATCHED = 0.3


class Step:
    """A command in the background."""

    def __init__(self, name: str, command: str):
        self.name, self.news, self.count, self.text = name, "starting", 0, []
        self.started, self.seconds = time.monotonic(), 0.0
        self.process = subprocess.Popen(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        errors="replace", stdin=subprocess.DEVNULL)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.text.append(line)
            for pattern, says in NEWS:
                if found := pattern.match(line):
                    self.count += 1
                    self.news = says.format(*found.groups())
        self.process.wait()
        self.seconds = time.monotonic() - self.started

    def says(self) -> str:
        """How far it is."""
        if self.process.poll() is None:
            return f"{self.name}: {self.count}, {self.news}"
        return f"{self.name}: {'done' if self.process.returncode == 0 else 'failed'}"


def wait(steps: list[Step]) -> Step | None:
    """Waits for all of them, and shows how far they are; returns the first that fails."""
    started, shown, watched = time.monotonic(), 0.0, sys.stdout.isatty()
    while any(step.process.poll() is None for step in steps):
        if failed := next((step for step in steps if step.process.poll()), None):
            return failed
        now = time.monotonic() - started
        if now - shown >= (WATCHED if watched else EVERY):
            shown = now
            line = f"preparing, {now:.0f} s   " + "   ".join(step.says() for step in steps)
            print(f"\r\x1b[K{line[:110]}" if watched else line, end="" if watched else "\n", flush=True)
        time.sleep(0.1)
    if watched:
        print("\r\x1b[K", end="")
    for step in steps:
        step.reader.join()
    print(f"prepared in {time.monotonic() - started:.0f} s: {', '.join(f'{s.name} {s.seconds:.0f} s' for s in steps)}", flush=True)
    return next((step for step in steps if step.process.returncode), None)


def main(arguments: list[str]) -> int:
    """Returns the status of the step that failed, or 0."""
    steps = [Step(*argument.split("=", 1)) for argument in arguments]
    failed = wait(steps)
    for step in steps:
        if step is not failed and step.process.poll() is None:
            step.process.terminate()
    if failed is None:
        return 0
    failed.reader.join()
    print(f"\n{''.join(failed.text)}\n{failed.name} could not be prepared: its output is above")
    return failed.process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
