"""Engines for distinguishability: partition refinement, and pairs that no map separates."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain

import numpy as np

from fpsmt import kernel
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Setting, steepest
from fpsmt.claims.functions import ConstantOn, read_value
from fpsmt.claims.line import LineClasses, line_classes, numbers
from fpsmt.claims.pairs import maps_to_try
from fpsmt.claims.partition import Carriers, Pairs, Partition, labels, outputs
from fpsmt.claims.places import listed
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.floats import Float, Format, exactly, float64, floor_log2, from_ordinal, less_equal, nearest, pow2, zero
from fpsmt.floats.vector import arithmetic, encode, round_array
from fpsmt.functions import constant_on
from fpsmt.kernel import Proved, Refuted, Unknown, Verdict
from fpsmt.kernel.rules.separation import constant_ranges_lemma

Map = tuple[Float, Float]
MAPS_PER_SECOND = 4e7  #: that are tried, at least
CANDIDATES = 12  #: maps of which the best is taken
GUESSES = 1024  #: maps tried for one pair before all are
MOST_RANGES = 64  #: on which an activation is constant
USELESS_MAPS = 300  #: maps in a row that split nothing, after which random choice gives up


@engine("constant range", Inseparable)
def constant_range(claim: Inseparable, options: Options) -> Verdict:
    """Looks for ranges that hold both values of every map that moves them apart, and on which the activation is
    constant: the largest around zero, and where the values of the format are listed all that are near enough."""
    setting = claim.setting
    ranges = _around_zero(setting) if not listed(setting.context.format) else _near_zero(claim)
    constant = []
    for low, high in ranges:
        value = constant_on(setting.function, setting.context, low, high)
        if value is None:
            raise Unsupported(f"{setting.function.name} is not constant on [{low}, {high}]")
        constant.append(kernel.apply("enclosure", ConstantOn(setting.function, setting.context, low, high, value)))
    lemma = decide(constant_ranges_lemma(setting, claim.x, claim.y, ranges), options)
    premises = [lemma, *constant]
    if not all(isinstance(each, Proved) for each in premises):
        shown = ", ".join(f"[{low}, {high}]" for low, high in ranges[:4])
        return Unknown(claim, f"the lemma for the range {shown} is {lemma.name}")
    data = {"ranges": [[low.hex, high.hex] for low, high in ranges]}
    return kernel.apply("constant on a range", claim, data, [p for p in premises if isinstance(p, Proved)])


def _around_zero(setting: Setting) -> list[tuple[Float, Float]]:
    """The largest [−2^e, 2^e] on which the activation is constant; the lemma only gets easier with it."""
    fmt = setting.context.format
    for exponent in range(0, fmt.emin - 1, -1):
        high = exactly(fmt, pow2(exponent))
        if constant_on(setting.function, setting.context, -high, high) is not None:
            return [(-high, high)]
    raise Unsupported(f"{setting.function.name} is not constant on a range around zero")


def _near_zero(claim: Inseparable) -> list[tuple[Float, Float]]:
    """All longest runs of numbers with one result, as far from zero as a map may move x and x′ apart.

    Beyond 2^(p + 3) times the largest product, biases absorb it.
    """
    setting, fmt = claim.setting, claim.setting.context.format
    line = numbers(setting)
    steep = [abs(float(w)) for w in steepest(setting, claim.x, claim.y)[:1]]
    reach = max(steep, default=0.0) * max(abs(float(claim.x)), abs(float(claim.y))) * 2.0 ** (fmt.precision + 4)
    near = line[np.abs(line) <= max(reach, float(fmt.smallest))]
    label = labels(setting.implementation, setting.context)
    first, last = np.searchsorted(line, [near[0], near[-1]])
    starts = np.flatnonzero(np.diff(label[encode(fmt, line)], prepend=-1))
    ends = np.append(starts[1:], len(line)) - 1
    some = (ends >= first) & (starts <= last)
    if some.sum() > MOST_RANGES:
        raise Unsupported(f"{setting.name} takes {some.sum()} values where maps move {claim.x} and {claim.y} apart")
    return [
        (exactly(fmt, float(line[i])), exactly(fmt, float(line[j])))
        for i, j in zip(starts[some], ends[some], strict=True)
    ]


@engine("all maps", Inseparable)
def all_maps(claim: Inseparable, options: Options) -> Verdict:
    """Tries every (w, b), in formats of at most 16 bits."""
    fmt = claim.setting.context.format
    if not listed(fmt):
        raise Unsupported(f"{fmt} has too many affine maps to try them all")
    count = maps_to_try(claim.setting, claim.x, claim.y)
    if count > MAPS_PER_SECOND * options.timeout:
        raise Unsupported(f"{count} maps would have to be tried, too many for {options.timeout:g} s")
    return kernel.apply("all maps exhausted", claim)


@engine("refine", Distinguishable)
def refine(claim: Distinguishable, options: Options) -> Verdict:
    """Splits the domain by well-chosen maps until every input is alone, or a pair proves inseparable."""
    setting, fmt = claim.setting, claim.setting.context.format
    if not listed(fmt):
        raise Unsupported(f"the values of {fmt} are too many to list as float64 numbers")
    if not setting.single:
        raise Unsupported(f"{setting.name} leaves a choice of results: one map gives no classes of inputs")
    start = time.monotonic()
    if setting.reading is Reading.FINITE_ON_DOMAIN and (pair := _zero_and_smallest(setting)):
        early = kernel.apply("all maps exhausted", Inseparable(setting, *pair))
        if isinstance(early, Proved):
            return _refute(claim, *pair, early)
    partition = Partition.of(setting)
    split(partition, options)
    rng = np.random.default_rng(options.seed)
    pairs: Pairs | None = None
    extra: list[Map] = []
    while True:
        if setting.reading is Reading.FINITE_ON_PAIR:  # being together is no equivalence there
            pairs = pairs or Pairs(partition)
            left = pairs.first()
        else:
            left = partition.first()
        if left is None:
            break
        x, y = (exactly(fmt, v) for v in left)
        by = guess(setting, x, y, rng, partition.some_pairs(rng) if pairs is None else None)
        if by is None:
            remaining = options.timeout - (time.monotonic() - start)
            together = decide(Inseparable(setting, x, y), options.within(max(remaining, 0.1)), only="all maps")
            if isinstance(together, Proved):
                return _refute(claim, x, y, together)
            by = counterexample_map(fmt, together)
            if by is None:
                return Unknown(claim, f"whether some map tells {x} from {y} is {together.name}: {together}")
        if pairs is None:
            partition.refine(*by)
        else:
            pairs.use(*by)
            extra.append(by)
        options.report(f"refine: {len(partition.active)} inputs not told apart")
        if time.monotonic() - start > options.timeout / 2:
            return Unknown(claim, f"{len(partition.active)} inputs were not told apart in time")
    data = {"maps": _listed(partition.maps)} | ({"pairwise": _listed(extra)} if extra else {})
    return kernel.apply("separating maps", claim, data)


def _listed(maps: Sequence[Map]) -> list[list[str]]:
    return [[w.hex, b.hex] for w, b in maps]


@engine("neighbours", LineClasses)
def line(claim: LineClasses, options: Options) -> Verdict:
    """All maps at all neighbours."""
    return kernel.apply("maps of neighbours exhausted", claim)


@engine("neighbours", Distinguishable)
def all_neighbours(claim: Distinguishable, options: Options) -> Verdict:
    """All maps at all neighbours; refuted with the largest class's ends."""
    classes = line_classes(claim.setting)
    if not classes:
        return kernel.apply("maps of neighbours exhausted", claim)
    x, y = max(classes, key=lambda c: c[1].ordinal - c[0].ordinal)
    return _refute(claim, x, y, kernel.apply("maps of neighbours exhausted", Inseparable(claim.setting, x, y)))


