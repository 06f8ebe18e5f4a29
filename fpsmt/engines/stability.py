"""Stability of a network on many inputs: which outcomes no execution changes, which two executions change, and why.

Bounds run in the process that asks, a few inputs at a time; inputs that they leave open go to worker processes, which
search for two executions that disagree.  Every break is replayed by the kernel, and by who asks if they wish.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.predictions import OutputsClose, OverExecutions, PredictionInvariant
from fpsmt.engines.engine import Options
from fpsmt.engines.pool import Died, Pool
from fpsmt.engines.predictions import ATTEMPTS, Attack, check_searchable
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float
from fpsmt.floats.vector import to_floats
from fpsmt.kernel.rules.predictions import close_outputs, settle, value_bounds
from fpsmt.networks.bounds import Interval
from fpsmt.networks.interpreter import Executions
from fpsmt.networks.networks import Network

Array = NDArray[np.float64]

CHUNK = 32  #: inputs whose bounds are computed at a time
#: A second replay of a counterexample: what to keep of it, and how it was done.
Confirm = Callable[[OverExecutions, Any], tuple[Any, str]]

CERTIFIED, BROKEN, UNKNOWN = "certified", "broken", "unknown"
LATE = "the time limit was passed"


@dataclass(frozen=True)
class Found:
    """What is known of one input.

    `verdict`: ``certified``, ``broken`` or ``unknown``.  `classes`: the class of every execution, or of the two that
    disagree (None for outputs with a NaN), or empty.  `counterexample` is about a claim of this input alone; `record`
    is what a second replay keeps.  `final`: more time would not change it.
    """

    index: int
    verdict: str
    classes: tuple[int | None, ...] = ()
    reason: str = ""
    counterexample: Any = None
    record: Any = None
    seconds: float = 0.0
    final: bool = True


@dataclass
class Widths:
    """For each node and input, the width of the widest enclosure: absolute, and in ulps of the largest value there."""

    ulps: dict[str, list[float]] = field(default_factory=dict)
    absolute: dict[str, list[float]] = field(default_factory=dict)

    def add(self, network: Network, bounds: dict[str, Interval]) -> None:
        for name, (low, high) in bounds.items():
            fmt = network.format_of(name)
            with np.errstate(invalid="ignore"):
                width = np.where(np.isfinite(low + high), high - low, np.inf).max(axis=1)
            size = np.maximum(np.abs(low), np.abs(high)).max(axis=1)
            places = np.maximum(np.frexp(np.where(np.isfinite(size), size, 1.0))[1] - 1, fmt.emin)
            self.absolute.setdefault(name, []).extend(width.tolist())
            self.ulps.setdefault(name, []).extend((width / np.ldexp(1.0, places - fmt.fraction_bits)).tolist())


@dataclass(frozen=True)
class Question:
    """A network, its inputs, how its sums may run, and what must not change: the class, or the outputs by `ulps`."""

    network: Network
    inputs: tuple[tuple[Float, ...], ...]
    executions: Executions
    ulps: int | None = None

    def claim(self, indices: Sequence[int] | None = None) -> OverExecutions:
        """The statement about all inputs, or about some."""
        inputs = self.inputs if indices is None else tuple(self.inputs[k] for k in indices)
        if self.ulps is None:
            return PredictionInvariant(self.network, inputs, self.executions)
        return OutputsClose(self.network, inputs, self.executions, self.ulps)

    @staticmethod
    def of(network: Network, inputs: Array, executions: Executions, ulps: int | None = None) -> Question:
        """From an array (inputs, size) of values of the network's input format."""
        fmt = network.input.format
        return Question(network, tuple(tuple(to_floats(fmt, row)) for row in inputs), executions, ulps)


def stability(
    question: Question,
    options: Options,
    on_found: Callable[[Found], None],
    known: frozenset[int] = frozenset(),
    on_tick: Callable[[int, int], None] = lambda bounded, searching: None,
    widths: Widths | None = None,
    confirm: Confirm | None = None,
) -> None:
    """Decides each input that is not in `known`; `on_found` hears of each as soon as it is decided.

    `options.timeout` is for all inputs together: what is left then is unknown.  `options.jobs` worker processes search;
    on KeyboardInterrupt they are killed before the interrupt goes on.  `on_tick` hears how many inputs have bounds and
    how many await a search.  `confirm` replays each break once more, in the process that found it.
    """
    start = time.monotonic()
    left = [k for k in range(len(question.inputs)) if k not in known]
    pool = Pool(partial(_answer, question, options.seed, confirm), options.jobs)
    waiting: list[_Task] = []
    done = 0
    try:
        while left or waiting or pool.busy:
            if time.monotonic() - start > options.timeout:
                break
            if left:
                chunk, left = left[:CHUNK], left[CHUNK:]
                for item in _bounded(question, chunk, widths):
                    if isinstance(item, Found):
                        on_found(item)
                    else:
                        waiting.append(item)
                done += len(chunk)
            for found in _exchange(question, pool, waiting, 0.0 if left else 0.2):
                on_found(found)
            on_tick(done, len(waiting) + pool.busy)
        for index in [*left, *(task.index for task in [*waiting, *pool.running.values()])]:
            on_found(Found(index, UNKNOWN, reason=f"{LATE} ({options.timeout:g} s)", final=False))
    finally:
        pool.kill()


