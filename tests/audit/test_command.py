"""``fpsmt audit``: first line, exit codes, files, states, usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Fpsmt, fpsmt

__all__ = ["fpsmt"]


def test_a_program_is_proved_and_checked(fpsmt: Fpsmt) -> None:
    ran = fpsmt("audit", "--program", "sigmoid_stable", "--format", "float8_e4m3", "--ulps", "2", "--json", "a.json")
    assert ran.code == 0 and ran.first.startswith("audit max_ulps 0.96") and " exhaustive inputs 243 " in ran.first
    assert "proved " in ran.out
    data = json.loads(Path("a.json").read_text())
    result = data["result"]
    assert data["verdict"] == "proved" and result["exhaustive"]
    assert float.fromhex(result["max_ulps_low"]) <= float.fromhex(result["max_ulps"]) < 1
    assert set(result) >= {"max_ulps", "at", "range", "non_monotone", "nan", "infinite", "contract"}
    assert fpsmt("check", "a.json").code == 0


def test_a_violation_is_shown_and_replayed(fpsmt: Fpsmt) -> None:
    ran = fpsmt("audit", "--program", "tanh_rational", "--format", "float8_e4m3", "--ulps", "1", "--json", "a.json")
    assert ran.code == 1 and "refuted " in ran.out
    assert fpsmt("replay", "a.json").code == 0 and fpsmt("check", "a.json").code == 0


def test_routines_are_called(fpsmt: Fpsmt) -> None:
    text = "import numpy as np\ndef mine(x):\n    return np.minimum(np.maximum(x, 0), 1).astype(x.dtype)\n"
    Path("audited_here.py").write_text(text)
    ran = fpsmt("audit", "audited_here:mine", "--against", "relu", "--format", "float16", "--json", "a.json")
    assert ran.code == 0 and "infinite " in ran.out
    ran = fpsmt("audit", "numpy:tanh", "--against", "tanh", "--format", "float16", "--ulps", "3", "--no-save")
    assert ran.code == 0 and "table(float16" in ran.out
    ran = fpsmt("audit", "numpy:tanh", "--against", "tanh", "--ulps", "9", "--sample", "20000", "--no-save")
    assert ran.code == 3 and " sampled " in ran.first


def test_a_part_of_float32_and_a_picture(fpsmt: Fpsmt) -> None:
    words = ["--program", "tanh_rational | fma always", "--domain", "8.125:8.1875", "--exhaustive", "--plot", "p.svg"]
    ran = fpsmt("audit", *words)
    assert ran.code == 0 and Path("p.svg").exists() and "above range" in ran.out
    assert list(Path("fpsmt-results").glob("audit-*.json"))
    assert fpsmt("audit", *words, "--resume").code == 0


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["numpy:tanh"],
        ["numpy:tanh", "--program", "swish", "--against", "tanh"],
        ["--program", "relu6"],
        ["--program", "swish", "--format", "float17"],
        ["--program", "swish", "--ulps", "-1"],
        ["--program", "swish", "--domain", "1"],
        ["--program", "swish", "--domain", "2:1", "--format", "float16"],
        ["--program", "swish | fma any | exp ulps=1"],
        ["--program", "1/(1+", "--against", "swish"],
        ["numpy:nothing", "--against", "tanh"],
        ["nowhere_at_all:f", "--against", "tanh"],
        ["numpy:tanh", "--against", "than"],
        ["numpy:tanh", "--against", "tanh", "--sample", "0"],
    ],
)
def test_usage(fpsmt: Fpsmt, words: list[str]) -> None:
    ran = fpsmt("audit", *words, "--no-save")
    assert ran.code == 2 and ran.err.startswith("fpsmt: ") and ran.err.count("\n") == 1
