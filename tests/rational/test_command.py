"""``fpsmt approximate``."""

from __future__ import annotations

import json
from fractions import Fraction as F
from pathlib import Path

import pytest

from fpsmt.cli import main
from fpsmt.engines import Options
from fpsmt.engines.smallest import Question, by_minimax, by_network
from fpsmt.kernel import check_verdict
from fpsmt.rational import Rational, named


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["approximate", *words])
        out, err = capfd.readouterr()
        return code, out, err

    return call


def test_the_best_rational_of_a_type(run, tmp_path, capfd):
    code, out, err = run("tanh", "--interval", "0,8", "--type", "4,4", "--json", "r.json")
    assert code == 0 and out.startswith("approximate error ") and " type 4,4\n" in out and "saved" in err
    data = json.loads((tmp_path / "r.json").read_text())
    result = data["result"]
    low, high = (float.fromhex(result[name]) for name in ("error_low", "error_high"))
    assert F(low) <= F(result["exact_low"]) <= F(result["exact_high"]) <= F(high) < F(low) * F(1002, 1000)
    r = Rational.from_json(result["rational"])
    there = abs(named("tanh").ball(F(result["at"]), 100) - float(r(F(result["at"]))))
    assert low * 0.999 <= float(there) <= high * 1.001
    assert data["verdict"] == "proved" and result["best"]["verdict"] == "proved"
    assert main(["check", "r.json"]) == 0
    assert capfd.readouterr().out.startswith("check 1 verified")


def test_an_error_that_is_asked_for(run):
    code, out, _ = run("exp", "--interval", "-1,1", "--error", "1e-6", "--relative", "--no-save", "--json", "-")
    data = json.loads(out)
    assert code == 0 and data["result"]["type"] == [3, 3] and data["result"]["relative"]
    code, out, _ = run("sigmoid", "--interval", "-1,1", "--error", "1e-6", "--method", "network", "--no-save")
    assert code == 0 and "parameters" in out.split("\n")[0]


def test_networks_below_what_one_enclosure_reaches(run, tmp_path, capfd):
    words = ["gelu_tanh", "--interval", "-1,1", "--error", "1e-12", "--method", "network", "--json", "r.json"]
    code, out, _ = run(*words)
    assert code == 0 and "by triangle inequality; the lower bound is at" in out
    assert main(["check", "r.json"]) == 0
    assert capfd.readouterr().out.startswith("check 1 verified")


def test_the_smallest(run, tmp_path, capfd):
    code, out, _ = run("exp", "--interval", "-1,1", "--error", "1e-5", "--smallest", "degree", "--json", "r.json")
    assert code == 0 and out.splitlines()[1].split()[:3] == ["minimax", "parameters", "7"]
    assert "proved: no rational of degree 2 reaches the error asked for" in out
    data = json.loads((tmp_path / "r.json").read_text())
    others = data["result"]["alternatives"]
    assert {name: other["degree"] for name, other in others.items()} | {"network": ""} == {
        "minimax": "3", "polynomial": "6", "aaa": "3", "network": "",
    }  # fmt: skip
    assert all(float.fromhex(other["error_high"]) <= 1e-5 for other in others.values())
    assert data["result"]["fewer"]["verdict"] == "proved"
    assert main(["check", "r.json"]) == 0
    for words in (["--type", "3,3"], ["--error", "1e-3", "--method", "aaa"]):
        code, _, err = run("exp", "--interval", "-1,1", "--smallest", "degree", *words)
        assert code == 2 and "--smallest" in err


def test_the_format_in_which_it_holds(run, tmp_path, capfd):
    code, out, _ = run("tanh", "--interval", "0,2", "--error", "1e-5", "--format", "float32", "--json", "r.json")
    assert code == 0 and "proved in float32: " in out and "is within 1.0000e-5 of tanh" in out
    proof = json.loads((tmp_path / "r.json").read_text())["result"]["program"]
    assert proof["verdict"] == "proved" and check_verdict(proof).name == "proved"
    code, out, _ = run("tanh", "--interval", "0,2", "--type", "3,3", "--format", "float8_e4m3", "--no-save")
    assert code == 0 and "by all inputs exhausted" in out
    code, out, _ = run("exp", "--interval", "-1,1", "--error", "1e-9", "--format", "float32", "--no-save")
    assert code == 3 and "no program of the rational in float32 is proved to reach the error: the least is" in out
    code, _, err = run("exp", "--interval", "-1,1", "--error", "1e-3", "--format", "float32", "--relative")
    assert code == 2 and "--format F" in err


