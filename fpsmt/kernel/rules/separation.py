"""Rules about telling inputs apart through affine maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fpsmt.claims.beside import TogetherBeside, beside
from fpsmt.claims.blocks import Grid, Recipe, in_no_block, not_joined
from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Separable, Setting, replay_maps
from fpsmt.claims.formulas import ForAll
from fpsmt.claims.functions import ConstantOn, read_value
from fpsmt.claims.line import LineClasses, line_classes
from fpsmt.claims.pairs import maps_to_try, try_all
from fpsmt.claims.partition import Pairs, Partition
from fpsmt.claims.places import listed
from fpsmt.claims.plane import MOST_BITS as PLANE_BITS
from fpsmt.claims.plane import Plane, VectorClasses
from fpsmt.claims.vectors import DistinguishableVectors
from fpsmt.errors import EvidenceError
from fpsmt.floats import Float
from fpsmt.functions.implementations import ALWAYS_ALLOW_ROUNDED
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.terms import Term, add, all_of, any_of, const, implies, is_finite, le, mul, same, var

MOST_MAPS = 1 << 33  #: a few minutes


@rule("separating maps")
def separating_maps(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Applies the listed maps one after the other; at the end every input of the domain is alone,
    or the pairs that are left are told apart one by one.

    Two inputs whose outputs under one admissible map differ are told apart by it, so a map splits every class
    by its outputs.  A map is used only if it is admissible for all pairs still together.  Only for activations that
    leave no choice of results: correctly rounded ones and tables.

    data: maps, a list of [w, b] in hex; pairwise, maps for the pairs that are left, each used where it is admissible.
    """
    if not isinstance(claim, Distinguishable):
        raise EvidenceError(f"separating maps do not speak about {claim.kind}")
    fmt = claim.setting.context.format
    partition = Partition.of(claim.setting)
    inputs = len(partition.active)
    for w, b in data["maps"]:
        partition.refine(read_value(fmt, w), read_value(fmt, b))
    pairs, extra = Pairs(partition), data.get("pairwise", [])
    for w, b in extra:
        pairs.use(read_value(fmt, w), read_value(fmt, b))
    if (left := pairs.first()) is not None:
        together = f"{len(partition.active)} of {inputs} inputs are not alone"
        return Open(f"{left[0]:g} and {left[1]:g} stay together, and {together}")
    return Holds({"inputs": inputs, "maps": len(data["maps"]) + len(extra)}, (VECTOR, BALLS))


