"""Branch and bound in several processes, stopped at any moment, gone on with, and lied to."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import Polytope, Property, Query, Safe
from fpsmt.engines import Options, root_bounds, safety, safety_search, splitting
from fpsmt.engines.pool import Died, Pool
from fpsmt.engines.safety import splits
from fpsmt.engines.split_trees import OPEN, GrowingTree
from fpsmt.errors import InternalError, UsageError
from fpsmt.kernel.rules.safety import LEAF, tree_text
from fpsmt.networks import Network, parse_execution

SIZES = (4, 16, 16, 2)


def stated(limit: Fraction, queries: int = 1) -> Safe:
    """Unsafe: y0 − y1 ≥ limit, on a box (and on a small one)."""
    rng = np.random.default_rng(3)
    layers: list[Any] = []
    for n, m in pairwise(SIZES):
        w = (rng.normal(size=(m, n)) * 1.5 / np.sqrt(n)).astype(np.float32)
        layers += [(w, (rng.normal(size=m) * 0.1).astype(np.float32)), "relu"]
    net = Network.sequential("float32", SIZES[0], layers[:-1])
    unsafe = (Polytope.of([({0: -1, 1: 1}, -limit, False)]),)
    boxes = [((Fraction(-size), Fraction(size)),) * SIZES[0] for size in (1, Fraction(1, 8))]
    return Safe(net, parse_execution("any fma=any"), Property(tuple(Query(box, unsafe) for box in boxes[:queries])))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many steps on few boxes."""
    monkeypatch.setattr(splitting, "BATCH", 16)
    monkeypatch.setattr(splitting, "ALONE", 4)
    monkeypatch.setattr(splitting, "PAUSE", 0.0)
    monkeypatch.setattr(splitting, "SELDOM", 0.0)


@pytest.fixture(scope="module")
def safe() -> Safe:
    return stated(Fraction(22, 25), 2)


def trees(verdict: kernel.Verdict) -> list[str]:
    assert isinstance(verdict, kernel.Proved)
    return list(verdict.evidence.data["trees"])


@pytest.fixture(scope="module")
def whole(safe: Safe) -> list[str]:
    """The trees of one process that nothing disturbs."""
    found = trees(splits(safe, Options(jobs=1)))
    assert len(GrowingTree.read(found[0]).text()) == len(found[0]) > 200
    return found


def test_processes_change_nothing(safe: Safe, whole: list[str]) -> None:
    assert trees(splits(safe, Options(jobs=3))) == whole


class Stops:
    """Keeps states, and interrupts when the last of so many is kept."""

    def __init__(self, after: int) -> None:
        self.states: list[Any] = []
        self.after = after

    def __call__(self, state: Any) -> None:
        self.states.append(state)
        if len(self.states) == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("after", "jobs"), [(2, 1), (7, 1), (7, 2), (18, 1)])
