"""Solvers as child processes: one wall-clock limit, one memory limit, killed together, first answer wins.

A crash, garbage output, a signal or a limit is a reason for ``unknown``, never an answer.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Literal

from fpsmt.errors import UsageError

Status = Literal["sat", "unsat", "unknown"]

#: Solver files of this folder, in the order in which they are tried.
SOLVERS = ("bitwuzla", "z3", "cvc5")

_POLL = 0.25  #: seconds between looks at a request to stop


def solver(name: str) -> ModuleType:
    """The solver's file: `PACKAGE`, `MODULE`, `decline(sorts)`, and `run`, `version` for the child process."""
    if name not in SOLVERS:
        raise UsageError(f"unknown solver {name!r}: choose from {', '.join(SOLVERS)}")
    return importlib.import_module(f"fpsmt.smt.{name}")


def missing(name: str) -> str | None:
    """Why a solver cannot be started, with the command that installs it, or None."""
    module = solver(name)
    if importlib.util.find_spec(module.MODULE) is None:
        return f"{name} is not installed: pip install {module.PACKAGE}"
    return None


def available() -> dict[str, str]:
    """Installed solvers and their versions."""
    found = {}
    for name in SOLVERS:
        if missing(name) is None:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                found[name] = importlib.metadata.version(solver(name).PACKAGE)
    return found


@dataclass(frozen=True)
class Attempt:
    """One solver on one script; `shown` are the symbols whose values are wanted when sat."""

    solver: str
    text: str
    shown: tuple[str, ...]
    label: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a solver said.  `values` are bit patterns as integers, by symbol."""

    attempt: Attempt
    status: Status
    values: dict[str, int] = field(default_factory=dict)
    version: str = ""
    reason: str = ""
    seconds: float = 0.0


class _Child:
    def __init__(self, attempt: Attempt, folder: Path, number: int, memory_mb: int) -> None:
        self.attempt = attempt
        self.started = time.monotonic()
        self.query = folder / f"{number}.json"
        self.query.write_text(json.dumps({"text": attempt.text, "shown": attempt.shown}), encoding="utf-8")
        self.errors = folder / f"{number}.err"
        module = solver(attempt.solver)
        assert module.__file__ is not None
        worker = str(Path(__file__).with_name("worker.py"))
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-P", worker, module.__file__, str(self.query), str(os.getpid()), str(memory_mb)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self.output = b""

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def outcome(self) -> Outcome:
        """Reads the finished child's answer."""
        code = self.process.wait()
        seconds = time.monotonic() - self.started
        reason = ""
        try:
            answer = json.loads(self.output.decode().rstrip().rsplit("\n", 1)[-1])
            status, version = answer["status"], str(answer["version"])
            values = {str(k): int(v) for k, v in answer["values"].items()}
            reason = str(answer["reason"])
            if status not in ("sat", "unsat", "unknown"):
                raise ValueError(f"status {status!r}")
            if code != 0:
                raise ValueError("it answered and then failed")
            return Outcome(self.attempt, status, values, version, reason, seconds)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            tail = self.errors.read_bytes()[-300:].decode(errors="replace").strip()
            what = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
            reason = f"the solver process gave no answer ({what}; {error}{'; ' + tail if tail else ''})"
            return Outcome(self.attempt, "unknown", reason=reason, seconds=seconds)


class Stopped(Exception):
    """Another thread asked a race to stop."""


class Race:
    """Runs attempts, at most `jobs` at a time, and hands out their outcomes as they come.

    Leaving the ``with`` block, for any reason, kills every child and its process group.  `stop` lets another thread
    end the race with `Stopped`.
    """

    def __init__(
        self,
        attempts: Sequence[Attempt],
        timeout: float,
        memory_mb: int,
        jobs: int,
        stop: threading.Event | None = None,
    ) -> None:
        self.stop = stop
        self.waiting = list(attempts)
        self.deadline = time.monotonic() + timeout
        self.memory_mb = memory_mb
        self.jobs = max(1, jobs)
        self.running: list[_Child] = []
        self._count = 0

    def __enter__(self) -> Race:
        self._folder = tempfile.TemporaryDirectory(prefix="fpsmt-")
        self._selector = selectors.DefaultSelector()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for child in self.running:
            child.kill()
        self.running.clear()
        self._selector.close()
        self._folder.cleanup()

    def outcomes(self) -> Iterator[Outcome]:
        """Outcomes as they come; at the deadline one ``unknown`` for each attempt still running or waiting."""
        while self.waiting or self.running:
            if self.stop is not None and self.stop.is_set():
                raise Stopped
            while self.waiting and len(self.running) < self.jobs and time.monotonic() < self.deadline:
                self._start(self.waiting.pop(0))
            rest = self.deadline - time.monotonic()
            if rest <= 0:
                yield from self._expire()
                return
            for key, _ in self._selector.select(min(rest, _POLL)):
                child: _Child = key.data
                assert child.process.stdout is not None
                chunk = os.read(child.process.stdout.fileno(), 1 << 16)
                child.output += chunk
                if not chunk:
                    self._selector.unregister(child.process.stdout)
                    self.running.remove(child)
                    outcome = child.outcome()
                    child.kill()
                    yield outcome

    def _start(self, attempt: Attempt) -> None:
        self._count += 1
        child = _Child(attempt, Path(self._folder.name), self._count, self.memory_mb)
        self.running.append(child)
        self._selector.register(child.process.stdout, selectors.EVENT_READ, child)  # type: ignore[arg-type]

    def _expire(self) -> Iterator[Outcome]:
        late = [child.attempt for child in self.running]
        for child in self.running:
            child.kill()
        self.running.clear()
        for attempt in [*late, *self.waiting]:
            yield Outcome(attempt, "unknown", reason="no answer within the time limit")
        self.waiting.clear()
