"""Engines for outputs on boxes of inputs: interval bounds, and a search for an unsafe input and execution.

The search runs batches of inputs (the middle, corners, random ones, changes of those that came closest) by default, and
then looks for schedules that carry the closest of them into an unsafe set, as `fpsmt.engines.predictions` does.
Everything here is heuristic and in fast arithmetic; what it finds counts only when the reference interpreter, in the
kernel, finds it too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.predictions import OutputsClose
from fpsmt.claims.properties import Polytope, Query, Safe, safe_counterexample
from fpsmt.engines.engine import Options, engine
from fpsmt.engines.predictions import Attack, Made, check_searchable
from fpsmt.engines.root_bounds import left_at_root, root_bounds
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import from_ordinals, ordinals, round_array, to_carrier, to_floats
from fpsmt.kernel import Unknown, Verdict
from fpsmt.networks.batch import run_batch
from fpsmt.networks.bounds import enclosures

Array = NDArray[np.float64]

BATCH = 256  #: inputs run at a time
ROUNDS = 40  #: batches for one box
KEPT = 8  #: of the closest inputs are changed further
ATTEMPTS = 4  #: passes over the closest inputs that look for schedules
LARGE = Fraction(10**300)  #: bounds beyond this are taken to be this
MOST_VALUES = 1 << 20  #: inputs × elements of a batch


@engine("intervals", Safe)
def intervals(claim: Safe, options: Options) -> Verdict:
    """Encloses the outputs on each box."""
    for number in range(len(claim.safety.queries)):
        root_bounds(claim, number)  # declines with its reason
        if left_at_root(claim, number):
            return Unknown(claim, f"the bounds of the outputs on box {number} leave an unsafe set open")
    return kernel.apply("intervals exclude unsafe outputs", claim)


@engine("unsafe search", Safe)
def unsafe_search(claim: Safe, options: Options) -> Verdict:
    """Looks for an input and an execution with unsafe outputs."""
    check_searchable(claim.network)
    start, tried = time.monotonic(), 0
    hunts = list(_hunts(claim, options))
    for number in range(ROUNDS + ATTEMPTS):
        for hunt in hunts:
            if time.monotonic() - start > options.timeout:
                return Unknown(claim, f"no unsafe execution found in {options.timeout:g} s, {tried} inputs tried")
            found = hunt.draw() if number < ROUNDS else hunt.press(number - ROUNDS)
            if found is not None:
                return kernel.refute(claim, found)
            tried += hunt.size if number < ROUNDS else 0
        if number % 8 == 7:
            closest = min((hunt.closest for hunt in hunts), default=np.inf)
            options.report(f"unsafe search: {tried} inputs tried, {closest:.3g} away")
    why = f"no unsafe execution found among {tried} inputs, and bounds do not exclude one"
    if any(hunt.not_numbers for hunt in hunts):
        why += "; some inputs give NaN among the outputs, which satisfies no comparison"
    return Unknown(claim, why)


def _hunts(claim: Safe, options: Options) -> Iterator[Hunt]:
    for k, query in enumerate(claim.safety.queries):
        sides = query.floats(claim.network.input.format)
        if sides is None:
            continue
        left = left_at_root(claim, k)
        if left:
            low, high = (to_carrier([pair[end] for pair in sides]) for end in (0, 1))
            yield Hunt(claim, query, left, low, high, options.seed + k)


class Hunt:
    """The search on one box for one of its unsafe sets."""

    def __init__(
        self, claim: Safe, query: Query, unsafe: list[Polytope], low: Array, high: Array, seed: int
    ) -> None:
        self.claim, self.query, self.unsafe = claim, query, unsafe
        self.network, self.low, self.high = claim.network, low, high
        self.rng, self.random = np.random.default_rng(seed), Random(seed)
        self.format = self.network.input.format
        self.ends = ordinals(self.format, low), ordinals(self.format, high)
        widest = max(self.network.sizes.values())
        self.size = max(8, min(BATCH, MOST_VALUES // widest))
        self.best: list[tuple[float, int, Array]] = []  # (distance, unsafe set, input)
        self.closest, self.not_numbers, self.drawn = np.inf, False, 0
        self.matrices = [self._matrix(p) for p in unsafe]

    def _matrix(self, polytope: Polytope) -> tuple[Array, Array]:
        """Rows in float64, each divided by its size; a bound beyond float64 becomes a large number."""
        count = self.network.sizes[self.network.output.name]
        rows, rhs = np.zeros((len(polytope.rows), count)), np.zeros(len(polytope.rows))
        for k, (row, bound) in enumerate(zip(polytope.rows, polytope.rhs, strict=True)):
            size = max((abs(a) for _, a in row), default=Fraction(1))
            rhs[k] = float(max(min(bound / size, LARGE), -LARGE))
            for j, a in row:
                rows[k, j] = float(a / size)
        return rows, rhs

    def draw(self) -> Any:
        """A batch of inputs; a counterexample when one of them is unsafe by default."""
        x = self._batch()
        outputs = run_batch(self.network, x, self.claim.executions)[self.network.output.name]
        self.not_numbers |= bool(np.isnan(outputs).any())
        for k, (rows, rhs) in enumerate(self.matrices):
            with np.errstate(all="ignore"):
                distance = (outputs @ rows.T - rhs).max(axis=1, initial=-np.inf)
            distance = np.nan_to_num(distance, nan=np.inf, posinf=np.inf, neginf=-np.inf)
            for at in np.argsort(distance, kind="stable")[:KEPT]:
                exact = to_floats(self.network.output.format, outputs[at])
                if self.unsafe[k].contains(exact):
                    return safe_counterexample(to_floats(self.format, x[at]))
                self.best.append((float(distance[at]), k, x[at]))
        self.best = sorted(self.best, key=lambda item: item[0])[:KEPT]
        self.closest = min(self.closest, self.best[0][0])
        return None

    def _batch(self) -> Array:
        shape = (self.size, len(self.low))
        if self.drawn == 0:
            x = np.where(self.rng.random(shape) < 0.5, self.low, self.high)
            x[0], x[1], x[2] = self.low, self.high, self._between(np.full(len(self.low), 0.5))
        elif self.drawn % 2 or not self.best:
            x = self._between(self.rng.random(shape))
        else:
            parents = np.stack([item[2] for item in self.best])
            x = parents[self.rng.integers(len(parents), size=self.size)]
            share = 10.0 ** self.rng.uniform(-6, 0, (self.size, 1))
            new = x + share * (self._between(self.rng.random(shape)) - x)
            ends = np.where(self.rng.random(shape) < 0.5, self.low, self.high)
            new = np.where(self.rng.random(shape) < 0.2, ends, new)
            changed = self.rng.random(shape) < self.rng.choice([0.1, 0.5, 1.0], (self.size, 1))
            x = np.where(changed, new, x)
            near = self._near(x)
            x = np.where(self.rng.random((self.size, 1)) < 0.2, near, x)
        self.drawn += 1
        return np.clip(round_array(self.network.input.context, np.clip(x, self.low, self.high)), self.low, self.high)

    def _between(self, share: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(self.low * (1 - share) + self.high * share)

    def _near(self, x: Array) -> Array:
        """A few floats further."""
        inside = round_array(self.network.input.context, np.clip(x, self.low, self.high))
        places = ordinals(self.format, inside) + self.rng.integers(-3, 4, x.shape)
        return np.asarray(from_ordinals(self.format, np.clip(places, *self.ends)))

    def press(self, number: int) -> Any:
        """Schedules for the closest inputs that make the worst row of an unsafe set small."""
        for distance, k, x in self.best:
            if not np.isfinite(distance):
                continue
            rows, rhs = self.matrices[k]
            point = tuple(to_floats(self.format, x))
            attack = _Push(OutputsClose(self.network, (point,), self.claim.executions))
            outputs = attack.start(x, self.random, number)
            for _ in range(2 if len(rhs) > 1 else 1):
                worst = int(np.argmax(rows @ outputs - rhs))
                outputs, made = attack.toward(rows[worst], worst, x, self.random)
                if self.unsafe[k].contains(to_floats(self.network.output.format, outputs)):
                    return safe_counterexample(point, *made)
        return None


class _Push(Attack):
    """The search for schedules on one input, toward any linear aim."""

    def __init__(self, claim: OutputsClose) -> None:
        try:
            found = enclosures(claim.network, to_carrier(claim.inputs[0])[None, :], executions=claim.executions)
            bounds = {name: (low[0], high[0]) for name, (low, high) in found.items()}
        except Unsupported:
            bounds = {}
        super().__init__(claim, 0, bounds)

    def start(self, x: Array, rng: Random, number: int) -> Array:
        self.moves = 3000 << number
        self.base = self._forward(x, None, {}, *self.plain, rng)
        return self.base[self.output]

    def toward(self, row: Array, key: int, x: Array, rng: Random) -> tuple[Array, Made]:
        """A run whose sums are chosen to make Σ row·output small."""
        made: Made = ({}, {})
        aims = {int(j): -float(row[j]) for j in np.flatnonzero(row)}
        return self._toward(aims, (key, 0), x, made, rng), made
