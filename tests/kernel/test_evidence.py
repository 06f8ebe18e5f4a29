"""Stored results: round trips, and files that were changed, damaged or made up."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import kernel
from fpsmt.claims import ForAll, SumInvariant, SumOutcomes
from fpsmt.claims.claim import claim_from_json
from fpsmt.engines import decide
from fpsmt.errors import EvidenceError, FpsmtError, UsageError
from fpsmt.floats import context, exactly, float16, ieee
from fpsmt.kernel import Proved, check, check_verdict, read_result, verdict_to_json, write_result
from fpsmt.kernel.results import evidence_to_json
from fpsmt.kernel.rules.formulas import case_claims
from fpsmt.networks import Sum
from fpsmt.terms import add, any_of, const, implies, is_finite, is_nan, negation, same, term_to_json, var

TINY = ieee(2, 3)
CTX = context(TINY)
X, Y = var("x", TINY), var("y", TINY)
COMMUTES = ForAll("x⊕y ≡ y⊕x", same(add(CTX, X, Y), add(CTX, Y, X)))
FINITE = ForAll("x⊕y finite", implies(is_finite(X), is_finite(add(CTX, X, Y))))
THREE = Sum(CTX, tuple(exactly(TINY, v) for v in (2, 0.25, 0.25)))


@cache
def stored() -> dict[str, dict[str, Any]]:
    """Verdicts of several shapes, as JSON."""
    cases = [is_finite(X), negation(is_finite(X))]
    premises = [kernel.apply("exhausted", c) for c in case_claims(COMMUTES, cases)]
    tree = kernel.apply("cases", COMMUTES, {"cases": [term_to_json(c) for c in cases]}, premises)  # type: ignore[arg-type]
    found = {
        "cases": tree,
        "exhausted": kernel.apply("exhausted", COMMUTES),
        "false": kernel.apply("exhausted", FINITE),
        "outcomes": decide(SumOutcomes(THREE, (exactly(TINY, 2),))),
        "unreached": decide(SumOutcomes(THREE, tuple(exactly(TINY, v) for v in (2, 2.5, 3)))),
        "invariant": decide(SumInvariant(THREE)),
        "unknown": kernel.Unknown(COMMUTES, "too hard", 1.5, "wait"),
    }
    return {name: verdict_to_json(verdict) for name, verdict in found.items()}


def fresh(name: str) -> dict[str, Any]:
    return copy.deepcopy(stored()[name])


NAMES = ["cases", "exhausted", "false", "outcomes", "unreached", "invariant", "unknown"]


@pytest.mark.parametrize("name", NAMES)
def test_round_trip(name: str, tmp_path: Path) -> None:
    data = fresh(name)
    path = tmp_path / "some" / "where.json"
    write_result(path, data)
    read = read_result(path)
    assert {k: v for k, v in read.items() if k not in ("schema", "sha256")} == json.loads(json.dumps(data))
    again = check_verdict(read)
    assert (again.name, again.claim.hash) == (data["verdict"], data["claim"]["hash"])
    if isinstance(again, Proved):
        assert evidence_to_json(again.evidence)["data"] == read["evidence"]["data"]
    assert [p.name for p in path.parent.iterdir()] == ["where.json"]


# -- lies -------------------------------------------------------------------------------------------------


def claim_of(claim: Any) -> dict[str, Any]:
    return {"text": claim.text, "hash": claim.hash, "statement": claim.to_json()}


def _false_claim(data: dict[str, Any]) -> None:
    data["claim"] = claim_of(FINITE)


def _statement(data: dict[str, Any]) -> None:
    data["claim"]["statement"] = FINITE.to_json()


def _hash(data: dict[str, Any]) -> None:
    data["claim"]["hash"] = "0" * 64


def _text(data: dict[str, Any]) -> None:
    data["claim"]["text"] = "∀ x: P = NP"


def _unknown_rule(data: dict[str, Any]) -> None:
    data["evidence"]["rule"] = "trust me"


def _other_rule(data: dict[str, Any]) -> None:
    data["evidence"]["rule"] = "conjunction"


def _no_premises(data: dict[str, Any]) -> None:
    data["evidence"]["premises"] = []


def _swapped(data: dict[str, Any]) -> None:
    premises = data["evidence"]["premises"]
    premises[0], premises[1] = premises[1], premises[0]


def _one_premise_for_all(data: dict[str, Any]) -> None:
    data["evidence"]["premises"][1] = data["evidence"]["premises"][0]


def _false_premise(data: dict[str, Any]) -> None:
    data["evidence"]["premises"][0]["claim"] = FINITE.to_json()


def _case_changed(data: dict[str, Any]) -> None:
    data["evidence"]["data"]["cases"][0] = term_to_json(is_nan(X))


def _case_dropped(data: dict[str, Any]) -> None:
    data["evidence"]["data"]["cases"].pop(0)
    data["evidence"]["premises"].pop(0)


def _not_complete(data: dict[str, Any]) -> None:
    """Cases that do not cover: their completeness is false, and no rule proves it."""
    data["evidence"]["data"]["cases"].pop(1)
    premises = data["evidence"]["premises"]
    premises.pop(1)
    needed = case_claims(COMMUTES, [is_finite(X)])
    for premise, claim in zip(premises, needed, strict=True):
        premise["claim"] = claim.to_json()


def _circular(data: dict[str, Any]) -> None:
    data["evidence"]["premises"] = [{"claim": COMMUTES.to_json(), "evidence": {"rule": "conjunction", "data": {},
                                     "premises": []}}]  # fmt: skip


def _called_refuted(data: dict[str, Any]) -> None:
    data["verdict"] = "refuted"
    data["evidence"] = []
    data["counterexample"] = {"values": {"x": "0x00", "y": "0x00"}, "outputs": []}


LIES = [
    _false_claim, _statement, _hash, _text, _unknown_rule, _other_rule, _no_premises, _swapped, _one_premise_for_all,
    _false_premise, _case_changed, _case_dropped, _not_complete, _circular, _called_refuted,
]  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_proof_that_was_changed_is_refused(lie: Callable[[dict[str, Any]], None]) -> None:
    data = fresh("cases")
    assert check_verdict(data).name == "proved"
    lie(data)
    with pytest.raises((EvidenceError, UsageError)) as caught:
        check_verdict(data)
    assert str(caught.value) and "Traceback" not in str(caught.value)


@pytest.mark.parametrize(
    "counterexample",
    [
        None, [], {}, "x", 3, {"values": None}, {"values": []}, {"values": {"x": "0x00"}}, {"values": {"x": 0, "y": 0}},
        {"values": {"x": "0x00", "y": "zz"}}, {"values": {"x": "0x00", "y": "0xffff"}},
        {"values": {"x": "-1", "y": "0"}},
        {"values": {"x": None, "y": None}}, {"values": {"x": "0x00", "y": "0x00"}},
        {"values": {"x": "0x00", "y": "0x00"}, "outputs": 3},
        {"values": {"x": "0x00", "y": "0x00"}, "outputs": [["tanh"]]},
        {"values": {"x": "0x00", "y": "0x00"}, "outputs": [["tanh", "mine", "", ["float16", "0"], ["float16", "0"]]]},
        {"values": {"x": "0x00", "y": "0x00"}, "outputs": [["tanh", "float16", "", ["mine", "0x0"], ["float16", 0]]]},
        {"values": {"x": "0x00", "y": "0x00"}, "outputs": {"tanh": 1}},
    ],
    ids=str,
)  # fmt: skip
def test_a_counterexample_that_is_none_is_refused(counterexample: Any) -> None:
    data = fresh("false")
    assert check_verdict(data).name == "refuted"
    data["counterexample"] = counterexample
    with pytest.raises((EvidenceError, UsageError)):
        check_verdict(data)


@pytest.mark.parametrize("name", ["invariant", "unreached"])
@pytest.mark.parametrize(
    "counterexample",
    [
        None, {}, {"schedules": []}, {"schedules": [0, 1]}, {"schedules": [[[0, 1], 2]]}, {"schedules": "ab"},
        {"schedules": [[[0, 1], 2], [[0, 1], 2]]}, {"schedule": [[0, 1], 2]}, {"schedule": [[0, 0], 1]},
        {"schedule": {"a": 1}}, {"outcomes": []}, {"outcomes": [["ieee(2,3)", "0x1p99"]]}, {"outcomes": 3},
        {"outcomes": [["ieee(2,3)"]]}, {"outcomes": [["mine", "0x0p0"]]},
    ],
    ids=str,
)  # fmt: skip
def test_schedules_that_do_not_refute(name: str, counterexample: Any) -> None:
    data = fresh(name)
    data["verdict"] = "refuted"
    data["counterexample"] = counterexample
    data.setdefault("evidence", [])
    with pytest.raises((EvidenceError, UsageError)):
        check_verdict({**data, "evidence": [] if isinstance(data["evidence"], dict) else data["evidence"]})


def test_refutations_of_outcomes() -> None:
    assert stored()["outcomes"]["verdict"] == "refuted"
    assert stored()["outcomes"]["evidence"] == []
    data = fresh("unreached")
    assert data["verdict"] == "refuted" and check_verdict(data).name == "refuted"
    data["evidence"] = []
    with pytest.raises(EvidenceError, match="needs a proof"):
        check_verdict(data)


# -- damage -----------------------------------------------------------------------------------------------

JUNK = [None, True, -1, 0, 10**30, 1.5, "", "x", "0x1p0", [], [[]], {}, {"kind": "for-all"}, [None], "ieee(99,9)"]


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON value."""
    if path:
        yield path
    if isinstance(data, dict):
        for key in data:
            yield from places(data[key], (*path, key))
    elif isinstance(data, list):
        for k in range(len(data)):
            yield from places(data[k], (*path, k))


