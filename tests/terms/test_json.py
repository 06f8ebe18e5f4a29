"""Terms as JSON: they come back as the same objects, and what is no term is one clear error."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpsmt import terms as t
from fpsmt.errors import FpsmtError, UsageError
from fpsmt.floats import context, exactly, float8_e4m3, float16, ieee, nan, zero
from fpsmt.functions import FUNCTIONS, Implementation, Table, implementation_named
from fpsmt.terms.json import sort_from_json, sort_to_json
from fpsmt.terms.terms import BOOL, BitsSort, ChoiceSort, FloatSort
from tests.terms.generators import conditions

CTX = context("float16")
X = t.var("x", float16)


def again(term: t.Term) -> t.Term:
    return t.term_from_json(json.loads(json.dumps(t.term_to_json(term))))


@given(conditions())
@settings(max_examples=200)
def test_round_trip(condition: t.Term) -> None:
    assert again(condition) is condition
    for term in t.postorder(condition):
        assert again(term) is term


def test_round_trip_of_every_constant_and_activation() -> None:
    uses = [
        "tanh", "tanh:ulps=2:range=-1..1:monotone", "exp:ulps=1:any-value", "leaky_relu(0.2):floats=3",
        "sigmoid:ulps=3 on -1..18; error=2^-22", "gelu:error=1/3",
    ]  # fmt: skip
    small = ieee(2, 3)
    table = Implementation(FUNCTIONS["tanh"], Table(small, small, tuple(range(32))))
    terms = [t.apply(implementation_named(use), CTX, X, "here" if "any-value" in use else "") for use in uses]
    terms.append(t.apply(table, context(small), t.var("y", small)))
    floats = [nan(float16), zero(float16, True), zero(float16), exactly(float16, 1.5)]
    terms += [t.const(v) for v in (True, False, *floats)]
    terms += [t.bits(64, (1 << 64) - 1), t.bits(1, 0), t.var("∀ x′\n", ChoiceSort(7)), t.var("", BOOL)]
    for term in terms:
        assert again(term) is term


def test_terms_do_not_change() -> None:
    term = t.add(CTX, X, X)
    with pytest.raises(AttributeError, match="terms do not change"):
        term.op = "mul"
    with pytest.raises(AttributeError, match="terms do not change"):
        del term.args
    assert copy.copy(term) is term and copy.deepcopy([term])[0] is term
    assert pickle.loads(pickle.dumps(term)) is term


def test_deep_terms() -> None:
    term = X
    for _ in range(20_000):
        term = t.add(CTX, term, X)
    assert again(term) is term
    assert t.evaluate(term, {"x": zero(float16)}) == zero(float16)
    assert len(repr(term)) < 3000


@given(st.sampled_from([BOOL, BitsSort(1), BitsSort(128), ChoiceSort(1), ChoiceSort(9), FloatSort(float8_e4m3)]))
def test_sorts(sort: t.Sort) -> None:
    assert sort_from_json(json.loads(json.dumps(sort_to_json(sort)))) == sort


@pytest.mark.parametrize(
    "data",
    [
        None, 3, "", "float16", "bits", "bits[]", "bits[0]", "bits[-1]", "bits[1.5]", "bits[ 1 ]", "bits[9999999999]",
        "bits[99999999999999999999]", "choice[0]", "choice[-3]", "choice[99999999999]", "bool ", {}, {"float": 3},
        {"float": "half"}, {"float": None}, [], ["bool"],
    ],
    ids=str,
)  # fmt: skip
def test_sorts_that_are_none(data: Any) -> None:
    with pytest.raises((UsageError, KeyError, TypeError)):
        sort_from_json(data)
    with pytest.raises(UsageError):
        t.term_from_json([["var", data, [], "x"]])


FLOAT, VAR = {"float": "float16"}, ["var", {"float": "float16"}, [], "x"]
BAD: list[Any] = [
    None, 3, "x", {}, [], [[]], [None], ["var"], [["var"]], [["var", FLOAT, []]], [["var", FLOAT, [], "x", 1]],
    [["var", FLOAT, [], 3]], [["var", FLOAT, [], None]], [["var", FLOAT, [], ["x"]]], [VAR, ["var", FLOAT, [0], "x"]],
    [["const", FLOAT, [], 3]], [["const", FLOAT, [], "zz"]], [["const", FLOAT, [], "0x1ffff"]],
    [["const", FLOAT, [], "-0x1"]], [["const", FLOAT, [], None]], [VAR, ["const", "bool", [0], True]],
    [["const", "bool", [], 1]], [["const", "bool", [], 2]], [["const", "bool", [], "true"]],
    [["const", "bits[4]", [], 16]], [["const", "bits[4]", [], -1]], [["const", "bits[4]", [], 1.0]],
    [["const", "bits[4]", [], True]], [["const", "choice[4]", [], 1]],
    [VAR, ["neg", FLOAT, [1], None]], [VAR, ["neg", FLOAT, [-1], None]], [VAR, ["neg", FLOAT, [True], None]],
    [VAR, ["neg", FLOAT, [0.0], None]], [VAR, ["neg", FLOAT, "0", None]], [VAR, ["neg", FLOAT, {"0": 0}, None]],
    [VAR, ["neg", FLOAT, [0, 0], None]], [VAR, ["neg", FLOAT, [], None]], [VAR, ["neg", "bool", [0], None]],
    [VAR, ["neg", {"float": "float32"}, [0], None]],
    [VAR, ["add", FLOAT, [0, 0], "float17"]], [VAR, ["add", FLOAT, [0, 0], 3]], [VAR, ["add", FLOAT, [0, 0], None]],
    [VAR, ["add", FLOAT, [0], "float16"]], [VAR, ["add", FLOAT, [0, 0, 0], "float16"]],
    [VAR, ["add", {"float": "float32"}, [0, 0], "float16"]], [VAR, ["add", FLOAT, [0, 0], ["float16"]]],
    [VAR, ["frobnicate", FLOAT, [0], None]], [VAR, [["add"], FLOAT, [0, 0], None]],
    [VAR, ["__class__", FLOAT, [0], None]],
    [VAR, ["postorder", FLOAT, [0], None]], [VAR, ["relu", FLOAT, [0], None]],
    [VAR, ["apply", FLOAT, [0], None]], [VAR, ["apply", FLOAT, [0], [{}, "float16", ""]]],
    [VAR, ["apply", FLOAT, [0], [implementation_named("tanh").to_json(), "float16"]]],
    [VAR, ["apply", FLOAT, [0], [implementation_named("tanh").to_json(), "float16", 3]]],
    [VAR, ["apply", FLOAT, [0], [implementation_named("tanh").to_json(), "float16", "single-valued at a site"]]],
    [VAR, ["apply", FLOAT, [0, 0], [implementation_named("tanh").to_json(), "float16", ""]]],
    [["var", "bits[4]", [], "b"], ["extract", "bits[2]", [0], [2.0, 1]]],
    [["var", "bits[4]", [], "b"], ["extract", "bits[2]", [0], [True, 0]]],
    [["var", "bits[4]", [], "b"], ["extract", "bits[2]", [0], [5, 4]]],
    [["var", "bits[4]", [], "b"], ["extract", "bits[2]", [0], [1]]],
    [["var", "bits[4]", [], "b"], ["concat", "bits[4]", [], None]],
    [["var", "bits[4]", [], "b"], ["from_bits", FLOAT, [0], None]],
    [["var", "choice[4]", [], "c"], ["choice_is", "bool", [0], 4]],
    [["var", "choice[4]", [], "c"], ["choice_is", "bool", [0], True]],
    [["var", "choice[4]", [], "c"], ["choice_is", "bool", [0], 1.0]],
    [["var", "choice[4]", [], "c"], ["choose", FLOAT, [0], None]],
    [["var", "choice[4]", [], "c"], ["choose", FLOAT, [], None]],
    [VAR, ["and", "bool", [0], None]], [VAR, ["not", "bool", [0], None]], [VAR, ["ite", FLOAT, [0, 0, 0], None]],
    [VAR, ["same", "bool", [0], None]], [VAR, ["same", FLOAT, [0, 0], None]],
]  # fmt: skip


@pytest.mark.parametrize("data", BAD, ids=lambda d: str(d)[-60:])
def test_what_is_no_term(data: Any) -> None:
    with pytest.raises(UsageError) as caught:
        t.term_from_json(data)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 2000


JUNK = [None, True, 0, -1, 10**20, 1.5, "", "add", "x", "bool", "bits[3]", FLOAT, [], [0], [0, 0], {}]


@given(conditions(operations=4), st.data())
@settings(max_examples=400)
def test_damaged_terms(condition: t.Term, draw: st.DataObject) -> None:
    """A damaged list is an error, or a term that comes back as itself."""
    data = t.term_to_json(condition)
    node = draw.draw(st.integers(0, len(data) - 1))
    data[node][draw.draw(st.integers(0, 3))] = draw.draw(st.sampled_from(JUNK))
    try:
        term = t.term_from_json(data)
    except FpsmtError as error:
        assert isinstance(error, UsageError)
    else:
        assert again(term) is term
