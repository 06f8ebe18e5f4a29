"""Bad input: one clear line on stderr, exit code 2, nothing on stdout."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fpsmt.errors import InternalError
from tests.cli.conftest import Fpsmt, start

S = ["sum", "--no-save", "--format", "float16"]

BAD = [
    ([], "no command: write one of prove, sum, replay, check"),
    (["summ"], "No such command 'summ'"),
    (["sum", "1"], "sum needs --format, e.g. --format float16"),
    (["sum", "--format"], "Option '--format' requires an argument"),
    (["sum", "--format", "fp8", "1"], "--format: unknown format 'fp8': write one of float64, "),
    (["sum", "--format", "float8_e4m3fn", "1"], "--format: float8_e4m3fn has no infinity: say overflow"),
    (["sum", "--format", "float16:sideways", "1"], "--format: unknown rounding rule 'sideways'"),
    ([*S], "no terms: a sum needs at least one value"),
    ([*S, "abc"], "cannot read 'abc' as a number: write a decimal"),
    ([*S, "1/0"], "cannot read '1/0' as a number: division by zero"),
    ([*S, "1e9"], "1e9 is beyond the range of float16, whose largest value is 65504.0"),
    ([*S, "-65520"], "-65520 is beyond the range of float16"),
    ([*S, "--exact", "0.1"], "terms: 0.1 is not a value of float16; the nearest is <float16 0.0999755859375"),
    (["sum", "--no-save", "--format", "float4_e2m1fn", "nan"], "nan is not a value of float4_e2m1fn"),
    (["sum", "--no-save", "--format", "float8_e4m3fn:nan", "-inf"], "-inf is not a value of float8_e4m3fn"),
    ([*S, "--bias", "q", "1"], "cannot read 'q' as a number"),
    ([*S, "--ordr", "any", "1"], "no such option --ordr: did you mean --order?"),
    ([*S, "-x", "1"], "no such option -x: see fpsmt sum --help"),
    ([*S, "--order", "zigzag", "1"], "--order: unknown order 'zigzag': write one of any, "),
    ([*S, "--order", "lanes", "1"], "--order: order 'lanes' needs a number"),
    ([*S, "--order", "((0+1)+2)", "1", "2"], "the order ((0+1)+2) is for 3 terms, and the sum has 2"),
    ([*S, "--order", "((0+1)+", "1", "2"], "--order: cannot read '((0+1)+' as a summation tree"),
    ([*S, "--order", "depth:1", "1", "2", "3"], "no tree of height 1 has 3 leaves"),
    ([*S, "--fma", "sometimes", "1"], "--fma 'sometimes': write one of never, always, any"),
    ([*S, "--bias-place", "middle", "1"], "--bias-place 'middle': write one of last, first, any"),
    ([*S, "--accumulator", "f", "1"], "--accumulator: unknown format 'f'"),
    ([*S, "--products", "f", "1"], "--products: unknown format 'f'"),
    ([*S, "--timeout", "-1", "1"], "--timeout -1: write a positive number of seconds"),
    ([*S, "--timeout", "inf", "1"], "--timeout inf: write a positive number of seconds"),
    ([*S, "--timeout", "soon", "1"], "Invalid value for '--timeout'"),
    ([*S, "--jobs", "0", "1"], "--jobs 0: write a positive number of processes"),
    ([*S, "--jobs", "1.5", "1"], "Invalid value for '--jobs'"),
    ([*S, "--json", "nowhere/x.json", "1"], "nowhere is not a folder: results cannot be written there"),
    ([*S, "--json", ".", "1"], "--json .: this is a folder; name a file, or - for stdout"),
    (["sum", "--format", "float16", "--out", "file/x", "1"], "file/x cannot be written"),
    ([*S, "--dot", "1,2", "1,2,3"], "--dot: W has 2 elements and X has 3: they must have one length"),
    ([*S, "--dot", "1,,2", "1,2,3"], "--dot, W: element 2 of the list '1,,2' is empty"),
    ([*S, "--dot", "1"], "Option '--dot' requires 2 arguments"),
    ([*S, "--dot", "1", "2", "3"], "unexpected '3': give the terms as values or by --dot, not both"),
    ([*S, "--dot", "three.npy", "four.npy"], "--dot: W has 3 elements and X has 4"),
    ([*S, "--dot", "missing.npy", "four.npy"], "missing.npy: no such file"),
    ([*S, "--dot", "empty.npy", "empty.npy"], "no terms: a sum needs at least one value"),
    ([*S, "--dot", "objects.npy", "four.npy"], "objects.npy cannot be read: it holds Python objects (pickled)"),
    ([*S, "--dot", "text.npy", "four.npy"], "text.npy holds elements of type <U1"),
    ([*S, "--dot", "complex.npy", "four.npy"], "complex.npy holds elements of type complex128"),
    ([*S, "--dot", "matrix.npy", "four.npy"], "matrix.npy has shape (2, 2): a vector with one dimension is needed"),
    ([*S, "--dot", "cut.npy", "four.npy"], "cut.npy cannot be read: it is truncated"),
    ([*S, "--dot", "pickle.npy", "four.npy"], "pickle.npy is not a .npy file: write it with numpy.save"),
    ([*S, "--dot", "header.npy", "four.npy"], "header.npy cannot be read"),
    ([*S, "--dot", "huge.npy", "four.npy"], "huge.npy cannot be read: it is truncated"),
    ([*S, "wide.npy"], "9999999 is beyond the range of float16"),
    (["prove", "--jobs", "0"], "--jobs 0"),
    (["prove", "--timeout", "0"], "--timeout 0"),
    (["prove", "--bogus"], "No such option: --bogus"),
    (["prove", "nowhere/"], "nowhere: no such proof script or folder"),
    (["prove", "loose.py"], "loose.py is not inside a folder named proofs"),
]  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Arrays of every bad kind."""
    np.save(tmp_path / "three.npy", np.ones(3))
    np.save(tmp_path / "four.npy", np.ones(4, np.float16))
    np.save(tmp_path / "empty.npy", np.ones(0))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.save(tmp_path / "text.npy", np.array(["a"]))
    np.save(tmp_path / "complex.npy", np.ones(2, complex))
    np.save(tmp_path / "matrix.npy", np.ones((2, 2)))
    np.save(tmp_path / "wide.npy", np.array([9999999]))
    whole = (tmp_path / "four.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-3])
    (tmp_path / "pickle.npy").write_bytes(b"\x80\x04K\x01.")
    (tmp_path / "header.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + b"{broken".ljust(0x76))
    (tmp_path / "huge.npy").write_bytes(whole.replace(b"(4,), }" + b" " * 11, b"(400000000000,), }"))
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "loose.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda x: " ".join(x)[:60] if isinstance(x, list) else "")
def test_usage(fpsmt: Fpsmt, files: Path, arguments: list[str], message: str) -> None:
    ran = fpsmt(*arguments)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.replace(str(files) + "/", "").splitlines()
    assert line.startswith(f"fpsmt: {message}")


BAD_RESULTS = {
    "missing.json": "missing.json: no such file",
    "cut.json": "cut.json is not a whole JSON file (truncated?)",
    "damaged.json": "damaged.json is damaged: its checksum does not match its content",
    "newer.json": "newer.json has schema 99; this version reads up to 1: update fpsmt",
    "list.json": "list.json is not a result file: it has no schema number",
    "bytes.json": "bytes.json cannot be read",
    "folder.json": "folder.json cannot be read",
    "empty.json": "empty.json holds no verdict",
    "obligation.json": "obligation.json: an obligation cannot be read: it lacks 'case'",
}


@pytest.mark.parametrize("command", ["replay", "check"])
@pytest.mark.parametrize("name", BAD_RESULTS)
def test_unreadable_results(fpsmt: Fpsmt, tmp_path: Path, command: str, name: str) -> None:
    fpsmt("sum", "--no-save", "--format", "float16", "--json", "good.json", "2048", "1", "1")
    text = Path("good.json").read_text(encoding="utf-8")
    good = json.loads(text)
    Path("cut.json").write_text(text[: len(text) // 2], encoding="utf-8")
    Path("damaged.json").write_text(text.replace("0x6801", "0x6802"), encoding="utf-8")
    Path("newer.json").write_text(json.dumps({**good, "schema": 99}), encoding="utf-8")
    Path("list.json").write_text("[1]", encoding="utf-8")
    Path("bytes.json").write_bytes(b"\xff\xfe\x00")
    Path("folder.json").mkdir()
    Path("empty.json").write_text('{"schema": 1}', encoding="utf-8")
    Path("obligation.json").write_text('{"schema": 1, "result": {"obligations": [{"spec": "x"}]}}', encoding="utf-8")
    ran = fpsmt(command, name)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith(f"fpsmt: {BAD_RESULTS[name]}")


@pytest.mark.parametrize("error", [InternalError("two and two make five"), ZeroDivisionError("by zero")])
def test_internal_errors(fpsmt: Fpsmt, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def broken(problem: object) -> None:
        raise error

    monkeypatch.setattr("fpsmt.engines.sums.outcomes", broken)
    ran = fpsmt(*S, "1")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith("fpsmt: internal error: ")
    assert ran.err.count("\n") == 1
    monkeypatch.setenv("FPSMT_DEBUG", "1")
    ran = fpsmt(*S, "1")
    assert ran.code == 4
    assert "Traceback" in ran.err


def test_interrupt(fpsmt: Fpsmt, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(problem: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fpsmt.engines.sums.outcomes", interrupted)
    ran = fpsmt(*S, "1")
    assert (ran.code, ran.out, ran.err) == (130, "", "fpsmt: interrupted\n")


def test_help_and_version(fpsmt: Fpsmt) -> None:
    ran = fpsmt("--help")
    assert (ran.code, ran.err) == (0, "")
    assert all(name in ran.out for name in ("prove", "sum", "replay", "check"))
    assert fpsmt("sum", "--help").code == 0
    assert fpsmt("--version").out.startswith("fpsmt ")


def test_closed_pipe_is_quiet(tmp_path: Path) -> None:
    process = start(tmp_path, *S[:1], "--format", "float16", "--trees", "2048", "1", "1", stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    assert process.wait(60) == 0
    assert [line.split()[1] for line in errors.splitlines()] == ["saved", "saved"]
