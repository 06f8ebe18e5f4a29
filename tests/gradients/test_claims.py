"""Gradient claims: decided, written to files, checked again, and refused with a reason."""

import json

import pytest

from fpsmt import kernel
from fpsmt import terms as t
from fpsmt.claims import GradientInvariant, GradientOutcomes, claim_from_json, gradient_formula
from fpsmt.claims.gradients import run_from_json, run_to_json
from fpsmt.engines import Options, decide
from fpsmt.engines.gradients import gradient_outcomes
from fpsmt.errors import EvidenceError, InternalError, UsageError
from fpsmt.floats import all_values, context, exactly, float4_e2m1fn, float8_e5m2, float16, infinity, nan, zero
from fpsmt.networks import (
    FRAMEWORK,
    FROM_OUTPUT,
    PAPER,
    Affine,
    DerivativeRule,
    Input,
    Network,
    Select,
    execution,
    gradient,
    run,
)
from fpsmt.networks.reach import GradientProblem, GradientRun


def half(*numbers):
    return tuple(exactly(float16, x) for x in numbers)


def one_sum(**changes):
    """A backward sum 2048 + 1 − 2048 behind a relu."""
    net = Network.sequential("float16", 1, [([[1], [1], [1]], None), "relu"])
    given = {"network": net, "inputs": half(1), "loss": half(2048, 1, -2048), "backward": PAPER, **changes}
    return GradientProblem(**given)


def stored(verdict):
    return json.loads(json.dumps(kernel.verdict_to_json(verdict)))


def test_the_exact_set_is_proved_and_checked_again():
    claim = GradientOutcomes(one_sum(), (half(1), half(0)))
    verdict = decide(claim)
    assert (verdict.name, verdict.how) == ("proved", "all executions")
    assert verdict.evidence.all_trusted == ()
    schedules = [each["backward"]["affine1:0"] for each in verdict.evidence.found["executions"]]
    assert len(schedules) == 2 and schedules[0] != schedules[1]
    again = kernel.check_verdict(stored(verdict))
    assert again.name == "proved" and again.claim == claim
    assert gradient_outcomes(one_sum()).claim.outcomes == (half(0), half(1))


def test_tampered_results_do_not_pass():
    result = stored(decide(GradientOutcomes(one_sum(), (half(0), half(1)))))
    result["claim"]["statement"]["outcomes"].pop()
    with pytest.raises(EvidenceError, match="hash"):
        kernel.check_verdict(result)
    other = GradientOutcomes(one_sum(), (half(0),))
    result["claim"] = {"text": other.text, "hash": other.hash, "statement": other.to_json()}
    with pytest.raises(EvidenceError, match=r"does not establish.*counterexample"):
        kernel.check_verdict(result)
    broken = stored(decide(GradientInvariant(one_sum())))
    broken["counterexample"]["executions"][1] = broken["counterexample"]["executions"][0]
    with pytest.raises(EvidenceError, match="does not replay"):
        kernel.check_verdict(broken)


def test_a_missing_gradient_is_a_counterexample_that_replays():
    verdict = decide(GradientOutcomes(one_sum(), (half(0),)))
    assert verdict.name == "refuted"
    text = str(verdict.replay)
    assert "gradient at input = 1.0" in text and "affine1, backward column 0:" in text and "activation1 = " in text
    assert kernel.check_verdict(stored(verdict)).replay == verdict.replay


def test_a_gradient_that_is_never_returned_needs_the_whole_set():
    claim = GradientOutcomes(one_sum(), (half(0), half(1), half(2)))
    verdict = decide(claim)
    assert verdict.name == "refuted" and verdict.replay.lines == ("never returned: 2.0",)
    assert kernel.check_verdict(stored(verdict)).name == "refuted"
    with pytest.raises(EvidenceError, match="needs a proof of"):
        kernel.refute(claim, verdict.counterexample)


def test_invariance():
    verdict = decide(GradientInvariant(one_sum()))
    assert verdict.name == "refuted"
    assert verdict.replay.values["gradients"] == [[x.hex for x in half(0)], [x.hex for x in half(1)]]
    assert decide(GradientInvariant(one_sum(backward=execution("left-to-right")))).name == "proved"
    wide = execution("any", accumulator="float32")
    assert decide(GradientOutcomes(one_sum(backward=wide), (half(1),))).name == "proved"
    same = {"forward": {}, "backward": {}}
    with pytest.raises(InternalError, match="does not replay"):
        kernel.refute(GradientInvariant(one_sum()), {"executions": [same, same]})


