"""`fpsmt prove` on small folders of specs and proofs, as a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from fpsmt.kernel import read_result
from tests.cli.conftest import Fpsmt, Ran, start

SPECS = '''
from fpsmt.claims import Case, SumInvariant, spec
from fpsmt.floats import context, exactly, float16
from fpsmt.networks.outcomes import Sum


def claim(*terms):
    return SumInvariant(Sum(context("float16"), tuple(exactly(float16, t) for t in terms)))


@spec("tiny.good", source="a test", cases=[Case({"n": 1}), Case({"n": 2048}, expected="refuted")])
def good(n):
    """The sum n + 1 + 1 does not depend on its order."""
    return claim(n, 1, 1)


@spec("tiny.wrong", source="a test", cases=[Case({})])
def wrong():
    return claim(2048, 1, 1)


@spec("tiny.slow", source="a test", cases=[Case({"n": n}) for n in range(3)])
def slow(n):
    return claim(n)


@spec("tiny.long", source="a test", cases=[Case({"n": 1}), Case({"n": 2}, quick=False)])
def long(n):
    return claim(n)


@spec("tiny.bad", source="a test", cases=[Case({"how": how}) for how in ("killed", "usage", "broken")])
def bad(how):
    return claim(len(how))
'''

PROOFS = {
    "good": 'proof("tiny.good")(lambda claim, options, n: decide(claim, options))',
    "wrong": 'proof("tiny.wrong")(lambda claim, options: decide(claim, options))',
    "slow": 'proof("tiny.slow")(lambda claim, options, n: time.sleep(300))',
    "long": 'proof("tiny.long")(lambda claim, options, n: decide(claim, options))',
    "bad": """
        @proof("tiny.bad")
        def bad(claim, options, how):
            if how == "killed":
                os.kill(os.getpid(), 9)
            raise UsageError("not like this") if how == "usage" else ZeroDivisionError("broken")
    """,
    "unreadable": "this is no Python",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "specs").mkdir()
    (tmp_path / "proofs").mkdir()
    (tmp_path / "specs" / "tiny.py").write_text(SPECS)
    return tmp_path


def add(project: Path, *names: str) -> None:
    head = (
        "import os, time\nimport specs.tiny\nfrom fpsmt.claims import proof\nfrom fpsmt.engines import decide\n"
        "from fpsmt.errors import UsageError\n"
    )
    for name in names:
        (project / "proofs" / f"{name}.py").write_text(head + textwrap.dedent(PROOFS[name]) + "\n")


def prove(project: Path, *arguments: str) -> Ran:
    process = start(project, "prove", *arguments)
    out, err = process.communicate(timeout=120)
    return Ran(process.returncode, out, err)


def stored(project: Path) -> dict[str, Any]:
    (path,) = (project / "fpsmt-results").glob("prove-*.json")
    return read_result(path)


def test_expected_verdicts(project: Path, fpsmt: Fpsmt) -> None:
    add(project, "good", "long")
    ran = prove(project, "--jobs", "1", "--json", "mine.json")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0] == "prove 3 obligations"
    assert [line.rsplit("  ", 1)[0] for line in lines[1:4]] == [
        "proved   tiny.good [1]  all schedules",
        "refuted  tiny.good [2048]  replay",
        "proved   tiny.long [1]  all schedules",
    ]
    assert lines[4].startswith("2 proved, 1 refuted, 0 unknown; none unexpected; ")
    data = stored(project)
    assert data == read_result(project / "mine.json")
    assert data["verdict"] == "proved"
    first = data["result"]["obligations"][0]
    assert set(first) == {"spec", "case", "verdict", "expected", "how", "seconds", "record"}
    assert (first["spec"], first["case"], first["verdict"]) == ("tiny.good", "1", "proved")
    assert "UNEXPECTED" not in ran.out
    (program,) = (project / "fpsmt-results").glob("*.py")
    script = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert script.stdout.splitlines()[-1] == "all 2 outcomes reproduced"
    (path,) = (project / "fpsmt-results").glob("*.json")
    checked = fpsmt("check", str(path))
    assert (checked.code, checked.first) == (0, "check 3 verified 0 failed 0 unknown")
    replayed = fpsmt("replay", str(path))
    assert (replayed.code, replayed.first) == (0, "replay 3 of 3 reproduced")


def test_unexpected_and_selected(project: Path) -> None:
    add(project, "good", "wrong", "long")
    ran = prove(project, "tiny.wrong", "tiny.long", "--no-save", "--json", "-")
    data = json.loads(ran.out)
    assert (ran.code, ran.err) == (1, "")
    assert data["verdict"] == "refuted"
    assert {(o["spec"], o["case"], o["verdict"]) for o in data["result"]["obligations"]} == {
        ("tiny.wrong", "", "refuted"), ("tiny.long", "1", "proved"), ("tiny.long", "2", "proved"),
    }  # fmt: skip
    assert data["result"]["unexpected"] == 1
    ran = prove(project, "proofs/wrong.py", "--no-save")
    assert "UNEXPECTED: its spec expects proved" in ran.out
    assert ran.code == 1


def test_workers_that_fail(project: Path) -> None:
    add(project, "bad")
    ran = prove(project, "--jobs", "1")
    assert ran.code == 4
    found = {o["case"]: o["record"] for o in stored(project)["result"]["obligations"]}
    assert found["killed"] == {
        "verdict": "unknown",
        "reason": "the worker died (exit code -9): out of memory, or killed",
        "how": "stopped",
    }
    assert found["usage"]["reason"] == "UsageError: not like this"
    assert found["broken"]["how"] == "internal error"
    assert "ZeroDivisionError: broken" in found["broken"]["reason"]
    assert "Traceback" not in ran.err
    text = (project / "specs" / "tiny.py").read_text().replace('("killed", "usage", "broken")', '("killed",)')
    (project / "specs" / "tiny.py").write_text(text)
    ran = prove(project, "--no-save")
    assert ran.code == 3
    assert "  the worker died (exit code -9): out of memory, or killed" in ran.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_keeps_what_is_done(project: Path, number: int) -> None:
    add(project, "good", "slow")
    process = start(project, "prove", "--jobs", "1")
    assert process.stdout is not None
    seen = [process.stdout.readline() for _ in range(3)]
    assert seen[2].startswith("refuted  tiny.good [2048]")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)  # the slow obligations sleep for minutes
    assert process.returncode == 130
    assert "interrupted, 3 not decided" in out
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "fpsmt: interrupted"
    data = stored(project)
    assert [o["verdict"] for o in data["result"]["obligations"]] == ["proved", "refuted"]
    assert (data["verdict"], data["reason"]) == ("unknown", "3 were not decided")


def test_list(project: Path) -> None:
    add(project, "good", "long")
    ran = prove(project, "--list", "--all")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "list 4 obligations\n"
        "tiny.good (a test)\n"
        "  The sum n + 1 + 1 does not depend on its order.\n"
        "    1: proved\n"
        "    2048: refuted\n"
        "tiny.long (a test)\n"
        "    1: proved\n"
        "    2: proved\n"
    )
    assert not (project / "fpsmt-results").exists()


def test_scripts_that_do_not_load(project: Path) -> None:
    ran = prove(project)
    assert (ran.code, ran.err) == (2, "fpsmt: nothing to prove in proofs/: no script there discharges a spec\n")
    add(project, "unreadable")
    ran = prove(project)
    assert (ran.code, ran.out) == (2, "")
    at = f"{project}/proofs/unreadable.py:6"
    assert ran.err.startswith(f"fpsmt: loading the proof scripts failed at {at}: SyntaxError")
    assert ran.err.count("\n") == 1
