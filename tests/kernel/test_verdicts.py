"""Only the kernel makes proofs and refutations; claims and data are what their files say."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
from types import SimpleNamespace

import pytest

from fpsmt import kernel
from fpsmt.claims import ForAll, SumInvariant, SumOutcomes
from fpsmt.claims.claim import Replay, claim_from_json, claim_kind
from fpsmt.errors import EvidenceError, InternalError, UsageError
from fpsmt.floats import Format, context, exactly, float16, ieee
from fpsmt.kernel import Evidence, Proved, Refuted, Unknown, is_sealed, verdict_to_json
from fpsmt.kernel.kernel import RULES
from fpsmt.kernel.rules.formulas import case_claims
from fpsmt.kernel.verdicts import _SEALED
from fpsmt.networks import Sum
from fpsmt.terms import FALSE, TRUE, add, const, implies, is_finite, is_nan, negation, same, term_to_json, var

TINY = ieee(2, 3)
X = var("x", TINY)
TRUE_CLAIM = ForAll("x is x", same(X, X))
FALSE_CLAIM = ForAll("x is finite", is_finite(X))


def proved() -> Proved:
    verdict = kernel.apply("exhausted", TRUE_CLAIM)
    assert isinstance(verdict, Proved)
    return verdict


def refuted() -> Refuted:
    verdict = kernel.apply("exhausted", FALSE_CLAIM)
    assert isinstance(verdict, Refuted)
    return verdict


def test_constructors_need_the_seal() -> None:
    evidence = Evidence("exhausted")
    for seal in (None, object(), True):
        with pytest.raises(TypeError, match=r"only fpsmt\.kernel"):
            Proved(FALSE_CLAIM, evidence, 0.0, seal)
        with pytest.raises(TypeError, match=r"only fpsmt\.kernel"):
            Refuted(TRUE_CLAIM, {}, Replay(True), 0.0, (), seal)
    with pytest.raises(TypeError):
        Proved(FALSE_CLAIM, evidence, 0.0)  # type: ignore[call-arg]
    with pytest.raises(InternalError, match="does not replay"):
        Refuted(TRUE_CLAIM, {}, Replay(False), 0.0, (), None)


def test_instances_do_not_keep_the_seal() -> None:
    for verdict in (proved(), refuted()):
        assert not hasattr(verdict, "_seal")
        with pytest.raises((ValueError, TypeError)):
            dataclasses.replace(verdict, claim=FALSE_CLAIM)
        with pytest.raises(dataclasses.FrozenInstanceError):
            verdict.claim = FALSE_CLAIM  # type: ignore[misc]


def test_copies_and_pickles() -> None:
    for verdict in (proved(), refuted(), Unknown(TRUE_CLAIM, "too hard")):
        assert copy.copy(verdict) is verdict and copy.deepcopy(verdict) is verdict
        with pytest.raises(TypeError, match="verdicts are not pickled"):
            pickle.dumps(verdict)


def fakes() -> list[object]:
    blank = object.__new__(Proved)
    blank.__dict__.update(claim=FALSE_CLAIM, evidence=Evidence("exhausted"), seconds=0.0)
    changed = proved()
    object.__setattr__(changed, "claim", FALSE_CLAIM)

    class Mine(Proved):
        def __post_init__(self, _seal: object) -> None:
            pass

    return [blank, changed, Mine(FALSE_CLAIM, Evidence("exhausted"), 0.0, None), SimpleNamespace(claim=FALSE_CLAIM)]


@pytest.mark.parametrize("fake", fakes(), ids=["blank", "changed", "subclass", "duck"])
def test_what_the_kernel_did_not_make_proves_nothing(fake: object) -> None:
    assert not is_sealed(fake)
    with pytest.raises(EvidenceError, match="not proved by the kernel"):
        kernel.apply("conjunction", FALSE_CLAIM, {}, [fake])  # type: ignore[list-item]
    with pytest.raises(EvidenceError, match="not proved by the kernel"):
        kernel.refute(FALSE_CLAIM, refuted().counterexample, [fake])  # type: ignore[list-item]
    with pytest.raises(EvidenceError, match="not made by the kernel"):
        verdict_to_json(fake)  # type: ignore[arg-type]


def test_a_refutation_changed_later_is_not_written() -> None:
    verdict = refuted()
    assert is_sealed(verdict)
    object.__setattr__(verdict, "claim", TRUE_CLAIM)
    assert not is_sealed(verdict)
    with pytest.raises(EvidenceError, match="not made by the kernel"):
        verdict_to_json(verdict)


def test_the_kernel_forgets_what_is_gone() -> None:
    verdict = proved()
    key = id(verdict)
    assert key in _SEALED
    del verdict
    gc.collect()
    assert key not in _SEALED


def test_a_verdict_is_no_truth_value() -> None:
    for verdict in (proved(), refuted(), Unknown(TRUE_CLAIM, "")):
        with pytest.raises(TypeError, match=r"compare its \.name"):
            bool(verdict)


def test_text_says_what_is_trusted() -> None:
    text = str(proved())
    assert text.splitlines()[0].startswith("proved: ∀ x: ieee(2,3).")
    assert text.splitlines()[-1] == "  trusted: the vectorised arithmetic"
    assert "<b" in proved()._repr_html_() and "refuted" in refuted()._repr_html_()
    assert "x = <ieee(2,3) inf" in str(refuted()) or "x = <ieee(2,3) -inf" in str(refuted())
    assert str(Unknown(TRUE_CLAIM, "why", 0.0, "what next")).endswith("why\n  what next")


def test_a_format_under_the_name_of_another_is_refused() -> None:
    """Claims about two formats of one name have one hash: a proof of the small one would prove the large one."""
    false = ieee(2, 3, "float16")
    x = var("x", false)
    ctx = context(false)
    liar = ForAll("x⊕x is never 7", negation(same(add(ctx, x, x), const(exactly(false, 3)))))
    for claim in (
        liar,
        SumInvariant(Sum(ctx, (exactly(false, 1), exactly(false, 1)))),
        SumOutcomes(Sum(ctx, (exactly(false, 1), exactly(false, 1))), (exactly(false, 2),)),
    ):
        with pytest.raises(UsageError, match="carry the name of another one"):
            kernel.apply("exhausted" if claim is liar else "all schedules", claim)
    with pytest.raises(UsageError, match="carry the name of another one"):
        kernel.refute(liar, {"values": {"x": "0x0"}})
    unnamed = Format("mine", 2, 3, 1, 0x0B, True, "above")
    with pytest.raises(UsageError, match="unknown format 'mine'"):
        kernel.apply("exhausted", ForAll("", is_nan(var("x", unnamed))))


def test_a_network_in_a_format_under_the_name_of_another_is_refused() -> None:
    from fpsmt.claims import PredictionInvariant
    from fpsmt.networks import Network, execution

    def claim(fmt: Format) -> PredictionInvariant:
        network = Network.sequential(context(fmt), 1, [([[1], [2]], [0, 0])])
        return PredictionInvariant(network, ((exactly(fmt, 1),),), execution("any"))

    good, bad = claim(float16), claim(ieee(3, 4, "float16"))
    assert good.hash == bad.hash and good != bad
    assert kernel.apply("bounds on every execution", good).name == "proved"
    with pytest.raises(UsageError, match="carry the name of another one"):
        kernel.apply("bounds on every execution", bad)


def test_data_that_are_not_json_are_refused() -> None:
    for data in ({"timeout": float("nan")}, {"solvers": {"z3"}}, {"timeout": float("inf")}):
        with pytest.raises(UsageError, match="cannot be written as JSON"):
            kernel.apply("solver", TRUE_CLAIM, data)
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        kernel.refute(FALSE_CLAIM, {"values": {"x": object()}})


def test_unknown_rules_and_claims() -> None:
    for name in ("trust me", "", 3, None):
        with pytest.raises(UsageError, match="unknown rule"):
            kernel.apply(name, TRUE_CLAIM)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is not a claim"):
        kernel.apply("exhausted", "x is x")  # type: ignore[arg-type]


def test_every_rule_has_its_proof_in_its_docstring() -> None:
    for name, rule in RULES.items():
        assert rule.__doc__ and len(rule.__doc__) > 60, name


def test_rules_and_kinds_have_one_name_each() -> None:
    with pytest.raises(InternalError, match="two rules are named 'exhausted'"):
        kernel.rule("exhausted")(lambda claim, data, premises: kernel.Holds())

    class Other(ForAll):
        kind = "for-all"

    with pytest.raises(UsageError, match="two kinds of claims are named 'for-all'"):
        claim_kind(Other)
    assert claim_from_json(TRUE_CLAIM.to_json()) == TRUE_CLAIM


def test_a_premise_is_not_read_through_its_statement() -> None:
    """A claim's words may lie; what is compared is its condition."""
    claim = ForAll("anything", FALSE)
    liar = ForAll(f"case 1: {claim.statement}", TRUE)
    needed = case_claims(claim, [TRUE])
    assert [c.condition for c in needed] == [implies(TRUE, FALSE), TRUE]
    premises = [kernel.apply("exhausted", c) for c in (liar, needed[1])]
    with pytest.raises(EvidenceError, match="not the cases"):
        kernel.apply("cases", claim, {"cases": [term_to_json(TRUE)]}, premises)  # type: ignore[arg-type]
