"""Two coordinates by tables of codes, against every map executed one by one, and what must not be proved."""

from __future__ import annotations

from itertools import combinations

import pytest

from fpsmt import kernel
from fpsmt.claims import Distinguishable, Reading, Setting, VectorClasses, claim_from_json
from fpsmt.engines import decide
from fpsmt.engines.telling import vector_classes
from fpsmt.errors import EvidenceError, UsageError
from fpsmt.floats import context, exactly, float4_e2m1fn, float16, ieee, largest, zero
from fpsmt.functions import FUNCTIONS, implementation_named
from tests.separation.test_vectors_exhaustive import CONTEXT, NUMBERS, TINY, inseparable_vectors


def setting(name: str, ends: tuple[float, float], reading: Reading = Reading.FINITE_ON_DOMAIN) -> Setting:
    low, high = (exactly(TINY, end) for end in ends)
    return Setting(FUNCTIONS[name], CONTEXT, low, high, reading)


@pytest.mark.parametrize("reading", [Reading.FINITE_ON_DOMAIN, Reading.ANY])
@pytest.mark.parametrize("ends", [(-3, 3), (-1, 1), (0.5, 3), (-2, 0)])
@pytest.mark.parametrize("name", ["cos", "sqrt1p_square", "sigmoid"])
def test_against_every_map(name: str, ends: tuple[float, float], reading: Reading) -> None:
    of = setting(name, ends, reading)
    claim = vector_classes(of)
    pairs = {
        tuple(sorted((tuple(map(float, a)), tuple(map(float, b)))))
        for members in claim.classes
        for a, b in combinations(members, 2)
    }
    inputs = [float(x) for x in NUMBERS if ends[0] <= float(x) <= ends[1]]
    assert pairs == {tuple(sorted(pair)) for pair in inseparable_vectors(of, inputs)}
    verdict = decide(claim)
    assert verdict.name == "proved" and verdict.how == "maps of two coordinates exhausted"
    again = claim_from_json(claim.to_json())
    assert again == claim and again.hash == claim.hash


def test_other_classes_are_refuted() -> None:
    """A class too few, a vector too many, two classes made one."""
    claim = vector_classes(setting("cos", (-3, 3)))
    first, second, *rest = claim.classes
    alone = next(
        (x, y) for x in NUMBERS for y in NUMBERS if all((x, y) not in members for members in claim.classes)
    )
    for wrong in ((second, *rest), (first[1:], second, *rest), ((*first, alone), second, *rest),
                  (first + second, *rest)):  # fmt: skip
        verdict = decide(VectorClasses(claim.setting, wrong))
        assert verdict.name == "refuted"
    assert not claim.replay({}).violates


def test_all_vectors_of_a_format_without_infinities() -> None:
    """float4_e2m1fn: nothing overflows, and cos tells all 225 vectors apart."""
    top = largest(float4_e2m1fn)
    of = Setting(FUNCTIONS["cos"], context(float4_e2m1fn), -top, top, Reading.FINITE_ON_DOMAIN)
    claim = VectorClasses(of, ())
    assert decide(claim).name == "proved" and "∅" in claim.text


def test_what_is_no_statement() -> None:
    of = setting("cos", (-1, 1))
    one, two = exactly(TINY, 1), exactly(TINY, 2)
    origin = (zero(TINY), zero(TINY))
    with pytest.raises(UsageError, match="no equivalence"):
        VectorClasses(setting("cos", (-1, 1), Reading.FINITE_ON_PAIR), ())
    loose = implementation_named("cos:ulps=1")
    with pytest.raises(UsageError, match="no equivalence"):
        VectorClasses(Setting(loose.function, CONTEXT, -one, one, Reading.ANY, loose.contract), ())
    for classes in (((origin,),), ((origin, origin),), (((-zero(TINY), zero(TINY)), origin),)):
        with pytest.raises(UsageError, match="disjoint"):
            VectorClasses(of, classes)
    with pytest.raises(UsageError, match="not in the box"):
        VectorClasses(of, ((origin, (two, one)),))
    rule = "maps of two coordinates exhausted"
    with pytest.raises(EvidenceError, match="do not speak about"):
        kernel.apply(rule, Distinguishable(of))
    top = largest(float16)
    large = Setting(FUNCTIONS["cos"], context(float16), -top, top, Reading.ANY)
    assert kernel.apply(rule, VectorClasses(large, ())).name == "unknown"
    assert ieee(2, 2) == TINY
