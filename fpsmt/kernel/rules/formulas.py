"""Rules for ∀ claims over terms: exhaust the values, ask solvers, split into cases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fpsmt.claims.claim import Claim, Json
from fpsmt.claims.formulas import ForAll, assignment_to_json
from fpsmt.errors import EvidenceError, Unsupported, UsageError
from fpsmt.floats import Float
from fpsmt.floats.vector import decode, embeds
from fpsmt.functions import CorrectlyRounded
from fpsmt.kernel.kernel import Fails, Holds, Open, Outcome, rule
from fpsmt.kernel.trust import BALLS, VECTOR
from fpsmt.smt import Answer, solve
from fpsmt.smt.encoding import ENCODERS
from fpsmt.smt.integers import integer_script
from fpsmt.smt.processes import Attempt, Race
from fpsmt.terms import (
    Assignment,
    BitsSort,
    BoolSort,
    ChoiceSort,
    FloatSort,
    Sort,
    Term,
    all_of,
    any_of,
    generalise,
    implies,
    negation,
    postorder,
    same,
    substitute,
    term_from_json,
    variables,
)
from fpsmt.terms.arrays import evaluate_arrays

MAX_POINTS = 1 << 34
BLOCK = 1 << 20
MOST_SECONDS = 1e9


def sort_size(sort: Sort) -> int:
    """How many values a sort has; the codes of NaN count once each."""
    if isinstance(sort, FloatSort):
        return 1 << sort.format.bits
    if isinstance(sort, BitsSort):
        return 1 << sort.width
    return sort.size if isinstance(sort, ChoiceSort) else 2


def points(condition: Term) -> int:
    """The number of assignments to the variables of a condition."""
    return math.prod(sort_size(v.sort) for v in variables(condition))


def needs_claim(claim: Claim) -> ForAll:
    if not isinstance(claim, ForAll):
        raise EvidenceError(f"this rule is for ∀ claims over terms, not for {claim.kind}")
    return claim


@rule("exhausted")
def exhausted(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Evaluates the condition at every assignment.  Sound because every variable's sort is enumerated whole.

    Declines when an inexact implementation is applied (its outputs are not variables), when a format cannot
    be held in arrays, or beyond 2^34 assignments.
    """
    condition = needs_claim(claim).condition
    total = points(condition)
    if total > MAX_POINTS:
        return Open(f"{total} assignments are too many to exhaust: the limit is 2^34", "let a solver decide it")
    for term in postorder(condition):
        if term.op == "apply" and not isinstance(term.data[0].contract, CorrectlyRounded):
            return Open(f"{term.data[0].text} is not one function: its outputs cannot be exhausted")
        if isinstance(term.sort, FloatSort) and not embeds(term.sort.format):
            return Open(f"values of {term.sort.format} cannot be held in arrays")
    names = variables(condition)
    for start, block in _assignments(names, total):
        try:
            holds = np.broadcast_to(evaluate_arrays(condition, block), (min(BLOCK, total - start),))
        except UsageError as error:
            return Open(f"the condition has no value somewhere: {error}")
        if not holds.all():
            return Fails(_counterexample(names, start + int(np.argmin(holds))))
    return Holds({"assignments": total}, (VECTOR, *_functions(condition)))


