"""What the commands share: exit codes, output that survives closed pipes, time limits, result files."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fpsmt.errors import UsageError

PROVED, REFUTED, USAGE, UNKNOWN, INTERNAL, INTERRUPTED = 0, 1, 2, 3, 4, 130
EXIT_OF = {"proved": PROVED, "refuted": REFUTED, "unknown": UNKNOWN}
RESULTS = "fpsmt-results"

JsonOption = Annotated[
    str | None,
    typer.Option("--json", metavar="FILE|-", help="Write the result as JSON; - is stdout, which then holds only that."),
]
TimeoutOption = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="Wall-clock limit.")]
JobsOption = Annotated[int | None, typer.Option("--jobs", metavar="N", help="Processes at a time (all cores).")]
OutOption = Annotated[str, typer.Option("--out", metavar="DIR", help="Where results are saved.")]
NoSaveOption = Annotated[bool, typer.Option("--no-save", help="Save nothing.")]


class TimeLimit(BaseException):
    """The time limit of the command has passed.  Like KeyboardInterrupt, nothing on the way may swallow it."""


def raise_interruption(error: Exception) -> None:
    """Raises the interruption that an error hides.  When a signal comes while compiled code hands over its results,
    Python makes what the handler raises the cause of a SystemError."""
    cause: BaseException | None = error
    while isinstance(cause, SystemError):
        cause = cause.__cause__
    if isinstance(cause, TimeLimit | KeyboardInterrupt):
        raise cause from None


def check_limits(timeout: float, jobs: int | None = None) -> int:
    """Checks --timeout and --jobs; the number of jobs."""
    if not 0 < timeout < float("inf"):
        raise UsageError(f"--timeout {timeout:g}: write a positive number of seconds")
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs}: write a positive number of processes")
    if jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return jobs


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises `TimeLimit` in the main thread after so many seconds (where the system has interval timers)."""

    def stop(*_: object) -> None:
        raise TimeLimit

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except SystemError as error:
        raise_interruption(error)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def terminable() -> Iterator[None]:
    """Turns SIGTERM into KeyboardInterrupt in the main thread, so that what is done is saved and workers end."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# -- output -------------------------------------------------------------------------------------------------


def say(text: str) -> None:
    """One line on stderr."""
    with suppress(OSError, ValueError):
        print(f"fpsmt: {' '.join(text.split())}", file=sys.stderr, flush=True)


def silence() -> None:
    """Sends stdout nowhere, after whoever read it has gone."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    os.close(null)


@dataclass
class Printer:
    """Lines on stdout; nothing when stdout is taken by --json -.  A closed pipe is not an error.

    `closed` says that nobody reads any more.
    """

    quiet: bool = False
    closed: bool = False

    def __call__(self, *lines: str) -> None:
        if self.quiet or self.closed:
            return
        try:
            for line in lines:
                sys.stdout.write(line + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            self.closed = True
            silence()
        except OSError as error:
            self.closed = True
            silence()
            raise UsageError(f"the output cannot be written: {error.strerror or error}") from None


# -- results ------------------------------------------------------------------------------------------------


def short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(frozen=True)
class Saver:
    """Where a command saves: DIR/COMMAND-HASH.json and a reproducer beside it, and the file named by --json."""

    command: str
    json: str | None
    folder: Path | None

    @staticmethod
    def of(command: str, json: str | None, out: str, no_save: bool) -> Saver:
        """Checks that the folders can be written before any work is done."""
        folder = None if no_save else Path(out)
        for place in (folder, Path(json).parent if json not in (None, "-") else None):
            if place is None:
                continue
            try:
                if place is folder:
                    place.mkdir(parents=True, exist_ok=True)
                elif not place.is_dir():
                    raise UsageError(f"{place} is not a folder: results cannot be written there")
            except OSError as error:
                why = error.strerror or str(error)
                raise UsageError(f"{place} cannot be written: {why}; use --out DIR or --no-save") from None
            if not os.access(place, os.W_OK):
                raise UsageError(f"{place} cannot be written: use --out DIR or --no-save")
        if json not in (None, "-") and Path(str(json)).is_dir():
            raise UsageError(f"--json {json}: this is a folder; name a file, or - for stdout")
        return Saver(command, json, folder)

    @property
    def printer(self) -> Printer:
        return Printer(quiet=self.json == "-")

    def path(self, key: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{self.command}-{key[:8]}.json"

    def save(self, key: str, data: Mapping[str, Any], quiet: bool = False, partial: bool = False) -> Path | None:
        """Saves the result under its key (a hash) and says where on stderr.

        A partial result has a file of its own, which the whole one replaces.
        """
        from fpsmt.kernel import write_result

        path = whole = self.path(key)
        if whole is not None:
            unfinished = whole.with_suffix(".partial.json")
            path = unfinished if partial else whole
            try:
                write_result(path, data)
                if not partial:
                    unfinished.unlink(missing_ok=True)
            except OSError as error:
                raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None
            if not quiet:
                say(f"saved {path}")
        return path

    def save_script(self, path: Path, text: str, what: str) -> None:
        """Saves a reproducer and says on stderr what it reproduces."""
        from fpsmt.files.reproduce import write_script

        try:
            write_script(path, text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None
        say(f"saved {path}, which reproduces {what} with numpy alone")

    def report(self, data: Mapping[str, Any]) -> None:
        """Writes what --json asks for."""
        from fpsmt.kernel import write_result
        from fpsmt.kernel.results import SCHEMA

        if self.json is None:
            return
        if self.json == "-":
            Printer()(json.dumps({"schema": SCHEMA, **data}, ensure_ascii=False))
            return
        try:
            write_result(Path(self.json), data)
        except OSError as error:
            raise UsageError(f"--json {self.json} cannot be written: {error.strerror or error}") from None