@dataclass(frozen=True)
class _Task:
    """An input that the bounds leave open."""

    index: int
    bounds: dict[str, Interval]
    rivals: list[int] | None
    reason: str


def _bounded(question: Question, chunk: list[int], widths: Widths | None) -> list[Found | _Task]:
    start = time.monotonic()
    claim = question.claim(chunk)
    reason, rivals = "", None
    bounds: dict[str, Interval] = {}
    try:
        if isinstance(claim, OutputsClose):
            bounds, sure = value_bounds(claim), close_outputs(claim)
            classes: list[tuple[int | None, ...]] = [()] * len(chunk)
        else:
            assert isinstance(claim, PredictionInvariant)
            settled = settle(claim)
            bounds, rivals, sure = settled.bounds, settled.rivals, settled.winners >= 0
            classes = [(int(k),) for k in settled.winners]
        if widths is not None:
            widths.add(question.network, bounds)
    except Unsupported as error:
        sure, classes, reason = np.zeros(len(chunk), dtype=bool), [()] * len(chunk), str(error)
    seconds = (time.monotonic() - start) / len(chunk)
    out: list[Found | _Task] = []
    for at, index in enumerate(chunk):
        if sure[at]:
            out.append(Found(index, CERTIFIED, classes[at], seconds=seconds))
            continue
        mine = {name: (low[at], high[at]) for name, (low, high) in bounds.items()}
        open_ = None if rivals is None else np.flatnonzero(rivals[at]).tolist()
        out.append(_Task(index, mine, open_, reason))
    return out


# -- search in processes ----------------------------------------------------------------------------------


def search(question: Question, task: _Task, seed: int, confirm: Confirm | None = None) -> Found:
    """Looks for two executions that disagree on one input."""
    index = task.index
    start = time.monotonic()
    claim = question.claim([index])
    assert isinstance(claim, PredictionInvariant | OutputsClose)
    attack, number, found = Attack(claim, 0, task.bounds, task.rivals), 0, None
    rng = Random(seed + index)
    for number in range(ATTEMPTS):
        found = attack.attempt(rng, number)
        if found is not None or attack.hopeless(number):
            break
    if found is None:
        low = attack.closest
        near = f", the nearest with {low:.0%} of the margin left" if np.isfinite(low) else ""
        why = f"the bounds leave more than one outcome, and {number + 1} searches found no two executions that disagree"
        return Found(index, UNKNOWN, reason=why + near, seconds=time.monotonic() - start)
    refuted = kernel.refute(claim, found)
    assert isinstance(refuted, kernel.Refuted)
    record, how = (None, "") if confirm is None else confirm(claim, found)
    classes = tuple(refuted.replay.values.get("predictions", ()))
    reason = "replayed by reference" + (f" and by {how}" if how else "")
    return Found(index, BROKEN, classes, reason, found, record, time.monotonic() - start)


def _answer(question: Question, seed: int, confirm: Confirm | None, task: _Task) -> Found:
    """What a worker finds."""
    try:
        return search(question, task, seed, confirm)
    except (Unsupported, UsageError) as error:
        return Found(task.index, UNKNOWN, reason=str(error))


def _exchange(question: Question, pool: Pool[_Task, Found], waiting: list[_Task], patience: float) -> list[Found]:
    """Hands out waiting tasks, and returns what has come back."""
    out: list[Found] = []
    if waiting:
        try:
            check_searchable(question.network)
        except Unsupported as error:
            out += [Found(t.index, UNKNOWN, reason=t.reason or str(error)) for t in waiting]
            waiting.clear()
    while waiting and pool.free:
        pool.send(waiting.pop(0))
    for task, made in pool.receive(patience):
        if isinstance(made, Died):
            made = Found(task.index, UNKNOWN, reason=str(made), final=False)
        elif task.reason:
            made = replace(made, reason=f"{task.reason}; {made.reason}")
        out.append(made)
    return out