@engine("pair at zero", Distinguishable)
def pair_at_zero(claim: Distinguishable, options: Options) -> Verdict:
    """Tries to refute with the pair (0, ω) by a constant range: no values are listed, so any format will do."""
    setting = claim.setting
    pair = _zero_and_smallest(setting)
    if pair is None:
        raise Unsupported("0 and the smallest positive value are not both in the domain")
    if setting.reading is not Reading.FINITE_ON_DOMAIN:
        raise Unsupported("the pair at zero is inseparable only when maps must be finite on the domain")
    return _refute(claim, *pair, constant_range(Inseparable(setting, *pair), options))


def _zero_and_smallest(setting: Setting) -> tuple[Float, Float] | None:
    x, y = zero(setting.context.format), from_ordinal(setting.context.format, 1)
    return (x, y) if less_equal(setting.low, x) and less_equal(y, setting.high) else None


def _refute(claim: Distinguishable, x: Float, y: Float, inseparable: Verdict) -> Verdict:
    if isinstance(inseparable, Proved):
        return kernel.refute(claim, {"x": x.hex, "y": y.hex}, [inseparable])
    return Unknown(claim, f"whether some map tells {x} from {y} is {inseparable.name}")


def counterexample_map(fmt: Format, verdict: Verdict) -> Map | None:
    """The one map that refutes inseparability."""
    if not isinstance(verdict, Refuted):
        return None
    found = verdict.counterexample
    return read_value(fmt, found["w"]), read_value(fmt, found["b"])


