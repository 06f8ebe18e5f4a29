"""The rule about two networks that agree on a box of inputs: boxes split until bounds of both show it on each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.comparison import Agree, Relation, part
from fpsmt.errors import EvidenceError, Unsupported
from fpsmt.floats import Context, Mode, Overflow, Subnormals, float64
from fpsmt.floats.vector import arithmetic
from fpsmt.kernel.kernel import Holds, Open, Outcome, rule
from fpsmt.kernel.rules.safety import Boxes, ends_of, not_proved, read_tree, walk, whole
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.networks.batch import run_batch
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.curves import ROOM, Relu
from fpsmt.networks.growth import float_up
from fpsmt.networks.nodes import Activation
from fpsmt.networks.relaxation import Array, Relaxation, State, nu
from fpsmt.networks.relaxation_shares import least_values

UPWARDS = arithmetic(Context(float64, Mode.RTP, Overflow.INFINITY, Subnormals.GRADUAL))

Truth = NDArray[np.bool_]


class Shown(NamedTuple):
    """On which boxes the outputs agree, and how much each side of a box matters."""

    good: Truth
    worth: Array


class Facts(NamedTuple):
    """Of boxes: ends of the outputs of both networks (boxes, outputs), at least their distances, and for a class of
    each box whether it is that of every execution of the first, and of the second."""

    ends: tuple[Array, Array, Array, Array]
    far: Array
    first: Truth
    second: Truth

    def both(self, other: Facts) -> Facts:
        """What either of two says."""
        (a, b, c, d), (e, f, g, h) = self.ends, other.ends
        ends = np.maximum(a, e), np.minimum(b, f), np.maximum(c, g), np.minimum(d, h)
        return Facts(ends, np.minimum(self.far, other.far), self.first | other.first, self.second | other.second)

    def agree(self, relation: Relation) -> Truth:
        """Where these facts imply the relation."""
        if relation.name == "argmax":
            return self.first & self.second
        least, most, low, high = self.ends
        finite = np.isfinite(least) & np.isfinite(most) & np.isfinite(low) & np.isfinite(high)
        limit: Array | float = -float_up(-relation.limit)
        if relation.unit is not None:
            unit = relation.unit
            size = np.maximum(_away(least, most), _away(low, high))  # the least of the larger size
            place = np.maximum(np.frexp(np.where(np.isfinite(size), size, 0.0))[1] - 1, unit.emin)
            place = np.where(size > 0, place, unit.emin)
            limit = limit * np.ldexp(1.0, place - unit.precision + 1)
        return np.asarray((finite & (self.far <= limit)).all(axis=1))


def _away(low: Array, high: Array) -> Array:
    """The least |v| for v from low to high."""
    return np.maximum(np.maximum(low, -high), 0.0)


def _apart(linear: list[Relaxation], states: list[State]) -> Array:
    """At least the distances of the outputs, layer by layer; infinite where nothing is known.

    Let z = W h + b + ε with |ε| ≤ E be the executed values of a step in the first network, z′ those in the second, and
    |h − h′| ≤ d.  Then |z − z′| ≤ |W|·d + |W − W′|·|h′| + |b − b′| + E + E′, and relu brings no two values further
    apart; where both are never positive it makes them 0.  A step that only rounds the second's inputs moves them by its
    E.  Other activations are not spoken of.  Sums of n numbers ≥ 0 in float64 are short by a factor 1 − ν at most,
    which 1 + 4ν pays.
    """
    one, two = (relaxation.steps for relaxation in linear)
    size = np.maximum(np.abs(states[1].low), np.abs(states[1].high))
    nothing = np.full((len(size), one[-1].size), np.inf)
    d, shift = np.zeros_like(size), len(two) - len(one)
    if shift == 1 and two[0].weights is None and two[0].curve is None and not two[0].b.any():
        d = states[1].errors[:, linear[1].of(0)]
        size = (size + d) * ROOM
    elif shift:
        return nothing
    for k, (a, b) in enumerate(zip(one, two[shift:], strict=True)):
        if a.size != b.size or (a.weights is None) != (b.weights is None):
            return nothing
        if a.weights is not None and b.weights is not None:
            d = d @ np.abs(a.weights).T + size @ (np.abs(a.weights - b.weights) * ROOM).T
        first, second = linear[0].of(k), linear[1].of(k + shift)
        errors = states[0].errors[:, first] + states[1].errors[:, second]
        d = (d + np.abs(a.b - b.b) + errors) * (1 + 4 * nu(int(linear[0].chain.sizes[k]) + 4)) * ROOM + 2.0**-1000
        top, low, high = states[0].bounds[1][:, first], *(end[:, second] for end in states[1].bounds)
        if isinstance(a.curve, Relu) and isinstance(b.curve, Relu):
            d = np.where((top <= 0) & (high <= 0), 0.0, d)
            size = np.maximum(high, 0.0)
        elif a.curve is None and b.curve is None:
            size = np.maximum(np.abs(low), np.abs(high))
        else:
            return nothing
    good = (states[0].good & states[1].good)[:, None] & np.isfinite(d)
    return np.where(good, d, np.inf)


class Judge:
    """Bounds of both networks together."""

    def __init__(self, claim: Agree) -> None:
        self.claim = claim
        self.linear: list[Relaxation] | None
        try:
            self.linear = [Relaxation(part(claim.network, k), claim.executions) for k in (0, 1)]
        except Unsupported:
            self.linear = None

    def __call__(self, low: Array, high: Array, values: bool) -> Shown:
        """For boxes with these ends; `values`: where linear bounds leave it open, with those of each value too."""
        good, worth = np.zeros(len(low), dtype=bool), (high - low) + 0.0
        classes = self._classes(low, high)
        for group in [np.flatnonzero(classes == c) for c in np.unique(classes)]:
            facts = None
            if self.linear is not None:
                facts, worth[group] = self._linear(low[group], high[group], int(classes[group[0]]))
                good[group] = facts.agree(self.claim.relation)
            left = np.flatnonzero(~good[group])
            if len(left) and (values or facts is None):
                some = group[left]
                more = self._values(low[some], high[some], classes[some])
                if facts is not None:
                    ends = tuple(end[left] for end in facts.ends)
                    more = more.both(Facts(ends, facts.far[left], facts.first[left], facts.second[left]))  # type: ignore[arg-type]
                good[some] = more.agree(self.claim.relation)
        return Shown(good, worth)

    def _classes(self, low: Array, high: Array) -> NDArray[np.intp]:
        """Which class to look for in each box: a guess, from one execution at one input."""
        if self.claim.relation.name != "argmax":
            return np.zeros(len(low), dtype=np.intp)
        outputs = run_batch(self.claim.network, low, self.claim.executions)[self.claim.network.output.name]
        return np.nan_to_num(outputs[:, : self.claim.outputs]).argmax(axis=1)

    def _linear(self, low: Array, high: Array, chosen: int) -> tuple[Facts, Array]:
        """Minorants a·x + k of rows of outputs of both are added: their differences forget nothing of what is linear
        in the inputs."""
        assert self.linear is not None
        n = self.claim.outputs
        states = [linear.state(low, high) for linear in self.linear]
        unknown = np.full((len(low), n), np.inf)
        ends, far = [-unknown, unknown + 0.0, -unknown, unknown + 0.0], unknown + 0.0
        if self.claim.relation.name == "argmax":
            others = np.array([k for k in range(n) if k != chosen])
            rows = np.zeros((n - 1, n))
            rows[:, chosen], rows[np.arange(n - 1), others] = 1.0, -1.0
            wins, slopes = [], []
            for linear, state in zip(self.linear, states, strict=True):
                below = linear.minorants(state, rows)
                shares = np.broadcast_to(np.eye(n - 1), (len(low), n - 1, n - 1))
                least = least_values(state, below.slopes, below.constants, shares)
                wins.append(np.asarray(((least > 0) | ((least >= 0) & (chosen < others))).all(axis=1)))
                slopes.append(below.slopes)
            facts = Facts(tuple(ends), far, wins[0], wins[1])  # type: ignore[arg-type]
        else:
            rows = np.concatenate([np.eye(n), -np.eye(n)])
            belows = [linear.minorants(state, rows) for linear, state in zip(self.linear, states, strict=True)]
            slopes = [below.slopes for below in belows]
            combined = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]])
            shares = np.broadcast_to(combined.astype(np.float64), (len(low), 6, 4))
            for j in range(n):
                slope = np.concatenate([s[:, [j, n + j]] for s in slopes], axis=1)
                constant = np.concatenate([below.constants[:, [j, n + j]] for below in belows], axis=1)
                least = least_values(states[0], slope, constant, shares)
                for k, sign in enumerate((1, -1, 1, -1)):
                    ends[k][:, j] = sign * least[:, k]
                far[:, j] = -np.minimum(least[:, 4], least[:, 5])
            far = np.minimum(far, _apart(self.linear, states))
            none = np.zeros(len(low), dtype=bool)
            facts = Facts(tuple(ends), far, none, none)  # type: ignore[arg-type]
        size = np.abs(np.concatenate(slopes, axis=1)).max(axis=1) * (high - low)
        return facts, np.where(np.isfinite(size), size, high - low)

    def _values(self, low: Array, high: Array, chosen: NDArray[np.intp]) -> Facts:
        """Bounds of each output alone."""
        n, boxes = self.claim.outputs, np.arange(len(low))
        try:
            found = enclosures(self.claim.network, low, high, executions=self.claim.executions)
            bottom, top = found[self.claim.network.output.name]
        except Unsupported:
            bottom, top = np.full((len(low), 2 * n), -np.inf), np.full((len(low), 2 * n), np.inf)
        ends = bottom[:, :n], top[:, :n], bottom[:, n:], top[:, n:]
        with np.errstate(invalid="ignore"):
            far = np.maximum(UPWARDS.sub(ends[1], ends[2]), UPWARDS.sub(ends[3], ends[0]))
        wins = []
        for least, most in (ends[:2], ends[2:]):
            best = least[boxes, chosen][:, None]
            above = (best > most) | ((best == most) & (chosen[:, None] < np.arange(n)))
            above[boxes, chosen] = True
            wins.append(np.asarray((above & np.isfinite(least) & np.isfinite(most)).all(axis=1)))
        return Facts(ends, np.where(np.isnan(far), np.inf, far), wins[0], wins[1])


@rule("splits show agreement")
def splits_show_agreement(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Covers the box by the leaves of a tree of splits, on each of which bounds show that the outputs agree.

    data: ``tree``, its text.  The halves of a box have all values of the input's format in it.  On a leaf, for every
    input and execution: linear functions below outputs y, z, −y and −z (`fpsmt.networks.relaxation`, which also says
    that they are finite numbers) are added, so that y − z and z − y are at least what the sums are at least on the
    box; distances are carried from layer to layer (`_apart`); and each output is within its own bounds
    (`fpsmt.networks.bounds`).  |y − z| ≤ D follows when both differences
    are ≥ −D; K ulps when they are ≥ −K·ulp(m), where |y| ≥ m or |z| ≥ m on all of the box, because the ulp never falls
    with the size.  The class is i in every execution when yᵢ − yₖ > 0 (≥ 0 for k > i) for all k.
    """
    if not isinstance(claim, Agree):
        raise EvidenceError(f"agreement of networks does not speak about {claim.kind}")
    box, tree = ends_of(claim, claim.query), read_tree(data["tree"])
    trusted = (VECTOR, BALLS) if claim.network.of_kind(Activation) else (VECTOR,)
    if box is None:
        return Holds({"boxes": 0}, trusted)
    judge = Judge(claim)

    def examine(boxes: Boxes, leaf: Truth) -> Boxes | Open:
        if not leaf.any():
            return boxes
        some = boxes.take(np.flatnonzero(leaf))
        good = judge(some.low, some.high, values=True).good
        return boxes if good.all() else not_proved(some, good)

    leaves = walk(claim.network.input, 0, tree, whole(*box), examine)
    return leaves if isinstance(leaves, Open) else Holds({"boxes": leaves}, trusted)