def put(data: Any, path: tuple[Any, ...], value: Any, delete: bool) -> Any:
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    if delete:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return data


@given(st.sampled_from(NAMES), st.data())
@settings(max_examples=1500)
def test_damage_is_one_clear_error(name: str, draw: st.DataObject) -> None:
    """Whatever is damaged, check raises its own errors or comes to a verdict about the claim as it now is."""
    data = stored()[name]
    path = draw.draw(st.sampled_from(list(places(data))))
    changed = put(data, path, draw.draw(st.sampled_from(JUNK)), draw.draw(st.booleans()))
    try:
        verdict = check_verdict(changed)
    except FpsmtError as error:
        assert isinstance(error, EvidenceError | UsageError) or "Unsupported" in type(error).__name__
        assert 0 < len(str(error)) < 20_000
    else:
        assert verdict.name == changed["verdict"]
        assert verdict.claim.hash == changed["claim"]["hash"]
        assert verdict.name == "unknown" or verdict.claim.hash == data["claim"]["hash"]


NONE = [None, [], 3, "x", {}, {"claim": 3}, {"claim": {}}, {"claim": {"statement": []}}]


@pytest.mark.parametrize("data", NONE, ids=str)
def test_no_result_at_all(data: Any) -> None:
    with pytest.raises(UsageError):
        check_verdict(data)