def split(partition: Partition, options: Options) -> None:
    """Refines by maps w⊗x with powers of two, then by steep maps, until many in a row split nothing."""
    start, total, useless = time.monotonic(), len(partition.active), 0
    rng = np.random.default_rng(options.seed)
    for w, b in chain(_plain_maps(partition), _maps(partition, rng)):
        before = len(partition.active), int(partition.label.max(initial=-1))
        partition.refine(w, b)
        if (len(partition.active), int(partition.label.max(initial=-1))) == before:
            partition.maps.pop()
            useless += 1
        else:
            useless = 0
            options.report(f"refine: {total - len(partition.active)} of {total} told apart")
        if useless > USELESS_MAPS or time.monotonic() - start > options.timeout:
            break


def _plain_maps(partition: Partition) -> Iterator[Map]:
    """w = ±2^k with b = 0: the steepest usable ones, and some less steep."""
    fmt = partition.setting.context.format
    b = zero(fmt)
    usable = [k for k in range(fmt.emax, -1, -1) if _usable(partition, exactly(fmt, pow2(k)), b)]
    for k in [*usable[:2], 0]:
        for w in (exactly(fmt, pow2(k)), exactly(fmt, -pow2(k))):
            if len(partition.active):
                yield w, b


def guess(setting: Setting, x: Float, y: Float, rng: np.random.Generator, also: Carriers | None = None) -> Map | None:
    """A map that tells x from y, found among a thousand; of some, the one that tells most of the pairs `also`, of shape
    (2, pairs), apart.

    Half of them move x to 0 or near it.  In the others b is larger than w⊗x, and w is chosen so that the middle of two
    neighbours of b lies between w⊗x + b and w⊗y + b: rounding then moves them a whole ulp of b apart, which helps where
    weights are bounded.
    """
    fmt, ctx = setting.context.format, setting.context
    top = next((k for k in range(fmt.emax, -1, -1) if setting.admissible(exactly(fmt, pow2(k)), zero(fmt), x, y)), 0)
    middle = (float(x) + float(y)) / 2
    half = GUESSES // 2
    plain = np.ldexp(rng.choice([-1.0, 1.0], half), rng.integers(min(top, 0), top + 1, half))
    near = np.ldexp(rng.integers(-8, 9, half), rng.integers(-2 * fmt.precision, 2, half))
    ulps = np.ldexp(1.0, rng.integers(-2 * fmt.precision, 4 - fmt.fraction_bits, half))
    most = max(float(pow2(top)) * abs(middle), float(fmt.smallest))
    ties = np.floor(rng.random(half) * (most / ulps)) + 0.5
    with np.errstate(over="ignore"):
        w = round_array(ctx, np.concatenate([plain, ties * ulps / (middle or float(fmt.smallest))]))
        large = ulps * rng.integers(1 << fmt.fraction_bits, 2 << fmt.fraction_bits, half) * rng.choice([-1, 1], half)
        b = round_array(ctx, np.concatenate([near - plain * float(x), large]))
    good = np.isfinite(w) & np.isfinite(b)
    w, b = w[good], b[good]
    (first, finite), (second, finite_too) = (outputs(setting, w, b, float(point)) for point in (x, y))
    telling = first != second
    if setting.reading is Reading.FINITE_ON_PAIR:
        telling &= finite & finite_too
    elif setting.reading is Reading.FINITE_ON_DOMAIN:
        for end in (setting.low, setting.high):
            telling &= outputs(setting, w, b, float(end))[1]
    if not telling.any():
        return None
    some = rng.permutation(np.flatnonzero(telling))[:CANDIDATES]
    best = some[0]
    if also is not None and len(some) > 1:
        left, right = (outputs(setting, w[some, None], b[some, None], points)[0] for points in also)
        best = some[np.argmax((left != right).sum(axis=1))]
    return exactly(fmt, float(w[best])), exactly(fmt, float(b[best]))


