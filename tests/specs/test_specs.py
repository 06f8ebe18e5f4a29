"""The registry of specs, and all that it holds: each case is a claim that can be written down and read back."""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from pathlib import Path
from typing import Any

import pytest

import proofs
import specs
from fpsmt import proving
from fpsmt.claims import PROOFS, SPECS, Case, Claim, ForAll, Obligation, cases, claim_from_json, proof, spec
from fpsmt.engines import Options
from fpsmt.errors import UsageError
from fpsmt.floats import float16, ieee
from fpsmt.kernel import Proved
from fpsmt.terms import is_finite, same, var

MODULES = [name for _, name, _ in pkgutil.iter_modules(specs.__path__)]
for _name in MODULES:
    importlib.import_module(f"specs.{_name}")
for _, _name, _ in pkgutil.iter_modules(proofs.__path__):
    importlib.import_module(f"proofs.{_name}")
OURS = {id: each for id, each in SPECS.items() if each.build.__module__.startswith("specs.")}
OBLIGATIONS = [Obligation(each, case) for each in OURS.values() for case in each.cases]


def test_there_are_specs() -> None:
    assert len(OURS) >= 10 and len(OBLIGATIONS) >= 100


#: Statements of which every case takes long: they run with ``prove --all``.
LONG = {"A-distinguishable-10-ulps", "B-value-without-gradient", "B-gradient-at-a-point", "B-indicator-is-a-network"}


@pytest.mark.parametrize("each", OURS.values(), ids=OURS)
def test_a_spec_says_what_it_is(each: Any) -> None:
    assert each.id and each.source.strip()
    assert len(each.statement) > 20 and "." in each.statement
    assert each.cases
    assert len({case.name for case in each.cases}) == len(each.cases)
    assert {case.expected for case in each.cases} <= {"proved", "refuted"}
    assert any(case.quick for case in each.cases) == (each.id not in LONG)
    assert each.id in PROOFS, f"no script in proofs/ discharges {each.id}"


@pytest.mark.parametrize("obligation", OBLIGATIONS, ids=lambda o: o.name)
def test_a_case_is_a_claim(obligation: Obligation) -> None:
    claim = obligation.spec.claim(obligation.case)
    assert isinstance(claim, Claim) and claim.text
    data = json.loads(json.dumps(claim.to_json()))
    again = claim_from_json(data)
    assert again == claim and again.hash == claim.hash and again.text == claim.text
    assert obligation.spec.claim(obligation.case).hash == claim.hash


def test_claims_are_different() -> None:
    """Two cases with one claim would be one obligation counted twice."""
    found: dict[str, str] = {}
    for obligation in OBLIGATIONS:
        key = obligation.spec.claim(obligation.case).hash
        assert key not in found, f"{obligation.name} and {found[key]} are one claim"
        found[key] = obligation.name


def test_proofs_mirror_specs() -> None:
    for id, script in PROOFS.items():
        if script.__module__.startswith("proofs."):
            assert SPECS[id].build.__module__ == script.__module__.replace("proofs.", "specs.")
            assert (script.__doc__ or "").strip(), f"the script of {id} does not say how it goes"


# -- the registry -----------------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Specs and proofs of a test do not stay."""
    monkeypatch.setattr("fpsmt.claims.specs.SPECS", dict(SPECS))
    monkeypatch.setattr("fpsmt.claims.specs.PROOFS", dict(PROOFS))
    for module in (proving,):
        monkeypatch.setattr(module, "SPECS", dict(SPECS))
        monkeypatch.setattr(module, "PROOFS", dict(PROOFS))


TRUE = ForAll("x is x", same(var("x", ieee(2, 3)), var("x", ieee(2, 3))))
FALSE = ForAll("x is finite", is_finite(var("x", ieee(2, 3))))


def test_two_specs_of_one_id(registry: None) -> None:
    def build() -> Claim:
        """A statement."""
        return TRUE

    made = spec("a.test", source="here", cases=[Case({})])(build)
    assert made.claim(made.cases[0]) is TRUE and made.statement == "A statement."
    def other() -> Claim:
        return TRUE

    other.__module__ = "elsewhere"
    with pytest.raises(UsageError, match=r"two specs have the id 'a\.test'"):
        spec("a.test", source="here", cases=[Case({})])(other)
    with pytest.raises(UsageError, match="two cases of the spec"):
        spec("another.test", source="here", cases=[Case({"n": 1}), Case({"n": "1"})])(build)


def test_cases() -> None:
    found = cases("refuted", fmt=[float16], n=[1, 2])
    assert [(case.name, case.expected, case.quick) for case in found] == [
        ("float16 1", "refuted", True), ("float16 2", "refuted", True)
    ]  # fmt: skip
    assert Obligation(OURS["A-corollary-4"], found[0]).name == "A-corollary-4 [float16 1]"


# -- loading and discharging ------------------------------------------------------------------------------


def quick(id: str) -> int:
    return sum(case.quick for case in SPECS[id].cases)


def test_load() -> None:
    here = {id for id, script in PROOFS.items() if script.__module__.startswith("proofs.")}
    everything = [o for o in proving.load([]) if o.spec.id in here]
    assert len(everything) == sum(map(quick, here))
    assert len([o for o in proving.load([], everything=True) if o.spec.id in here]) == sum(
        len(SPECS[id].cases) for id in here
    )
    named = proving.load(["B-indicator"])
    assert {o.spec.id for o in named} == {"B-indicator"} and len(named) == len(SPECS["B-indicator"].cases)
    assert all(o.module == "proofs.indicators" for o in named)
    by_path = proving.load([str(Path(proofs.__path__[0]) / "sums.py")])
    assert {o.module for o in by_path} == {"proofs.sums"}
    both = proving.load([str(Path(proofs.__path__[0]) / "sums.py"), "two-term-dot"])
    assert len({o.name for o in both}) == len(both)
    with pytest.raises(UsageError, match="unknown spec 'mine'"):
        proving.load(["mine"])
    with pytest.raises(UsageError, match="no such proof script"):
        proving.load(["proofs/none.py"])


def test_load_outside_a_folder_of_proofs(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("")
    with pytest.raises(UsageError, match="is not inside a folder named proofs"):
        proving.load([str(tmp_path / "script.py")])
    assert str(tmp_path) not in sys.path


def obligation(claim: ForAll, script: Any) -> Obligation:
    made = spec("a.test", source="here", cases=[Case({})])(lambda: claim)
    proving.SPECS["a.test"] = made
    proof("a.test")(script)
    proving.PROOFS["a.test"] = script
    return Obligation(made, made.cases[0])


def test_discharge(registry: None) -> None:
    from fpsmt import kernel

    record = proving.discharge(obligation(TRUE, lambda c, o: kernel.apply("exhausted", c)), Options())
    assert (record["verdict"], record["claim"]["hash"]) == ("proved", TRUE.hash)
    with pytest.raises(UsageError, match="proves another claim"):
        proving.discharge(obligation(FALSE, lambda c, o: kernel.apply("exhausted", TRUE)), Options())


def test_a_script_cannot_make_up_a_verdict(registry: None) -> None:
    class Fake:
        claim, name, how, seconds = FALSE, "proved", "magic", 0.0

    blank = object.__new__(Proved)
    blank.__dict__.update(claim=FALSE, evidence=None, seconds=0.0)
    for made in (Fake(), blank, None, True, "proved"):
        with pytest.raises(UsageError, match="was not made by the kernel"):
            proving.discharge(obligation(FALSE, lambda c, o, made=made: made), Options())
