"""Solver processes: limits, crashes, interrupts, and nothing left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fpsmt import terms
from fpsmt.floats import context, exactly, float8_e5m2, float16, float32
from fpsmt.smt import processes, solve
from fpsmt.smt.processes import Attempt, Race, Stopped, missing
from fpsmt.smt.solving import solve_many

TRIVIAL = "(set-logic QF_BV)\n(declare-const x (_ BitVec 4))\n(assert (= x #b0101))\n(check-sat)\n"


def outcomes(*attempts, timeout=60.0, memory_mb=4096, jobs=1):
    with Race(attempts, timeout, memory_mb, jobs) as race:
        return list(race.outcomes())


def hard():
    """A query that no solver settles in minutes: three products in float32 in two orders."""
    ctx = context("float32")
    xs = [terms.var(f"x{i}", float32) for i in range(6)]
    p, q, r = (terms.mul(ctx, xs[2 * i], xs[2 * i + 1]) for i in range(3))
    left, right = terms.add(ctx, terms.add(ctx, p, q), r), terms.add(ctx, p, terms.add(ctx, q, r))
    one = terms.const(terms.evaluate(terms.const(_one(float32)), {}))
    inside = [terms.all_of(terms.le(one, x), terms.lt(x, terms.add(ctx, one, one))) for x in xs]
    twice_the_largest = terms.const(exactly(float32, 2.0**-18))  # each order errs by at most 2⁻²⁰
    return terms.all_of(*inside, terms.lt(twice_the_largest, terms.sub(ctx, left, right)))


def _one(fmt):
    return exactly(fmt, 1)


@pytest.mark.parametrize("name", ["z3", "bitwuzla", "cvc5"])
def test_each_solver_reads_prints_and_reports(name):
    (outcome,) = outcomes(Attempt(name, TRIVIAL, ("x",)))
    assert (outcome.status, outcome.values) == ("sat", {"x": 5})
    assert outcome.version
    (outcome,) = outcomes(Attempt(name, TRIVIAL.replace("(check-sat)", "(assert (= x #b0000))\n(check-sat)"), ("x",)))
    assert (outcome.status, outcome.values) == ("unsat", {})


@pytest.mark.parametrize("name", ["z3", "bitwuzla", "cvc5"])
def test_a_malformed_script_is_a_reason(name):
    bad = TRIVIAL.replace("(= x #b0101)", "(= x y)").replace("(check-sat)", "(assert false)\n(check-sat)")
    (outcome,) = outcomes(Attempt(name, bad, ("x",)))
    assert outcome.status == "unknown" and outcome.reason


@pytest.mark.parametrize(
    "body, reason",
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "killed by signal 11"),
        ("os._exit(7)", "exit code 7"),
        ("os.write(1, b'unsat'); os._exit(0)", "no answer"),
        ("print('unsat'); sys.stdout.flush(); os._exit(0)", "no answer"),
        ("return 'maybe', {}, ''", "status 'maybe'"),
        ("raise ValueError('confused')", "ValueError: confused"),
        ("x = [bytearray(1 << 26) for _ in range(1000)]", "needs more than 500 MB"),
    ],
)
def test_a_solver_that_fails_gives_a_reason(fake_solver, body, reason):
    name = fake_solver("broken", body)
    (outcome,) = outcomes(Attempt(name, TRIVIAL, ("x",)), memory_mb=500)
    assert outcome.status == "unknown" and reason in outcome.reason


def test_answers_of_others_survive_a_crash(fake_solver):
    name = fake_solver("broken", "os.abort()")
    x = terms.var("x", float16)
    answer = solve(terms.lt(x, x), solvers=[name, "z3"])
    assert answer.status == "unsat" and answer.solver == "z3"
    alone = solve(terms.lt(x, terms.neg(x)), solvers=[name])
    assert alone.status == "unknown" and "broken" in alone.reason and "signal 6" in alone.reason


def test_a_missing_solver_names_its_package(monkeypatch):
    monkeypatch.setattr(processes.importlib.util, "find_spec", lambda name: None)
    assert missing("bitwuzla") == "bitwuzla is not installed: pip install bitwuzla"
    x = terms.var("x", float16)
    answer = solve(terms.is_nan(x))
    assert answer.status == "unknown" and "pip install z3-solver" in answer.reason


def test_sorts_that_a_solver_refuses_get_the_circuit_or_a_reason():
    ctx = context("bfloat16")
    x = terms.var("x", ctx.format)
    condition = terms.lt(terms.add(ctx, x, x), x)
    answer = solve(condition, solvers=["bitwuzla"])
    assert (answer.status, answer.encoder) == ("sat", "circuit")
    declined = solve(condition, solvers=["bitwuzla", "cvc5"], encoder="native")
    assert declined.status == "unknown"
    assert "bitwuzla refuses (_ FloatingPoint 8 8)" in declined.reason and "fp-exp" in declined.reason


def test_the_time_limit_ends_everything():
    answer = solve(hard(), timeout=1.5)
    assert answer.status == "unknown" and "time limit" in answer.reason and "1.5 s" in answer.reason
    assert not children(os.getpid())


def test_the_memory_limit_is_a_reason():
    answer = solve(hard(), timeout=30, memory_mb=40, solvers=["z3", "bitwuzla"])
    assert answer.status == "unknown" and answer.reason


def test_the_losers_are_killed(fake_solver):
    slow = fake_solver("slow", "time.sleep(600)")
    answer = solve(terms.lt(terms.var("x", float8_e5m2), terms.var("x", float8_e5m2)), solvers=[slow, "z3"], jobs=2)
    assert answer.status == "unsat" and not children(os.getpid())


def test_grandchildren_are_killed_too(fake_solver, tmp_path):
    name = fake_solver(
        "parent",
        f"""
        import subprocess
        child = subprocess.Popen(["sleep", "600"])
        open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
        time.sleep(600)
        """,
    )
    with Race([Attempt(name, TRIVIAL, ())], 60, 4096, 1) as race:
        race._start(race.waiting.pop())
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    wait_for(lambda: gone(int((tmp_path / "pid").read_text())))


def test_a_race_stops_on_request():
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(Stopped), Race([Attempt("z3", TRIVIAL, ())] * 1000, 600, 4096, 1, stop) as race:
        list(race.outcomes())
    assert not children(os.getpid())


def test_an_error_ends_the_other_conditions(lying_solver, fake_solver):
    from fpsmt.errors import InternalError

    x = terms.var("x", float16)
    with pytest.raises(InternalError):
        solve_many([hard(), terms.lt(x, x)], solvers=["liar"], jobs=2)
    assert not children(os.getpid())


# -- interrupts -----------------------------------------------------------------------------------------

SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.smt.test_processes import hard
from fpsmt.smt import solve
print("ready", flush=True)
solve(hard(), timeout=600)
"""


def start():
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", SCRIPT.format(root=root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    wait_for(lambda: len(children(process.pid)) >= 2)
    return process, children(process.pid)


def children(pid):
    """Child processes that are not zombies."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(word) for word in task.read_text().split()]
    return [child for child in found if not gone(child)]


def gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")


@needs_proc
def test_an_interrupt_kills_the_solvers():
    process, solvers = start()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0 and b"KeyboardInterrupt" in errors
    assert all(gone(pid) for pid in solvers)


@needs_proc
def test_solvers_die_with_their_parent():
    process, solvers = start()
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: all(gone(pid) for pid in solvers))