def _assignments(names: Sequence[Term], total: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every assignment in blocks, the last variable fastest."""
    for start in range(0, total, BLOCK):
        index = np.arange(start, min(start + BLOCK, total), dtype=np.uint64)
        yield start, {v.data: _values(v.sort, code) for v, code in zip(names, _digits(names, index), strict=True)}


def _digits(names: Sequence[Term], index: Any) -> list[Any]:
    digits: list[Any] = []
    for v in reversed(names):
        size = np.uint64(sort_size(v.sort))
        digits.append(index % size)
        index = index // size
    return digits[::-1]


def _values(sort: Sort, code: Any) -> Any:
    if isinstance(sort, FloatSort):
        return decode(sort.format, code)
    if isinstance(sort, BoolSort):
        return code.astype(bool)
    return code.astype(np.int64) if isinstance(sort, ChoiceSort) else code


def _counterexample(names: Sequence[Term], index: int) -> Json:
    values: dict[str, Any] = {}
    for v, digit in zip(names, _digits(names, np.asarray([index], np.uint64)), strict=True):
        code = int(digit[0])
        if isinstance(v.sort, FloatSort):
            values[v.data] = Float(v.sort.format, code)
        else:
            values[v.data] = bool(code) if isinstance(v.sort, BoolSort) else code
    return assignment_to_json(Assignment(values))


def _ask(condition: Term, data: Mapping[str, Json]) -> Answer:
    """Solvers on a condition, with the effort that the data say."""
    solvers, encoder = data.get("solvers"), data.get("encoder", "auto")
    if encoder not in ("auto", *ENCODERS):
        raise UsageError(f"encoder is auto, {', '.join(ENCODERS)}, not {encoder!r:.100}")
    if solvers is not None and not (isinstance(solvers, list) and all(isinstance(name, str) for name in solvers)):
        raise UsageError(f"solvers are a list of names, not {solvers!r:.100}")
    return solve(
        condition,
        timeout=_seconds(data),
        memory_mb=_whole(data, "memory_mb", 4096),
        solvers=solvers,
        jobs=_whole(data, "jobs", 2),
        witnesses=_whole(data, "witnesses", 1),
        encoder=encoder,
    )


def _seconds(data: Mapping[str, Json]) -> float:
    timeout = data.get("timeout", 60.0)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < MOST_SECONDS:
        raise UsageError(f"timeout is a positive number of seconds, not {timeout!r:.100}")
    return float(timeout)


def _whole(data: Mapping[str, Json], name: str, usual: int) -> int:
    value = data.get(name, usual)
    if type(value) is not int or value < 1:
        raise UsageError(f"{name} is a positive whole number, not {value!r:.100}")
    return value


def _functions(condition: Term) -> tuple[str, ...]:
    """Who is trusted about the values of activations, where there are any."""
    return (BALLS,) if any(term.op == "apply" for term in postorder(condition)) else ()


def _unsat(answer: Answer, condition: Term) -> Holds:
    found = {
        "solver": ", ".join(answer.witnesses),
        "seconds": round(answer.seconds, 3),
        "encoding": answer.encoder,
        "query_sha256": answer.sha256,
    }
    return Holds(found, (*answer.witnesses, f"the {answer.encoder} encoding", *_functions(condition)))


@rule("solver")
def solver(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Asks solvers for an assignment that breaks the condition; `unsat` means there is none.

    data: timeout (s), memory_mb, solvers (names, the ones to race), jobs, encoder, witnesses (how many different
    solvers must say unsat).  What is trusted: the encoding and the solvers that answered.
    """
    answer = _ask(negation(needs_claim(claim).condition), data)
    if answer.status == "unsat":
        return _unsat(answer, needs_claim(claim).condition)
    if answer.status == "sat":
        assert answer.assignment is not None
        counterexample = assignment_to_json(answer.assignment)
        try:
            claim.replay(counterexample)
        except (UsageError, Unsupported) as reason:  # outputs that no monotone implementation has
            return Open(f"what the solvers found is no execution: {reason}")
        return Fails(counterexample)
    return Open(answer.reason or "the solvers gave no answer", "raise the timeout, or split the claim into cases")


@rule("exact integers")
def exact_integers(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """Where bounds show that no operation of the condition rounds, decides it as a formula about integers.

    data: timeout (s), memory_mb.  What is trusted: the integer encoding and z3.
    """
    try:
        script = integer_script(negation(needs_claim(claim).condition))
    except Unsupported as reason:
        return Open(f"integers do not do: {reason}")
    with Race([Attempt("z3", script, ())], _seconds(data), _whole(data, "memory_mb", 4096), 1) as race:
        outcome = next(race.outcomes())
    if outcome.status == "unsat":
        name = f"z3 {outcome.version}"
        return Holds({"solver": name, "seconds": round(outcome.seconds, 3)}, (name, "the integer encoding"))
    return Open(f"z3 over integers: {outcome.status} {outcome.reason}".strip())


@rule("consequence")
def consequence(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """The claim follows from instances of the premises, whatever values some sub-terms have.

    From ∀v P(v) follows P(t) for all terms t.  If (∧ᵢ Pᵢ(tᵢ)) ⇒ C is valid with some sub-terms replaced by fresh
    variables, it is valid with the sub-terms.  A solver decides that implication, which no longer mentions
    what is hard about the sub-terms.

    data: instances (for each premise a list of [variable name, term]), abstract (terms), and the solver's effort.
    """
    goal = needs_claim(claim).condition
    facts = []
    if len(data["instances"]) != len(premises):
        raise EvidenceError(f"there are {len(premises)} premises and {len(data['instances'])} instances")
    for premise, instance in zip(premises, data["instances"], strict=True):
        condition = needs_claim(premise).condition
        given = {name: term_from_json(term) for name, term in instance}
        facts.append(substitute(condition, {v: given[v.data] for v in variables(condition) if v.data in given}))
    for term in postorder(*facts, goal):
        if isinstance(term.sort, FloatSort) and not term.sort.format.has_nan:
            return Open(f"terms of {term.sort.format} may have no value (it has no NaN): nothing can be abstracted")
    parts = [term_from_json(term) for term in data["abstract"]]
    *facts, goal = generalise([*facts, goal], parts)
    answer = _ask(all_of(*facts, negation(goal)), data)
    if answer.status == "unsat":
        return _unsat(answer, all_of(*facts, goal))
    return Open(f"the claim does not follow from the premises: {answer.status} {answer.reason}".strip())


def case_claims(claim: ForAll, cases: Sequence[Term]) -> list[ForAll]:
    """The premises of the rule `cases`: each case, and that there is no other."""
    parts = [ForAll(f"case {i}: {claim.statement}", implies(c, claim.condition)) for i, c in enumerate(cases, 1)]
    return [*parts, ForAll("the cases are complete", any_of(*cases))]


@rule("cases")
def by_cases(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """If c₁ ∨ … ∨ cₙ is valid and every cᵢ ⇒ P is, then so is P.

    data: the cases as terms, in order.  The premises must be exactly those of `case_claims`.
    """
    cases = [term_from_json(c) for c in data["cases"]]
    needed = case_claims(needs_claim(claim), cases)
    if list(premises) != list(needed):
        raise EvidenceError("the premises are not the cases and their completeness")
    return Holds({"cases": len(cases)})


@rule("conjunction")
def conjunction(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """∀ claims whose conditions together are the claim's: (∀ P) and (∀ Q) give ∀ (P ∧ Q)."""
    conditions = [needs_claim(p).condition for p in premises]
    if all_of(*conditions) is not needs_claim(claim).condition:
        raise EvidenceError("the premises are not the parts of the conjunction")
    return Holds({"parts": len(conditions)})


@rule("congruence")
def congruence(claim: Claim, data: Mapping[str, Json], premises: Sequence[Claim]) -> Outcome:
    """From ∀ (P ⇒ s ≡ t) follows ∀ (P ⇒ r ≡ r with t for s): every operator is a function of its arguments' values.

    data: P, s, t and r as terms, named `where`, `old`, `new`, `root`.
    """
    where, old, new, root = (term_from_json(data[name]) for name in ("where", "old", "new", "root"))
    if len(premises) != 1 or needs_claim(premises[0]).condition is not implies(where, same(old, new)):
        raise EvidenceError("the premise is not the equality that is used")
    if needs_claim(claim).condition is not implies(where, same(root, substitute(root, {old: new}))):
        raise EvidenceError("the claim is not the equality that follows")
    return Holds({})
