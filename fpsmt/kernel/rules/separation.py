"""Rules about telling inputs apart through affine maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Setting
from fpsmt.claims.formulas import ForAll
from fpsmt.claims.functions import ConstantOn, read_value
from fpsmt.claims.partition import Partition, outputs
from fpsmt.errors import EvidenceError
from fpsmt.floats import Float
from fpsmt.floats.vector import values
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.terms import Term, add, all_of, any_of, const, implies, is_finite, le, mul, same, var

MAX_EXHAUSTIVE_BITS = 8


@rule("separating maps")
def separating_maps(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Applies the listed maps one after the other; at the end every input of the domain is alone.

    Two inputs whose outputs under one admissible map differ are told apart by it, so a map splits every class
    by its outputs.  A map is used only if it is admissible for all pairs still together.

    data: maps, a list of [w, b] in hex.
    """
    if not isinstance(claim, Distinguishable):
        raise EvidenceError(f"separating maps do not speak about {claim.kind}")
    fmt = claim.setting.context.format
    partition = Partition.of(claim.setting)
    inputs = len(partition.active)
    for w, b in data["maps"]:
        partition.refine(read_value(fmt, w), read_value(fmt, b))
    if len(partition.active):
        return Open(f"{len(partition.active)} of {inputs} inputs stay together in {len(partition.classes)} classes")
    return Holds({"inputs": inputs, "maps": len(data["maps"])}, (VECTOR, BALLS))


@rule("all maps exhausted")
def all_maps(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Evaluates every pair (w, b) of finite floats at both inputs: no admissible one tells them apart.

    For formats of at most 8 bits; 16-bit formats have 4·10⁹ maps and need a lemma instead.
    """
    if not isinstance(claim, Inseparable):
        raise EvidenceError(f"exhausting maps does not speak about {claim.kind}")
    setting = claim.setting
    if setting.context.format.bits > MAX_EXHAUSTIVE_BITS:
        reason = f"{setting.context.format} has too many affine maps to try them all"
        return Open(reason, "use the lemma for a constant range")
    parameters = values(setting.context.format, finite=True)
    w, b = parameters[:, None], parameters[None, :]
    first, first_finite = outputs(setting, w, b, float(claim.x))
    second, second_finite = outputs(setting, w, b, float(claim.y))
    admissible = np.ones(first.shape, bool)
    if setting.reading is Reading.FINITE_ON_PAIR:
        admissible = first_finite & second_finite
    elif setting.reading is Reading.FINITE_ON_DOMAIN:
        for end in (setting.low, setting.high):
            admissible &= outputs(setting, w, b, float(end))[1]
    told_apart = admissible & (first != second)
    if told_apart.any():
        i, j = np.unravel_index(int(np.argmax(told_apart)), told_apart.shape)
        return Fails({"w": float(parameters[i]).hex(), "b": float(parameters[j]).hex()})
    return Holds({"maps": int(admissible.sum())}, (VECTOR, BALLS))


def constant_range_lemma(setting: Setting, x: Float, y: Float, low: Float, high: Float) -> ForAll:
    """For all admissible w, b: φ(x) and φ(y) are the same float, or both lie in [low, high]."""
    ctx, fmt = setting.context, setting.context.format
    w, b = var("w", fmt), var("b", fmt)

    def values_at(point: Float) -> list[Term]:
        product = mul(ctx, w, const(point))
        return [product, add(ctx, product, b)]

    at_x, at_y = values_at(x), values_at(y)
    fx, fy = at_x[-1], at_y[-1]
    asked = [w, b]
    if setting.reading is Reading.FINITE_ON_PAIR:
        asked += at_x + at_y
    elif setting.reading is Reading.FINITE_ON_DOMAIN:
        asked += values_at(setting.low) + values_at(setting.high)
    inside = all_of(*(le(const(low), f) for f in (fx, fy)), *(le(f, const(high)) for f in (fx, fy)))
    statement = (
        f"w⊗x⊕b admissible ({setting.reading.value}) on [{setting.low}, {setting.high}] in {ctx} ⇒ the values at "
        f"x = {x} and x′ = {y} are one float, or both in [{low.hex}, {high.hex}]"
    )
    return ForAll(statement, implies(all_of(*map(is_finite, asked)), any_of(same(fx, fy), inside)))


@rule("constant on a range")
def constant_on_a_range(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """If every admissible map sends x and x′ to one float or both into a range on which the activation rounds to
    one value, then no admissible map tells them apart.

    data: low, high in hex.  Premises: the lemma about maps (`constant_range_lemma`) and the constant range.
    """
    if not isinstance(claim, Inseparable):
        raise EvidenceError(f"a constant range does not speak about {claim.kind}")
    setting, fmt = claim.setting, claim.setting.context.format
    low, high = read_value(fmt, data["low"]), read_value(fmt, data["high"])
    lemma = constant_range_lemma(setting, claim.x, claim.y, low, high)
    if len(premises) != 2 or premises[0] != lemma:
        raise EvidenceError("the first premise is not the lemma about admissible maps")
    constant = premises[1]
    wanted = (setting.function, setting.context, low, high)
    if not isinstance(constant, ConstantOn) or wanted != (
        constant.function,
        constant.context,
        constant.low,
        constant.high,
    ):
        raise EvidenceError("the second premise is not that the activation is constant on the range")
    return Holds({"range": f"[{low}, {high}]", "value": constant.value.decimal})
