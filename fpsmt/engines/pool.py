"""Worker processes that answer tasks with one function: forked when they are needed, and gone when their parent is."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from threadpoolctl import threadpool_limits

from fpsmt.errors import InternalError
from fpsmt.floats.vector import load_kernels

Task = TypeVar("Task")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Died:
    """What comes of a task when its worker is killed."""

    exit_code: int | None

    def __str__(self) -> str:
        return f"the worker died (exit code {self.exit_code}): out of memory, or killed"


@dataclass(frozen=True)
class _Failed:
    """An error that the function should not raise."""

    error: str
    trace: str


class Pool(Generic[Task, Answer]):
    """At most `jobs` workers.  They do not hear of Ctrl-C: whoever has the pool kills it, whatever ends the work."""

    def __init__(self, work: Callable[[Task], Answer], jobs: int) -> None:
        self.work, self.jobs = work, max(1, jobs)
        self.workers: list[tuple[Any, Connection]] = []
        self.running: dict[int, Task] = {}  # by place in workers

    @property
    def busy(self) -> int:
        return len(self.running)

    @property
    def free(self) -> int:
        return self.jobs - len(self.running)

    def send(self, task: Task) -> None:
        """Hands a task to a worker that is free."""
        place = next((k for k in range(len(self.workers)) if k not in self.running), len(self.workers))
        if place == len(self.workers):
            self.workers.append(self._start())
        try:
            self.workers[place][1].send(task)
        except OSError:  # it died while it was waiting
            self.workers[place] = self._replaced(place)
            self.workers[place][1].send(task)
        self.running[place] = task

    def receive(self, patience: float) -> list[tuple[Task, Answer | Died]]:
        """What has come back, after waiting at most so many seconds for something."""
        out: list[tuple[Task, Answer | Died]] = []
        ready = wait([self.workers[place][1] for place in self.running], timeout=patience) if self.running else []
        for place in [place for place in self.running if self.workers[place][1] in ready]:
            task, (process, pipe) = self.running.pop(place), self.workers[place]
            try:
                made = pipe.recv()
            except (EOFError, OSError):
                self.workers[place] = self._replaced(place)
                made = Died(process.exitcode)
            if isinstance(made, _Failed):
                shown = made.trace if os.environ.get("FPSMT_DEBUG") == "1" else ""
                raise InternalError(f"in a worker process: {made.error}\n{shown}".rstrip())
            out.append((task, made))
        return out

    def kill(self) -> None:
        for process, pipe in self.workers:
            if process.is_alive():
                process.kill()
            process.join(1)
            pipe.close()
        self.workers, self.running = [], {}

    def _start(self) -> tuple[Any, Connection]:
        if not self.workers:
            load_kernels()
        context = multiprocessing.get_context("fork")
        mine, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self.work), daemon=True)
        process.start()
        theirs.close()
        return process, mine

    def _replaced(self, place: int) -> tuple[Any, Connection]:
        process, pipe = self.workers[place]
        process.kill()
        process.join(1)
        pipe.close()
        return self._start()


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """The loop of a worker: tasks in, answers out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    threadpool_limits(1)  # as many workers as cores, each with one thread
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            made: Any = work(task)
        except Exception as error:
            made = _Failed(f"{type(error).__name__}: {error}", traceback.format_exc(limit=-4))
        pipe.send(made)


def _end_with(parent: int) -> None:
    """Ends this process when its parent is gone, however that ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
