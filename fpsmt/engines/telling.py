"""Maps that tell one pair of inputs apart, in any format, for any contract: a search on single values.

One map does when the sets allowed at its two values are disjoint.  Where one step of φ is too small for that, biases
that differ by a step make a path: φ(x′) under one is φ(x) under the next, and the ends of a long enough path have
disjoint sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from fpsmt import kernel
from fpsmt.claims.beside import TogetherBeside
from fpsmt.claims.distinguishability import Inseparable, Joined, Map, Reading, Separable, Setting
from fpsmt.claims.places import listed, place_of
from fpsmt.claims.plane import Plane, VectorClasses
from fpsmt.claims.vectors import DistinguishableVectors
from fpsmt.engines.decide import decide
from fpsmt.engines.engine import Options, engine
from fpsmt.errors import Unsupported
from fpsmt.floats import Float, exactly, floor_log2, nearest, pow2, zero
from fpsmt.kernel import Proved, Refuted, Unknown, Verdict

PLACES = (Fraction(0), Fraction(1), Fraction(-1), Fraction(3, 2), Fraction(-3, 2), Fraction(1, 4), Fraction(-3))
LONGEST = 1500  #: maps of a path


@engine("telling maps", Separable)
def telling(claim: Separable, options: Options) -> Verdict:
    """Some maps, then paths of maps with equal steps."""
    setting, x, y = claim.setting, claim.x, claim.y
    for w, b in single_maps(setting, x, y):
        joined = _join(setting, x, y, [(w, b)])
        if joined.impossible:
            return kernel.apply("telling maps", claim, {"maps": [[w.hex, b.hex]]})
    if not setting.single:
        for maps in paths(setting, x, y):
            if _join(setting, x, y, maps).impossible:
                return kernel.apply("telling maps", claim, {"maps": [[w.hex, b.hex] for w, b in maps]})
    raise Unsupported("no map tried tells them apart")


@engine("all maps or none", Separable)
def exhausted(claim: Separable, options: Options) -> Verdict:
    """Decides the opposite: every map there is, or a lemma."""
    opposite = decide(claim.opposite, options)
    if isinstance(opposite, Proved):
        return kernel.refute(claim, {}, [opposite])
    if isinstance(opposite, Refuted):
        found = opposite.counterexample
        return kernel.apply("telling maps", claim, {"maps": found.get("maps") or [[found["w"], found["b"]]]})
    return Unknown(claim, opposite.reason, next_step=opposite.next_step)


@engine("search a map", Inseparable)
def search(claim: Inseparable, options: Options) -> Verdict:
    """Refutes where a map is easily found; for formats whose maps are too many to try."""
    if listed(claim.setting.context.format):
        raise Unsupported("all maps can be tried")
    found = telling(Separable(claim.setting, claim.x, claim.y), options)
    if not isinstance(found, Proved):
        return Unknown(claim, "no map tried tells them apart")
    return kernel.refute(claim, {"maps": found.evidence.data["maps"]})


def _join(setting: Setting, x: Float, y: Float, maps: list[Map]) -> Joined:
    joined = Joined(setting)
    for w, b in maps:
        joined.join(*(place_of(setting.affine(w, b, point)[1]) for point in (x, y)))
        if joined.impossible:
            break
    return joined


def _weights(setting: Setting, x: Float, y: Float) -> list[Float]:
    """Powers of two, with which w⊗x and w⊗y are finite: such that w·(y − x) is near 1, 1/2, …, and the largest."""
    fmt = setting.context.format
    exponent = -floor_log2(abs(y.fraction - x.fraction))
    wanted = range(exponent + 4, exponent - fmt.precision - 4, -1)
    top = next((e for e in range(fmt.emax, fmt.emin, -1) if _finite(setting, x, y, e)), fmt.emin)
    chosen = [e for e in [0, *wanted, top] if fmt.emin <= e <= top]
    return [exactly(fmt, s * pow2(e)) for e in dict.fromkeys(chosen) for s in (1, -1)]


def _finite(setting: Setting, x: Float, y: Float, exponent: int) -> bool:
    fmt = setting.context.format
    return pow2(exponent) <= fmt.largest and (
        setting.reading is Reading.ANY or setting.admissible(exactly(fmt, pow2(exponent)), zero(fmt), x, y)
    )


def single_maps(setting: Setting, x: Float, y: Float) -> Iterator[Map]:
    """Maps that move x or y to a place where activations are steep."""
    fmt = setting.context.format
    for w in _weights(setting, x, y):
        biases = [zero(fmt)]
        for place in PLACES:
            for point in (x, y):
                moved = place - w.fraction * point.fraction
                if abs(moved) <= fmt.largest:
                    biases.append(nearest(fmt, moved))
        for b in dict.fromkeys(biases):
            if b.is_finite and setting.admissible(w, b, x, y):
                yield w, b


def paths(setting: Setting, x: Float, y: Float) -> Iterator[list[Map]]:
    """Equal steps of φ from −B to B, as far as the sums are exact."""
    fmt = setting.context.format
    for w in _weights(setting, x, y)[::2]:
        step = w.fraction * (y.fraction - x.fraction)
        for reach in (4, 1, Fraction(1, 8)):
            count = int(2 * reach / abs(step)) + 1
            if not 2 <= count <= LONGEST:
                continue
            maps = []
            for i in range(count):
                bias = i * step - (count // 2) * step - w.fraction * x.fraction
                if abs(bias) <= fmt.largest and setting.admissible(w, b := nearest(fmt, bias), x, y):
                    maps.append((w, b))
            yield maps


@engine("one coordinate", DistinguishableVectors)
def one_coordinate(claim: DistinguishableVectors, options: Options) -> Verdict:
    """Decides the claim in one dimension, which settles it in any."""
    scalar = decide(claim.scalar, options)
    if isinstance(scalar, Proved):
        return kernel.apply("zero weights elsewhere", claim, premises=[scalar])
    if isinstance(scalar, Refuted):
        return kernel.refute(claim, scalar.counterexample, scalar.premises)
    return Unknown(claim, scalar.reason, next_step=scalar.next_step)


@engine("maps of two coordinates", VectorClasses)
def two_coordinates(claim: VectorClasses, options: Options) -> Verdict:
    """Every map, in formats of at most 8 bits."""
    return kernel.apply("maps of two coordinates exhausted", claim)


@engine("maps beside a coordinate", TogetherBeside)
def beside_coordinate(claim: TogetherBeside, options: Options) -> Verdict:
    """Every map that may tell the smallest inputs apart beside a second coordinate."""
    return kernel.apply("maps beside a coordinate exhausted", claim)


def vector_classes(setting: Setting) -> VectorClasses:
    """The claim that holds: the classes of two vectors or more that no map tells apart; not yet proved."""
    return VectorClasses(setting, tuple(tuple(members) for members in Plane.of(setting).classes()))
