"""Engines for predictions and outputs: bounds over all executions, and a search for two executions that disagree.

The search runs a network once by default and then against itself: the sign of the gradient of (a rival's output −
the winner's), or of one output, at each sum says whether that sum should come out large or small, and each gets the
schedule that does best among those tried: where every tree is allowed, by annealing (`fpsmt.engines.annealing`), else
among a few listed or random trees and a fold that always adds next the term whose rounding errs most in the wanted
direction.  Everything here is heuristic and in fast arithmetic; what it finds counts only when the reference
interpreter, in the kernel, finds it too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.predictions import OutputsClose, PredictionInvariant, counterexample, predicted
from fpsmt.engines.engine import Options, engine
from fpsmt.engines.rows import MOST_TABLED, Rows, anneals, candidates, folds
from fpsmt.errors import Unsupported
from fpsmt.floats import Float, context, float64
from fpsmt.floats.vector import arithmetic, embeds, to_carrier, to_floats
from fpsmt.functions import CorrectlyRounded, correctly_rounded, correctly_rounded_array
from fpsmt.kernel import Unknown, Verdict
from fpsmt.kernel.rules.predictions import close_outputs, settle, value_bounds
from fpsmt.networks.batch import extremum_batch
from fpsmt.networks.bounds import Interval
from fpsmt.networks.interpreter import execution_of, site_of
from fpsmt.networks.networks import Network
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Extremum, Input, Node, Select
from fpsmt.networks.trees import Tree

Array = NDArray[np.float64]
Schedules = dict[tuple[str, int], Tree]
Outputs = dict[tuple[str, str, Float], Float]
Made = tuple[Schedules, Outputs]

ATTEMPTS = 12  #: passes over the inputs that the bounds leave open
MOVES = 3000  #: of annealing for one sum in the first two passes; doubled after every two
HOPELESS = {0: 0.6, 1: 0.5, 3: 0.38, 5: 0.3, 7: 0.22, 9: 0.14}  #: after this pass, the share of a margin left
#: that ends the search: 32 times as many moves bring a sum at most about 1.7 times as far
BESIDE = 0.15  #: rivals that leave so much more of their margin than the best one are not tried again
RIVALS = 3  #: classes tried for an input, nearest first
Statement = PredictionInvariant | OutputsClose


@engine("bounds", PredictionInvariant, OutputsClose)
def bounds(claim: Statement, options: Options) -> Verdict:
    """Encloses the outputs over all executions."""
    close = isinstance(claim, OutputsClose)
    return kernel.apply("bounds within ulps" if close else "bounds on every execution", claim)


@engine("schedules search", PredictionInvariant, OutputsClose)
def schedules_search(claim: Statement, options: Options) -> Verdict:
    """Looks for an input and two executions that disagree, among the inputs that the bounds leave open."""
    start = time.monotonic()
    check_searchable(claim.network)
    rng = Random(options.seed)
    attacks = _attacks(claim)
    tried = list(attacks)
    for number in range(ATTEMPTS):
        for attack in attacks:
            if time.monotonic() - start > options.timeout:
                return _gave_up(tried, f"no time left of {options.timeout:g} s", claim)
            found = attack.attempt(rng, number)
            if found is not None:
                return kernel.refute(claim, found)
        attacks = [attack for attack in attacks if not attack.hopeless(number)]
        options.report(f"schedules search: attempt {number + 1} of {ATTEMPTS} on {len(attacks)} inputs, closest "
                       f"{min(a.closest for a in tried):.3g} of the margin left")  # fmt: skip
    return _gave_up(tried, f"{ATTEMPTS} attempts on each", claim)


def check_searchable(network: Network) -> None:
    """Raises `Unsupported` for formats that are not embedded in float64."""
    for node in network.nodes:
        if not embeds(node.format):
            raise Unsupported(f"{node.format} of node {node.name!r} is not embedded in float64")


def _gave_up(attacks: list[Attack], why: str, claim: Statement) -> Unknown:
    some = ", ".join(str(a.index) for a in attacks[:8]) + (", …" if len(attacks) > 8 else "")
    return Unknown(claim, f"inputs {some} are neither certified by bounds nor broken by a schedule found ({why})")


def _attacks(claim: Statement) -> list[Attack]:
    """One for each input not certified, the ones whose bounds overlap most (relative to their width) first."""
    try:
        if isinstance(claim, OutputsClose):
            found, left = value_bounds(claim), np.flatnonzero(~close_outputs(claim))
        else:
            settled = settle(claim)
            found, left = settled.bounds, np.flatnonzero(settled.winners < 0)
    except Unsupported:
        return [Attack(claim, k, {}) for k in range(len(claim.inputs))]
    low, high = found[claim.network.output.name]
    score = np.zeros(len(low))
    if low.shape[1] > 1:
        with np.errstate(invalid="ignore", divide="ignore"):
            top = np.sort((low + high) / 2, axis=1)
            score = (top[:, -1] - top[:, -2]) / np.max(high - low, axis=1)
    order = left[np.argsort(np.nan_to_num(score[left], nan=-1.0), kind="stable")]
    return [Attack(claim, int(k), {name: (a[k], b[k]) for name, (a, b) in found.items()}) for k in order]


class Attack:
    """The search on one input.

    `bounds` of all nodes there guide it, and so do `rivals`, the classes that need trying (None: all).
    """

    def __init__(
        self, claim: Statement, index: int, bounds: Mapping[str, Interval], rivals: Sequence[int] | None = None
    ) -> None:
        self.claim, self.index, self.network = claim, index, claim.network
        self.bounds, self.rivals = bounds, rivals
        self.best: dict[tuple[int, int], Schedules] = {}  # by target: the schedules that came closest
        self.annealed: dict[tuple[str, int, float], tuple[bytes, Tree, float]] = {}
        self.closest = np.inf
        self.left: dict[int, float] = {}  # by rival: the share of the margin that was left
        self.base: dict[str, Array] | None = None
        self.plain: Made = ({}, {})
        self.winner: int | None = None
        self.output = self.network.output.name
        self.anneals = any(
            anneals(execution_of(claim.executions, node.name)) for node in self.network.of_kind(Affine)
        )

    def hopeless(self, number: int) -> bool:
        """Whether after this pass so much of the margin is left that more annealing will not help."""
        return self.anneals and self.closest > HOPELESS.get(number, np.inf)

    def attempt(self, rng: Random, number: int) -> Any:
        """A counterexample, or None; `number` is that of the pass, from 0."""
        x = to_carrier(self.claim.inputs[self.index])
        self.moves = MOVES << (number // 2)
        if self.base is None:
            self.base = self._forward(x, None, {}, *self.plain, rng)
            found = self._broken(self.base[self.output], self.plain)
            if found is not None:
                return found
        return self._spread(x, rng) if isinstance(self.claim, OutputsClose) else self._overtake(x, rng)

    def _overtake(self, x: Array, rng: Random) -> Any:
        assert self.base is not None
        logits = self.base[self.output]
        self.winner = int(np.argmax(logits))
        listed = [int(k) for k in np.argsort(-logits, kind="stable") if k != self.winner]
        if self.rivals is not None:
            listed = [k for k in listed if k in self.rivals] or listed
        for rival in listed[:RIVALS]:
            if self.anneals and self.left.get(rival, 0.0) > self.closest + BESIDE:
                continue
            made: Made = ({}, {})
            values = self._toward({rival: 1.0, self.winner: -1.0}, (rival, self.winner), x, made, rng)
            found = self._broken(values, made)
            if found is not None:
                return found
            full = logits[self.winner] - logits[rival]
            if full > 0:
                self.left[rival] = min(self.left.get(rival, np.inf), (values[self.winner] - values[rival]) / full)
                self.closest = min(self.closest, self.left[rival])
        return None

    def _spread(self, x: Array, rng: Random) -> Any:
        """Makes the widest outputs large, then small."""
        low, high = self.bounds.get(self.output, (None, None))
        count = self.network.sizes[self.output]
        widest = range(count) if low is None or high is None else np.argsort(low - high, kind="stable")
        for k in [int(k) for k in widest][:RIVALS]:
            ends: list[tuple[Array, Made]] = []
            for sign in (1.0, -1.0):
                made: Made = ({}, {})
                ends.append((self._toward({k: sign}, (k, int(sign)), x, made, rng), made))
            self._note_distance(float(ends[0][0][k]), float(ends[1][0][k]))
            if self._apart(ends[0][0], ends[1][0]):
                return counterexample(self.index, (ends[0][1][0], ends[1][1][0]), (ends[0][1][1], ends[1][1][1]))
        return None

    def _note_distance(self, one: float, two: float) -> None:
        """How much of what is allowed two values of an output leave."""
        assert isinstance(self.claim, OutputsClose)
        fmt, size = self.network.output.format, max(abs(one), abs(two))
        if np.isfinite(size):
            place = max(int(np.frexp(size)[1]) - 1, fmt.emin) if size else fmt.emin
            allowed = self.claim.ulps * 2.0 ** (place - fmt.fraction_bits)
            self.closest = min(self.closest, 1 - abs(one - two) / allowed if allowed else 1.0)

    def _toward(self, aims: dict[int, float], key: tuple[int, int], x: Array, made: Made, rng: Random) -> Array:
        """The outputs of a run whose sums are chosen to make Σ aim·output large."""
        gradient = self._gradient(aims)
        values = self._forward(x, gradient, self.best.get(key, {}), *made, rng)[self.output]
        self.best[key] = made[0]
        return values

    def _broken(self, values: Array, made: Made) -> Any:
        """The counterexample, if the outputs disagree with the usual ones, or are none."""
        if isinstance(self.claim, OutputsClose):
            assert self.base is not None
            bad = self._apart(self.base[self.output], values)
        else:
            pick = predicted(to_floats(self.network.output.format, values))
            bad = pick is None or self.winner not in (None, pick)
        return counterexample(self.index, (self.plain[0], made[0]), (self.plain[1], made[1])) if bad else None

    def _apart(self, one: Array, two: Array) -> bool:
        assert isinstance(self.claim, OutputsClose)
        fmt = self.network.output.format
        return self.claim.apart(to_floats(fmt, one), to_floats(fmt, two)) is not None

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
            elif isinstance(node, Extremum):
                ends = [extremum_batch(sources[0][None, list(group)], node.least)[0] for group in node.groups]
                values[node.name] = np.array(ends)
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
            sums = Rows(node, how, self.network.format_of(node.source), rows, x)
            best = sums.under(how.default_schedule(n, sums.has_bias))
            if push is not None:
                want = np.sign(push[rows])
                if anneals(how) and n > MOST_TABLED and sums.finite:
                    chosen = self._annealed(node, sums, rows, want, best, rng)
                else:
                    chosen = self._listed(node, sums, rows, want, best, before, rng)
                schedules.update({(node.name, int(rows[at])): tree for at, tree in chosen.items()})
            out[rows] = best
        return out

    def _annealed(
        self, node: Affine, sums: Rows, rows: NDArray[np.intp], want: Array, best: Array, rng: Random
    ) -> dict[int, Tree]:
        """Improves `best` in place by annealing each row that matters; what was found for the same terms is kept."""
        chosen: dict[int, Tree] = {}
        for at in np.flatnonzero(want != 0):
            sign = float(want[at])
            key, terms = (node.name, int(rows[at]), sign), sums.x[at].tobytes()
            tree, value = sums.anneal(int(at), sign, self.moves, rng.getrandbits(31))
            known = self.annealed.get(key)
            if known is not None and known[0] == terms and sign * (known[2] - value) >= 0:
                tree, value = known[1:]
            self.annealed[key] = terms, tree, value
            if sign * (value - best[at]) > 0:
                best[at], chosen[int(at)] = value, tree
        return chosen

    @np.errstate(invalid="ignore")
    def _listed(
        self, node: Affine, sums: Rows, rows: NDArray[np.intp], want: Array, best: Array, before: Schedules, rng: Random
    ) -> dict[int, Tree]:
        """Improves `best` in place by listed and random trees and by folds."""
        how, chosen = sums.how, dict[int, Tree]()
        for tree in candidates(how, sums.n, sums.has_bias, rng):
            sums.keep(best, chosen, want, tree, sums.under(tree))
        for at, i in enumerate(rows.tolist()):
            if (node.name, i) in before:
                one = Rows(node, how, self.network.format_of(node.source), rows[at : at + 1], sums.input)
                value = one.under(before[node.name, i])[0]
                if want[at] * (value - best[at]) > 0:
                    best[at], chosen[at] = value, before[node.name, i]
        if sums.n > 1 and folds(how.order):
            for at, (tree, value) in enumerate(sums.fold(want, rng)):
                if want[at] * (value - best[at]) > 0 or np.isnan(value):
                    best[at], chosen[at] = value, tree
        return chosen

    # -- gradient -----------------------------------------------------------------------------------------

    def _gradient(self, aims: Mapping[int, float]) -> dict[str, Array]:
        """About how Σ aim·output depends on each value, in float64."""
        assert self.base is not None
        values = self.base
        slopes = {name: np.zeros(len(v)) for name, v in values.items()}
        for k, aim in aims.items():
            slopes[self.output][k] += aim
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
    if isinstance(node, Extremum):
        part, pick = np.zeros(len(sources[0])), np.argmin if node.least else np.argmax
        for at, group in enumerate(node.groups):
            part[group[int(pick(sources[0][list(group)]))]] += g[at]
        return [part]
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
