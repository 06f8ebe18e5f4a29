"""Whether a model of a routine gives its results bit for bit on random vectors, chosen to tell orders apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpsmt import floats
from fpsmt.engines.targets import Kind, Raised, Target, Vector
from fpsmt.floats import Context, Float, Format, Overflow, context
from fpsmt.floats.vector import arithmetic, round_array
from fpsmt.networks.executions import Execution
from fpsmt.networks.sums import SumFormats, evaluate_tree_batch
from fpsmt.networks.trees import Tree, steps

Shape = Any  #: a summation tree whose nodes may have more than two children: an int, or a tuple of shapes


@dataclass(frozen=True)
class Model:
    """What a routine is taken to compute.

    `tree` over its terms, run as `execution` says, for terms of `format` and results in `output`.  `from_zero`: +0 is
    added as well, so that a sum of only −0 is +0.  `contexts`: where additions round, by step of the tree, when that
    is not the same everywhere (for products: where those round that are not fused).
    """

    tree: Tree
    format: Format
    output: Context
    execution: Execution
    from_zero: bool = False
    contexts: tuple[Context, ...] | None = None

    def evaluate(self, terms: NDArray[Any], weights: NDArray[Any] | None = None) -> NDArray[Any]:
        """The results for terms (and weights) of shape (n, vectors)."""
        if self.contexts is not None:
            out = self._mixed(terms, weights)
        else:
            formats = SumFormats(self.format, self.format, self.format)
            with np.errstate(all="ignore"):
                out = evaluate_tree_batch(
                    self.output, self.tree, terms, weights, execution=self.execution, formats=formats
                )
        return out + 0.0 if self.from_zero and out.dtype == np.float64 else out

    def _mixed(self, terms: NDArray[Any], weights: NDArray[Any] | None) -> NDArray[Any]:
        assert self.contexts is not None
        program = steps(self.tree)
        values: list[Any] = [None] * len(program)
        fused = {a for op, a, _ in program if op == "fma"}
        two = (self.format, self.format)
        for k, (op, a, b) in enumerate(program):
            ctx = self.contexts[k]
            if op == "leaf":
                if k not in fused:
                    values[k] = terms[a] if weights is None else arithmetic(ctx, two).mul(weights[a], terms[a])
                continue
            if op == "fma":
                i = program[a].left
                assert weights is not None
                mixed = arithmetic(ctx, (*two, self.contexts[b].format))
                values[k] = mixed.fma(weights[i], terms[i], values[b])
            else:
                plain = [weights is None and program[c].op == "leaf" for c in (a, b)]
                kinds = [self.format if p else self.contexts[c].format for p, c in zip(plain, (a, b))]
                values[k] = arithmetic(ctx, kinds).add(values[a], values[b])
            values[a] = values[b] = None
        return arithmetic(self.output, self.contexts[-1].format).cast(values[-1])


def exact_sum(
    shape: Shape, ctx: Context, out: Context, values: Sequence[Fraction], rounded: Sequence[bool]
) -> Float:
    """The finite result when every node adds its children exactly and rounds once to ctx; then cast to out.

    Terms whose `rounded` is set are rounded to ctx first.
    """

    def at(node: Shape) -> Fraction | None:
        if isinstance(node, int):
            return values[node] if not rounded[node] else _finite(floats.round_real(ctx, values[node]))
        total = Fraction(0)
        for child in node:
            part = at(child)
            if part is None:
                return None
            total += part
        return _finite(floats.round_real(ctx, total))

    total = at(shape)
    return floats.nan(out.format) if total is None else floats.round_real(out, total)


def _finite(x: Float) -> Fraction | None:
    return x.fraction if x.is_finite else None


# -- vectors ------------------------------------------------------------------------------------------------


def usual_context(fmt: Format) -> Context:
    """Round to nearest, and overflow to infinity, else NaN, else Ω: what the format has."""
    if fmt.has_infinity:
        return context(fmt)
    return context(fmt, overflow=Overflow.NAN if fmt.has_nan else Overflow.SATURATE)


def random_vectors(fmt: Format, n: int, count: int, kind: Kind, seed: int = 0) -> tuple[Vector, Vector | None]:
    """Terms of shape (count, n), and weights for a dot product, values of the format.

    Of each six vectors one has terms of like size, one of widely differing size, two cancel (one after each, one in
    pairs), one uses the whole range of the format with overflow and subnormals, and one has ±0, ±inf and NaN in it.
    The first vectors are all −0, all +0, and for a dot product products that underflow.
    """
    rng = np.random.default_rng(seed)
    x, w = (_terms(fmt, n, count, rng) for _ in range(2))
    for v in range(count):
        if v % 6 in (2, 3):
            _cancel(x[v], w[v], rng, kind)
    large, small = float(fmt.largest), float(fmt.smallest)
    special = np.array([-0.0, 0.0, np.inf, -np.inf, np.nan, large, -large, small])
    if not fmt.has_infinity:
        special[2:4] = 1.0
    if not fmt.has_nan:
        special[4] = 1.0
    for v in range(5, count, 6):
        chosen = special[[0, 1, 5, 6, 7]] if v % 12 == 5 else special
        for place in rng.integers(0, n, min(3, n)):
            x[v, place] = rng.choice(chosen)
    x[0], w[0] = -0.0, 1.0
    if count > 1:
        x[1], w[1] = 0.0, 1.0
    if count > 5 and kind == "dot":
        x[2], w[2] = -float(fmt.smallest), float(fmt.smallest)
        x[5] = np.where(np.arange(n) % 2, x[2], -0.0)
        w[5] = np.where(np.arange(n) % 2, w[2], 1.0)
    if not fmt.has_signed_zero:
        x += 0.0
        w += 0.0
    return x, w if kind == "dot" else None


def _terms(fmt: Format, n: int, count: int, rng: np.random.Generator) -> Vector:
    """Random significands, with exponents that differ by kind of vector (its number mod 6)."""
    size = rng.uniform(1.0, 2.0, (count, n)) * rng.choice([-1.0, 1.0], (count, n))
    some = max(1, min(fmt.precision + 4, (fmt.emax - fmt.emin) // 3))
    kinds = np.arange(count) % 6
    spread = np.where(kinds == 1, some, np.where(kinds == 4, 0, 2))[:, None]
    exponents = rng.integers(-spread, spread + 1, (count, n)) if n else np.zeros((count, n))
    low = fmt.emin - fmt.fraction_bits
    whole = rng.integers(low, fmt.emax + 1, (count, n))
    exponents = np.where((kinds == 4)[:, None], whole, exponents)
    finite = np.clip(np.ldexp(size, exponents), -float(fmt.largest), float(fmt.largest))
    with np.errstate(all="ignore"):
        return round_array(usual_context(fmt), finite)


def _cancel(x: Vector, w: Vector, rng: np.random.Generator, kind: Kind) -> None:
    """Half of the terms become the negatives of others, at random places."""
    places = rng.permutation(len(x))
    half = len(x) // 2
    one, two = places[:half], places[half : 2 * half]
    x[two] = -x[one]
    if kind == "dot":
        w[two] = w[one]


# -- comparing ----------------------------------------------------------------------------------------------


def different(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    """Where two arrays of results differ: NaN equals NaN, −0 differs from +0."""
    both = np.isnan(a) & np.isnan(b)
    return ~both & ((a != b) | (np.signbit(a) != np.signbit(b)))


@dataclass(frozen=True)
class Mismatch:
    """A vector on which a model and the routine differ."""

    terms: tuple[float, ...]
    weights: tuple[float, ...] | None
    routine: float
    model: float


@dataclass
class Observations:
    """Results of a routine on random vectors, made once and compared with any number of models."""

    terms: Vector
    weights: Vector | None
    results: Vector
    raised: tuple[str, ...] = ()  #: what the routine said about vectors that it refused; they are left out

    @staticmethod
    def of(target: Target, count: int, seed: int = 0) -> Observations:
        """Calls the routine once for each of so many vectors; every fourth time with arrays elsewhere in memory.

        Raises `Raised` when the routine refuses half of the vectors or more.
        """
        x, w = random_vectors(target.format, target.n, count, target.kind, seed)
        found, kept, refused = [], [], []
        for v in range(count):
            try:
                found.append(target(x[v], None if w is None else w[v], shift=v % 4 // 3))
                kept.append(v)
            except Raised as error:
                refused.append(str(error))
                if 2 * len(refused) >= max(count, 2):
                    raise
        return Observations(x[kept], None if w is None else w[kept], np.array(found), tuple(refused))

    def first(self, count: int) -> Observations:
        weights = None if self.weights is None else self.weights[:count]
        return Observations(self.terms[:count], weights, self.results[:count])

    def finite(self) -> Observations:
        """Those whose terms and result are finite."""
        good = np.isfinite(self.results) & np.isfinite(self.terms).all(axis=1)
        if self.weights is not None:
            good &= np.isfinite(self.weights).all(axis=1)
        return Observations(self.terms[good], None if self.weights is None else self.weights[good], self.results[good])

    def mismatch(self, model: Model) -> Mismatch | None:
        """The first vector on which the model differs, or None."""
        width = max(64, 2**22 // max(1, self.terms.shape[1]))
        for at in range(0, len(self.results), width):
            part = slice(at, at + width)
            weights = None if self.weights is None else self.weights[part].T
            got = np.asarray(model.evaluate(self.terms[part].T, weights))
            if got.dtype == object:
                got = np.array([float(v) for v in got])
            bad = np.flatnonzero(different(got, self.results[part]))
            if bad.size:
                v = at + int(bad[0])
                return self.at(v, float(got[bad[0]]))
        return None

    def at(self, v: int, model: float) -> Mismatch:
        weights = None if self.weights is None else tuple(self.weights[v].tolist())
        return Mismatch(tuple(self.terms[v].tolist()), weights, float(self.results[v]), model)

    def mismatch_exact(
        self, shape: Shape, fmt: Format, ctx: Context, out: Context, rounded: Sequence[bool]
    ) -> Mismatch | None:
        """The same for nodes of any number of children that add exactly; for finite vectors, zeros without sign."""
        for v, found in enumerate(self.results):
            values = [Fraction(t) for t in self.terms[v].tolist()]
            if self.weights is not None:
                values = [t * Fraction(u) for t, u in zip(values, self.weights[v].tolist(), strict=True)]
            got = float(exact_sum(shape, ctx, out, values, rounded))
            if got != found:
                return self.at(v, got)
        return None


__all__ = ["Mismatch", "Model", "Observations", "Shape", "different", "exact_sum", "random_vectors", "usual_context"]
