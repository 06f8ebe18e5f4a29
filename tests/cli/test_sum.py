"""`fpsmt sum`: outcomes, JSON, saved files."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import pytest

from fpsmt.kernel import read_result
from tests.cli.conftest import Fpsmt

FOUR = ["32000"] * 4 + ["-32000"] * 4
DOT = ["--dot", "1,0x1.0008p0", "-0x1.001p0,0x1.0008p0"]


def outcomes(first: str) -> set[str]:
    words = first.split()
    assert words[:2] == ["outcomes", "exact"]
    assert int(words[2]) == len(words) - 3
    return set(words[3:])


@pytest.mark.parametrize(
    ("options", "terms", "expected"),
    [
        (["--order", "any"], FOUR, {"0.0", "inf", "-inf", "nan"}),
        (["--order", "sequential"], FOUR, {"0.0", "inf", "-inf"}),
        (["--order", "contiguous"], FOUR, {"0.0", "inf", "-inf", "nan"}),
        (["--accumulator", "float32"], FOUR, {"0.0"}),
        ([], ["32000", "32000", "-32000", "-32000"], {"0.0"}),
        ([], ["32000"] * 3 + ["-32000"] * 3, {"0.0", "inf", "-inf", "nan"}),
        ([], ["7"], {"7.0"}),
        ([], ["-0"], {"-0.0"}),
        ([], ["inf", "-inf"], {"nan"}),
        ([], ["nan", "1"], {"nan"}),
        (["--order", "left-to-right"], ["2048", "1", "1"], {"2048.0"}),
        (["--order", "right-to-left"], ["2048", "1", "1"], {"2050.0"}),
        (["--order", "((1+2)+0)"], ["2048", "1", "1"], {"2050.0"}),
        (["--bias", "-1", "--bias-place", "last"], ["2048", "1"], {"2047.0"}),
        (["--bias", "-1", "--bias-place", "any"], ["2048", "1"], {"2047.0", "2048.0"}),
    ],
)
def test_outcomes(fpsmt: Fpsmt, options: list[str], terms: list[str], expected: set[str]) -> None:
    ran = fpsmt("sum", "--no-save", "--format", "float16", *options, *terms)
    assert (ran.code, ran.err) == (0, "")
    assert outcomes(ran.first) == expected


@pytest.mark.parametrize(
    ("fma", "expected"),
    [("never", {"0.0"}), ("any", {"0.0", repr(2.0**-26)}), ("always", {"0.0", repr(2.0**-26)})],
)
def test_contraction(fpsmt: Fpsmt, fma: str, expected: set[str]) -> None:
    ran = fpsmt("sum", "--no-save", "--format", "float32", "--fma", fma, *DOT)
    assert ran.code == 0
    assert outcomes(ran.first) == expected


def test_exact_products(fpsmt: Fpsmt) -> None:
    ran = fpsmt("sum", "--no-save", "--format", "float32", "--products", "exact", *DOT)
    assert outcomes(ran.first) == {repr(2.0**-26)}


@pytest.mark.parametrize("form", ["-2^-3", "-0x1p-3", "-1/8", "-.125", "-1.25e-1"])
def test_negative_numbers_are_terms(fpsmt: Fpsmt, form: str) -> None:
    ran = fpsmt("sum", "--no-save", "--format", "float16", form, "--exact")
    assert (ran.code, ran.first) == (0, "outcomes exact 1 -0.125")


def test_text(fpsmt: Fpsmt) -> None:
    ran = fpsmt("sum", "--no-save", "--format", "float16", "--order", "contiguous", "2048", "1", "1")
    assert ran.out == (
        "outcomes exact 2 2048.0 2050.0\n"
        "2 outcomes: 2048.0 + 1.0 + 1.0 in float16, contiguous\n"
        "  value   hex          bits    sign exponent fraction  schedule\n"
        "  2048.0  0x1p+11      0x6800  0 11010 0000000000      ((0+1)+2)\n"
        "  2050.0  0x1.004p+11  0x6801  0 11010 0000000001      (0+(1+2))\n"
        "\n"
        "2048.0:\n"
        "  + = 2048.0   (error -1, -0.5 ulp)\n"
        "  |-- + = 2048.0   (error -1, -0.5 ulp)   <-- they part here\n"
        "  |   |-- 2048.0\n"
        "  |   `-- 1.0\n"
        "  `-- 1.0\n"
        "\n"
        "2050.0:\n"
        "  + = 2050.0\n"
        "  |-- 2048.0\n"
        "  `-- + = 2.0   <-- they part here\n"
        "      |-- 1.0\n"
        "      `-- 1.0\n"
    )


def test_trees_only_when_few_or_asked_for(fpsmt: Fpsmt) -> None:
    many = ["2048", "1", "3", "5", "0.5", "7", "4096", "-4098"]
    plain = fpsmt("sum", "--no-save", "--format", "float16", *many)
    drawn = fpsmt("sum", "--no-save", "--format", "float16", "--trees", *many)
    assert len(outcomes(plain.first)) > 4
    assert "|--" not in plain.out
    assert "|--" in drawn.out


def test_rounded_numbers_are_told(fpsmt: Fpsmt) -> None:
    ran = fpsmt("sum", "--no-save", "--format", "float16", "0.1", "1")
    assert ran.err == "fpsmt: note: 0.1 is not a value of float16: rounded to nearest, 0.0999755859375 = 0x1.998p-4\n"
    ran = fpsmt("sum", "--no-save", "--format", "float16", *["0.1"] * 5)
    assert ran.err.splitlines()[3:] == ["fpsmt: note: 2 more numbers were rounded to nearest; --exact refuses them"]


def test_moot_options_are_told(fpsmt: Fpsmt) -> None:
    ran = fpsmt("sum", "--no-save", "--format", "float16", "--fma", "any", "--products", "exact", "1")
    assert ran.code == 0
    assert ran.err.count("has no effect") == 2


def test_arrays(fpsmt: Fpsmt, tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.array([1, 1.0 + 2.0**-13], np.float32))
    np.save(tmp_path / "x.npy", np.array([-(1 + 2.0**-12), 1 + 2.0**-13]))
    ran = fpsmt("sum", "--no-save", "--format", "float32", "--fma", "any", "--dot", "w.npy", "x.npy")
    assert outcomes(ran.first) == {"0.0", repr(2.0**-26)}
    np.save(tmp_path / "b.npy", np.array([1.5, -3, np.inf], ml_dtypes.bfloat16))
    ran = fpsmt("sum", "--no-save", "--format", "bfloat16", "b.npy", "-inf")
    assert outcomes(ran.first) == {"nan"}
    np.save(tmp_path / "i.npy", np.array([2048, 1, 1]))
    ran = fpsmt("sum", "--no-save", "--format", "float16", "i.npy")
    assert outcomes(ran.first) == {"2048.0", "2050.0"}


def test_rounding_rules(fpsmt: Fpsmt) -> None:
    terms = ["256", "256", "-256"]
    saturating = fpsmt("sum", "--no-save", "--format", "float8_e4m3fn:saturate", *terms)
    assert outcomes(saturating.first) == {"256.0", "192.0"}
    overflowing = fpsmt("sum", "--no-save", "--format", "float8_e4m3fn:nan", *terms)
    assert outcomes(overflowing.first) == {"256.0", "nan"}


def test_json_on_stdout_is_all_there_is(fpsmt: Fpsmt) -> None:
    ran = fpsmt("sum", "--no-save", "--format", "float32", "--fma", "any", "--json", "-", *DOT)
    data = json.loads(ran.out)
    assert ran.code == 0
    assert data["schema"] == 1
    assert data["command"] == "sum"
    assert data["verdict"] == "proved"
    assert set(data["claim"]) >= {"text", "hash"}
    assert data["result"]["exact"] is True
    listed = data["result"]["outcomes"]
    assert [(float.fromhex(o["value"]), o["bits"]) for o in listed] == [(0.0, "0x00000000"), (2.0**-26, "0x32800000")]
    assert listed[1]["schedule"] == ["fma", 1, 0]


def test_files_are_saved(fpsmt: Fpsmt, tmp_path: Path) -> None:
    ran = fpsmt("sum", "--format", "float16", "--json", "mine.json", "1", "2")
    saved = sorted(path.name for path in (tmp_path / "fpsmt-results").iterdir())
    name = saved[0].removesuffix(".json")
    assert saved == [f"{name}.json", f"{name}.py"]
    assert ran.err == (
        f"fpsmt: saved fpsmt-results/{name}.json\n"
        f"fpsmt: saved fpsmt-results/{name}.py, which reproduces every outcome with numpy alone\n"
    )
    data = read_result(tmp_path / "fpsmt-results" / saved[0])
    assert name == "sum-" + data["claim"]["hash"][:8]
    assert data == read_result(tmp_path / "mine.json")
    fpsmt("sum", "--format", "float16", "--out", "else/where", "1")
    assert len(list((tmp_path / "else" / "where").iterdir())) == 2
    fpsmt("sum", "--format", "float16", "--out", "none", "--no-save", "1")
    assert not (tmp_path / "none").exists()


def test_too_large(fpsmt: Fpsmt) -> None:
    terms = [str(k * k + 1) for k in range(40)]
    ran = fpsmt("sum", "--format", "ieee(15,113)", "--json", "r.json", *terms)
    assert ran.code == 3
    first, reason, step = ran.out.splitlines()
    assert first == "outcomes unknown"
    assert reason.startswith("reason: ")
    assert step.startswith("next step: ")
    data = read_result(Path("r.json"))
    assert data["verdict"] == "unknown"
    assert data["result"] == {"exact": False}
    assert fpsmt("check", "r.json").code == 3


@pytest.mark.parametrize(("count", "limit", "word"), [(40, "60", "bracket"), (18, "60", "extremes"), (18, "0.3", "")])
def test_less_is_said_when_the_set_is_too_large(fpsmt: Fpsmt, count: int, limit: str, word: str) -> None:
    terms = [f"{k * k + 1}/{k + 7}" for k in range(count)]
    ran = fpsmt("sum", "--format", "float16", "--json", "r.json", "--timeout", limit, *terms)
    assert "the exact set of outcomes" in ran.err
    if word:
        assert ran.code == 0
        assert ran.first.split()[0] == word
        assert fpsmt("check", "r.json").code == 0
    else:
        assert ran.first.split()[0] in ("extremes", "bracket", "outcomes")


def test_deep_trees(fpsmt: Fpsmt, tmp_path: Path) -> None:
    np.save(tmp_path / "ones.npy", np.ones(1100))
    ran = fpsmt("sum", "--format", "float16", "--order", "left-to-right", "ones.npy", "2048")
    assert outcomes(ran.first) == {"3148.0"}
    (file,) = (tmp_path / "fpsmt-results").glob("*.json")
    assert fpsmt("replay", str(file)).first == "replay 1 of 1 reproduced"
    assert fpsmt("check", str(file)).code == 0


THREE = ["sum", "--no-save", "--format", "float16", "2048", "1", "1"]


def test_plots(fpsmt: Fpsmt, tmp_path: Path) -> None:
    for extra in ([], ["--extremes"]):
        ran = fpsmt(*THREE, *extra, "--plot", "p.svg")
        assert (ran.code, ran.err) == (0, "fpsmt: saved p.svg\n")
        assert ElementTree.fromstring(Path("p.svg").read_text(encoding="utf-8")).tag.endswith("svg")
        assert fpsmt(*THREE, *extra, "--plot", "p.html").code == 0
        page = Path("p.html").read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>") and page.count("<svg") == 2 and page.count(" parting") == 2
    assert "a sample: 1000 random schedules" in fpsmt(*THREE, "--plot", "-").out
    data = fpsmt(*THREE, "--plot", "-", "--json", "-").out
    assert json.loads(data)["verdict"] == "proved"


def test_plot_of_a_bracket(fpsmt: Fpsmt) -> None:
    terms = [str(1 + k / 64) for k in range(40)]
    ran = fpsmt("sum", "--no-save", "--format", "float16", "--extremes", "--timeout", "3", "--plot", "-", *terms)
    assert "a bracket: every result is in [" in ran.out and "reached [" in ran.out


@pytest.mark.parametrize(("name", "message"), [
    ("p.png", "name a file that ends in .svg or .html, or - for the terminal"), ("no/p.svg", "no is no folder"),
])  # fmt: skip
def test_plots_that_cannot_be_written(fpsmt: Fpsmt, name: str, message: str) -> None:
    ran = fpsmt(*THREE, "--plot", name)
    assert ran.code == 2 and message in ran.err and ran.out == ""


def test_extremes_with_trees(fpsmt: Fpsmt) -> None:
    assert fpsmt(*THREE, "--extremes", "--trees").out.count("<-- they part here") == 2
    assert "<--" not in fpsmt(*THREE, "--extremes").out