def test_what_is_finished_is_not_done_again(
    after: int, jobs: int, safe: Safe, whole: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    examined: list[int] = []
    step = safety.Search.step

    def counted(self: Any, block: Any) -> Any:
        examined.append(len(block.node))
        return step(self, block)

    monkeypatch.setattr(safety.Search, "step", counted)
    assert trees(splits(safe, Options(jobs=1))) == whole
    everything = sum(examined)
    examined.clear()
    stops = Stops(after)
    with pytest.raises(KeyboardInterrupt):
        splits(safe, Options(jobs=jobs, keep=stops))
    first = sum(examined)
    examined.clear()
    monkeypatch.setattr(safety.Hunt, "start", None)  # not called again
    assert trees(splits(safe, Options(jobs=1, saved=stops.states[-1]))) == whole
    if jobs == 1:
        assert first + sum(examined) == everything
    assert sum(examined) < everything


def test_a_state_after_the_last_box_leaves_the_verification(safe: Safe, whole: list[str]) -> None:
    states: list[Any] = []
    splits(safe, Options(jobs=1, keep=states.append))
    assert states[-1]["trees"] == whole and states[-1]["open"] is None
    assert trees(splits(safe, Options(jobs=1, saved=states[-1]))) == whole


def test_a_lie_proves_nothing() -> None:
    """A state that takes everything for proved: the truth comes out, whatever it is."""
    lie = {"trees": [tree_text(np.array([LEAF]))], "open": None, "about": ""}
    halves = {"trees": [], "open": tree_text(np.array([0, LEAF, OPEN])), "about": ""}
    for saved in (lie, halves):
        lines: list[str] = []
        options = Options(jobs=1, saved=saved, progress=lines.append)
        assert splits(stated(Fraction(9, 10)), options).name == "proved"
        assert any("starting over" in line for line in lines)
        assert splits(stated(Fraction(1, 2)), options).name == "refuted"


BAD: dict[str, Any] = {
    "nothing": {},
    "no tree": {"trees": ["AAAA"], "open": None},
    "not text": {"trees": [7], "open": None},
    "not a list": {"trees": 7, "open": None},
    "too many": {"trees": [tree_text(np.array([LEAF]))] * 3, "open": None},
    "half a tree": {"trees": [], "open": tree_text(np.array([0, OPEN]))},
    "another network": {"trees": [], "open": tree_text(np.array([60, OPEN, OPEN]))},
    "a point is split": {"trees": [], "open": tree_text(np.array([*[0] * 60, *[OPEN] * 61]))},
}


@pytest.mark.parametrize("name", BAD)
def test_states_that_do_not_fit(name: str, safe: Safe) -> None:
    with pytest.raises(UsageError, match="cannot be gone on with"):
        splits(safe, Options(jobs=1, saved=BAD[name]))


def test_a_tree_of_open_boxes_reads_back() -> None:
    tree = GrowingTree()
    halves = tree.split(np.array([0]), np.array([2]))
    tree.prove(halves[1:])
    tree.split(halves[:1], np.array([5]))
    text = tree.text()
    assert text == tree_text(np.array([2, 5, OPEN, OPEN, LEAF])) == GrowingTree.read(text).text()
    low, high = -np.ones((1, 4)), np.ones((1, 4))
    node = stated(Fraction(1)).network.input
    blocks = GrowingTree.read(text).open_boxes(node, 32, low, high, lambda b: replace(b, known=(b.low, b.high)))
    assert all(b.known is not None and b.known[1][0, 2] == 0 for b in blocks)
    assert [b.node.tolist() for b in blocks] == [[2, 3]]
    assert blocks[0].high[:, 2].tolist() == [0, 0] and blocks[0].signs.tolist() == [[2], [3]]


# -- workers ----------------------------------------------------------------------------------------------


def test_the_work_of_a_killed_worker_is_done_again(
    safe: Safe, whole: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    send = Pool.send

    def killing(self: Any, task: Any) -> None:
        send(self, task)
        if len(killed) < 3:
            process = self.workers[0][0]
            os.kill(process.pid, signal.SIGKILL)
            killed.append(process.pid)

    monkeypatch.setattr(Pool, "send", killing)
    lines: list[str] = []
    assert trees(splits(safe, Options(jobs=2, progress=lines.append))) == whole
    assert len(killed) == 3 and any("worker died (exit code -9)" in line for line in lines)


def test_workers_that_always_die_end_the_search(safe: Safe, monkeypatch: pytest.MonkeyPatch) -> None:
    parent, step = os.getpid(), safety.Search.step
    monkeypatch.setattr(
        safety.Search, "step", lambda *a: step(*a) if os.getpid() == parent else os.kill(os.getpid(), 9)
    )
    verdict = splits(safe, Options(jobs=2))
    assert isinstance(verdict, kernel.Unknown) and "worker died" in verdict.reason


def test_a_pool_answers_replaces_and_ends() -> None:
    def work(task: int) -> int:
        if task < 0:
            os._exit(3)
        return 10 // task

    pool: Pool[int, int] = Pool(work, 2)
    try:
        pool.send(5)
        pool.send(-1)
        found: dict[int, Any] = {}
        while pool.busy:
            found |= dict(pool.receive(1.0))
        assert found == {5: 2, -1: Died(3)}
        os.kill(pool.workers[0][0].pid, signal.SIGKILL)
        pool.workers[0][0].join()
        pool.send(2)
        assert pool.receive(10.0) == [(2, 5)]
        pool.send(0)
        with pytest.raises(InternalError, match="ZeroDivisionError"):
            pool.receive(10.0)
    finally:
        workers = [process for process, _ in pool.workers]
        pool.kill()
    assert workers and not any(process.is_alive() for process in workers)


def test_no_time_left_says_how_far_it_came(safe: Safe) -> None:
    verdict = splits(replace(safe), Options(jobs=1, timeout=1e-9))
    assert isinstance(verdict, kernel.Unknown) and "query 1 of 2 is proved" in verdict.reason


def test_the_bounds_of_the_root_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By three engines, for a claim that none of them settles."""
    calls, bounds = [0], root_bounds.output_bounds

    def counted(*given: Any) -> Any:
        calls[0] += 1
        return bounds(*given)

    monkeypatch.setattr(root_bounds, "output_bounds", counted)
    claim = stated(Fraction(91, 100))  # of no other test: equal claims share their bounds
    for run in (splits, safety_search.intervals, safety_search.unsafe_search):
        assert run(claim, Options(jobs=1, timeout=1e-9)).name == "unknown"
    assert calls[0] == 1
