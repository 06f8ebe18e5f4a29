"""Progress on stderr for what takes over two seconds: one changing line on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TextIO

QUIET_SECONDS = 2.0  #: nothing is said before
LINE_SECONDS = 10.0  #: between lines when stderr is not a terminal
TERMINAL_SECONDS = 0.5


class Progress:
    """A context manager that says what is going on, and for how long; `update` changes what it says.

    A thread writes, so that long computations in between need not call it.  Errors in writing are ignored.
    """

    def __init__(self, doing: str, stream: TextIO | None = None, lines: bool | None = None) -> None:
        self._stream = stream or sys.stderr
        self._doing = doing
        self._terminal = (not lines) if lines is not None else self._stream.isatty()
        self._start = time.monotonic()
        self._shown = 0
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def update(self, doing: str) -> None:
        """Changes what is said from now on."""
        self._doing = doing

    def line(self) -> str:
        """What is said now.

        >>> Progress("3 of 9 done").line().startswith("fpsmt: 3 of 9 done, ")
        True
        """
        return f"fpsmt: {self._doing}, {time.monotonic() - self._start:.0f} s"

    def clear(self) -> None:
        """Takes the line off a terminal, so that something else can be printed."""
        with self._lock:
            if self._shown:
                self._write("\r" + " " * self._shown + "\r")
                self._shown = 0

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._stop.set()

    def _run(self) -> None:
        pause = QUIET_SECONDS
        while not self._stop.wait(pause):
            with self._lock:
                if self._terminal:
                    text = self.line()[:110]
                    self._write("\r" + text.ljust(self._shown))
                    self._shown = len(text)
                else:
                    self._write(self.line() + "\n")
            pause = TERMINAL_SECONDS if self._terminal else LINE_SECONDS

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(1)
        self.clear()
