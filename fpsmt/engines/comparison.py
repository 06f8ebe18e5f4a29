"""Decides whether two networks agree on a box: samples and descent to a disagreement, then branch and bound.

Bounds are those of the kernel's rule (`fpsmt.kernel.rules.agreement`).  Everything here may guess: a proof counts when
the rule has verified the tree of splits, a disagreement when the reference interpreter has run it.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.comparison import Agree
from fpsmt.claims.properties import safe_counterexample
from fpsmt.engines.engine import Options, engine
from fpsmt.engines.split_trees import OPEN
from fpsmt.engines.splitting import Sides, Splitting, Step, concluded, small
from fpsmt.engines.unsafe_executions import Found, inside, pushed
from fpsmt.errors import Unsupported
from fpsmt.floats.vector import from_ordinals, ordinals, to_floats
from fpsmt.kernel import Unknown, Verdict
from fpsmt.kernel.rules.agreement import Judge
from fpsmt.kernel.rules.safety import Boxes, Rows, ends_of
from fpsmt.networks.batch import run_batch
from fpsmt.networks.relaxation import Array

SAMPLES = 256  #: inputs run at a time
ROUNDS = 24  #: of changes of the best inputs
KEPT = 16  #: inputs that are changed further
SCHEDULED = 4  #: inputs whose schedules are searched


@engine("comparison", Agree)
def comparison(claim: Agree, options: Options) -> Verdict:
    """Proves by boxes, or finds an input and an execution that disagree.  A saved state is gone on with."""
    deadline = time.monotonic() + options.timeout
    box = ends_of(claim, claim.query)
    apart = Apart(claim, options.seed)
    run = Splitting(1, claim.network.input, 0, lambda _: Examined(claim, apart), options)
    if options.saved is not None:
        run.take_up(options.saved)
    elif box is not None:
        options.report("comparison: looking for a disagreement")
        found = apart.start(box[0][0], box[1][0], deadline - options.timeout / 2)
        if found is not None:
            return kernel.refute(claim, safe_counterexample(*found))
    answer = concluded(claim, run, "comparison", "splits show agreement", lambda trees: {"tree": trees[0]},
                       deadline, lambda left: comparison(claim, left))  # fmt: skip
    if not isinstance(answer, str):
        return answer
    return Unknown(claim, f"{answer}; {apart.about}", 0.0, "a longer time limit, a smaller box, or a wider limit")


class Examined:
    """One step of branch and bound."""

    trivial = False

    def __init__(self, claim: Agree, apart: Apart) -> None:
        self.claim, self.apart, self.judge = claim, apart, Judge(claim)
        self.box = box = ends_of(claim, claim.query)
        if box is not None:
            self.sides = Sides.of(*box)

    def shares(self, block: Boxes) -> Array:
        return self.sides.shares(block)

    def known(self, block: Boxes) -> Boxes:
        """Boxes are bounded anew."""
        return block

    def step(self, block: Boxes) -> Step[Found]:
        """Examines boxes: nothing else changes."""
        good, worth = self.judge(block.low, block.high, values=False)
        at = np.flatnonzero((small(self.claim.network.input, block) | (block.node == 0)) & ~good)
        if len(at):
            good[at] = self.judge(block.low[at], block.high[at], values=True).good
        left = np.flatnonzero(~good)
        made: Step[Found] = Step(np.flatnonzero(good), float(self.shares(block)[good].sum()), left)
        if not len(left):
            return made
        low, high = block.low[left], block.high[left]
        made.unsafe = self.apart.run(low / 2 + high / 2, low, high)
        single = np.flatnonzero((low == high).all(axis=1))
        if made.unsafe is None and len(single):
            point = low[single[0]]
            made.unsafe = self.apart.push(point, 6)
            made.reason = f"the input {point.tolist()[:8]} could not be decided"
        if made.unsafe is None and not made.reason:
            score = np.where(high > low, worth[left] + 1e-9 * (high - low) / self.sides.width, -1.0)
            score[:, OPEN:] = -1.0  # sides that a tree cannot name
            made.side = score.argmax(axis=1).astype(np.int64)
        return made


class Apart:
    """Looks for inputs and executions that disagree."""

    def __init__(self, claim: Agree, seed: int) -> None:
        self.claim, self.rng = claim, np.random.default_rng(seed)
        self.format, self.n = claim.network.input.format, claim.outputs
        self.best: list[tuple[float, Array]] = []  #: (how far from a disagreement, input)

    @property
    def about(self) -> str:
        """How close it came."""
        if not self.best or self.claim.relation.name == "argmax":
            return "no disagreement was found"
        unit = "" if self.claim.relation.unit is None else f" ulps of {self.claim.relation.unit}"
        return f"the largest difference seen is {-self.best[0][0]:.6g}{unit}"

    def start(self, low: Array, high: Array, deadline: float) -> Found | None:
        """Samples, changes of the best, then schedules."""
        shape = (SAMPLES, len(low))
        x = low + (high - low) * self.rng.random(shape)
        corner = self.rng.random((SAMPLES // 2, len(low))) < 0.5
        x = np.concatenate([x, np.where(corner, low, high), [low / 2 + high / 2]])
        for number in range(ROUNDS):
            found = self.run(x, low, high, keep=True)
            if found is not None or time.monotonic() > deadline:
                return found
            parents = np.stack([item[1] for item in self.best])[self.rng.integers(len(self.best), size=SAMPLES)]
            step = (high - low) * self.rng.normal(size=shape) * 10.0 ** self.rng.uniform(-5, -0.5, (SAMPLES, 1))
            some = self.rng.random(shape) < self.rng.choice([0.05, 0.3, 1.0], (SAMPLES, 1))
            x = np.clip(np.where(some, parents + step, parents), low, high)
            if number % 3 == 2:  # a few floats further
                near = ordinals(self.format, inside(self.format, x, low, high)) + self.rng.integers(-3, 4, shape)
                limits = ordinals(self.format, low), ordinals(self.format, high)
                x = np.asarray(from_ordinals(self.format, np.clip(near, *limits)))
        for _, point in self.best[:SCHEDULED]:
            if time.monotonic() < deadline:
                found = self.push(point, 2)
                if found is not None:
                    return found
        return None

    def run(self, x: Array, low: Array, high: Array, keep: bool = False) -> Found | None:
        """Runs inputs bit for bit under the default schedules."""
        x = inside(self.format, x, low, high)
        outputs = run_batch(self.claim.network, x, self.claim.executions)[self.claim.network.output.name]
        far = self._far(outputs)
        order = np.argsort(far, kind="stable")[:KEPT]
        fmt = self.claim.network.output.format
        for at in order:
            inputs = to_floats(self.format, x[at])
            agree = self.claim.relation.agree(*self.claim.split(to_floats(fmt, outputs[at])))
            if not agree and self.claim.query.has_input(inputs):
                return inputs, {}, {}
        if keep:
            listed = [*self.best, *((float(far[at]), x[at]) for at in order)]
            self.best = sorted(listed, key=lambda item: item[0])[:KEPT]
        return None

    def _far(self, outputs: Array) -> Array:
        """How far from a disagreement: −|y − z| in its unit, or the margin between the two greatest outputs."""
        y, z = outputs[:, : self.n], outputs[:, self.n :]
        with np.errstate(all="ignore"):
            if self.claim.relation.name == "argmax":
                both = [np.partition(part, -2, axis=1) for part in (y, z)]
                far = np.minimum(*(part[:, -1] - part[:, -2] for part in both))
                far = np.where(y.argmax(axis=1) != z.argmax(axis=1), -1.0, far)
            else:
                far = -np.abs(y - z)
                unit = self.claim.relation.unit
                if unit is not None:
                    place = np.frexp(np.maximum(np.abs(y), np.abs(z)))[1] - 1
                    far = far / np.ldexp(1.0, np.maximum(place, unit.emin) - unit.precision + 1)
                far = far.min(axis=1)
        return np.nan_to_num(far, nan=-np.inf)

    def push(self, x: Array, rounds: int) -> Found | None:
        """One input under schedules that push the outputs apart, or one class of the first below another."""
        inputs = to_floats(self.format, x)
        fmt = self.claim.network.output.format
        for weights in self._aims(x):
            rows = Rows(weights[None], np.full(1, -np.inf), np.ones((1, 1)))
            try:
                for made, outputs in pushed(self.claim, inputs, x, rows, rounds):
                    if not self.claim.relation.agree(*self.claim.split(to_floats(fmt, outputs))):
                        return inputs, *made
            except Unsupported:
                return None
        return None

    def _aims(self, x: Array) -> list[NDArray[np.float64]]:
        """Rows of the outputs that a disagreement makes small."""
        outputs = run_batch(self.claim.network, x[None], self.claim.executions)[self.claim.network.output.name][0]
        n, aims = self.n, []
        if self.claim.relation.name == "argmax":
            order = np.argsort(-outputs[:n], kind="stable")[:2]
            for sign in (1, -1):
                row = np.zeros(2 * n)
                row[order], row[n + order] = (sign, -sign), (-sign, sign)
                aims.append(row)
            return aims
        for j in np.argsort(-np.abs(outputs[:n] - outputs[n:]), kind="stable")[:2]:
            row = np.zeros(2 * n)
            row[j], row[n + j] = (-1.0, 1.0) if outputs[j] > outputs[n + j] else (1.0, -1.0)
            aims += [row, -row]
        return aims
