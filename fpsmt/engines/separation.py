"""Engines for distinguishability: partition refinement, and pairs that no map separates."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from fpsmt import kernel
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Setting
from fpsmt.claims.functions import ConstantOn
from fpsmt.claims.partition import MAX_BITS, Partition
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.floats import Float, exactly, floor_log2, from_ordinal, less_equal, nearest, pow2, zero
from fpsmt.floats.vector import values
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
    partition, total = Partition.of(setting), 0
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
    for members in partition.classes:
        x, y = (exactly(fmt, float(v)) for v in members[:2])
        verdict = _refute(claim, x, y, decide(Inseparable(setting, x, y), options))
        if not isinstance(verdict, Unknown):
            return verdict
    return Unknown(claim, f"{len(partition.active)} of {total} inputs are not told apart by {len(partition.maps)} maps")


def exhaust_maps(partition: Partition) -> None:
    """Refines by every admissible map of a small format: what stays together is inseparable (except under
    `finite-on-pair`, where a map that is not finite on all active inputs is left out)."""
    fmt = partition.setting.context.format
    parameters = [exactly(fmt, float(v)) for v in values(fmt, finite=True)]
    for w in parameters:
        for b in parameters:
            if len(partition.active) and _usable(partition, w, b):
                before = len(partition.active), int(partition.label.max())
                partition.refine(w, b)
                if len(partition.active) and (len(partition.active), int(partition.label.max())) == before:
                    partition.maps.pop()


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
    if not places:
        return
    for tried in range(1_000_000):
        if not len(partition.active):
            return
        magnitudes = np.abs(partition.active)
        ceiling = float(magnitudes.max())
        # half the time aim at the largest inputs: under finite-on-pair they stand in the way of larger weights
        large = np.flatnonzero(magnitudes >= ceiling / 4) if tried % 2 else np.arange(len(magnitudes))
        x0 = exactly(fmt, float(partition.active[rng.choice(large)]))
        y0, step = places[int(rng.integers(len(places)))]
        exponent = floor_log2(step / x0.ulp)
        reach = ceiling if setting.reading is Reading.FINITE_ON_PAIR else float(max(abs(setting.low.fraction),
                                                                                  abs(setting.high.fraction)))
        if setting.reading is not Reading.ANY:
            exponent = min(exponent, fmt.emax - 1 - int(np.ceil(np.log2(reach))) if reach > 0 else fmt.emax)
        exponent = max(fmt.emin - fmt.fraction_bits, min(exponent, fmt.emax))
        w = exactly(fmt, pow2(exponent) * int(rng.choice([1, -1])))
        moved = y0 - w.fraction * x0.fraction
        if abs(moved) > fmt.largest:
            continue
        b = nearest(fmt, moved)
        if _usable(partition, w, b):
            yield w, b


def steep_places(setting: Setting, rng: np.random.Generator) -> list[tuple]:
    """(y, step): places where the rounded activation takes many values on y, y + step, y + 2·step, …"""
    ctx, fmt = setting.context, setting.context.format
    outputs = table(setting.function, ctx, fmt)
    scored = []
    for _ in range(2000):
        exponent = int(rng.integers(max(fmt.emin, -fmt.precision - 2), min(fmt.emax, fmt.precision + 2) + 1))
        y = nearest(fmt, pow2(exponent) * (1 + int(rng.integers(0, 16)) * pow2(-4)) * int(rng.choice([1, -1])))
        step = pow2(exponent - int(rng.integers(0, fmt.precision + 1)))
        run = [y.fraction + i * step for i in range(-16, 17)]
        if max(map(abs, run)) > fmt.largest:
            continue
        outs = [outputs[nearest(fmt, v).code] + 0.0 for v in run]
        distinct = len(set(outs))
        if distinct >= 3:
            scored.append((distinct, y.fraction, step))
    scored.sort(reverse=True)
    return [(y, step) for _, y, step in scored[:200]]
