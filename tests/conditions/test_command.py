"""``fpsmt conditions``: the table, the first line, the exit codes, and evidence that is verified again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fpsmt.cli import main


def run(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    code = main(["conditions", *words])
    out, err = capfd.readouterr()
    return code, out.splitlines(), err


def test_break_even(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    words = ["--activation", "sigmoid,gelu,cosh", "--format", "float8_e4m3", "--json", str(file), "--no-save"]
    code, lines, _ = run(capfd, *words)
    assert code == 1 and lines[0] == "conditions 3 proved 2 refuted 1 unknown 0"
    assert [line.split()[2] for line in lines[2:]] == ["0", "2", "none"]
    data = json.loads(file.read_text())
    assert [row["largest"] for row in data["result"]["rows"]] == [0, 2, None]
    assert main(["check", str(file)]) == 0
    assert "5 verified 0 failed" in capfd.readouterr().out


def test_the_table(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A column for each K from 0 to 10 beside the largest K, with a verdict for every one of them."""
    file = tmp_path / "result.json"
    words = ["--table", "--activation", "gelu,identity", "--format", "float8_e4m3", "--json", str(file), "--no-save"]
    code, lines, _ = run(capfd, *words)
    assert code == 0 and lines[0] == "conditions 2 proved 2 refuted 0 unknown 0"
    assert [line.split()[2:14] for line in lines[2:]] == [["+"] * 3 + ["-"] * 8 + ["2"], ["+"] + ["-"] * 10 + ["0"]]
    data = json.loads(file.read_text())
    first = data["result"]["rows"][0]
    assert [first["ulps"][str(k)] for k in range(11)] == ["proved"] * 3 + ["refuted"] * 8
    assert first["largest"] == 2 and first["exact"]
    assert main(["check", str(file)]) == 0
    assert "22 verified 0 failed" in capfd.readouterr().out


def test_given_errors_and_windows(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    common = ["--activation", "relu", "--format", "float8_e5m2", "--out", str(tmp_path)]
    code, lines, err = run(capfd, *common, "--ulps", "0")
    assert code == 1 and lines[0] == "conditions 1 proved 0 refuted 1 unknown 0" and "saved" in err
    code, lines, _ = run(capfd, *common, "--ulps", "0,1", "--point", "1/4..4", "--value", "1/4..8")
    assert lines[1].split()[:4] == ["format", "activation", "K=0", "K=1"] and lines[2].split()[2] == "proved"
    windows = ["--zero", "1/4", "--one", "1/4..1", "--point", "1/2..3", "--value", "1/4..4"]
    common = ["--activation", "identity", "--format", "ieee(3,3)", "--no-save"]
    code, lines, _ = run(capfd, *common, "--ulps", "0", *windows)
    assert code == 0 and lines[0] == "conditions 1 proved 1 refuted 0 unknown 0"


def test_the_interval_condition(capfd: pytest.CaptureFixture[str]) -> None:
    code, lines, _ = run(capfd, "--interval", "--activation", "tanh,cosh", "--format", "float8_e5m2", "--no-save")
    assert code == 1 and [line.split()[2] for line in lines[2:]][1] == "refuted"


@pytest.mark.parametrize(("words", "why"), [
    (["--activation", "sinn"], "unknown function 'sinn'"),
    (["--format", "float7"], "unknown format 'float7'"),
    (["--ulps", "many"], "--ulps many: write whole numbers"),
    (["--one", "1"], "--one 1: write LO..HI"),
    (["--one", "2..1"], "is no window"),
    (["--zero", "inf"], "--zero inf: write a finite number"),
    (["--activation", ","], "name at least one activation"),
    (["--interval", "--ulps", "1"], "--interval has no other parameters"),
    (["--interval", "--table"], "--interval has no other parameters"),
    (["--table", "--ulps", "1"], "--table has a column for each K"),
    (["--format", "ieee(2,2)"], "too small for the default windows"),
])  # fmt: skip
def test_one_line_for_each_mistake(words: list[str], why: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, lines, err = run(capfd, *words, "--no-save")
    assert code == 2 and not lines and why in err and err.count("\n") == 1
