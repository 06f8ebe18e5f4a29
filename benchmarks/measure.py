"""What a benchmark is, and how it is timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

SOLVER_LIMIT = 40.0  #: seconds for a peer that is a solver


class Missing(Exception):
    """A peer cannot be measured, and why."""


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds for what `work` says, how many they may be, and what a peer takes for it.

    `peer` is (what, seconds), or (what, why they could not be measured).
    """

    work: str
    seconds: float
    target: float | None = None
    peer: tuple[str, float | str] | None = None


Rows = Iterable[Row]
BENCHMARKS: dict[str, Callable[[], Rows]] = {}


def benchmark(name: str) -> Callable[[Callable[[], Rows]], Callable[[], Rows]]:
    """Decorator: registers a benchmark, a function that yields rows."""

    def register(function: Callable[[], Rows]) -> Callable[[], Rows]:
        BENCHMARKS[name] = function
        return function

    return register


def seconds(work: Callable[..., Any], *arguments: Any, repeat: int = 1) -> float:
    """The least wall-clock time of some runs."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work(*arguments)
        best = min(best, time.perf_counter() - start)
    return best


Peer = tuple[str, float | str]


def compare(what: str, peer: Callable[..., float], *arguments: Any) -> Peer:
    """A peer's seconds, or why there are none: a missing or failing peer spoils nothing."""
    try:
        return what, peer(*arguments)
    except Missing as reason:
        return what, str(reason)
    except Exception as error:
        return what, f"{type(error).__name__}: {error}"


def solver_seconds(condition: Any, name: str, expected: str) -> float:
    """How long one solver takes for one condition, encoding and start of the process included."""
    from fpsmt.smt import solve
    from fpsmt.smt.processes import missing

    if missing(name):
        raise Missing(str(missing(name)))
    answer = solve(condition, solvers=[name], timeout=SOLVER_LIMIT, jobs=1)
    if answer.status == "unknown":
        raise Missing(f"no answer in {SOLVER_LIMIT:g} s" if "time limit" in answer.reason else answer.reason)
    if answer.status != expected:
        raise Missing(f"wrong answer: {answer.status}")
    return answer.seconds
