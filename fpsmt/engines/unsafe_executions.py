"""Search for an unsafe execution: descent over inputs in float64, then over schedules at the best inputs.

Nothing here is trusted: what it returns is replayed by the kernel.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.comparison import Agree
from fpsmt.claims.predictions import OutputsClose
from fpsmt.claims.properties import Polytope, Query, Safe
from fpsmt.engines.predictions import MOVES, Attack, Made
from fpsmt.errors import Unsupported
from fpsmt.floats import Context, Float, Format, Mode, Overflow, Subnormals
from fpsmt.floats.vector import round_array, to_floats
from fpsmt.kernel.rules.safety import Rows, ends_of, excluded, excluded_by_values, rows_of
from fpsmt.networks.batch import run_batch
from fpsmt.networks.relaxation import Array, Relaxation, State

#: an input, and the schedules and the results of inexact activations of an unsafe execution
Found = tuple[list[Float], *Made]

SAMPLES = 4096
DESCENT = 60  #: steps of descent
KEPT = 256  #: of the samples
NEAR = 64  #: inputs run bit for bit at a time, of the samples and of where descent leads
SCHEDULED = 8  #: inputs whose schedules are searched
PASSES = 4  #: over these inputs, of ever more moves
MORE = 0.5  #: weight that a row gets on top when it is the farthest from its limit


class Hunt:
    """Looks for violations of one claim."""

    def __init__(self, claim: Safe, relaxation: Relaxation, rng: Random) -> None:
        self.claim, self.relaxation = claim, relaxation
        self.rng = np.random.default_rng(rng.getrandbits(32))
        self.outputs = claim.network.sizes[claim.network.output.name]
        self.fmt = claim.network.input.format
        self.closest: list[tuple[float, Array, Polytope]] = []  #: excess under default schedules at the best inputs

    # -- inputs -------------------------------------------------------------------------------------------

    def start(self, deadline: float, last: float) -> Found | None:
        """Samples and descent for each polytope of each query, until the deadline; then schedules, until the last one,
        for the closest inputs that bounds do not exclude: as long as there are any, no splits of boxes prove much."""
        for query in self.claim.safety.queries:
            box = ends_of(self.claim, query)
            if box is None:
                continue
            low, high = box[0][0], box[1][0]
            x = low + (high - low) * self.rng.random((SAMPLES, len(low)))
            corner = self.rng.random((SAMPLES // 4, len(low))) < 0.5
            x = np.concatenate([x, np.where(corner, low, high), [(low + high) / 2]])
            for polytope in query.unsafe:
                if time.monotonic() > deadline:
                    return None
                found = self._descend(x, low, high, polytope, query)
                if found is not None:
                    return found
        return self._schedules(last)

    def middles(self, state: State, which: NDArray[np.intp], query: Query) -> Found | None:
        """The middles of some boxes."""
        if not len(which):
            return None
        x = state.centre[which]
        for polytope in query.unsafe:
            rows = rows_of(polytope, self.outputs)
            excess, _ = self._excess(x, rows)
            near = np.flatnonzero(excess <= 0)
            found = self._run(x[near[np.argsort(excess[near])][:NEAR]], state.low[which], state.high[which], query)
            if found is not None:
                return found
        return None

    def point(self, x: Array, query: Query) -> Found | None:
        """One input, under schedules that push its outputs into each polytope."""
        for polytope in query.unsafe:
            found = self._push(x, polytope, query, 6, 2)
            if found is not None:
                return found
        return None

    def _descend(self, x: Array, low: Array, high: Array, polytope: Polytope, query: Query) -> Found | None:
        rows = rows_of(polytope, self.outputs)
        if not len(rows.limits):
            return self._run(x[:NEAR], low, high, query)
        excess, _ = self._excess(x, rows)
        x = x[np.argsort(excess)[:KEPT]]
        first = x[:NEAR]
        step = 0.1 * (high - low)
        best, at = np.full(len(x), np.inf), x.copy()
        for number in range(DESCENT):
            excess, slope = self._excess(x, rows)
            better = excess < best
            best[better], at[better] = excess[better], x[better]
            if best.min() < 0 and number % 10 == 9:
                break
            x = np.clip(at - step * 0.93**number * np.sign(slope) * self.rng.random(x.shape) * 2, low, high)
        near = at[np.argsort(best)[:NEAR]]
        return self._run_near(np.concatenate([near, first]), low, high, polytope, query)

    def _excess(self, x: Array, rows: Rows) -> tuple[Array, Array]:
        """The largest weights·y − limit over the rows, in float64 without rounding errors, and its gradient."""
        slopes, h = [], x
        for step in self.relaxation.steps:
            h = (h if step.weights is None else h @ step.weights.T) + step.b
            h, made = (h, None) if step.curve is None else step.curve.near(h)
            slopes.append(made)
        above = h @ rows.weights.T - rows.limits
        worst = above.argmax(axis=1)
        slope = rows.weights[worst]
        for step, made in zip(reversed(self.relaxation.steps), reversed(slopes), strict=True):
            if made is not None:
                slope = slope * made
            if step.weights is not None:
                slope = slope @ step.weights
        return above[np.arange(len(x)), worst], slope

    def _run_near(self, x: Array, low: Array, high: Array, polytope: Polytope, query: Query) -> Found | None:
        """Runs these inputs, and keeps those that come closest."""
        x = inside(self.fmt, x, low, high)
        y = self._outputs(x)
        rows = rows_of(polytope, self.outputs)
        with np.errstate(invalid="ignore"):  # of infinite outputs
            excess = np.nan_to_num((y @ rows.weights.T - rows.limits).max(axis=1), nan=np.inf)
        self.closest += [(float(excess[k]), x[k], polytope) for k in np.argsort(excess)[:4]]
        return self._unsafe(x, y, query)

    def _run(self, x: Array, low: Array, high: Array, query: Query) -> Found | None:
        """Runs inputs bit for bit under the default schedules."""
        if not len(x):
            return None
        x = inside(self.fmt, x, np.atleast_2d(low).min(axis=0), np.atleast_2d(high).max(axis=0))
        return self._unsafe(x, self._outputs(x), query)

    def _outputs(self, x: Array) -> Array:
        return run_batch(self.claim.network, x, self.claim.executions)[self.claim.network.output.name]

    def _unsafe(self, x: Array, y: Array, query: Query) -> Found | None:
        fmt = self.claim.network.output.format
        for inputs, outputs in zip(x, y, strict=True):
            if query.unsafe_at(to_floats(fmt, outputs)) is not None:
                made = to_floats(self.fmt, inputs)
                if query.has_input(made):
                    return made, {}, {}
        return None

    # -- schedules ----------------------------------------------------------------------------------------

    def _schedules(self, deadline: float) -> Found | None:
        self.closest.sort(key=lambda one: one[0])
        listed = [
            (x, polytope, query)
            for _, x, polytope in self.closest[:SCHEDULED]
            for query in self.claim.safety.queries
            if polytope in query.unsafe and time.monotonic() < deadline and not self._safe_at(x, query)
        ]
        for number in range(PASSES):
            for x, polytope, query in listed:
                if time.monotonic() > deadline:
                    return None
                found = self._push(x, polytope, query, 2, 2 << number)
                if found is not None:
                    return found
        return None

    def _safe_at(self, x: Array, query: Query) -> bool:
        """Whether bounds at the input exclude every polytope."""
        state, none = self.relaxation.state(x[None], x[None]), np.zeros((1, 0), np.int64)
        rows = [rows_of(p, self.outputs) for p in query.unsafe]
        return all(excluded(self.relaxation, state, r, none).excluded.all() for r in rows) or bool(
            excluded_by_values(self.claim, query, x[None], x[None]).all()
        )

    def _push(self, x: Array, polytope: Polytope, query: Query, rounds: int, effort: int) -> Found | None:
        inputs = to_floats(self.fmt, x)
        if not query.has_input(inputs):
            return None
        try:
            rows = rows_of(polytope, self.outputs)
            fmt = self.claim.network.output.format
            for made, outputs in pushed(self.claim, inputs, x, rows, rounds, effort):
                if query.unsafe_at(to_floats(fmt, outputs)) is not None:
                    return inputs, *made
        except Unsupported:
            pass
        return None


def inside(fmt: Format, x: Array, low: Array, high: Array) -> Array:
    """The nearest values of the format in a box whose ends are values."""
    nearest = Context(fmt, Mode.RNE, Overflow.SATURATE, Subnormals.GRADUAL)
    return np.clip(np.asarray(round_array(nearest, x), dtype=np.float64), low, high)


def pushed(
    claim: Safe | Agree, inputs: list[Float], x: Array, rows: Rows, rounds: int, effort: int = 1
) -> Iterator[tuple[Made, Array]]:
    """Executions, and the outputs under them, that push the outputs at one input below the limits of all rows: along
    the gradient of their sum, in which rows that stay far above weigh more from round to round."""
    attack = Attack(OutputsClose(claim.network, (tuple(inputs),), claim.executions), 0, {})
    rng = Random(rounds * effort)
    plain: Made = ({}, {})
    attack.moves = MOVES * effort
    attack.base = attack._forward(x, None, {}, *plain, rng)
    outputs = attack.base[attack.output]
    yield plain, outputs
    weights = np.ones(len(rows.limits))
    for number in range(rounds):
        aim = -(weights @ rows.weights) / weights.sum()
        made: Made = ({}, {})
        outputs = attack._toward({k: float(a) for k, a in enumerate(aim) if a}, (number, 0), x, made, rng)
        yield made, outputs
        with np.errstate(invalid="ignore"):  # of infinite outputs
            weights[int(np.argmax(rows.weights @ outputs - rows.limits))] += MORE
