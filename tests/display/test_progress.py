"""Progress: quiet at first, lines on a pipe, one line on a terminal, gone at the end."""

from __future__ import annotations

import io
import threading

import pytest

from fpsmt.display import progress
from fpsmt.display.progress import Progress


class Stream(io.StringIO):
    """Says when something was written; `terminal` is what isatty returns."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal, self.written = terminal, threading.Event()

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        size = super().write(text)
        self.written.set()
        return size


def test_quiet_when_fast() -> None:
    stream = Stream(True)
    with Progress("working", stream):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_says_something_when_slow(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.01)
    stream = Stream(terminal)
    with Progress("working", stream) as shown:
        assert stream.written.wait(30)
        shown.update("resting")
        assert shown.line().startswith("fpsmt: resting, ")
    text = stream.getvalue()
    first = "\rfpsmt: working, 0 s" if terminal else "fpsmt: working, 0 s\n"
    assert text.startswith(first)
    assert text.endswith("\r" if terminal else "\n")


def test_lost_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "QUIET_SECONDS", 0.01)
    stream = Stream(False)
    stream.close()
    with Progress("working", stream, lines=True) as shown:
        shown._thread.join(30)
        assert not shown._thread.is_alive()