@rule("separating blocks")
def separating_blocks(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Every pair of inputs is in a block of one map, or is told apart by the maps of the grids together.

    In a block the map moves inputs on the left to places between two places, and inputs on the right to places between
    two others, because rounding is monotone; all sets allowed between the first two lie on one side of a number, all
    sets allowed between the others on the other side.  So one map tells both inputs of every pair apart, whatever the
    implementation is.  For the pairs in no block, maps that join two places with disjoint allowed sets do: an
    implementation that none of these maps helps would give equal results there.

    data: recipes, [place, exponent] each, and grids, [weight, exponent, count] each (`fpsmt.claims.blocks`); what they
    give is computed and checked here.
    """
    if not isinstance(claim, Distinguishable):
        raise EvidenceError(f"separating blocks do not speak about {claim.kind}")
    found = in_no_block(claim.setting, [Recipe(float(y), int(e)) for y, e in data["recipes"]])
    if found.overflow:
        return Open(f"more than {len(found.pairs)} pairs are in no block")
    left = not_joined(claim.setting, found.pairs, [Grid(*(int(v) for v in g)) for g in data.get("grids", [])])
    if len(left):
        return Open(f"{len(left)} pairs are not told apart")
    return Holds({"inputs": found.inputs, "pairs by grids": len(found.pairs)}, (VECTOR, BALLS))


@rule("telling maps")
def telling_maps(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Executes the maps by reference and joins the two places of each: some set of joined places has no common result.

    An implementation that tells x from x′ by none of them is constant on these sets.  Allowed sets are intervals, so
    that a set without a common result has two places with disjoint ones.  For one map: its two sets are disjoint.

    data: maps, a list of [w, b] in hex.
    """
    if not isinstance(claim, Separable):
        raise EvidenceError(f"telling maps do not speak about {claim.kind}")
    fmt = claim.setting.context.format
    maps = [(read_value(fmt, w), read_value(fmt, b)) for w, b in data["maps"]]
    found = replay_maps(claim.setting, maps, claim.x, claim.y, expect_separated=True)
    return Holds({"maps": len(maps)}, (BALLS,)) if found.violates else Open("these maps leave an implementation")


@rule("all maps exhausted")
def all_maps(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Tries every pair (w, b) of finite floats and joins the two places w⊗x⊕b and w⊗x′⊕b of every admissible map.

    At the end each set of joined places has a result that is allowed on all of it: an implementation that is constant
    on these sets tells x from x′ by no map.  Else some set has none; allowed sets are intervals, so two of its places
    have no common result, and no implementation gives equal outputs along the maps between them
    (`fpsmt.claims.pairs` says which maps need not be tried).

    For formats of at most 16 bits, where no more than `MOST_MAPS` maps are left.
    """
    if not isinstance(claim, Inseparable):
        raise EvidenceError(f"exhausting maps does not speak about {claim.kind}")
    setting = claim.setting
    if not listed(setting.context.format):
        reason = f"{setting.context.format} has too many affine maps to try them all"
        return Open(reason, "use the lemma for constant ranges")
    if maps_to_try(setting, claim.x, claim.y) > MOST_MAPS:
        return Open(f"more than {MOST_MAPS} maps would have to be tried", "use the lemma for constant ranges")
    trial = try_all(setting, claim.x, claim.y)
    if trial.telling is not None:
        maps = [[w.hex, b.hex] for w, b in trial.telling]
        return Fails({"w": maps[0][0], "b": maps[0][1]} if len(maps) == 1 else {"maps": maps})
    return Holds({"maps": trial.admissible}, (VECTOR, BALLS))


Range = tuple[Float, Float]


def constant_ranges_lemma(setting: Setting, x: Float, y: Float, ranges: Sequence[Range]) -> ForAll:
    """For all admissible w, b: φ(x) and φ(y) are the same float, or both lie in one of the ranges [low, high]."""
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
    inside = [
        all_of(*(le(const(low), f) for f in (fx, fy)), *(le(f, const(high)) for f in (fx, fy)))
        for low, high in ranges
    ]  # fmt: skip
    either = " or ".join(f"[{low.hex}, {high.hex}]" for low, high in ranges)
    statement = (
        f"w⊗x⊕b admissible ({setting.reading.value}) on [{setting.low}, {setting.high}] in {ctx} ⇒ the values at "
        f"x = {x} and x′ = {y} are one float, or both in {either}"
    )
    return ForAll(statement, implies(all_of(*map(is_finite, asked)), any_of(same(fx, fy), *inside)))


@rule("constant on a range")
def constant_on_a_range(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """If every admissible map sends x and x′ to one float, or both into a range on which the activation rounds to one
    value, then no admissible map tells them apart.

    data: ranges, [low, high] each in hex, or one as low and high.  Premises: the lemma about maps
    (`constant_ranges_lemma`), and for each range that the activation is constant on it.
    """
    if not isinstance(claim, Inseparable):
        raise EvidenceError(f"constant ranges do not speak about {claim.kind}")
    setting, fmt = claim.setting, claim.setting.context.format
    if not isinstance(setting.contract, ALWAYS_ALLOW_ROUNDED):
        raise EvidenceError(f"{setting.name} need not allow the correctly rounded values")
    listed = data["ranges"] if "ranges" in data else [[data["low"], data["high"]]]
    ranges = [(read_value(fmt, low), read_value(fmt, high)) for low, high in listed]
    lemma = constant_ranges_lemma(setting, claim.x, claim.y, ranges)
    if len(premises) != 1 + len(ranges) or premises[0] != lemma:
        raise EvidenceError("the first premise is not the lemma about admissible maps")
    shown: list[str] = []
    for (low, high), constant in zip(ranges, premises[1:], strict=True):
        wanted = (setting.function, setting.context, low, high)
        if not isinstance(constant, ConstantOn) or wanted != (
            constant.function, constant.context, constant.low, constant.high,
        ):  # fmt: skip
            raise EvidenceError(f"no premise says that the activation is constant on [{low}, {high}]")
        shown.append(f"[{low}, {high}] → {constant.value}")
    return Holds({"ranges": len(ranges), "constant": ", ".join(shown[:3]) + (", …" if len(shown) > 3 else "")})


@rule("maps of neighbours exhausted")
def neighbours(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Decides for each input and the next one whether an admissible map tells them apart, by all weights and biases.

    A monotone activation after a finite map is monotone in x, so that what no map tells apart are intervals
    (`fpsmt.claims.line`).  A pair is told apart by some map exactly when no interval holds both inputs.

    For formats of at most 16 bits, maps finite on the domain, and monotone activations without a choice of results.
    """
    if not isinstance(claim, LineClasses | Distinguishable | Inseparable):
        raise EvidenceError(f"maps of neighbours do not speak about {claim.kind}")
    classes = line_classes(claim.setting)
    inputs = claim.setting.high.ordinal - claim.setting.low.ordinal + 1
    if isinstance(claim, LineClasses):
        holds = claim.classes == classes
    elif isinstance(claim, Distinguishable):
        holds = not classes
    else:
        first, last = sorted((claim.x.ordinal, claim.y.ordinal))
        holds = any(a.ordinal <= first and last <= b.ordinal for a, b in classes)
    if holds:
        return Holds({"inputs": inputs, "classes": len(classes)}, (VECTOR, BALLS))
    if isinstance(claim, LineClasses):
        return Fails({})
    return Open("some map tells them apart" if isinstance(claim, Inseparable) else f"{len(classes)} classes are left")


@rule("zero weights elsewhere")
def zero_weights_elsewhere(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Vectors differ in some coordinate j, and a map that tells x_j from y_j does so with zero weights at the others.

    Products with a zero weight are ±0, as inputs are finite, and z ⊕ ±0 is the number z in every order; all values are
    finite where they are in one dimension.  Premise: the claim in one dimension.
    """
    if not isinstance(claim, DistinguishableVectors):
        raise EvidenceError(f"zero weights do not speak about {claim.kind}")
    if list(premises) != [claim.scalar]:
        raise EvidenceError("the premise is not the claim in one dimension")
    return Holds({"dimension": claim.dimension})


@rule("maps of two coordinates exhausted")
def plane_exhausted(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Runs through every admissible (w₁, w₂, b) at every vector of the box.

    Vectors are together exactly when, for all w₁, w₂, their sums w₁⊗x₁ ⊕ w₂⊗x₂ have one class under the biases that are
    admissible with w₁, w₂ (`fpsmt.claims.plane`).  Members of a class are compared with its first for all w₁, w₂.  The
    digest of a vector is a function of its classes for all w₁, w₂ in turn, so that vectors with different digests are
    told apart; two classes, or vectors in none, with one digest are left open.

    For formats of at most 8 bits and implementations that leave no choice.
    """
    if not isinstance(claim, VectorClasses):
        raise EvidenceError(f"maps of two coordinates do not speak about {claim.kind}")
    if claim.setting.context.format.bits > PLANE_BITS:
        return Open(f"the maps of {claim.setting.context.format} in two dimensions are too many")
    plane = Plane.of(claim.setting)
    digests, n = plane.digests(), len(plane.inputs)
    place = {Float(claim.setting.context.format, int(code)).ordinal: k for k, code in enumerate(plane.inputs)}
    first, second, own = [], [], []
    for members in claim.classes:
        at = [(place[x.ordinal], place[y.ordinal]) for x, y in members]
        first += [at[0]] * (len(at) - 1)
        second += at[1:]
        own += [i * n + j for i, j in at[1:]]
    if first and not plane.together(np.array(first, np.int64), np.array(second, np.int64)):
        return Fails({})
    left = np.delete(digests, own)
    if len(np.unique(left)) < len(left):
        return Fails({}) if claim.replay({}).violates else Open("two classes have one digest")
    return Holds({"vectors": n * n, "weights": int((plane.biases >= 0).sum())}, (VECTOR, BALLS))


@rule("maps beside a coordinate exhausted")
def beside_exhausted(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Looks for a map that tells (a, c) from (a′, c), for all a, a′ of size at most near·ω and each c of the domain.

    All weights are run through; of the biases those that take the two sums to either side of a jump of the activation
    (`fpsmt.claims.beside`).  Where none of them is admissible, no map tells the vectors apart; where one is, executing
    it shows whether it does.  A c is open where only some of its pairs are told apart, or none by the biases executed.

    For formats of at most 16 bits, round to nearest, and implementations that leave no choice.
    """
    if not isinstance(claim, TogetherBeside):
        raise EvidenceError(f"maps beside a coordinate do not speak about {claim.kind}")
    found = beside(claim.setting, claim.near)
    if found.undecided:
        return Open(f"beside {found.undecided} numbers some of the vectors may be told apart")
    if (found.least, len(found.together)) != (claim.least, claim.count):
        return Fails({})
    return Holds({"numbers": claim.setting.high.ordinal + 1, "maps": len(found.maps)}, (VECTOR, BALLS))
