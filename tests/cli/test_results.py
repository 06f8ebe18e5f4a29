"""`fpsmt replay` and `fpsmt check` on good files and on files that lie."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fpsmt import kernel
from fpsmt.claims import PredictionInvariant, SumInvariant, SumOutcomes
from fpsmt.claims.predictions import counterexample
from fpsmt.display.trees import MARK
from fpsmt.engines import decide
from fpsmt.floats import context, exactly, float16, float32
from fpsmt.kernel import read_result, verdict_to_json, write_result
from fpsmt.networks import Network, execution
from fpsmt.networks.outcomes import Sum
from fpsmt.networks.trees import left_fold
from tests.cli.conftest import Fpsmt

THREE = Sum(context("float16"), tuple(exactly(float16, v) for v in (2048, 1, 1)))


@pytest.fixture
def saved(fpsmt: Fpsmt) -> dict[str, Any]:
    """The result of a sum with the outcomes 2048 and 2050."""
    fpsmt("sum", "--no-save", "--format", "float16", "--order", "contiguous", "--json", "r.json", "2048", "1", "1")
    return read_result(Path("r.json"))


def changed(data: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> str:
    """A file with a good checksum and a changed content."""
    data = copy.deepcopy(data)
    data.pop("sha256")
    change(data)
    write_result(Path("changed.json"), data)
    return "changed.json"


def test_replay(fpsmt: Fpsmt, saved: dict[str, Any]) -> None:
    ran = fpsmt("replay", "r.json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "replay 2 of 2 reproduced\n"
        "\n"
        "sum, result 2048.0: reproduced\n"
        "  stored     0x6800\n"
        "  reference  0x6800\n"
        "  again      0x6800 (numpy float16)\n"
        "  ((0+1)+2) = <float16 2048.0 = 0x1p+11 = 0x6800>\n"
        "\n"
        "sum, result 2050.0: reproduced\n"
        "  stored     0x6801\n"
        "  reference  0x6801\n"
        "  again      0x6801 (numpy float16)\n"
        "  (0+(1+2)) = <float16 2050.0 = 0x1.004p+11 = 0x6801>\n"
        "\n"
        "sum, where two schedules part:\n"
        "  2048.0:\n"
        "    + = 2048.0   (error -1, -0.5 ulp)\n"
        "    |-- + = 2048.0   (error -1, -0.5 ulp)   <-- they part here\n"
        "    |   |-- 2048.0\n"
        "    |   `-- 1.0\n"
        "    `-- 1.0\n"
        "\n"
        "  2050.0:\n"
        "    + = 2050.0\n"
        "    |-- 2048.0\n"
        "    `-- + = 2.0   <-- they part here\n"
        "        |-- 1.0\n"
        "        `-- 1.0\n"
    )


@pytest.mark.parametrize("more", [0, 120])
def test_replay_of_a_prediction_shows_where_it_parts(fpsmt: Fpsmt, more: int) -> None:
    """Both trees with the value and the error at each node; of a large sum the path to where they part."""
    row = [2.0**24, 1, 1, -(2.0**24), *[0.0] * more]
    network = Network.sequential(float32, len(row), [([row], [-1.5]), "relu", ([[1], [0]], [0, 0.25])])
    claim = PredictionInvariant(network, (tuple(exactly(float32, 1) for _ in row),), execution())
    trees = [left_fold(range(len(row) + 1)), left_fold([(0, ((1, 2), 3)), *range(4, len(row) + 1)])]
    refuted = kernel.refute(claim, counterexample(0, ({("affine1", 0): trees[0]}, {("affine1", 0): trees[1]})))
    write_result(Path("r.json"), {"command": "decide", **kernel.verdict_to_json(refuted)})
    ran = fpsmt("replay", "r.json")
    assert ran.code == 0
    shown = ran.out[ran.out.index("the first sum with two results:") :]
    assert shown.count(MARK) == 2 and "  under s:" in shown and "  under t:" in shown
    assert "error -1, -0.5 ulp" in shown
    assert ran.out.count("under s:") == 2 and len(shown.splitlines()) < 60
    assert ("nodes ..." in shown) == bool(more)


def test_check(fpsmt: Fpsmt, saved: dict[str, Any]) -> None:
    ran = fpsmt("check", "r.json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "check 1 verified 0 failed 0 unknown\nverified  sum: proved by all schedules\n"
    data = json.loads(fpsmt("check", "r.json", "--json", "-").out)
    assert data["verdict"] == "proved"
    assert data["claim"]["hash"] == saved["claim"]["hash"]


def _bits(data: dict[str, Any]) -> None:
    data["result"]["outcomes"][1]["bits"] = "0x6802"


def _schedule(data: dict[str, Any]) -> None:
    data["result"]["outcomes"][1]["schedule"] = [[0, 1], 2]


def _foreign(data: dict[str, Any]) -> None:
    data["result"]["outcomes"][1]["schedule"] = [[0, 2], 1]


def _omitted(data: dict[str, Any]) -> None:
    del data["result"]["outcomes"][1]


def _statement(data: dict[str, Any]) -> None:
    data["claim"]["statement"]["outcomes"].pop()


def _rule(data: dict[str, Any]) -> None:
    data["evidence"]["rule"] = "trust me"


def _no_evidence(data: dict[str, Any]) -> None:
    data["evidence"] = None


def _other_claim(data: dict[str, Any]) -> None:
    """A false claim with a right hash: the evidence has to fail."""
    claim = SumOutcomes(THREE, (exactly(float16, 2048),))
    data["claim"] = {"text": claim.text, "hash": claim.hash, "statement": claim.to_json()}
    data["result"] = {}


LIES = [_bits, _schedule, _foreign, _omitted, _statement, _rule, _no_evidence, _other_claim]


@pytest.mark.parametrize("lie", LIES)
def test_check_finds(fpsmt: Fpsmt, saved: dict[str, Any], lie: Callable[[dict[str, Any]], None]) -> None:
    ran = fpsmt("check", changed(saved, lie))
    assert (ran.code, ran.err) == (1, "")
    assert ran.first == "check 0 verified 1 failed 0 unknown"


@pytest.mark.parametrize("lie", [_bits, _schedule, _foreign])
def test_replay_finds(fpsmt: Fpsmt, saved: dict[str, Any], lie: Callable[[dict[str, Any]], None]) -> None:
    ran = fpsmt("replay", changed(saved, lie))
    assert ran.code == 4
    assert ran.first == "replay 1 of 2 reproduced"
    assert ran.err == "fpsmt: 1 of 2 executions of changed.json are not reproduced\n"


def test_refuted_invariance(fpsmt: Fpsmt) -> None:
    verdict = decide(SumInvariant(THREE))
    assert verdict.name == "refuted"
    write_result(Path("refuted.json"), verdict_to_json(verdict))
    ran = fpsmt("replay", "refuted.json")
    assert ran.code == 0
    assert ran.first == "replay 3 of 3 reproduced"
    assert "  it violates ∀ schedules" in ran.out
    assert fpsmt("check", "refuted.json").code == 0
    data = verdict_to_json(verdict)
    data["counterexample"]["schedules"] = [[[0, 1], 2], [[0, 2], 1]]
    write_result(Path("same.json"), data)
    assert fpsmt("replay", "same.json").code == 4
    assert fpsmt("check", "same.json").code == 1


def test_refuted_outcomes(fpsmt: Fpsmt) -> None:
    claim = SumOutcomes(THREE, tuple(exactly(float16, v) for v in (2047, 2048, 2050)))
    verdict = decide(claim)
    assert verdict.name == "refuted"
    write_result(Path("never.json"), verdict_to_json(verdict))
    ran = fpsmt("replay", "never.json")
    assert ran.code == 0
    assert "never reached: 2047.0" in ran.out
    assert fpsmt("check", "never.json").code == 0


def test_nothing_to_do(fpsmt: Fpsmt) -> None:
    claim = SumInvariant(Sum(context("float16"), (exactly(float16, 1), exactly(float16, 2))))
    write_result(Path("proved.json"), verdict_to_json(decide(claim)))
    ran = fpsmt("replay", "proved.json")
    assert ran.code == 2
    assert ran.err.startswith("fpsmt: proved.json holds no counterexample and no schedule to replay")
    write_result(Path("unknown.json"), verdict_to_json(kernel.Unknown(claim, "too hard", 0.0)))
    ran = fpsmt("check", "unknown.json")
    assert ran.code == 3
    assert ran.first == "check 0 verified 0 failed 1 unknown"
