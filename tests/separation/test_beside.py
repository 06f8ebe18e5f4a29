"""The smallest inputs beside a second coordinate: against every map of small formats, and what must not be proved."""

from __future__ import annotations

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import Inseparable, Reading, Setting, TogetherBeside, claim_from_json
from fpsmt.claims.beside import beside, telling_map
from fpsmt.claims.plane import Plane
from fpsmt.engines import decide
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import Float, add, context, exactly, float8_e4m3, float8_e5m2, float32, from_ordinal, largest, mul
from fpsmt.functions import FUNCTIONS, correctly_rounded


def setting(name: str, ctx: str, high: float | None = None) -> Setting:
    where = context(ctx)
    end = largest(where.format) if high is None else exactly(where.format, high)
    return Setting(FUNCTIONS[name], where, -end, end, Reading.FINITE_ON_DOMAIN)


CASES = [
    ("cos", "float8_e5m2", 32), ("sqrt1p_square", "float8_e5m2", 32), ("cos", "float8_e4m3", 64),
    ("gaussian", "float8_e4m3", 64), ("cos", "ieee(3,3)", None), ("sigmoid", "ieee(4,2)", None),
    ("sigmoid", "ieee(4,3)", None), ("softplus", "ieee(4,2)", None), ("tanh", "ieee(2,2)", None),
    ("cosh", "ieee(4,3)", 16), ("cos", "ieee(4,3):RNA", 16),
]  # fmt: skip


@pytest.mark.parametrize("near", [1, 2, 3])
@pytest.mark.parametrize(("name", "ctx", "high"), CASES)
def test_against_all_maps(name: str, ctx: str, high: float | None, near: int) -> None:
    """The classes of all vectors, by every (w₁, w₂, b)."""
    of = setting(name, ctx, high)
    fmt, plane = of.context.format, Plane.of(of)
    classes = plane.digests().reshape(len(plane.inputs), -1)
    place = {Float(fmt, int(code)).ordinal: k for k, code in enumerate(plane.inputs)}
    together, undecided = [], 0
    for c in range(of.high.ordinal + 1):
        count = len({int(classes[place[a], place[c]]) for a in range(-near, near + 1)})
        if count == 1:
            together.append(c)
        elif count <= 2 * near:
            undecided += 1
    found = beside(of, near)
    assert found.together.tolist() == together and found.undecided == undecided


def test_maps_are_executed_by_reference() -> None:
    of = setting("cos", "float8_e5m2", 32)
    found = beside(of, 1)
    ctx = of.context
    for i in range(0, len(found.told), 7):
        w1, w2, b = telling_map(of, found, i)
        c, a, d = (from_ordinal(ctx.format, int(k)) for k in found.told[i])
        results = [
            correctly_rounded(of.function, ctx, add(ctx, add(ctx, mul(ctx, w1, x), mul(ctx, w2, c)), b)) for x in (a, d)
        ]
        assert results[0] != results[1]
        for ends in ((of.high, of.high), (of.high, of.low), (of.low, of.high), (of.low, of.low)):
            assert add(ctx, add(ctx, mul(ctx, w1, ends[0]), mul(ctx, w2, ends[1])), b).is_finite


def test_claims() -> None:
    of = setting("sqrt1p_square", "float8_e5m2", 32)
    claim = TogetherBeside(of, 1, 2, 3)
    verdict = decide(claim)
    assert verdict.name == "proved" and verdict.how == "maps beside a coordinate exhausted"
    assert claim_from_json(claim.to_json()) == claim
    assert decide(TogetherBeside(of, 1, 1, 3)).name == "refuted" == decide(TogetherBeside(of, 1, 2, 4)).name
    assert decide(TogetherBeside(setting("cos", "float8_e4m3", 64), 2, -1, 0)).name == "unknown"
    one, wide = exactly(float8_e5m2, 1), exactly(float32, 8)
    with pytest.raises(EvidenceError, match="do not speak about"):
        kernel.apply("maps beside a coordinate exhausted", Inseparable(of, one, -one))
    for near, least, count in ((0, 1, 2), (1, 2, 2), (1, 0, 10**6), (1, -2, 0)):
        with pytest.raises(UsageError, match="no numbers of inputs"):
            TogetherBeside(of, near, least, count)
    with pytest.raises(UsageError, match=r"finite on a box"):
        TogetherBeside(Setting(of.function, of.context, -one, of.high, of.reading), 1, 0, 1)
    with pytest.raises(Unsupported, match="too many to list"):
        beside(Setting(of.function, context("float32"), -wide, wide, of.reading), 1)
    with pytest.raises(Unsupported, match="not symmetric"):
        beside(setting("cos", "ieee(3,3):RTP"), 1)
    assert np.all(beside(setting("identity", "float8_e4m3"), 1).together == []) and float8_e4m3.bits == 8
