"""What every user of floating-point sums should know about one addition."""

from fpsmt.claims import Case, ForAll, cases, spec
from fpsmt.floats import FORMATS, Context, Format, context, ieee, p3109
from fpsmt.terms import add, all_of, eq, implies, is_finite, is_infinite, negation, same, var

#: Every named format, two odd ones, and a P3109 format; those without infinity saturate.
EVERY_FORMAT = [*FORMATS.values(), ieee(2, 3), ieee(3, 5), p3109(8, 4)]


def usual(fmt: Format) -> Context:
    """Round to nearest even; overflow to infinity where there is one, else saturation."""
    return context(fmt, overflow=None if fmt.has_infinity else "saturate")


@spec("addition-commutes", source="IEEE 754-2019, 5.4.1", cases=cases(fmt=EVERY_FORMAT))
def addition_commutes(fmt: Format) -> ForAll:
    """a ⊕ b and b ⊕ a are the same float, NaN, infinities and zeros included."""
    ctx, a, b = usual(fmt), var("a", fmt), var("b", fmt)
    return ForAll("a⊕b ≡ b⊕a", same(add(ctx, a, b), add(ctx, b, a)))


@spec("addition-associates", source="folklore; expected to fail", cases=cases("refuted", fmt=EVERY_FORMAT))
def addition_associates(fmt: Format) -> ForAll:
    """For finite a, b, c with finite partial sums, (a ⊕ b) ⊕ c = a ⊕ (b ⊕ c).  False in every format."""
    ctx = usual(fmt)
    a, b, c = (var(name, fmt) for name in "abc")
    left, right = add(ctx, a, b), add(ctx, b, c)
    finite = all_of(*map(is_finite, (a, b, c, left, right)))
    return ForAll("partial sums finite ⇒ (a⊕b)⊕c = a⊕(b⊕c)", implies(finite, eq(add(ctx, left, c), add(ctx, a, right))))


@spec(
    "finite-sum-stays-finite",
    source="public report: a solver answered `unsat` to this query on FP(2,3)",
    cases=[Case({"fmt": ieee(2, 3)}, "refuted")],
)
def finite_sum_stays_finite(fmt: Format) -> ForAll:
    """The sum of two finite values is never infinite.  False: 3.5 ⊕ 3.5 in the format of 2 + 3 bits."""
    a, b = var("a", fmt), var("b", fmt)
    finite = all_of(is_finite(a), is_finite(b))
    return ForAll("a, b finite ⇒ a⊕b not infinite", implies(finite, negation(is_infinite(add(usual(fmt), a, b)))))