def test_inexact_activations_in_a_counterexample():
    net = Network.sequential("float8_e5m2", 1, ["tanh:floats=1"])
    half_, one = exactly(float8_e5m2, 0.5), exactly(float8_e5m2, 1)
    problem = GradientProblem(net, (half_,), (one,), rules=FROM_OUTPUT)
    verdict = decide(GradientInvariant(problem))
    assert verdict.name == "refuted" and "tanh:floats=1(0.5) = " in str(verdict.replay)
    whole = gradient_outcomes(problem)
    assert "python-flint" in whole.evidence.all_trusted[0]
    by_hand = set()
    for y in (0.375, 0.4375, 0.5):
        forward = run(net, (half_,), outputs={("tanh:floats=1", "", half_): exactly(float8_e5m2, y)})
        by_hand.add(gradient(forward, (one,), rules=FROM_OUTPUT).gradient)
    assert set(whole.claim.outcomes) == by_hand and len(by_hand) > 1


def test_special_values():
    """∞ ⊗ 0 is NaN by the chain rule and 0 by selection; the loss derivative −0 gives −0."""
    for rule, expected in ((FROM_OUTPUT, nan(float16)), (FRAMEWORK, zero(float16))):
        net = Network.sequential("float16", 1, ["relu"])
        claim = GradientOutcomes(GradientProblem(net, half(-1), (infinity(float16),), rules=rule), ((expected,),))
        assert decide(claim).name == "proved"
    minus = GradientProblem(Network.sequential("float16", 1, ["relu"]), half(1), (zero(float16, True),))
    assert decide(GradientOutcomes(minus, ((zero(float16, True),),))).name == "proved"
    assert decide(GradientOutcomes(minus, ((zero(float16),),))).name == "refuted"
    both = {"inputs": (infinity(float16),), "loss": (infinity(float16), exactly(float16, 1), infinity(float16, True))}
    assert decide(GradientOutcomes(one_sum(**both), ((nan(float16),),))).name == "proved"


def several():
    """Two inputs and two outputs."""
    ctx = context("float16")
    nodes = (
        Input(name="u", context=ctx, size=2),
        Input(name="v", context=ctx, size=1),
        Affine(name="a", context=ctx, source="u", weights=[[1, 2], [3, 4]]),
        Select(name="out", context=ctx, nodes=("a", "v"), picks=((0, 1), (1, 0))),
    )
    network = Network(nodes, ("a", "out"))
    return {
        "network": network,
        "inputs": {"u": half(1, -1), "v": half(3)},
        "loss": {"a": half(1, 2), "out": half(4, 8)},
    }


@pytest.mark.parametrize(
    "problem",
    [
        GradientProblem(**several(), at="u", forward={"a": execution("pairwise")}, backward={"a": PAPER}, rules={}),
        GradientProblem(**several(), at="u", component=1),
        GradientProblem(**several(), at="v"),
        one_sum(rules={"activation1": FRAMEWORK}, backward=execution("any", fma="any"), component=0),
    ],
)
def test_json_round_trip(problem):
    outcomes = gradient_outcomes(problem).claim
    for claim in (outcomes, GradientInvariant(problem)):
        again = claim_from_json(json.loads(json.dumps(claim.to_json())))
        assert again == claim and again.hash == claim.hash and again.text == claim.text
    assert decide(claim_from_json(outcomes.to_json())).name == "proved"
    assert outcomes != GradientInvariant(problem) and outcomes != GradientOutcomes(problem, ())


def test_the_gradient_at_several_inputs():
    u = gradient_outcomes(GradientProblem(**several(), at="u")).claim.outcomes
    assert u == (half(1 + 3 * (2 + 4), 2 + 4 * (2 + 4)),)
    assert gradient_outcomes(GradientProblem(**several(), at="v")).claim.outcomes == (half(8),)
    assert gradient_outcomes(GradientProblem(**several(), at="u", component=1)).claim.outcomes == (half(26),)


def test_beyond_the_limits_the_answer_is_unknown_with_the_reason():
    net = Network.sequential("float16", 1, [([[k] for k in range(40)], None)])
    problem = GradientProblem(net, half(1), half(*range(1, 41)), backward=PAPER)
    for claim in (GradientInvariant(problem), GradientOutcomes(problem, (half(0),))):
        verdict = decide(claim, Options(timeout=10))
        assert verdict.name == "unknown"
        assert "backward column 0 has 40 terms and too many schedules" in verdict.reason
        assert "narrow the orders" in verdict.reason