@pytest.mark.parametrize(
    "evidence",
    [
        None, 3, [], "exhausted", {}, {"rule": "exhausted"}, {"rule": "exhausted", "data": {}},
        {"rule": ["exhausted"], "data": {}, "premises": []}, {"rule": "exhausted", "data": [], "premises": []},
        {"rule": "exhausted", "data": {}, "premises": {}}, {"rule": "exhausted", "data": {}, "premises": [3]},
        {"rule": "exhausted", "data": {}, "premises": [{}]}, {"rule": "solver", "data": {"timeout": float("nan")},
                                                             "premises": []},
        {"rule": "cases", "data": {}, "premises": []}, {"rule": "cases", "data": {"cases": 3}, "premises": []},
        {"rule": "cases", "data": {"cases": [[["var"]]]}, "premises": []},
        {"rule": "consequence", "data": {"instances": 3, "abstract": []}, "premises": []},
        {"rule": "consequence", "data": {"instances": [], "abstract": [3]}, "premises": []},
        {"rule": "congruence", "data": {"where": []}, "premises": []},
        {"rule": "solver", "data": {"timeout": 1e999}, "premises": []},
    ],
    ids=lambda e: str(e)[:60],
)  # fmt: skip
def test_evidence_of_a_wrong_form(evidence: Any) -> None:
    with pytest.raises((UsageError, EvidenceError)):
        check(evidence, COMMUTES)


