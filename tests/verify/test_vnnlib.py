"""VNN-LIB queries: what they mean exactly, and one line for those that are malformed."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import pytest

from fpsmt.errors import UsageError
from fpsmt.files import sexpressions
from fpsmt.files.vnnlib import MAX_CASES, Row, Specification, parse_vnnlib, read_vnnlib

OLD = """(declare-const X_0 Real) (declare-fun X_1 () Real)
(declare-const Y_0 Real) ; a comment (
(declare-const Y_1 Real)
"""
NEW = """(vnnlib-version <2.0>)
(declare-network f (declare-input X float32 [1, 2]) (declare-output Y real [2] "out"))
"""


def rows(text: str, head: str = OLD) -> list[tuple[dict[int, Fraction], Fraction, bool]]:
    return [(dict(r.terms), r.bound, r.strict) for r in parse_vnnlib(head + text).base]


def test_comparisons() -> None:
    """Variables 0 and 1 are the inputs, 2 and 3 the outputs."""
    half = Fraction(1, 2)
    assert rows("(assert (<= X_0 0.5))") == [({0: 1}, half, False)]
    assert rows("(assert (>= X_0 -0.5))") == [({0: -1}, half, False)]
    assert rows("(assert (> Y_1 Y_0))") == [({2: 1, 3: -1}, 0, True)]
    assert rows("(assert (= Y_1 1e-2))") == [({3: 1}, Fraction(1, 100), False), ({3: -1}, Fraction(-1, 100), False)]
    assert rows("(assert (<= (+ (* 2 Y_0) (* Y_1 -3.0) 1) (- 4 Y_0 (- Y_1))))") == [({2: 3, 3: -4}, 3, False)]
    assert rows("(assert (<= (* 2 (/ Y_0 4) 3) (- 1)))") == [({2: Fraction(3, 2)}, -1, False)]
    assert rows("(assert (<= (- X_0 X_0) 0))") == [] and rows("(assert (< (- X_0 X_0) 0))") == [({}, -1, False)]
    assert rows("(assert (and (<= X_0 1) (and (<= X_1 1) (or (<= Y_0 1)))))")[2] == ({2: 1}, 1, False)


def test_numbers_are_exact() -> None:
    assert rows("(assert (<= X_0 0.1))")[0][1] == Fraction(1, 10)
    assert rows("(assert (<= X_0 1.0000000000000000000000000000001))")[0][1] > 1


def test_disjunctions_become_cases() -> None:
    spec = parse_vnnlib(OLD + "(assert (or (and (<= X_0 1) (>= Y_0 2)) (!= Y_1 0)))(assert (or (< X_1 1) (> X_1 2)))")
    assert not spec.base and len(spec.cases) == 6
    assert spec.cases[0] == (
        Row(((0, Fraction(1)),), Fraction(1), False), Row(((2, Fraction(-1)),), Fraction(-2), False),
        Row(((1, Fraction(1)),), Fraction(1), True),
    )  # fmt: skip
    assert len(parse_vnnlib(OLD).cases) == 1


def test_version_two() -> None:
    spec = parse_vnnlib(NEW + "(assert (<= X[0,1] 0.5)) (assert (or (== Y [0] Y[1]) (> (- Y[0]) X[0,0])))")
    (f,) = spec.networks
    assert [(t.name, t.role, t.type, t.shape, t.start, t.onnx_name) for t in f.tensors] == [
        ("X", "input", "float32", (1, 2), 0, None), ("Y", "output", "real", (2,), 2, "out"),
    ]  # fmt: skip
    assert spec.base[0].terms == ((1, 1),) and len(spec.cases) == 2
    scalar = "(vnnlib-version <2.0>)(declare-network f (declare-input x Real []) (declare-output y Real []))"
    assert rows("(assert (<= x 1)) (assert (<= y x))", scalar) == [({0: 1}, 1, False), ({0: -1, 1: 1}, 0, False)]


def test_several_networks() -> None:
    spec = parse_vnnlib(NEW + """(declare-network g (equal-to f) (declare-input A float32 [1,2])
        (declare-output B real [2])) (assert (== X[0,0] A[0,0]))""")  # fmt: skip
    assert [(d.name, d.same) for d in spec.networks] == [("f", None), ("g", "f")]
    assert [t.start for d in spec.networks for t in d.tensors] == [0, 2, 4, 6] and len(spec.base) == 2


MALFORMED = {
    "(assert (<= X_0 1)": "line 4: a parenthesis is not closed",
    "(assert (<= X_0 1)))": "line 4: a parenthesis is closed that was not opened",
    "\n(assert (<= X_7 1))": "line 5: 'X_7' is neither",
    "(assert (<= Z 1))": "'Z' is neither a number nor a declared variable",
    "(assert (<= X_0))": "is no formula",
    "(assert (xor X_0 1))": "(xor …) is no formula",
    "(assert X_0)": "expected a formula",
    "(assert (<= (* X_0 X_1) 1))": "a product or quotient of two variables",
    "(assert (<= (/ 1 0) X_0))": "division by 0",
    "(assert (<= 1e99999 X_0))": "neither a number",
    "(assert (<= nan X_0))": "neither a number",
    "(assert (<= X_0 1) (<= X_1 1))": "an assertion is (assert FORMULA)",
    "(assert (<= X_0 1)) (declare-const Y_2 Real)": "declarations come before assertions",
    "(declare-const X_0 Real)": "X_0 is declared twice",
    "(declare-const X_2 Int)": "a declaration is",
    "(declare-const X_3 Real) (assert (<= X_0 1))": "X_2 is not declared",
    "(frobnicate)": "unknown command 'frobnicate'",
    "17": "expected a command",
    "()": "expected a command",
    "(assert (and))": "(and) has no parts",
    '(assert (<= X_0 "1))': "cannot read",
    "(vnnlib-version <3.0>)": "version <3.0>",
    "(declare-network f)": "needs (vnnlib-version <2.0>)",
}


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_vnnlib(OLD + text, "q.vnnlib")
    message = str(error.value)
    assert message.startswith("q.vnnlib, line ") and "\n" not in message
    assert MALFORMED[text] in message


NEW_MALFORMED = {
    "(declare-network g (declare-input X real [1]) (declare-output Z real [1]))": "X is declared twice",
    "(declare-network g (declare-input A int32 [1]) (declare-output B real [1]))": "'int32' is not supported",
    "(declare-network g (declare-input A real [0]) (declare-output B real [1]))": "dimension 0",
    "(declare-network g (declare-input A real [9999,9999]) (declare-output B real [1]))": "more than",
    "(declare-network g (declare-output B real [1]))": "at least one of each",
    "(declare-network g (declare-output B real [1]) (declare-input A real [1]))": "its inputs first",
    '(declare-network g (declare-input A real [1]) (declare-hidden H real [1] "h"))': "hidden",
    "(declare-network g (equal-to h) (declare-input A real [1]) (declare-output B real [1]))": "'h'",
    "(assert (<= X[0] 1))": "there is no element [0]",
    "(assert (<= X[0,2] 1))": "there is no element [0, 2]",
    "(assert (<= X[0,a] 1))": "cannot read the index",
    "(assert (<= [0] 1))": "belongs to no variable",
    "(assert (= Y[0] 1))": "is no formula",
}  # fmt: skip


@pytest.mark.parametrize("text", NEW_MALFORMED)
def test_malformed_in_version_two(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_vnnlib(NEW + text)
    assert NEW_MALFORMED[text] in str(error.value)


def test_depth_and_size_have_limits() -> None:
    deep = "(or " * 3000 + "(<= X_0 1)" + ")" * 3000
    with pytest.raises(UsageError, match="line 4: parentheses are nested more than 100 deep"):
        parse_vnnlib(OLD + f"(assert {deep})")
    either = "(or (<= Y_0 1) (<= Y_1 1))"
    with pytest.raises(UsageError, match=f"more than {MAX_CASES} cases"):
        parse_vnnlib(OLD + f"(assert (and {either * 20}))" + f"(assert (or (and {either * 20}) (<= X_0 1)))")
    many = OLD + f"(assert {either})" * 20
    with pytest.raises(UsageError, match=f"more than {MAX_CASES} cases"):
        parse_vnnlib(many)


def test_damaged_texts_give_a_query_or_one_line() -> None:
    good = OLD + "(assert (or (and (<= X_0 1.5) (>= Y_0 (* 2 X_1))) (and (< Y_1 -0.5))))"
    rng, read = random.Random(3), 0
    for _ in range(1500):
        text = list(good)
        for _ in range(rng.choice([1, 1, 3])):
            at = rng.randrange(len(text))
            text[at : at + rng.randrange(3)] = rng.choice(["", "(", ")", "0", "[", '"', "e", "-", ";", "\n", "(and"])
        try:
            assert isinstance(parse_vnnlib("".join(text)), Specification)
            read += 1
        except UsageError as error:
            assert "\n" not in str(error)
    assert 0 < read < 1500


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "q.vnnlib"
    path.write_text(OLD + "(assert (<= X_0 1))")
    assert len(read_vnnlib(path).base) == 1
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not text in UTF-8"):
        read_vnnlib(path)
    with pytest.raises(UsageError, match="No such file"):
        read_vnnlib(tmp_path / "none")
    path.write_text("")
    with pytest.raises(UsageError, match="no network or variable is declared"):
        read_vnnlib(path)


@pytest.mark.parametrize(
    "text",
    [
        "(<= Y_0 1e9999)",
        "(<= Y_0 1e-9999)",
        "(<= (* 1e1500 1e1500 Y_0) 1)",
        f"(<= (* {'1e999 ' * 3000} Y_0) 1)",
        f"(<= Y_0 0.{'3' * 5000})",
    ],
)
def test_numbers_of_too_many_digits_are_refused_with_their_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^query, line 4: [^\n]*$"):
        parse_vnnlib(f"{OLD}(assert {text})")
    assert rows("(assert (<= Y_0 1e-1100))") == [({2: 1}, Fraction(1, 10**1100), False)]


def test_digits_are_those_of_ascii() -> None:
    for text in ("(declare-const X_\u0662 Real)", "(assert (<= X_0 \u0661))", "(assert (<= X_\u0660 1))"):
        with pytest.raises(UsageError, match="line 4"):
            parse_vnnlib(OLD + text)


def test_large_queries_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 MB, without an end, or of very many words."""
    path = tmp_path / "large.vnnlib"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    for name in (path, "/dev/zero"):
        with pytest.raises(UsageError, match="is larger than 32 MiB, which is the most that is read"):
            read_vnnlib(name)
    monkeypatch.setattr(sexpressions, "MAX_TOKENS", 7)
    with pytest.raises(UsageError, match="line 2: there are more than 7 words and parentheses"):
        parse_vnnlib("(declare-const X_0 Real)\n(declare-const Y_0 Real)")
