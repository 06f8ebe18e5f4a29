"""Engines for ∀ claims over terms: exhaust, search, solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from fpsmt import kernel
from fpsmt.claims.formulas import ForAll, assignment_to_json
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported, UsageError
from fpsmt.floats import Float, Format, exactly, from_ordinal, infinity, largest, nan, zero
from fpsmt.floats.vector import decode, embeds
from fpsmt.kernel import Verdict
from fpsmt.kernel.rules.formulas import points
from fpsmt.terms import Assignment, BitsSort, ChoiceSort, FloatSort, Sort, evaluate, postorder, variables
from fpsmt.terms.arrays import evaluate_arrays

QUICK_POINTS = 1 << 24
SAMPLES = 1 << 16


@engine("exhaust", ForAll)
def exhaust(claim: ForAll, options: Options) -> Verdict:
    """Evaluates every assignment when there are at most 2^24."""
    total = points(claim.condition)
    if total > QUICK_POINTS:
        raise Unsupported(f"{total} assignments are too many to exhaust quickly")
    return kernel.apply("exhausted", claim)


@engine("search", ForAll)
def search(claim: ForAll, options: Options) -> Verdict:
    """Looks for a counterexample among special and random values; what it finds is replayed."""
    names = variables(claim.condition)
    for term in postorder(claim.condition):
        if isinstance(term.sort, FloatSort) and not embeds(term.sort.format):
            raise Unsupported(f"values of {term.sort.format} cannot be held in arrays")
    rng = np.random.default_rng(options.seed)
    block = {v.data: _sample(v.sort, rng) for v in names}
    try:
        holds = np.broadcast_to(evaluate_arrays(claim.condition, block), (SAMPLES,))
    except UsageError as error:
        raise Unsupported(f"the condition has no value somewhere: {error}") from None
    for index in np.flatnonzero(~holds)[:1]:
        values = {v.data: _value(v.sort, block[v.data][index]) for v in names}
        if evaluate(claim.condition, values) is False:
            return kernel.refute(claim, assignment_to_json(Assignment(values)))
    return kernel.Unknown(claim, f"no counterexample among {SAMPLES} samples")


def special_values(fmt: Format) -> list[Float]:
    """Zeros, smallest and largest values, powers of two about 1, infinities and NaN, and some neighbours."""
    around_one = exactly(fmt, 1).ordinal if fmt.emin <= 0 <= fmt.emax else 1
    ordinals = {0, 1, 2, fmt.largest_code, fmt.largest_code - 1, around_one - 1, around_one, around_one + 1}
    least_normal = 1 << fmt.fraction_bits
    ordinals |= {least_normal - 1, least_normal, least_normal + 1, around_one + least_normal}
    found = [from_ordinal(fmt, s * o) for o in ordinals for s in (1, -1) if 0 <= o <= fmt.largest_code]
    found += [zero(fmt, True), largest(fmt), largest(fmt, True)]
    if fmt.has_infinity:
        found += [infinity(fmt), infinity(fmt, True)]
    if fmt.has_nan:
        found.append(nan(fmt))
    return list(dict.fromkeys(found))


def _sample(sort: Sort, rng: np.random.Generator) -> Any:
    if isinstance(sort, FloatSort):
        fmt = sort.format
        codes = rng.integers(0, (1 << fmt.bits) - 1, SAMPLES, np.uint64, endpoint=True)
        near = np.array([x.code for x in special_values(fmt)], np.uint64)
        pick = rng.random(SAMPLES) < 0.4
        codes[pick] = rng.choice(near, int(pick.sum()))
        return decode(fmt, codes)
    if isinstance(sort, BitsSort):
        return rng.integers(0, (1 << min(sort.width, 64)) - 1, SAMPLES, np.uint64, endpoint=True)
    size = sort.size if isinstance(sort, ChoiceSort) else 2
    drawn = rng.integers(0, size, SAMPLES)
    return drawn if isinstance(sort, ChoiceSort) else drawn.astype(bool)


def _value(sort: Sort, element: Any) -> Float | int | bool:
    if isinstance(sort, FloatSort):
        return exactly(sort.format, float(element))
    return int(element) if isinstance(sort, BitsSort | ChoiceSort) else bool(element)


@engine("solve", ForAll)
def solve(claim: ForAll, options: Options) -> Verdict:
    """Races the solvers on the negated condition."""
    data = {
        "timeout": options.timeout,
        "memory_mb": options.memory_mb,
        "solvers": list(options.solvers) if options.solvers is not None else None,
        "jobs": options.jobs,
    }
    return kernel.apply("solver", claim, data)