def test_deep_nesting() -> None:
    claim = COMMUTES.to_json()
    evidence: Any = {"rule": "conjunction", "data": {}, "premises": []}
    for _ in range(5000):
        evidence = {"rule": "conjunction", "data": {}, "premises": [{"claim": claim, "evidence": evidence}]}
    with pytest.raises(UsageError, match=r"nested too deeply|recursion"):
        check(evidence, COMMUTES)
    data = fresh("exhausted")
    data["evidence"] = evidence
    with pytest.raises(UsageError, match=r"nested too deeply|recursion"):
        check_verdict(data)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for place in ("data", "found"):
        data = fresh("exhausted")
        data["evidence"][place] = {"x": deep}
        if place == "data":
            with pytest.raises(UsageError):
                check_verdict(data)
        else:
            assert check_verdict(data).name == "proved"  # what was found before is not looked at


# -- files ------------------------------------------------------------------------------------------------


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a whole JSON file"),
        ("{", "not a whole JSON file"),
        ("[" * 100_000, "not a whole JSON file"),
        ("null", "it has no schema number"),
        ("[]", "it has no schema number"),
        ("{}", "it has no schema number"),
        ('{"schema": "1"}', "it has no schema number"),
        ('{"schema": 99}', "has schema 99"),
        ('{"schema": 1, "sha256": "0"}', "is damaged"),
        ('{"schema": 1, "sha256": null}', "is damaged"),
        ('{"schema": 1, "x": ' + "9" * 5000 + "}", "not a whole JSON file"),
        ('{"schema": 1, "sha256": "0", "x": "\\ud800"}', "not a result file"),
    ],
    ids=range(12),
)
def test_files_that_are_no_results(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_result(write(tmp_path / "r.json", text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_result(tmp_path / "none.json")
    with pytest.raises(UsageError, match="cannot be read"):
        read_result(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read"):
        read_result(tmp_path / "bytes.json")


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_result(path, fresh("exhausted"))
    for old, new in (('"proved"', '"refuted"'), ('"seconds"', '"minutes"'), ("x⊕y", "x⊕z")):
        changed = path.read_text(encoding="utf-8").replace(old, new)
        with pytest.raises(UsageError, match="damaged"):
            read_result(write(tmp_path / "changed.json", changed))


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_result(path, {"a": 1})
    before = path.read_text(encoding="utf-8")
    with pytest.raises(TypeError):
        write_result(path, {"a": object()})
    assert path.read_text(encoding="utf-8") == before
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


@given(st.sampled_from(NAMES))
def test_claims_come_back(name: str) -> None:
    data = stored()[name]
    claim = claim_from_json(data["claim"]["statement"])
    assert claim.hash == data["claim"]["hash"] and claim.text == data["claim"]["text"]
    assert claim.to_json() == json.loads(json.dumps(data["claim"]["statement"]))


def test_a_false_claim_is_never_proved_by_any_stored_proof() -> None:
    """The evidence of every proof here, put on a false claim."""
    false = ForAll("false", any_of(is_nan(X), same(X, const(exactly(TINY, 0)))))
    for data in stored().values():
        if data["verdict"] == "proved":
            with pytest.raises(EvidenceError):
                check(data["evidence"], false)
    half = SumInvariant(Sum(context(float16), tuple(exactly(float16, v) for v in (2048, 1, 1))))
    with pytest.raises(EvidenceError, match="counterexample"):
        check({"rule": "all schedules", "data": {}, "premises": []}, half)
