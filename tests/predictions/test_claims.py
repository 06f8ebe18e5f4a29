"""Claims about predictions: files, ties, NaN, replay, stored evidence, messages."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest

from fpsmt import kernel
from fpsmt.claims import PredictionInvariant, claim_from_json
from fpsmt.claims.predictions import MARK, counterexample, predicted
from fpsmt.engines import decide
from fpsmt.errors import EvidenceError, InternalError, UsageError
from fpsmt.floats import Float, exactly, float16, float32
from fpsmt.kernel.rules.predictions import certain_winners
from fpsmt.networks import Executions, Network, execution, read_tree


def vector(*numbers: float) -> tuple[Float, ...]:
    return tuple(exactly(float32, x) for x in numbers)


def claim(layers: list[Any], x: tuple[Float, ...], how: Executions | None = None) -> PredictionInvariant:
    fmt = x[0].format
    return PredictionInvariant(Network.sequential(fmt, len(x), layers), (x,), execution() if how is None else how)


CANCELLING = [([[2**24, 1, 1, -(2**24)]], [-1.5]), "relu", ([[1], [0]], [0, 0.25])]


@pytest.mark.parametrize("how", [
    execution(), execution("sequential", "any", "float64", "exact", "first"),
    {"affine1": execution("lanes:2", products="bfloat16"), "affine2": execution(fma="always")},
])  # fmt: skip
def test_json_round_trip(how: Executions) -> None:
    made = claim(CANCELLING, vector(1, -0.0, float("nan"), float("inf")), how)
    back = claim_from_json(json.loads(json.dumps(made.to_json())))
    assert back == made and back.hash == made.hash and back.text == made.text
    assert isinstance(back, PredictionInvariant) and back.inputs == made.inputs and back.executions == made.executions
    assert made != claim(CANCELLING, vector(1, 0.0, float("nan"), float("inf")), how)


def test_first_index_of_the_greatest() -> None:
    assert predicted(vector(0.0, -0.0)) == 0 and predicted(vector(-0.0, 0.0)) == 0
    assert predicted(vector(1, float("inf"), float("inf"))) == 1
    assert predicted(vector(-float("inf"), -float("inf"))) == 0
    assert predicted(vector(3, float("nan"), 5)) is None


def test_certain_winners_use_the_tie_rule() -> None:
    low = np.array([[1, 0, 1.0], [0, 1, 0], [0, 1, 0], [0, 2, 0], [1, 1, 1], [-np.inf, 5, 0]])
    high = np.array([[3, 1, 1.0], [1, 2, 0], [0, 2, 1], [1, 2, 2], [1, 1, 1], [np.inf, 6, 0]])
    # a tie counts for the smaller index: row 0 is settled by it, row 1 is not
    assert certain_winners(low, high).tolist() == [0, -1, 1, 1, 0, -1]


def test_a_tie_that_only_some_orders_reach() -> None:
    """Outputs 2048 or 2050 against 2048: the first index wins the tie when it is the sum, and loses it when second."""
    row, fixed = [2048, 1, 1], [2048, 0, 0]
    x = tuple(exactly(float16, 1) for _ in range(3))
    assert decide(claim([([row, fixed], None)], x)).name == "proved"
    assert decide(claim([([fixed, row], None)], x)).name == "refuted"


def test_nan_is_no_prediction() -> None:
    """Infinity minus infinity under some order, or always."""
    x = tuple(exactly(float16, 1) for _ in range(4))
    some = claim([([[60000, 60000, -60000, -60000], [0] * 4], None)], x)
    found = some.replay({"input": 0, "schedules": [{}, {"affine1:0": [[0, 1], [2, 3]]}]})
    assert found.violates and found.values["predictions"] == [0, None]
    verdict = decide(some)
    assert verdict.name == "refuted"
    always = claim([([[1], [0]], None)], (exactly(float16, float("nan")),))
    refuted = decide(always)
    assert refuted.name == "refuted" and "no prediction" in str(refuted)


def test_replay_shows_where_runs_part() -> None:
    made = claim(CANCELLING, vector(1, 1, 1, 1))
    schedules = ({}, {("affine1", 0): read_tree("((0+((1+2)+3))+4)")})
    replay = made.replay(counterexample(0, schedules))
    assert replay.violates and replay.values["predictions"] == [1, 0]
    assert "they first part at affine1[0]" in str(replay) and "= 16777216.0" in str(replay)
    assert str(replay).count(MARK) == 2
    found = made.first_parting(counterexample(0, schedules))
    assert found is not None
    problem, left, right = found
    assert problem.n == 4 and [problem.evaluate(tree).decimal for tree in (left, right)] == ["-1.5", "0.5"]
    same = made.replay(counterexample(0, ({}, {})))
    assert not same.violates and "same values everywhere" in str(same)
    assert made.first_parting(counterexample(0, ({}, {}))) is None


def test_the_sum_that_parts_is_the_one_that_ran() -> None:
    """With a bias at any place, fused products and another accumulator."""
    how = execution("any", "any", "bfloat16", bias="any")
    x = tuple(exactly(float16, v) for v in (9, 9, 9, 2048))
    made = claim([([[1, 1.0009765625, 1, 1], [1, 1, 3, 1.0009765625]], [0.25, 1])], x, how)
    rng = Random(4)
    seen = 0
    for _ in range(60):
        both = [{("affine1", i): how.random_schedule(4, rng, True) for i in (0, 1)} for _ in range(2)]
        found = made.first_parting(counterexample(0, (both[0], both[1])))
        if found is not None:
            problem, left, right = found
            runs = [made.execute(0, s) for s in both]
            place = next(i for i in (0, 1) if runs[0].output[i] != runs[1].output[i])
            assert (left, right) == tuple(s["affine1", place] for s in both)
            assert [problem.evaluate(t) for t in (left, right)] == [run.output[place] for run in runs]
            seen += 1
    assert seen > 10


def test_a_counterexample_that_does_not_replay_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="does not replay"):
        kernel.refute(claim(CANCELLING, vector(1, 1, 1, 1)), counterexample(0, ({}, {})))


def test_stored_evidence_is_checked_again() -> None:
    made = claim(CANCELLING, vector(1, 1, 1, 1), execution(accumulator="float64"))
    verdict = decide(made)
    assert verdict.name == "proved"
    record = json.loads(json.dumps(kernel.verdict_to_json(verdict)))
    again = kernel.check_verdict(record)
    assert again.name == "proved" and again.claim == made
    broken = json.loads(json.dumps(kernel.verdict_to_json(decide(claim(CANCELLING, vector(1, 1, 1, 1))))))
    assert kernel.check_verdict(broken).name == "refuted"
    broken["counterexample"]["schedules"][1] = broken["counterexample"]["schedules"][0]
    with pytest.raises(EvidenceError, match="does not replay"):
        kernel.check_verdict(broken)
    with pytest.raises(EvidenceError, match="leave more than one class"):
        kernel.check(record["evidence"], claim(CANCELLING, vector(1, 1, 1, 1)))
    with pytest.raises(TypeError, match=r"only fpsmt\.kernel"):
        kernel.Proved(made, kernel.Evidence("bounds on every execution"), 0.0, None)


@pytest.mark.parametrize(("data", "message"), [
    ({"input": 1, "schedules": [{}, {}]}, "the claim has inputs 0…0"),
    ({"input": 0}, '"schedules"'),
    ({"input": 0, "schedules": [{}]}, "two schedules"),
    ({"input": 0, "schedules": [{}, {"affine1": 0}]}, "node:output index"),
    ({"input": 0, "schedules": [{}, {"affine1:0": [0, 1]}]}, "leaves out terms"),
    ({"input": 0, "schedules": [{}, {"affine1:7": [0, 1]}]}, "not a sum of the network"),
    ({"input": 0, "schedules": [{}, {"affine1:0": [[["fma", 0, 1], [2, 3]], 4]}]}, "allows"),
    ({"input": 0, "schedules": [{}, {"affine1:0": [[[0, 4], [1, 2]], 3]}]}, "allows"),
    ({"input": 0, "schedules": [{}, {}], "outputs": [[], [["relu"]]]}, "implementation, site, x, y"),
])  # fmt: skip
def test_malformed_counterexamples(data: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        claim(CANCELLING, vector(1, 1, 1, 1)).replay(data)


def test_malformed_claims() -> None:
    net = Network.sequential("float32", 1, [([[1]], None)])
    with pytest.raises(UsageError, match="at least two"):
        PredictionInvariant(net, (vector(1),), execution())
    two = Network.sequential("float32", 1, [([[1], [2]], None)])
    with pytest.raises(UsageError, match="at least one input"):
        PredictionInvariant(two, (), execution())
    with pytest.raises(UsageError, match="input 1 is not a vector of 1 values of float32"):
        PredictionInvariant(two, (vector(1), vector(1, 2)), execution())
    with pytest.raises(UsageError, match="input 0 is not a vector"):
        PredictionInvariant(two, ((exactly(float16, 1),),), execution())
    with pytest.raises(UsageError, match="no node 'affine9'"):
        PredictionInvariant(two, (vector(1),), {"affine9": execution()})
    with pytest.raises(UsageError, match="cannot be read"):
        claim_from_json({"kind": "prediction-invariant", "network": two.to_json()})


def test_outputs_close_is_about_ulps_of_the_larger_output() -> None:
    """Output 0 or 1/2 by the order: 2^23 ulps of 1/2 apart."""
    from fpsmt.claims.predictions import OutputsClose

    net = Network.sequential("float32", 4, CANCELLING)
    made = OutputsClose(net, (vector(1, 1, 1, 1),), execution(), 3)
    again = claim_from_json(made.to_json())
    assert again == made and again.hash == made.hash and "≤ 3 ulps" in made.text
    schedules = ({("affine1", 0): ((0, 3), (1, 2))}, {("affine1", 0): (((0, 1), 2), 3)})
    trees = [{key: (tree, 4) for key, tree in each.items()} for each in schedules]
    replay = made.replay(counterexample(0, (trees[0], trees[1])))
    assert replay.violates and "ulps apart" in str(replay)
    assert not made.replay(counterexample(0, ({}, {}))).violates
    wide = OutputsClose(net, made.inputs, execution(), 2**26)
    assert not wide.replay(counterexample(0, (trees[0], trees[1]))).violates
    for bad in (-1, 1.5, True):
        with pytest.raises(UsageError, match="a whole number"):
            OutputsClose(net, made.inputs, execution(), bad)  # type: ignore[arg-type]
    assert made.holds_between(1.0, 1.0 + 3 * 2.0**-23) and not made.holds_between(1.0, 1.0 + 4 * 2.0**-23)
    assert made.holds_between(-1.0 - 2.0**-22, -1.0) and not made.holds_between(-1.0, 1.0)
    assert not made.holds_between(-float("inf"), float("inf"))