def test_compositions_have_fewer_parameters_and_larger_degrees():
    question = Question(named("relu"), (F(-1), F(1)), F(1, 1000))
    rational, composed = by_minimax(question, Options(), square=False), by_network(question, Options())
    assert composed.parameters < rational.parameters and rational.degree < composed.degree
    assert rational.best.rational.type == (8, 7) and composed.bounds.high <= F(1, 1000)


def test_aaa(run):
    code, out, _ = run("tanh", "--interval", "0,8", "--error", "1e-4", "--method", "aaa", "--no-save")
    assert code == 0 and "(a rational of type (4, 4))" in out
    code, out, _ = run("tanh", "--interval", "0,8", "--type", "3,3", "--method", "aaa", "--no-save", "--plot", "e.svg")
    assert code == 0 and "(a rational of type (3, 3))" in out and Path("e.svg").read_text().startswith("<?xml")


def test_the_law_of_sizes(run, tmp_path):
    words = ["relu", "--interval", "-1,1", "--law", "--no-save", "--plot", "law.svg", "--json", "-", "--timeout", "2"]
    code, out, _ = run(*words)
    rows = json.loads(out)["result"]["rows"]
    assert [row["parameters"] for row in rows] == [10, 14, 18, 26, 30, 34, 38, 42, 46]
    assert code == (0 if all(row["proved"] for row in rows) else 3)
    assert (tmp_path / "law.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (["tanh", "--interval", "0,8"], 2, "either --error E or --type M,N"),
        (["tanh", "--interval", "0,8", "--type", "2,2", "--error", "1"], 2, "either --error E or --type M,N"),
        (["tanh", "--interval", "8,0", "--type", "2,2"], 2, "LO < HI"),
        (["tanh", "--interval", "0,inf", "--type", "2,2"], 2, "LO < HI"),
        (["tanh", "--interval", "0,1", "--type", "2"], 2, "two degrees"),
        (["tanh", "--interval", "0,1", "--error", "0"], 2, "positive"),
        (["tanh", "--interval", "0,1", "--error", "1e-3", "--method", "magic"], 2, "minimax, network, aaa"),
        (["sine", "--interval", "0,1", "--type", "2,2"], 2, "unknown function"),
        (["sin", "--interval", "0,1", "--error", "1e-3", "--method", "network"], 2, "no construction"),
        (["log", "--interval", "0,1", "--type", "2,2"], 2, "has no value"),
        (["tanh", "--interval", "0,1", "--law", "--error", "1"], 2, "errors of its own"),
        (["sin", "--interval", "0,1", "--law"], 2, "no construction"),
        (["abs", "--interval", "-1,1", "--type", "1,1"], 3, "no best rational"),
        (["tanh", "--interval", "0,8", "--type", "9,9", "--timeout", "0.05"], 3, "time limit"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, words, code, what):
    got, out, err = run(*words, "--no-save")
    assert got == code and what in (err if code == 2 else out)
    assert code == 3 or err.count("\n") == 1


@pytest.mark.parametrize(("ends", "low", "high"), [("1000,1001", 10**308, 0), ("-1001,-1000", 0, F(1, 10**308))])
def test_errors_that_no_float64_is_near(run, ends, low, high):
    """exp is about 1e434 at 1000."""
    code, out, _ = run("exp", f"--interval={ends}", "--type", "1,1", "--no-save", "--json", "-")
    result = json.loads(out)["result"]
    assert code == 0 and F(result["exact_low"]) > low and (not high or F(result["exact_high"]) < high)
    below, above = (float.fromhex(result[name]) for name in ("error_low", "error_high"))
    assert F(below) <= F(result["exact_low"]) and (above == float("inf") or F(result["exact_high"]) <= F(above))
    code, out, _ = run("exp", f"--interval={ends}", "--type", "1,1", "--no-save")
    assert code == 0 and "\n  0.0\n" not in out and ("e+43" if not high else "e-43") in out.split("\n")[0]
    code, out, _ = run("exp", f"--interval={ends}", "--type", "1,1", "--no-save", "--format", "bfloat16")
    assert code in (0, 3)
