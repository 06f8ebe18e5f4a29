"""Engines for predictions: bounds over all executions, and a search for two executions that disagree.

The search runs a network once by default and then against itself: the sign of the gradient of (a rival's output −
the winner's) at each sum says whether that sum should come out large or small, and each gets the schedule that does
best among a few.  For the families that allow it one of them is a fold that always adds next the term whose rounding
errs most in the wanted direction.  Everything here is heuristic and in fast arithmetic; what it finds counts only
when the reference interpreter, in the kernel, finds it too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.predictions import PredictionInvariant, counterexample, predicted
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.floats import Float, context, float64
from fpsmt.floats.vector import arithmetic, embeds, to_carrier, to_floats
from fpsmt.functions import CorrectlyRounded, correctly_rounded, correctly_rounded_array
from fpsmt.kernel import Unknown, Verdict
from fpsmt.kernel.rules.predictions import certain_winners, value_bounds
from fpsmt.networks.bounds import Interval
from fpsmt.networks.executions import Execution
from fpsmt.networks.interpreter import execution_of, site_of
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Input, Node, Select
from fpsmt.networks.orders import AnyOrder, Order, Sequential, Union
from fpsmt.networks.sums import SumFormats, evaluate_tree_batch
from fpsmt.networks.trees import Tree

Array = NDArray[np.float64]
Schedules = dict[tuple[str, int], Tree]
Outputs = dict[tuple[str, str, Float], Float]

ATTEMPTS = 12  #: passes over the inputs that the bounds leave open
RIVALS = 3  #: classes tried for an input, nearest first
MOST_LISTED = 200  #: families with at most this many schedules of a sum are tried whole
RANDOM_TREES = 3  #: schedules drawn for all sums of a node in each attempt


@engine("bounds", PredictionInvariant)
def bounds(claim: PredictionInvariant, options: Options) -> Verdict:
    """Encloses the outputs over all executions."""
    return kernel.apply("bounds on every execution", claim)


@engine("schedules search", PredictionInvariant)
def schedules_search(claim: PredictionInvariant, options: Options) -> Verdict:
    """Looks for an input and two executions that predict differently, among the inputs that the bounds leave open."""
    start = time.monotonic()
    for node in claim.network.nodes:
        if not embeds(node.format):
            raise Unsupported(f"{node.format} of node {node.name!r} is not embedded in float64")
    rng = Random(options.seed)
    attacks = _attacks(claim)
    for attempt in range(ATTEMPTS):
        for attack in attacks:
            if time.monotonic() - start > options.timeout:
                return _gave_up(attacks, f"no time left of {options.timeout:g} s", claim)
            found = attack.attempt(rng)
            if found is not None:
                return kernel.refute(claim, found)
        options.report(f"schedules search: attempt {attempt + 1} of {ATTEMPTS} on {len(attacks)} inputs, closest "
                       f"{min(a.closest for a in attacks):.3g} of the margin left")  # fmt: skip
    return _gave_up(attacks, f"{ATTEMPTS} attempts on each", claim)


def _gave_up(attacks: list[_Attack], why: str, claim: PredictionInvariant) -> Unknown:
    some = ", ".join(str(a.index) for a in attacks[:8]) + (", …" if len(attacks) > 8 else "")
    return Unknown(claim, f"inputs {some} are neither certified by bounds nor broken by a schedule found ({why})")


def _attacks(claim: PredictionInvariant) -> list[_Attack]:
    """One for each input not certified, the ones whose bounds overlap most (relative to their width) first."""
    try:
        found = value_bounds(claim)
    except Unsupported:
        return [_Attack(claim, k, {}) for k in range(len(claim.inputs))]
    low, high = found[claim.network.output.name]
    left = np.flatnonzero(certain_winners(low, high) < 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        top = np.sort((low + high) / 2, axis=1)
        score = (top[:, -1] - top[:, -2]) / np.max(high - low, axis=1)
    order = left[np.argsort(np.nan_to_num(score[left], nan=-1.0), kind="stable")]
    return [_Attack(claim, int(k), {name: (a[k], b[k]) for name, (a, b) in found.items()}) for k in order]


class _Attack:
    """The search on one input."""

    def __init__(self, claim: PredictionInvariant, index: int, bounds: Mapping[str, Interval]) -> None:
        self.claim, self.index, self.network = claim, index, claim.network
        self.bounds = bounds
        self.best: dict[int, Schedules] = {}  # by rival: the schedules that came closest
        self.closest = np.inf
        self.base: dict[str, Array] | None = None
        self.plain: tuple[Schedules, Outputs] = ({}, {})
        self.winner: int | None = None
        self.output = self.network.output.name

    def attempt(self, rng: Random) -> Any:
        """A counterexample, or None."""
        x = to_carrier(self.claim.inputs[self.index])
        if self.base is None:
            self.base = self._forward(x, None, {}, *self.plain, rng)
            found = self._broken(self.base[self.output], self.plain)
            if found is not None:
                return found
            self.winner = int(np.argmax(self.base[self.output]))
        logits = self.base[self.output]
        rivals = [int(k) for k in np.argsort(-logits, kind="stable") if k != self.winner][:RIVALS]
        for rival in rivals:
            gradient = self._gradient(rival)
            made: tuple[Schedules, Outputs] = ({}, {})
            values = self._forward(x, gradient, self.best.get(rival, {}), *made, rng)[self.output]
            found = self._broken(values, made)
            if found is not None:
                return found
            gap = values[self.winner] - values[rival]
            full = logits[self.winner] - logits[rival]
            self.best[rival] = made[0]
            if full > 0:
                self.closest = min(self.closest, gap / full)
        return None

    def _broken(self, values: Array, made: tuple[Schedules, Outputs]) -> Any:
        """The counterexample, if the prediction is another one than usual, or none."""
        pick = predicted(to_floats(self.network.output.format, values))
        if pick is not None and self.winner in (None, pick):
            return None
        return counterexample(self.index, (self.plain[0], made[0]), (self.plain[1], made[1]))

    # -- forward ------------------------------------------------------------------------------------------

    def _forward(
        self, x: Array, gradient: Mapping[str, Array] | None, before: Schedules,
        schedules: Schedules, outputs: Outputs, rng: Random,
    ) -> dict[str, Array]:  # fmt: skip
        """Values of all nodes; fills in schedules and activation outputs.  Without a gradient, the default run."""
        network, values = self.network, dict[str, Array]()
        for node in network.nodes:
            sources = [values[s] for s in node.sources]
            push = None if gradient is None else gradient[node.name]
            if isinstance(node, Input):
                values[node.name] = x
            elif isinstance(node, Constant):
                values[node.name] = node.values
            elif isinstance(node, Cast):
                values[node.name] = arithmetic(node.context, network.format_of(node.source)).cast(sources[0])
            elif isinstance(node, Select):
                values[node.name] = np.array([sources[k][i] for k, i in node.picks])
            elif isinstance(node, Elementwise):
                values[node.name] = getattr(arithmetic(node.context), node.operation)(*sources)
            elif isinstance(node, Activation):
                values[node.name] = _activate(node, sources[0], network.format_of(node.source), push, outputs)
            elif isinstance(node, Affine):
                values[node.name] = self._affine(node, sources[0], push, before, schedules, rng)
            else:
                raise Unsupported(f"the search does not know nodes of class {type(node).__name__} ({node.name!r})")
        return values

    def _affine(
        self, node: Affine, x: Array, push: Array | None, before: Schedules, schedules: Schedules, rng: Random
    ) -> Array:
        how, out = execution_of(self.claim.executions, node.name), np.empty(len(node.weights))
        groups: dict[int, list[int]] = {}
        for i in range(len(out)):
            groups.setdefault(len(node.columns(i)), []).append(i)
        for n, members in groups.items():
            rows = np.array(members)
            sums = _Rows(node, how, self.network.format_of(node.source), rows, x)
            best = sums.under(how.default_schedule(n, sums.has_bias))
            if push is not None:
                want = np.sign(push[rows])
                chosen: dict[int, Tree] = {}
                for tree in _candidates(how, n, sums.has_bias, rng):
                    sums.keep(best, chosen, want, tree, sums.under(tree))
                for at, i in enumerate(members):
                    if (node.name, i) in before:
                        one = _Rows(node, how, self.network.format_of(node.source), rows[at : at + 1], x)
                        value = one.under(before[node.name, i])[0]
                        if want[at] * (value - best[at]) > 0:
                            best[at], chosen[at] = value, before[node.name, i]
                if n > 1 and _folds(how.order):
                    for at, (tree, value) in enumerate(sums.fold(want, rng)):
                        if want[at] * (value - best[at]) > 0 or np.isnan(value):
                            best[at], chosen[at] = value, tree
                schedules.update({(node.name, members[at]): tree for at, tree in chosen.items()})
            out[rows] = best
        return out

    # -- gradient -----------------------------------------------------------------------------------------

    def _gradient(self, rival: int) -> dict[str, Array]:
        """About how the rival's output minus the winner's depends on each value, in float64."""
        assert self.base is not None
        values = self.base
        slopes = {name: np.zeros(len(v)) for name, v in values.items()}
        slopes[self.output][rival] += 1
        slopes[self.output][self.winner] -= 1
        with np.errstate(all="ignore"):
            for node in reversed(self.network.nodes):
                parts = _pulled(node, slopes[node.name], values, self.bounds)
                for source, part in zip(node.sources, parts, strict=True):
                    slopes[source] = slopes[source] + np.nan_to_num(part, posinf=0.0, neginf=0.0)
        return slopes


def _pulled(node: Node, g: Array, values: Mapping[str, Array], bounds: Mapping[str, Interval]) -> list[Array]:
    """The gradient at the sources from the one at the node; of an activation the secant over all it may be given."""
    sources = [values[s] for s in node.sources]
    if isinstance(node, Affine):
        return [node.weights.T @ g]
    if isinstance(node, Cast):
        return [g]
    if isinstance(node, Activation):
        x, wide, f = sources[0], context(float64), node.implementation.function
        low, high = bounds.get(node.source, (np.full_like(x, -np.inf), np.full_like(x, np.inf)))
        h = np.maximum(np.abs(x), 1.0)
        low = np.where(np.isfinite(low), np.minimum(low, x - h * 2.0**-20), x - h)
        high = np.where(np.isfinite(high), np.maximum(high, x + h * 2.0**-20), x + h)
        low, high = (np.nan_to_num(end, posinf=1e300, neginf=-1e300) for end in (low, high))
        ends = [correctly_rounded_array(f, wide, end, float64) for end in (low, high)]
        return [g * (ends[1] - ends[0]) / (high - low)]
    if isinstance(node, Elementwise):
        a, b = sources
        return {
            "add": [g, g], "sub": [g, -g], "mul": [g * b, g * a], "div": [g / b, -g * a / (b * b)],
        }[node.operation]  # fmt: skip
    if isinstance(node, Select):
        parts = [np.zeros(len(v)) for v in sources]
        for at, (k, i) in enumerate(node.picks):
            parts[k][i] += g[at]
        return parts
    return []


def _activate(node: Activation, x: Array, fmt: Any, push: Array | None, outputs: Outputs) -> Array:
    """Correctly rounded, or for another contract the end of what is allowed that the gradient asks for."""
    use, ctx = node.implementation, node.context
    if isinstance(use.contract, CorrectlyRounded):
        return correctly_rounded_array(use.function, ctx, x, fmt)
    out = np.empty(len(x))
    for i, value in enumerate(to_floats(fmt, x)):
        key = (use.text, site_of(node, i), value)
        if key not in outputs:
            low, high = use.allowed(ctx, value)
            usual = correctly_rounded(use.function, ctx, value)
            if push is not None and push[i] != 0 and not use.monotone:
                outputs[key] = low if push[i] < 0 else high
            elif not use.contains(ctx, value, usual):
                if use.monotone:
                    raise Unsupported(f"{use.text} at {value}: results of monotone activations are not chosen")
                outputs[key] = low
        out[i] = float(outputs.get(key, correctly_rounded(use.function, ctx, value)))
    return out


# -- schedules --------------------------------------------------------------------------------------------


def _folds(order: Order) -> bool:
    """The family has the left fold of every permutation."""
    if isinstance(order, Union):
        return any(_folds(part) for part in order.parts)
    return isinstance(order, AnyOrder | Sequential)


def _candidates(how: Execution, n: int, bias: bool, rng: Random) -> list[Tree]:
    """All schedules of a short sum, a few random ones of a long one."""
    if n <= 6:
        listed = list(islice(how.schedules(n, bias), MOST_LISTED + 1))
        if len(listed) <= MOST_LISTED:
            return listed
    return [how.random_schedule(n, rng, bias) for _ in range(RANDOM_TREES)]


class _Rows:
    """Rows of an affine node with n terms each, at one input."""

    def __init__(self, node: Affine, how: Execution, source: Any, rows: NDArray[np.intp], x: Array) -> None:
        columns = np.array([node.columns(int(i)) for i in rows], dtype=np.intp)
        self.ctx, self.how, self.acc = node.context, how, how.sum_context(node.context)
        self.formats = SumFormats(source, *node.formats)
        self.weights = node.weights[rows[:, None], columns]
        self.x = x[columns]
        self.bias = None if node.bias is None else node.bias[rows]
        self.has_bias, self.n = node.bias is not None, columns.shape[1]

    def under(self, tree: Tree) -> Array:
        """The results of all rows under one schedule."""
        out = evaluate_tree_batch(self.ctx, tree, self.x.T, self.weights.T, self.bias, self.how, self.formats)
        return np.array(out)

    @staticmethod
    def keep(best: Array, chosen: dict[int, Tree], want: Array, tree: Tree, found: Array) -> None:
        """Takes over what is better, or NaN."""
        for at in np.flatnonzero((want * (found - best) > 0) | (np.isnan(found) & ~np.isnan(best))):
            best[at] = found[at]
            chosen[int(at)] = tree

    def fold(self, want: Array, rng: Random) -> list[tuple[Tree, float]]:
        """For each row a left fold whose roundings err in the wanted direction, and its result.

        Each step adds the term with the greatest rounding error in that direction, the exact sum taken in float64.
        """
        acc, formats, rows, n = self.acc, self.formats, len(self.x), self.n
        rounding = self.how.product_context(self.ctx) or acc
        products = arithmetic(rounding, (formats.weights, formats.terms)).mul(self.weights, self.x)
        if rounding.format != acc.format:
            products = arithmetic(acc, rounding.format).cast(products)
        fuses, exact = self.how.fuses(True), self.how.products == "exact"
        with np.errstate(all="ignore"):
            reals = self.weights * self.x
            at = np.arange(rows)
            mixed = self.has_bias and self.how.bias == "first"
            start = np.argmax(np.abs(reals), axis=1) if rng.random() < 0.5 else np.array(
                [rng.randrange(n) for _ in range(rows)])  # fmt: skip
            total = products[at, start]
            left = np.ones((rows, n), dtype=bool)
            left[at, start] = False
            trees: list[Tree] = [int(k) for k in start]
            if mixed:
                assert self.bias is not None
                total = self._bias_in_accumulator()
                left[:] = True
                trees = [n] * rows
            noise = np.array([[rng.random() for _ in range(n)] for _ in range(rows)])
            fma = arithmetic(acc, (formats.weights, formats.terms, acc.format))
            pairs = arithmetic(acc, (formats.weights, formats.terms) * 2)
            for step in range(n if mixed else n - 1):
                if exact and step == 0 and not mixed:
                    w, v = self.weights[at, start], self.x[at, start]
                    sums = pairs.add_products(self.weights, self.x, w[:, None], v[:, None])
                    options = [(False, sums, sums - reals[at, start][:, None] - reals)]
                else:
                    fused = fma.fma(self.weights, self.x, total[:, None])
                    options = [(not exact, fused, fused - total[:, None] - reals)]
                    if not exact and fuses != "always":
                        plain = arithmetic(acc).add(total[:, None], products)
                        options = [*options, (False, plain, plain - total[:, None] - reals)]
                        options = options[1:] if fuses == "never" else options
                scores = [np.where(left, np.nan_to_num(want[:, None] * e, nan=np.inf), -np.inf) for _, _, e in options]
                kind = np.argmax([s.max(axis=1) for s in scores], axis=0)
                score = np.stack(scores)[kind, at]
                tied = score >= score.max(axis=1)[:, None]
                pick = np.argmax(np.where(tied & left, noise, -1.0), axis=1)
                total = np.stack([o[1] for o in options])[kind, at, pick]
                left[at, pick] = False
                for r in range(rows):
                    j = int(pick[r])
                    trees[r] = ("fma", j, trees[r]) if options[kind[r]][0] else (trees[r], j)
            if self.has_bias and not mixed:
                total = arithmetic(acc).add(total, self._bias_in_accumulator())
                trees = [(tree, n) for tree in trees]
            if acc != self.ctx:
                total = arithmetic(self.ctx, acc.format).cast(total)
        return list(zip(trees, total.tolist(), strict=True))

    def _bias_in_accumulator(self) -> Array:
        assert self.bias is not None
        fmt = self.formats.bias
        return self.bias if fmt == self.acc.format else arithmetic(self.acc, fmt).cast(self.bias)