def test_an_execution_without_a_value_is_unknown():
    """√(−½) has no value in a format without NaN, and only some orders of −½ + 4 − 4 meet it."""
    net = Network.sequential("float4_e2m1fn:saturate", 3, [([[-0.5, 4, -4]], None), "sqrt"])
    one = exactly(float4_e2m1fn, 1)
    problem = GradientProblem(net, (one, one, one), (one,))
    verdict = decide(GradientInvariant(problem))
    assert verdict.name == "unknown" and "some execution has no gradient" in verdict.reason
    fixed = GradientProblem(net, (one, one, one), (one,), execution("left-to-right"))
    assert decide(GradientInvariant(fixed)).name == "proved"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GradientOutcomes(one_sum(), (half(0, 1),)), "is not a vector of 1 values of float16"),
        (lambda: GradientOutcomes(one_sum(), ((zero(float8_e5m2),),)), "is not a vector of 1 values of float16"),
        (lambda: GradientInvariant(one_sum(rules=DerivativeRule("mine", "", lambda at: at.g))).to_json(),
         "unknown derivative rule 'mine'"),
        (lambda: GradientInvariant(one_sum()).replay({"schedules": []}), r'is \{"executions": \[E, F\]\}'),
        (lambda: GradientOutcomes(one_sum(), ()).replay({"schedule": 0}), r'is \{"execution": …\} or'),
        (lambda: GradientOutcomes(one_sum(), ()).replay({"execution": {"order": 0}}), "an execution is"),
        (lambda: GradientOutcomes(one_sum(), ()).replay({"execution": {"backward": {"affine1": 0}}}), "node:index"),
        (lambda: GradientOutcomes(one_sum(), ()).replay({"execution": {"backward": {"affine1:7": 0}}}),
         "column 7 of 'affine1', which is not a backward sum"),
        (lambda: GradientOutcomes(one_sum(backward=execution("left-to-right")), ()).replay(
            {"execution": {"backward": {"affine1:0": [0, [1, 2]]}}}), "not one that its execution"),
        (lambda: GradientOutcomes(one_sum(), ()).replay({"execution": {"outputs": [[1]]}}), "activation outputs are"),
        (lambda: claim_from_json({"kind": "gradient-invariant", "problem": {}}), "cannot be read"),
    ],
)  # fmt: skip
def test_error_messages(make, message):
    with pytest.raises(UsageError, match=message):
        make()


# -- formulas ---------------------------------------------------------------------------------------------


def formula(condition, **more):
    net = Network.sequential("float8_e5m2", 1, [([[2], [-1], [1]], [0, 1, -1]), "relu", ([[1, 1, 3]], None)])
    one = exactly(float8_e5m2, 1)
    return net, gradient_formula(net, condition, "…", loss=[one], **{"forward": PAPER, "backward": PAPER, **more})


@pytest.mark.parametrize("target", [-1, 1, 4, 5])
def test_formulas_agree_with_every_input_and_schedule(target):
    """The gradient is never the target: decided against all inputs and all schedules, one by one."""
    goal, end = exactly(float8_e5m2, target), exactly(float8_e5m2, 2)
    net, claim = formula(lambda g: t.negation(t.same(g[0], t.const(goal))), domain=(-end, end))
    returned = set()
    for x in all_values(float8_e5m2):
        if x.is_finite and abs(x.fraction) <= 2:
            problem = GradientProblem(net, (x,), (exactly(float8_e5m2, 1),), PAPER, PAPER)
            returned |= set(gradient_outcomes(problem).claim.outcomes)
    verdict = decide(claim)
    assert verdict.name == ("refuted" if (goal,) in returned else "proved")
    if verdict.name == "refuted":
        assert kernel.check_verdict(stored(verdict)).name == "refuted"


def test_formulas_quantify_over_terms_of_the_loss_and_domains_may_be_terms():
    net = Network.sequential("float8_e5m2", 1, ["relu"])
    y = t.var("y", float8_e5m2)
    odd = gradient_formula(
        net,
        lambda g: t.any_of(t.is_nan(y), t.is_infinite(y), t.same(g[0], y)),
        "∀ y: the gradient is y",
        loss=[y],
        domain=lambda xs: t.lt(t.const(zero(float8_e5m2)), xs[0]),
    )
    assert decide(odd).name == "proved"
    everywhere = gradient_formula(net, lambda g: t.same(g[0], y), "∀ y: the gradient is y", loss=[y])
    assert decide(everywhere).name == "refuted"


def test_a_formula_for_solvers():
    """No order of a float16 backward sum of three terms of one sign is zero, for all weights in [1, 2]."""
    from fpsmt.smt.unrolling import unroll, unroll_gradient

    net = Network.sequential("float16", 1, [([[1], [1], [1]], None)])
    weights = [[t.var(f"w{k}", float16)] for k in range(3)]
    free = unroll(net, weights={"affine1": weights})
    back = unroll_gradient(free, [t.const(exactly(float16, 1))] * 3, PAPER)
    one, two = (t.const(exactly(float16, v)) for v in (1, 2))
    inside = [t.all_of(t.le(one, w), t.le(w, two)) for (w,) in weights]
    from fpsmt.claims import ForAll

    condition = t.implies(t.all_of(*inside, back.valid), t.le(one, back.gradient[0]))
    assert decide(ForAll("w in [1, 2]³ ⇒ gradient ≥ 1", condition), Options(timeout=50)).name == "proved"


def test_runs_as_data():
    for tree, value in ((((0, 1), 2), 0), ((0, (1, 2)), 1)):
        one = run_from_json(run_to_json(GradientRun({}, {("affine1", 0): tree}, {})))
        assert one_sum().value(one_sum().execute(one)) == half(value)