def _usable(partition: Partition, w: Float, b: Float) -> bool:
    setting = partition.setting
    if setting.reading is Reading.ANY:
        return w.is_finite and b.is_finite
    if setting.reading is Reading.FINITE_ON_DOMAIN:
        return setting.admissible(w, b, setting.low, setting.high)
    ends = (float(partition.active.min()), float(partition.active.max()))
    return all(setting.finite_at(w, b, exactly(setting.context.format, end)) for end in ends)


def _maps(partition: Partition, rng: np.random.Generator) -> Iterator[Map]:
    """Maps that put a run of inputs, still together, onto a place where the activation varies with every step.

    w is a power of two, so that w⊗x is exact and near-cancelling sums with b are too; b moves x₀ to y₀.
    """
    setting, fmt = partition.setting, partition.setting.context.format
    places = steep_places(setting, rng)
    whole = max(abs(setting.low.fraction), abs(setting.high.fraction))
    tried = missed = 0
    while len(partition.active) and missed < USELESS_MAPS:
        tried, missed = tried + 1, missed + 1
        magnitudes = np.abs(partition.active)
        ceiling = float(magnitudes.max())
        # half the time aim at the largest inputs: under finite-on-pair they stand in the way of larger weights
        large = np.flatnonzero(magnitudes >= ceiling / 4) if tried % 2 else np.arange(len(magnitudes))
        x0 = exactly(fmt, float(partition.active[rng.choice(large)]))
        top = fmt.emax
        if setting.reading is not Reading.ANY:
            reach = Fraction(ceiling) if setting.reading is Reading.FINITE_ON_PAIR else whole
            top = min(top, fmt.emax - 1 - floor_log2(reach)) if reach else top
        gap = floor_log2(x0.ulp)
        steps = [e for e in places if fmt.emin - fmt.fraction_bits <= e - gap <= top]
        if not steps:
            continue
        scores = np.array([places[e][0][0] for e in steps], float)
        step = int(rng.choice(steps, p=scores / scores.sum()))
        y0 = places[step][int(rng.integers(len(places[step])))][1]
        w = exactly(fmt, pow2(step - gap) * int(rng.choice([1, -1])))
        moved = y0 - w.fraction * x0.fraction
        if abs(moved) <= fmt.largest:
            b = nearest(fmt, moved)
            if _usable(partition, w, b):
                missed = 0
                yield w, b


RUN = np.arange(-16, 17)


def steep_places(setting: Setting, rng: np.random.Generator) -> dict[int, list[tuple[int, Fraction]]]:
    """For step sizes 2^e: places y where the rounded activation takes many values on y, y ± 2^e, y ± 2·2^e, …

    The values are (how many values on 33 points, y), the best first; step sizes without such places are left out.
    """
    ctx, fmt = setting.context, setting.context.format
    activation = labels(setting.implementation, ctx)
    vector = arithmetic(ctx, float64)
    found = {}
    for step in range(max(fmt.emin - fmt.fraction_bits, -2 * fmt.precision), min(fmt.emax, fmt.precision) + 1):
        exponents = rng.integers(step - 4, step + fmt.precision, 256)
        y = np.ldexp(rng.integers(16, 32, 256) / 16.0 * rng.choice([-1.0, 1.0], 256), exponents)
        points = vector.cast(y[:, None] + RUN * np.ldexp(1.0, step))
        outs = np.sort(activation[encode(fmt, points)], axis=1)
        distinct = 1 + (outs[:, 1:] != outs[:, :-1]).sum(axis=1)
        good = [i for i in np.argsort(-distinct)[:16] if distinct[i] >= 3 and np.isfinite(points[i]).all()]
        if good:
            found[step] = [(int(distinct[i]), Fraction(float(points[i, 16]))) for i in good]
    return found
