"""Claims about how far a sum goes: proofs, refutations, files, the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fpsmt.claims import SumExtremes, SumWithin, claim_from_json
from fpsmt.engines import decide
from fpsmt.engines.extremes import extremes
from fpsmt.errors import InternalError, UsageError
from fpsmt.floats import context, exactly, float16, infinity
from fpsmt.kernel import check_verdict, read_result, refute, verdict_to_json
from fpsmt.networks.extremes import Box, BoxSum
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.packed import PackedSum
from tests.cli.conftest import Fpsmt, fpsmt

__all__ = ["fpsmt"]  # the fixture

TERMS = tuple(exactly(float16, v) for v in (2048, 1, 1, 3, -2048))
PROBLEM = Sum(context("float16"), TERMS)
THREE, FOUR, SIX, SEVEN = (exactly(float16, v) for v in (3, 4, 6, 7))


def test_proved_and_read_back() -> None:
    proved = extremes(PROBLEM)
    claim = proved.claim
    assert isinstance(claim, SumExtremes)
    assert (claim.low, claim.high, claim.nan_reachable) == (THREE, SIX, False)
    assert claim_from_json(json.loads(json.dumps(claim.to_json()))) == claim
    again = check_verdict(json.loads(json.dumps(verdict_to_json(proved))))
    assert again.name == "proved"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"low": FOUR}, "schedule"),
        ({"high": FOUR}, "schedule"),
        ({"high": SEVEN}, "extremes"),
        ({"low": exactly(float16, 2)}, "extremes"),
        ({"nan_reachable": True}, "extremes"),
        ({"low": None, "high": None, "nan_reachable": True}, "schedule"),
    ],
)
def test_refuted(change: dict[str, object], key: str) -> None:
    claim = extremes(PROBLEM).claim
    assert isinstance(claim, SumExtremes)
    wrong = replace(claim, **change)  # type: ignore[arg-type]
    verdict = decide(wrong)
    assert verdict.name == "refuted"
    assert key in verdict.counterexample  # type: ignore[union-attr]
    assert check_verdict(json.loads(json.dumps(verdict_to_json(verdict)))).name == "refuted"


def test_boxes_are_refuted_by_terms_in_them() -> None:
    one = exactly(float16, 1)
    problem = BoxSum(context("float16"), (TERMS[0], Box(-one, one), one))
    proved = extremes(problem)
    claim = proved.claim
    assert isinstance(claim, SumExtremes)
    assert claim_from_json(json.loads(json.dumps(claim.to_json()))) == claim
    assert claim.high is not None
    wrong = replace(claim, high=claim.high.next_down)
    verdict = decide(wrong)
    assert verdict.name == "refuted"
    stored = verdict.counterexample  # type: ignore[union-attr]
    assert set(stored) == {"schedule", "terms", "bias"}
    outside = json.loads(json.dumps(stored))
    outside["terms"][1] = ["float16", "0x1.8p+0"]
    with pytest.raises(UsageError, match="not those of the claim"):
        wrong.replay(outside)


def test_a_schedule_inside_refutes_nothing() -> None:
    claim = extremes(PROBLEM).claim
    with pytest.raises(InternalError, match="does not replay"):
        refute(claim, {"schedule": [[[[0, 1], 2], 3], 4]})


def test_bounds_of_many_terms() -> None:
    x = np.arange(1, 501.0)
    problem = PackedSum.of(context("float16"), x / 8)
    claim = SumWithin(problem, exactly(float16, 15000), exactly(float16, 17008))
    assert claim_from_json(json.loads(json.dumps(claim.to_json()))) == claim
    exact = SumWithin(PackedSum.of(context("float32"), x), *(exactly(context("float32").format, 125250),) * 2)
    assert decide(exact).name == "proved"
    narrow = SumWithin(problem, exactly(float16, 15656), exactly(float16, 15656))
    verdict = decide(narrow)
    assert verdict.name == "refuted"
    assert "recipe" in verdict.counterexample  # type: ignore[union-attr]
    everything = SumWithin(problem, infinity(float16, True), infinity(float16))
    assert decide(everything).name == "proved"
    assert check_verdict(json.loads(json.dumps(verdict_to_json(verdict)))).name == "refuted"


def test_codes_that_are_damaged() -> None:
    data = SumWithin(PackedSum.of(context("float16"), [1.0, 2.0]), THREE, THREE).to_json()
    data["problem"]["terms"]["codes"] = data["problem"]["terms"]["codes"][:-4]
    with pytest.raises(UsageError, match="cannot be read"):
        claim_from_json(data)


# -- the command line ---------------------------------------------------------------------------------------


def saved(folder: Path) -> str:
    (file,) = (folder / "fpsmt-results").glob("*.json")
    return str(file)


def test_extremes_are_asked_for(fpsmt: Fpsmt, tmp_path: Path) -> None:
    ran = fpsmt("sum", "--format", "float16", "--extremes", "2048", "1", "1", "3", "-2048")
    assert (ran.code, ran.first) == (0, "extremes exact 3.0 6.0 nan=no")
    file = saved(tmp_path)
    result = read_result(Path(file))["result"]
    assert (result["exact"], result["low"], result["high"], result["nan"]) == (True, "0x1.8p+1", "0x1.8p+2", False)
    assert fpsmt("replay", file).first == "replay 2 of 2 reproduced"
    assert fpsmt("check", file).code == 0
    ran = fpsmt("sum", "--no-save", "--format", "float16", "--extremes", "inf", "-inf")
    assert ran.first == "extremes exact nan nan nan=yes"


def test_a_bracket_of_many_terms(fpsmt: Fpsmt, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    np.save(tmp_path / "x.npy", rng.normal(size=200).astype(np.float32))
    ran = fpsmt("sum", "--format", "float32", "--file", "x.npy", "--json", "out.json")
    words = ran.first.split()
    assert ran.code == 0
    assert [words[i] for i in (0, 3, 6)] == ["bracket", "reached", "ratio"]
    low, high, reached_low, reached_high = (float(words[i]) for i in (1, 2, 4, 5))
    assert low <= reached_low < reached_high <= high
    assert f"{(high - low) / (reached_high - reached_low):.6g}" == words[7]
    result = read_result(Path("out.json"))["result"]
    assert [float.fromhex(result[k]) for k in ("low", "high", "reached_low", "reached_high")] == [
        low, high, reached_low, reached_high,
    ]  # fmt: skip
    assert result["exact"] is False
    assert fpsmt("replay", saved(tmp_path)).first == "replay 2 of 2 reproduced"
    assert fpsmt("check", saved(tmp_path)).code == 0


def test_arrays_beyond_single_values(fpsmt: Fpsmt, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    w, x = (rng.normal(size=5000) for _ in range(2))
    np.save(tmp_path / "w.npy", w)
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    ran = fpsmt("sum", "--format", "float32", "--order", "pairwise", "--dot", "w.npy", "x.npy", "--no-save")
    total = np.sum(w.astype(np.float32) * x.astype(np.float32))
    assert ran.first.split()[:3] == ["bracket", repr(float(total)), repr(float(total))]
    assert "5000 more" not in ran.err
    assert "more numbers were rounded to nearest" in ran.err
    assert fpsmt("sum", "--format", "float32", "--exact", "--file", "w.npy", "--no-save").code == 2
    np.save(tmp_path / "huge.npy", np.full(5000, 1e6))
    ran = fpsmt("sum", "--format", "float16", "--file", "huge.npy", "--no-save")
    assert ran.code == 2
    assert "beyond the range of float16" in ran.err


def test_overflow_leaves_no_bound(fpsmt: Fpsmt, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([60000.0, -60000.0] * 2500))
    ran = fpsmt("sum", "--format", "float16", "--file", "x.npy")
    assert ran.code == 3
    assert ran.first.startswith("bracket -inf inf reached ")
    assert "NaN is" in ran.out


def test_damaged_results_are_noticed(fpsmt: Fpsmt, tmp_path: Path) -> None:
    fpsmt("sum", "--format", "float16", "--extremes", "2048", "1", "1")
    file = Path(saved(tmp_path))
    data = json.loads(file.read_text())
    data.pop("sha256")
    data["result"]["high"] = "0x1p+12"
    file.write_text(json.dumps(data))
    ran = fpsmt("check", str(file))
    assert ran.code == 1
    data["result"]["high"] = data["claim"]["statement"]["high"][1]
    data["evidence"]["found"]["schedules"]["high"]["schedule"] = [[0, 1], 2]
    file.write_text(json.dumps(data))
    ran = fpsmt("replay", str(file))
    assert ran.code == 4
