"""Claims of every kind: text, JSON, hash, replay; and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt.claims import (
    Claim,
    ConstantOn,
    Distinguishable,
    ForAll,
    Inseparable,
    PredictionInvariant,
    Reading,
    Setting,
    SumInvariant,
    SumOutcomes,
    claim_from_json,
)
from fpsmt.claims.claim import Replay
from fpsmt.claims.distinguishability import reading, setting_from_json
from fpsmt.claims.formulas import assignment_from_json, assignment_to_json
from fpsmt.claims.places import place_of
from fpsmt.errors import UsageError
from fpsmt.floats import Float, context, exactly, float8_e5m2, float16, float32, from_ordinal, infinity, nan, zero
from fpsmt.functions import FUNCTIONS, correctly_rounded, implementation_named
from fpsmt.networks import Network, Sum, execution
from fpsmt.terms import (
    Assignment,
    BitsSort,
    ChoiceSort,
    all_of,
    apply,
    choice_is,
    const,
    evaluate,
    is_nan,
    le,
    negation,
    same,
    var,
)
from fpsmt.terms.terms import BOOL


def half(*values: float) -> tuple[Float, ...]:
    return tuple(exactly(float16, v) for v in values)


TWO = exactly(float16, 2)
SETTING = Setting(FUNCTIONS["tanh"], context(float16), -TWO, TWO, Reading.FINITE_ON_DOMAIN)
NETWORK = Network.sequential("float16", 2, [([[1, 2], [3, 4]], [0, 1])])
CLAIMS: dict[str, Claim] = {
    "for-all": ForAll("x ≡ x", same(var("x", float16), var("x", float16))),
    "constant-on": ConstantOn(FUNCTIONS["cos"], context("float16"), -TWO, TWO, exactly(float16, 1)),
    "inseparable": Inseparable(SETTING, *half(0, 1)),
    "distinguishable": Distinguishable(SETTING),
    "sum-outcomes": SumOutcomes(Sum(context("float16"), half(1, -0.0), half(2)[0]), (*half(3, -0.0), nan(float16))),
    "sum-invariant": SumInvariant(Sum(context("float16"), ((half(1, 2)), half(3, 4)), None, execution("any", "any"))),
    "prediction-invariant": PredictionInvariant(NETWORK, (half(1, 2),), execution("any")),
}


@pytest.mark.parametrize("kind", CLAIMS)
def test_json_and_hash(kind: str) -> None:
    claim = CLAIMS[kind]
    data = json.loads(json.dumps(claim.to_json()))
    assert data["kind"] == kind == claim.kind
    again = claim_from_json(data)
    assert again == claim and again.hash == claim.hash and str(again) == claim.text
    assert "\n" not in claim.text and claim._repr_html_().startswith("<code>")
    assert len(claim.hash) == 64


def test_hashes_tell_claims_apart() -> None:
    x = var("x", float16)
    others = [
        ForAll("x ≡ x ", same(x, x)), ForAll("x ≡ x", same(var("y", float16), var("y", float16))),
        ForAll("x ≡ x", same(var("x", float32), var("x", float32))), Inseparable(SETTING, *half(1, 0)),
        Distinguishable(Setting(SETTING.function, SETTING.context, -TWO, TWO, Reading.ANY)),
        Distinguishable(Setting(FUNCTIONS["relu"], SETTING.context, -TWO, TWO, Reading.FINITE_ON_DOMAIN)),
        Distinguishable(Setting(SETTING.function, context("float16:RTZ"), -TWO, TWO, Reading.FINITE_ON_DOMAIN)),
        SumInvariant(Sum(context("float16"), half(0.0))), SumInvariant(Sum(context("float16"), half(-0.0))),
        SumInvariant(Sum(context("float16"), half(0.0, 1))),
        SumInvariant(Sum(context("float16"), half(0.0), half(1)[0])),
    ]  # fmt: skip
    hashes = [claim.hash for claim in [*CLAIMS.values(), *others]]
    assert len(set(hashes)) == len(hashes)


JUNK = [None, True, 0, -3, 2.5, "", "x", "float16", "0x1p+0", "nan", "inf", [], [[]], {}, 10**400, "1/0", "9" * 5000]


@given(st.sampled_from(sorted(CLAIMS)), st.data())
@settings(max_examples=600)
def test_damaged_claims(kind: str, draw: st.DataObject) -> None:
    """A damaged claim is one clear error, or another claim that its JSON gives back."""
    data: Any = json.loads(json.dumps(CLAIMS[kind].to_json()))
    at, key = data, draw.draw(st.sampled_from(sorted(data)))
    while isinstance(at[key], dict | list) and at[key] and draw.draw(st.booleans()):
        at = at[key]
        key = draw.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
    at[key] = draw.draw(st.sampled_from(JUNK))
    try:
        claim = claim_from_json(data)
    except UsageError as error:
        assert 0 < len(str(error)) < 20_000
    else:
        assert claim_from_json(claim.to_json()) == claim and claim.text


@pytest.mark.parametrize("data", [None, 3, [], {}, {"kind": "mine"}, {"kind": None}, {"kind": ["for-all"]}], ids=str)
def test_what_is_no_claim(data: Any) -> None:
    with pytest.raises(UsageError, match="not a claim: its kind must be one of"):
        claim_from_json(data)


# -- ∀ claims ---------------------------------------------------------------------------------------------


def test_conditions_are_boolean() -> None:
    with pytest.raises(UsageError, match="a condition is Boolean"):
        ForAll("", var("x", float16))
    with pytest.raises(UsageError, match=r"'x' has two sorts, float16 and bits\[4\]"):
        ForAll("", all_of(is_nan(var("x", float16)), same(var("x", BitsSort(4)), var("x", BitsSort(4)))))


def test_assignments_as_json() -> None:
    fmt, ctx = float16, context("float16")
    loose = implementation_named("tanh:ulps=2:any-value")
    x, word, pick, flag = var("x", fmt), var("w", BitsSort(70)), var("c", ChoiceSort(3)), var("p", BOOL)
    y = apply(loose, ctx, x, "here")
    condition = negation(same(same(y, x), same(choice_is(pick, 2), same(flag, same(word, word)))))
    one = exactly(fmt, 1)
    outputs = {(loose.text, ctx, "here", one): loose.allowed(ctx, one)[0]}
    assignment = Assignment({"x": one, "w": (1 << 70) - 1, "c": 2, "p": True}, outputs)
    data = json.loads(json.dumps(assignment_to_json(assignment)))
    again = assignment_from_json(condition, data)
    assert (again.values, again.outputs) == (assignment.values, assignment.outputs)
    assert evaluate(condition, again) == evaluate(condition, assignment)


def test_outputs_belong_to_a_context() -> None:
    """One implementation rounds to two formats: two functions, each with outputs of its own."""
    loose, x = implementation_named("tanh:ulps=2"), var("x", float32)
    contexts = [context("float32"), context("float16"), context("float16:RTZ")]
    one = exactly(float32, 1)
    applied = [apply(loose, ctx, x) for ctx in contexts]
    outputs = {(loose.text, ctx, "", one): loose.allowed(ctx, one)[1] for ctx in contexts}
    assignment = Assignment({"x": one}, outputs)
    assert [evaluate(y, assignment) for y in applied] == list(outputs.values())
    assert evaluate(applied[0], {"x": one}) == correctly_rounded(FUNCTIONS["tanh"], contexts[0], one)


def test_replay_of_a_formula() -> None:
    x = var("x", float16)
    claim = ForAll("x ≤ 1", le(x, const(exactly(float16, 1))))
    replay = claim.replay({"values": {"x": exactly(float16, 2).bits}})
    assert isinstance(replay, Replay) and replay.violates and "x = <float16 2.0" in str(replay)
    assert not claim.replay({"values": {"x": exactly(float16, 1).bits}}).violates
    assert claim.replay({"values": {"x": nan(float16).bits}}).violates


# -- distinguishability -----------------------------------------------------------------------------------


def test_readings() -> None:
    assert reading("any") is Reading.ANY and reading(Reading.ANY) is Reading.ANY
    with pytest.raises(UsageError, match="unknown reading 'some'"):
        reading("some")
    assert setting_from_json(json.loads(json.dumps(SETTING.to_json()))) == SETTING


def test_settings_that_are_none() -> None:
    ctx, tanh = context("float16"), FUNCTIONS["tanh"]
    for low, high in (
        half(1, 1), half(2, 1), (zero(float16, True), zero(float16)), (nan(float16), TWO), (TWO, infinity(float16)),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="is not an interval of finite values"):
            Setting(tanh, ctx, low, high, Reading.ANY)
    with pytest.raises(UsageError, match="ends must be values of float16"):
        Setting(tanh, ctx, exactly(float32, 1), exactly(float32, 2), Reading.ANY)


def test_inputs_are_numbers_of_the_domain() -> None:
    for x, y in (half(0, 3), half(-3, 0)):
        with pytest.raises(UsageError, match="is not in the domain"):
            Inseparable(SETTING, x, y)
    for pair in (half(1, 1), (zero(float16), zero(float16, True))):
        with pytest.raises(UsageError, match="are one input"):
            Inseparable(SETTING, *pair)
    with pytest.raises(UsageError, match="is not in the domain"):
        Inseparable(SETTING, nan(float16), TWO)
    with pytest.raises(UsageError, match="is not in the domain"):
        Distinguishable(SETTING).replay({"x": "nan", "y": "0x0p0"})
    with pytest.raises(UsageError, match="is not a value of float16"):
        Distinguishable(SETTING).replay({"x": "0x1.0001p0", "y": "0x0p0"})


def test_admissible_maps() -> None:
    """What each reading asks of w = 2^k at x = 1, 1.5 with the domain [−2, 2] in a format with Ω = 57344."""
    fmt = float8_e5m2
    two, x, y, b = exactly(fmt, 2), exactly(fmt, 1), exactly(fmt, 1.5), zero(fmt)
    limits = {Reading.FINITE_ON_DOMAIN: 14, Reading.FINITE_ON_PAIR: 15, Reading.ANY: 15}
    for kind, largest in limits.items():
        setting = Setting(FUNCTIONS["tanh"], context(fmt), -two, two, kind)
        for exponent in range(10, 16):
            w = exactly(fmt, 2.0**exponent)
            assert setting.admissible(w, b, x, y) == (exponent <= largest), (kind, exponent)
            assert setting.admissible(-w, b, x, y) == (exponent <= largest)
        for bad in (infinity(fmt), nan(fmt)):
            assert not setting.admissible(bad, b, x, y) and not setting.admissible(x, bad, x, y)
    top = from_ordinal(fmt, fmt.largest_code)
    assert not Setting(FUNCTIONS["tanh"], context(fmt), -two, two, Reading.FINITE_ON_PAIR).admissible(top, top, x, y)


def test_outputs_are_compared_as_numbers() -> None:
    zeros = zero(float16), zero(float16, True)
    assert place_of(zeros[0]) == place_of(zeros[1]) and place_of(nan(float16)) == place_of(nan(float16))
    others = [nan(float16), zeros[0], TWO, infinity(float16), -infinity(float16)]
    assert len({place_of(y) for y in others}) == len(others)


def test_replay_of_a_map() -> None:
    claim = Inseparable(SETTING, *half(0, 1))
    replay = claim.replay({"w": "0x1p0", "b": "0x0p0"})
    assert replay.violates and replay.values["x′"] == "0x1.86p-1"
    assert not claim.replay({"w": "0x0p0", "b": "0x1p0"}).violates
    steep = claim.replay({"w": "0x1p15", "b": "0x0p0"})
    assert not steep.violates and "not admissible" in str(steep)


# -- predictions ------------------------------------------------------------------------------------------


def test_predictions_with_outputs_of_monotone_functions() -> None:
    """Outputs that no monotone function has are refused in a replay."""
    use = implementation_named("sigmoid:ulps=3:monotone")
    network = Network.sequential("float16", 1, [([[1], [1 + 2**-10]], [0, 0]), use, ([[1, 0], [0, 1]], [0, 0])])
    claim = PredictionInvariant(network, (half(1),), execution("any"))
    run = claim.execute(0, {})
    a, b = run.values[network.nodes[1].name]
    assert a.ordinal < b.ordinal
    ctx = context("float16")
    falling = [[use.text, "", ["float16", x.hex], ["float16", y.hex]] for x, y in (
        (a, use.allowed(ctx, a)[1]), (b, use.allowed(ctx, b)[0]))]  # fmt: skip
    with pytest.raises(UsageError, match="monotone"):
        claim.replay({"input": 0, "schedules": [{}, {}], "outputs": [falling, []]})
