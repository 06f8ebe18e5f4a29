"""Deciding whether a condition can be true: encode, race the solvers, refine activations, replay."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from fpsmt.errors import InternalError, Unsupported, UsageError
from fpsmt.floats import Context, Float
from fpsmt.smt import facts as f
from fpsmt.smt.encoding import EncoderName, Query, assignment, encode
from fpsmt.smt.processes import SOLVERS, Attempt, Outcome, Race, Status, missing, solver
from fpsmt.terms import Assignment, Term, evaluate
from fpsmt.terms.evaluate import Value

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Answer:
    """``sat`` with an assignment that was replayed, ``unsat``, or ``unknown`` with the reason.

    `seconds` is wall-clock time, `sha256` that of the script that was answered, `rounds` how often
    facts about activations were refined, `witnesses` the solvers and versions that said it.
    """

    status: Status
    assignment: Assignment | None = None
    solver: str = ""
    version: str = ""
    seconds: float = 0.0
    reason: str = ""
    sha256: str = ""
    encoder: str = ""
    rounds: int = 0
    witnesses: tuple[str, ...] = ()


def solve(
    condition: Term,
    *,
    timeout: float = 60.0,
    memory_mb: int = 4096,
    solvers: Sequence[str] | None = None,
    jobs: int = 2,
    encoder: EncoderName = "auto",
    witnesses: int = 1,
    progress: Progress | None = None,
) -> Answer:
    """Whether some assignment makes the condition true.

    Solvers run in child processes, at most `jobs` at a time, each with `memory_mb` MB, all together `timeout`
    seconds; the first answer wins and the others are killed, also on an interrupt.  `solvers` are tried in
    the order given (default: every installed one).  ``unsat`` needs that many different `witnesses`.

    A ``sat`` answer is evaluated with the exact reference arithmetic before it is returned; when that
    contradicts the solver, the solver's answer is dropped and, if no other solver answers, `InternalError` is
    raised.  Where an operation may give NaN in a format without NaN, ``unsat`` also needs a proof that this
    cannot happen, else the answer is ``unknown``.

    >>> from fpsmt.floats import context, ieee
    >>> from fpsmt.terms import add, all_of, is_finite, is_infinite, var
    >>> tiny = context(ieee(2, 3))
    >>> a, b = var("a", tiny.format), var("b", tiny.format)
    >>> solve(all_of(is_finite(a), is_finite(b), is_infinite(add(tiny, a, b)))).status
    'sat'
    """
    if timeout <= 0 or memory_mb <= 0 or jobs < 1 or witnesses < 1:
        raise UsageError("timeout, memory_mb, jobs and witnesses must be positive")
    names = tuple(SOLVERS) if solvers is None else tuple(solvers)
    return _Session(condition, timeout, memory_mb, names, jobs, encoder, witnesses, progress or _silent).run()


def _silent(line: str) -> None:
    return None


def solve_many(
    conditions: Sequence[Term],
    *,
    timeout: float = 60.0,
    memory_mb: int = 4096,
    solvers: Sequence[str] | None = None,
    jobs: int = 2,
    encoder: EncoderName = "auto",
) -> list[Answer]:
    """`solve` for each condition, `jobs` of them at a time, each with one solver process at a time.

    The time limit is for each condition.  An error or an interrupt ends all of them.
    """
    names = tuple(SOLVERS) if solvers is None else tuple(solvers)
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            sessions = [_Session(c, timeout, memory_mb, names, 1, encoder, 1, _silent, stop) for c in conditions]
            return [task.result() for task in [pool.submit(session.run) for session in sessions]]
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


@dataclass
class _Session:
    condition: Term
    timeout: float
    memory_mb: int
    names: tuple[str, ...]
    jobs: int
    encoder: EncoderName
    witnesses: int
    progress: Progress
    stop: threading.Event | None = None
    reasons: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def run(self) -> Answer:
        self.started = time.monotonic()
        self.queries: dict[str, Query] = {}
        plan = self._plan()
        rounds = 0
        said: dict[str, Outcome] = {}
        while plan:
            outcome, query, answer = self._round(plan, said)
            if answer is not None:
                return self._finish(answer, query, outcome, rounds, said)
            if outcome is None:
                break
            rounds += 1
            self.progress(f"round {rounds}: {query.refined} facts about activations")
        if self.failures:
            raise InternalError("; ".join(self.failures))
        return self._finish(Answer("unknown", reason=self._why()), None, None, rounds, said)

    # -- what is asked of whom ----------------------------------------------------------------------------

    def _plan(self) -> list[tuple[str, Query]]:
        plan = []
        for name in self.names:
            reason = missing(name)
            if reason is not None:
                self.reasons.append(reason)
                continue
            query = self._query(self.encoder)
            if self.encoder == "auto" and solver(name).decline(query.sorts) is not None:
                query = self._query("circuit")
            reason = solver(name).decline(query.sorts)
            if reason is not None:
                self.reasons.append(reason)
                continue
            plan.append((name, query))
        return plan

    def _query(self, encoder: EncoderName) -> Query:
        if encoder not in self.queries:
            query = encode(self.condition, encoder)
            self.queries[encoder] = self.queries.setdefault(query.encoder.name, query)
        return self.queries[encoder]

    def _left(self) -> float:
        return self.started + self.timeout - time.monotonic()

    # -- one race -----------------------------------------------------------------------------------------

    def _round(
        self, plan: list[tuple[str, Query]], said: dict[str, Outcome]
    ) -> tuple[Outcome | None, Query, Answer | None]:
        """(outcome, query, answer): an answer, or a refined query to go on with, or no outcome at all."""
        by_attempt: dict[int, Query] = {}
        attempts = []
        for name, query in plan:
            if name in said:
                continue
            shown = tuple(str(node.value) for node in query.shown)
            attempts.append(Attempt(name, query.text(), shown))
            by_attempt[id(attempts[-1])] = query
        if self._left() <= 0:
            self.reasons.append("no answer within the time limit")
            return None, plan[0][1], None
        with Race(attempts, self._left(), self.memory_mb, self.jobs, self.stop) as race:
            for outcome in race.outcomes():
                query = by_attempt[id(outcome.attempt)]
                self.progress(f"{outcome.attempt.solver}: {outcome.status} after {outcome.seconds:.2f} s")
                if outcome.status == "unknown":
                    self.reasons.append(f"{outcome.attempt.solver}: {outcome.reason}")
                elif outcome.status == "unsat":
                    said[outcome.attempt.solver] = outcome
                    if len(said) >= self.witnesses:
                        return outcome, query, self._unsat(query, outcome)
                else:
                    verdict = self._sat(query, outcome)
                    if isinstance(verdict, Assignment):
                        if said:
                            raise InternalError(
                                f"{', '.join(said)} said unsat, but {outcome.attempt.solver} found an assignment "
                                "that makes the condition true"
                            )
                        return outcome, query, Answer("sat", assignment=verdict)
                    if verdict:
                        said.clear()
                        return outcome, query, None
        if said:
            self.reasons.append(f"only {len(said)} of {self.witnesses} witnesses: {', '.join(said)}")
        return None, plan[0][1], None

    def _unsat(self, query: Query, outcome: Outcome) -> Answer:
        text = query.undefined_text()
        if text is None:
            return Answer("unsat")
        attempt = Attempt(outcome.attempt.solver, text, tuple(str(node.value) for node in query.shown))
        left = self._left()
        if left > 0:
            with Race([attempt], left, self.memory_mb, 1, self.stop) as race:
                second = next(race.outcomes())
            if second.status == "unsat":
                return Answer("unsat")
        return Answer(
            "unknown",
            reason="no assignment with a value makes the condition true, but for some there may be no value at all: "
            "an operation gives NaN in a format without NaN",
        )

    # -- models -------------------------------------------------------------------------------------------

    def _sat(self, query: Query, outcome: Outcome) -> Assignment | bool:
        """An assignment that was replayed; True when the query was refined; False when the answer is dropped."""
        name = outcome.attempt.solver
        try:
            values, outputs = query.read(outcome.values)
            truth, points = query.inputs(values, outputs)
        except (UsageError, InternalError) as error:
            self.failures.append(f"{name}'s model cannot be evaluated: {error}")
            return False
        if not truth:
            self.failures.append(f"{name} said sat, but its assignment makes the condition false: {values}")
            return False
        wrong = [
            (index, x, y)
            for index, (application, x, y) in enumerate(zip(query.encoder.applications, points, outputs))
            if not application.implementation.contains(application.context, x, y)
        ]
        for index, x, _ in wrong:
            if query.knows(index, x):
                text = query.encoder.applications[index].implementation.text
                self.failures.append(f"{name} said sat, but its output of {text} at {x} breaks a fact it was given")
                return False
        for index, x, y in wrong:
            for each in {id(each): each for each in self.queries.values()}.values():
                each.refine(index, x, y)
        if not wrong:
            found = assignment(query, values, points, outputs)
            if evaluate(self.condition, found) is not True:
                self.failures.append(f"{name} said sat, but the replay of its assignment gives false: {values}")
                return False
            return found
        return self._repaired(query, values, outputs) or True

    def _repaired(self, query: Query, values: dict[str, Value], outputs: list[Float]) -> Assignment | None:
        """The solver's variables with each output moved into its allowed interval, if that is a true instance."""
        chosen: dict[tuple[str, Context, str, Float], Float] = {}
        outputs = list(outputs)
        groups: dict[tuple[str, Context, str], list[tuple[Float, Float]]] = {}
        for index, application in enumerate(query.encoder.applications):
            try:
                x = query.inputs(values, outputs)[1][index]
                low, high = application.implementation.allowed(application.context, x)
            except (UsageError, Unsupported):
                return None
            key = (application.implementation.text, application.context, application.site, x)
            y = chosen.setdefault(key, _moved(outputs[index], low, high))
            outputs[index] = y
            if application.implementation.monotone:
                groups.setdefault(key[:3], []).append((x, y))
        for application in query.encoder.applications:
            name = application.implementation.text
            group = groups.get((name, application.context, application.site), [])
            if group and not f.keeps_monotone(application.implementation, application.input_format, group):
                return None
        found = Assignment(dict(values), chosen)
        try:
            return found if evaluate(self.condition, found) is True else None
        except (UsageError, Unsupported):
            return None

    # -- the answer ---------------------------------------------------------------------------------------

    def _why(self) -> str:
        why = "; ".join(dict.fromkeys(self.reasons)) or "no solver was asked"
        return f"{why} (limits: {self.timeout:g} s, {self.memory_mb} MB)"

    def _finish(
        self, answer: Answer, query: Query | None, outcome: Outcome | None, rounds: int, said: dict[str, Outcome]
    ) -> Answer:
        seconds = time.monotonic() - self.started
        dropped = "; ".join(self.failures)
        reason = "; ".join(part for part in (answer.reason, dropped and f"dropped: {dropped}") if part)
        if query is None or outcome is None:
            return Answer("unknown", seconds=seconds, reason=reason, rounds=rounds)
        witnesses = tuple(f"{name} {each.version}" for name, each in said.items())
        return Answer(
            answer.status,
            answer.assignment,
            outcome.attempt.solver,
            outcome.version,
            seconds,
            reason,
            hashlib.sha256(outcome.attempt.text.encode()).hexdigest(),
            query.encoder.name,
            rounds,
            witnesses or (f"{outcome.attempt.solver} {outcome.version}",),
        )


def _moved(y: Float, low: Float, high: Float) -> Float:
    """The allowed output nearest to y."""
    if low.is_nan or y.is_nan:
        return low
    return low if f.place(y) < f.place(low) else high if f.place(y) > f.place(high) else y
