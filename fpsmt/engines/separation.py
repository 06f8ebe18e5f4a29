"""Engines for distinguishability: partition refinement, and pairs that no map separates."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fpsmt import kernel
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Setting
from fpsmt.claims.functions import ConstantOn
from fpsmt.claims.partition import MAX_BITS, Partition, outputs
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.floats import Float, exactly, float64, floor_log2, from_ordinal, less_equal, nearest, pow2, zero
from fpsmt.floats.vector import arithmetic, encode, values
from fpsmt.functions import constant_on, table
from fpsmt.kernel import Proved, Unknown, Verdict
from fpsmt.kernel.rules.separation import MAX_EXHAUSTIVE_BITS, constant_range_lemma

Map = tuple[Float, Float]
USELESS_MAPS = 300  #: maps in a row that split nothing, after which random choice gives up


@engine("constant range", Inseparable)
def constant_range(claim: Inseparable, options: Options) -> Verdict:
    """Looks for a range around zero that holds both values of every map that moves them apart, and on which the
    activation is constant; tries the largest such range, since the lemma only gets easier with it."""
    setting, fmt = claim.setting, claim.setting.context.format
    for exponent in range(0, fmt.emin - 1, -1):
        high = exactly(fmt, pow2(exponent))
        value = constant_on(setting.function, setting.context, -high, high)
        if value is not None:
            break
    else:
        raise Unsupported(f"{setting.function.name} is not constant on a range around zero")
    constant = kernel.apply("enclosure", ConstantOn(setting.function, setting.context, -high, high, value))
    lemma = decide(constant_range_lemma(setting, claim.x, claim.y, -high, high), options)
    if not isinstance(lemma, Proved) or not isinstance(constant, Proved):
        return Unknown(claim, f"the lemma for the range ±{high} is {lemma.name}")
    return kernel.apply("constant on a range", claim, {"low": (-high).hex, "high": high.hex}, [lemma, constant])


@engine("all maps", Inseparable)
def all_maps(claim: Inseparable, options: Options) -> Verdict:
    """Tries every (w, b) in formats of at most 8 bits."""
    return kernel.apply("all maps exhausted", claim)


@engine("pair at zero", Distinguishable)
def pair_at_zero(claim: Distinguishable, options: Options) -> Verdict:
    """Tries to refute with the pair (0, ω) by a constant range: no values are listed, so any format will do."""
    setting, fmt = claim.setting, claim.setting.context.format
    x, y = zero(fmt), from_ordinal(fmt, 1)
    if not (less_equal(setting.low, x) and less_equal(y, setting.high)):
        raise Unsupported("0 and the smallest positive value are not both in the domain")
    if setting.reading is not Reading.FINITE_ON_DOMAIN:
        raise Unsupported("the pair at zero is inseparable only when maps must be finite on the domain")
    return _refute(claim, x, y, constant_range(Inseparable(setting, x, y), options))


def _refute(claim: Distinguishable, x: Float, y: Float, inseparable: Verdict) -> Verdict:
    if isinstance(inseparable, Proved):
        return kernel.refute(claim, {"x": x.hex, "y": y.hex}, [inseparable])
    return Unknown(claim, f"whether some map tells {x} from {y} is {inseparable.name}")


@engine("refine", Distinguishable)
def refine(claim: Distinguishable, options: Options) -> Verdict:
    """Splits the domain by well-chosen maps until every input is alone, or a pair proves inseparable."""
    setting = claim.setting
    fmt = setting.context.format
    if fmt.bits > MAX_BITS:
        raise Unsupported(f"the values of {fmt} are too many to list")
    start = time.monotonic()
    partition = Partition.of(setting)
    total = len(partition.active)
    useless = 0
    for w, b in _maps(partition, np.random.default_rng(options.seed)):
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
    if not len(partition.active):
        return kernel.apply("separating maps", claim, {"maps": [[w.hex, b.hex] for w, b in partition.maps]})
    if fmt.bits <= MAX_EXHAUSTIVE_BITS:
        exhaust_maps(partition)
        if not len(partition.active):
            return kernel.apply("separating maps", claim, {"maps": [[w.hex, b.hex] for w, b in partition.maps]})
    small = fmt.bits <= MAX_EXHAUSTIVE_BITS
    for members in partition.classes:
        x, y = (exactly(fmt, float(v)) for v in members[:2])
        inseparable = decide(Inseparable(setting, x, y), options, only="all maps" if small else None)
        verdict = _refute(claim, x, y, inseparable)
        if not isinstance(verdict, Unknown):
            return verdict
    return Unknown(claim, f"{len(partition.active)} of {total} inputs are not told apart by {len(partition.maps)} maps")


def exhaust_maps(partition: Partition) -> None:
    """Refines by every usable map of a small format: afterwards no usable map splits a class.

    Under `finite-on-pair` a map that is not finite on all active inputs is not usable here, so that classes may
    stay that another map would split.
    """
    setting, fmt = partition.setting, partition.setting.context.format
    parameters = values(fmt, finite=True)
    w, b = parameters[:, None, None], parameters[None, :, None]
    outs, finite = outputs(setting, w, b, partition.active)
    usable: NDArray[np.bool_] = np.ones(finite.shape[:2], bool)
    if setting.reading is Reading.FINITE_ON_PAIR:
        usable = np.asarray(finite.all(axis=2))
    elif setting.reading is Reading.FINITE_ON_DOMAIN:
        ends = np.array([float(setting.low), float(setting.high)])
        usable = np.asarray(outputs(setting, w, b, ends)[1].all(axis=2))
    column = {float(x): i for i, x in enumerate(partition.active)}
    settled = False
    while not settled:
        settled = True
        for members in partition.classes:
            i, others = column[float(members[0])], [column[float(x)] for x in members[1:]]
            splits = usable & (outs[:, :, others] != outs[:, :, [i]]).any(axis=2)
            if splits.any():
                at = np.unravel_index(int(np.argmax(splits)), splits.shape)
                partition.refine(*(exactly(fmt, float(parameters[k])) for k in at))
                settled = False
                break


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
    activation = table(setting.function, ctx, fmt)
    vector = arithmetic(ctx, float64)
    found = {}
    for step in range(max(fmt.emin - fmt.fraction_bits, -2 * fmt.precision), min(fmt.emax, fmt.precision) + 1):
        exponents = rng.integers(step - 4, step + fmt.precision, 256)
        y = np.ldexp(rng.integers(16, 32, 256) / 16.0 * rng.choice([-1.0, 1.0], 256), exponents)
        points = vector.cast(y[:, None] + RUN * np.ldexp(1.0, step))
        outs = np.sort(activation[encode(fmt, points)] + 0.0, axis=1)
        distinct = 1 + (outs[:, 1:] != outs[:, :-1]).sum(axis=1)
        good = [i for i in np.argsort(-distinct)[:16] if distinct[i] >= 3 and np.isfinite(points[i]).all()]
        if good:
            found[step] = [(int(distinct[i]), Fraction(float(points[i, 16]))) for i in good]
    return found
