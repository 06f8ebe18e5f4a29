"""Classes of monotone activations by neighbours, against every map executed one by one, and what must not be proved."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import Distinguishable, Inseparable, LineClasses, Reading, Separable, Setting, claim_from_json
from fpsmt.claims.line import line_classes, told_apart
from fpsmt.engines import decide
from fpsmt.engines.classes import classes
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import context, exactly, float8_e5m2, float32, largest
from fpsmt.functions import FUNCTIONS, implementation_named
from fpsmt.kernel import Proved, check_verdict, verdict_to_json
from specs.distinguishability import paper_setting
from tests.kernel import brute

CONTEXTS = (
    "float4_e2m1fn", "ieee(2,2)", "ieee(3,3)", "ieee(4,2)", "ieee(3,3):RTZ", "ieee(3,3):RTP", "ieee(3,2):flush",
    "float6_e2m3fn", "float6_e3m2fn", "p3109_k4p2se", "p3109_k5p3se:nan",
)  # fmt: skip


WITH_CLASSES = ("ieee(2,2)", "ieee(4,2)", "ieee(3,2):flush")


def setting(name: str, ctx: str, ends: tuple[float, float] | None = None) -> Setting:
    where = context(ctx)
    high = largest(where.format)
    low, high = (-high, high) if ends is None else (exactly(where.format, end) for end in ends)
    return Setting(FUNCTIONS[name], where, low, high, Reading.FINITE_ON_DOMAIN)


@pytest.mark.parametrize("ends", [None, (-1, 1), (0.5, 1.5), (-2, 0)])
@pytest.mark.parametrize("ctx", CONTEXTS)
def test_against_every_map(ctx: str, ends: tuple[float, float] | None) -> None:
    some = 0
    for name in ("sigmoid", "tanh", "relu", "erf", "softplus", "identity"):
        of = setting(name, ctx, ends)
        table = brute.told_apart(of)
        assert [bool(table[i, j]) for i, j in pairwise(range(len(table)))] == told_apart(of).tolist()
        xs = brute.inputs(of)
        place = {x.ordinal: i for i, x in enumerate(xs)}
        together = np.eye(len(xs), dtype=bool)
        for a, b in line_classes(of):
            i, j = place[a.ordinal], place[b.ordinal]
            together[i : j + 1, i : j + 1] = True
        assert (table == ~together).all()
        some += len(line_classes(of))
    assert some or ends is not None or ctx not in WITH_CLASSES


def test_both_routes_to_a_class() -> None:
    """float8_e5m2, the sigmoid: 27ω and −27ω by all maps, by neighbours, and by a solver's lemma about ranges."""
    of = paper_setting("sigmoid", float8_e5m2, "finite-on-domain")
    ((low, high),) = line_classes(of)
    claim = Inseparable(of, low, high)
    for engine in ("all maps", "constant range"):
        assert decide(claim, only=engine).name == "proved"
    verdict = kernel.apply("maps of neighbours exhausted", claim)
    assert isinstance(verdict, Proved) and check_verdict(verdict_to_json(verdict)).name == "proved"
    wider = Inseparable(of, low, high.next_up)
    assert kernel.apply("maps of neighbours exhausted", wider).name == "unknown"
    assert decide(wider, only="constant range").name == "unknown"
    assert decide(wider, only="all maps").name == "refuted"
    found = classes(of)
    assert found.settled and [len(c) for c in found.classes] == [high.ordinal - low.ordinal + 1]
    assert found.inputs - found.alone == len(found.classes[0])


def test_other_classes_are_refuted() -> None:
    of = setting("sigmoid", "ieee(2,2)")
    right = line_classes(of)
    claim = LineClasses(of, right)
    assert right and decide(claim).how == "maps of neighbours exhausted"
    assert claim_from_json(claim.to_json()) == claim and not claim.replay({}).violates
    (a, _), *rest = right
    for wrong in ((), ((a, rest[0][1]), *rest[1:]), right[1:], right[::2]):
        assert decide(LineClasses(of, tuple(wrong))).name == "refuted"
    assert decide(Distinguishable(of), only="neighbours").name == "refuted"
    none = setting("identity", "ieee(3,3)")
    assert decide(Distinguishable(none), only="neighbours").name == "proved"
    assert decide(LineClasses(none, ())).name == "proved"


def test_what_is_no_statement() -> None:
    of = setting("sigmoid", "ieee(3,3)")
    one = exactly(of.context.format, 1)
    for wrong in (((one, one),), ((one, -one),), ((-one, one), (one, one.next_up)), ((one, of.high.next_up),)):
        with pytest.raises(UsageError, match="disjoint intervals"):
            LineClasses(of, wrong)
    pairs = Setting(of.function, of.context, of.low, of.high, Reading.FINITE_ON_PAIR)
    loose = implementation_named("sigmoid:ulps=1")
    for unfit in (pairs, Setting(loose.function, of.context, of.low, of.high, of.reading, loose.contract)):
        with pytest.raises(UsageError, match="no equivalence"):
            LineClasses(unfit, ())
    with pytest.raises(EvidenceError, match="do not speak about"):
        kernel.apply("maps of neighbours exhausted", Separable(of, one, -one))
    for name, ctx, why in (("cos", "ieee(3,3)", "not monotone"), ("gelu", "float8_e5m2", "not monotone")):
        with pytest.raises(Unsupported, match=why):
            line_classes(setting(name, ctx))
    with pytest.raises(Unsupported, match="too many to list"):
        line_classes(Setting(FUNCTIONS["sigmoid"], context("float32"), exactly(float32, -1), exactly(float32, 1),
                             Reading.FINITE_ON_DOMAIN))  # fmt: skip
    with pytest.raises(Unsupported, match="where they are finite"):
        line_classes(Setting(of.function, of.context, of.low, of.high, Reading.ANY))
