"""Rational approximation over the reals: public rationals and reports, Zolotarev's sign, networks for activations.

Nothing is rounded here: the claims are about real functions.  The float programs that evaluate a rational are another
subject.
"""

from __future__ import annotations

from fractions import Fraction

from fpsmt.claims import BestError, Case, SupNorm, cases, spec
from fpsmt.rational import Rational, constant, named, rational
from fpsmt.rational.activations import network
from fpsmt.rational.elementary import small_tanh
from fpsmt.rational.roots import root
from fpsmt.rational.zolotarev import absolute_value, balanced_ell, composed_sign, sign, sign_bound

UNIT = ((Fraction(-1), Fraction(1)),)
ABOVE = (
    "4.89352455891786e-03", "6.37261928875436e-04", "1.48572235717979e-05", "5.12229709037114e-08",
    "-8.60467152213735e-11", "2.00018790482477e-13", "-2.76076847742355e-16",
)  # fmt: skip
BELOW = ("4.89352518554385e-03", "2.26843463243900e-03", "1.18534705686654e-04", "1.19825839466702e-06")


def copied_tanh() -> Rational:
    """x·P(x²)/Q(x²) of type (13, 6), as in Eigen, ONNX Runtime and XLA; coefficients are exact decimals."""
    above = [c for text in ABOVE for c in (Fraction(0), Fraction(text))]
    below = [c for text in BELOW for c in (Fraction(text), Fraction(0))]
    return Rational(tuple(above), tuple(below))


@spec(
    "rational-tanh-error",
    source="the tanh of Eigen, ONNX Runtime and XLA (tensorflow#23054)",
    cases=[Case({"bound": "3.5e-8"}), Case({"bound": "2.566e-8"}), Case({"bound": "2.565e-8"}, "refuted")],
)
def rational_tanh_error(bound: str) -> SupNorm:
    """The rational of type (13, 6) is within the bound of tanh on [0, 9], as a real function."""
    return SupNorm(named("tanh"), rational(copied_tanh()), ((Fraction(0), Fraction(9)),), Fraction(bound))


@spec("rational-tanh-range", source="the tanh of Eigen, ONNX Runtime and XLA (tensorflow#23054)", cases=[Case({})])
def rational_tanh_range() -> SupNorm:
    """As a real function it stays below 1 − 10⁻⁸ on [0, 9]: |r| ≤ 1 − 10⁻⁸."""
    r = rational(copied_tanh())
    return SupNorm(constant(0), r, ((Fraction(0), Fraction(9)),), 1 - Fraction(1, 10**8))


#: Types (n, n), an error that no rational of the type is below, and one that some rational is below.
BEST_TANH = (
    (3, "3.912e-4", "3.919e-4"), (4, "1.782e-5", "1.785e-5"), (5, "6.009e-7", "6.020e-7"), (6, "1.517e-8", "1.520e-8"),
    (7, "2.930e-10", "2.934e-10"), (8, "4.427e-12", "4.434e-12"), (9, "5.351e-14", "5.360e-14"),
)  # fmt: skip


@spec(
    "best-tanh",
    source="de la Vallée-Poussin",
    cases=[
        case
        for n, below, above in BEST_TANH
        for case in (Case({"n": n, "bound": below}), Case({"n": n, "bound": above}, "refuted"))
    ],
)
def best_tanh(n: int, bound: str) -> BestError:
    """No rational of type (n, n) is nearer to tanh on [0, 8] than the bound; one is nearer than the bound of the next
    case, which is less than 0.2 % above: so near to the best one are those that the exchange finds."""
    return BestError(named("tanh"), ((Fraction(0), Fraction(8)),), (n, n), Fraction(bound))


@spec(
    "best-relu",
    source="best approximation of |x| through √",
    cases=[Case({"bound": "0.0042507"}), Case({"bound": "0.00426"}, "refuted")],
)
def best_relu(bound: str) -> BestError:
    """No rational of type (5, 4) is nearer to ReLU on [−1, 1] than the bound."""
    return BestError(named("relu"), UNIT, (5, 4), Fraction(bound))


@spec(
    "relu-parabola", source="heir#1609", cases=[Case({"bound": "1/16"}), Case({"bound": "0.0624999999999"}, "refuted")]
)
def relu_parabola(bound: str) -> SupNorm:
    """x²/2 + x/2 + 1/16 is within the bound of ReLU on [−1, 1]; 1/16 is reached."""
    parabola = Rational((Fraction(1, 16), Fraction(1, 2), Fraction(1, 2)))
    return SupNorm(named("relu"), rational(parabola), UNIT, Fraction(bound))


@spec("zolotarev-absolute-value", source="rational neural networks (2020)", cases=cases(k=[3, 9, 27]))
def zolotarev_absolute_value(k: int) -> SupNorm:
    """x·r(x), r Zolotarev's sign of type (k, k − 1) for ℓ = 4·exp(−π√(k/2)), is within ℓ of |x| on [−1, 1]."""
    ell = balanced_ell(k)
    return SupNorm(named("abs"), absolute_value(sign(k, ell)), UNIT, ell)


@spec("composed-sign", source="rational neural networks (2020)", cases=cases(maps=[3, 4, 6, 9]))
def composed_sign_error(maps: int) -> SupNorm:
    """j maps of type (3, 2) are a sign on [ℓ, 1] with the error of Zolotarev's best one of degree 3ʲ.

    ℓ = 4·exp(−π√(3ʲ/2)); for ReLU errors of 1e-3, 1e-8, 1e-16, 1e-100.
    """
    bits = 512
    ell = balanced_ell(3**maps, bits)
    found = composed_sign(maps, ell, bits)
    return SupNorm(constant(1), found.formula, ((ell, Fraction(1)),), sign_bound(found))


@spec(
    "zolotarev-deviation",
    source="rational neural networks (2020)",
    cases=[
        *[Case({"k": k, "bound": above}) for k, above in ((3, "8.5010e-2"), (9, "5.10242e-3"), (27, "3.88170e-5"))],
        *[Case({"k": k, "bound": below}, "refuted") for k, below in ((3, "8.5008e-2"), (9, "5.10240e-3"))],
    ],
)
def zolotarev_deviation(k: int, bound: str) -> SupNorm:
    """The deviations of x·r(x) from |x|, to the last digit: 8.5009e-2, 5.10241e-3, 3.88169e-5."""
    return SupNorm(named("abs"), absolute_value(sign(k, balanced_ell(k))), UNIT, Fraction(bound))


@spec(
    "zolotarev-near-zero",
    source="scipy#8480",
    cases=[Case({"bound": "0.155873"}), Case({"bound": "0.155871"}, "refuted")],
)
def zolotarev_near_zero(bound: str) -> SupNorm:
    """Type (13, 12) for ℓ = 1e-8: the best deviation is 0.155872; coefficients in double precision gave 0.171921."""
    ell = Fraction(1, 10**8)
    return SupNorm(constant(1), sign(13, ell).formula, ((ell, Fraction(1)),), Fraction(bound))


@spec("composition-law", source="rational neural networks (2020)", cases=cases(maps=[2, 3]))
def composition_law(maps: int) -> SupNorm:
    """Z₃∘…∘Z₃ = Z_{3ʲ}: what is left is the rounding of the coefficients."""
    ell = Fraction(1, 50)
    whole, parts = sign(3**maps, ell, 256), composed_sign(maps, ell, 256)
    return SupNorm(whole.formula, parts.formula, ((ell, Fraction(1)),), Fraction(1, 10**50))


ROOT_ERRORS = ("3.34e-1", "1.83e-1", "6.61e-2", "9.64e-3", "2.09e-4", "9.82e-8", "2.17e-14", "1.06e-27")


@spec(
    "tenth-root",
    source="approximating the pth root by composite rational functions",
    cases=[Case({"steps": k, "bound": bound}) for k, bound in enumerate(ROOT_ERRORS)],
)
def tenth_root(steps: int, bound: str) -> SupNorm:
    """The composite tenth root on [2⁻¹⁰, 1]: the number of correct digits doubles with each step."""
    r = root(10, Fraction(1, 2), steps)
    return SupNorm(named("root(10)"), r.formula, ((r.low, Fraction(1)),), Fraction(bound), relative=True)


#: After so many steps an error that holds, and one that does not.
HALLEY_ERRORS = (
    ("3.3201e-4", "3.3200e-4"), ("1.2447e-11", "1.2444e-11"), ("6.5560e-34", "6.5558e-34"),
    ("9.5826e-101", "9.5825e-101"),
)  # fmt: skip


@spec(
    "halley-tanh",
    source="rational activations (2026): tanh by Halley's method",
    cases=[
        case
        for steps, (above, below) in enumerate(HALLEY_ERRORS)
        for case in (Case({"steps": steps, "bound": above}), Case({"steps": steps, "bound": below}, "refuted"))
    ],
)
def halley_tanh(steps: int, bound: str) -> SupNorm:
    """So many Halley steps for atanh(t) = s from t = s, at s = 1/10: the number of correct digits trebles.

    The logarithm of each step is a rational network far better than that.
    """
    tenth = Fraction(1, 10)
    return SupNorm(named("tanh"), small_tanh(Fraction(1, 10**110), steps), ((tenth, tenth),), Fraction(bound))


@spec("relu-network", source="rational neural networks (2020)", cases=cases(digits=[3, 8, 16, 50, 100, 300]))
def relu_network(digits: int) -> SupNorm:
    """3, 4, 6, 8, 9, 11 maps of type (3, 2) make ReLU on [−1, 1] to 10^−digits."""
    error = Fraction(1, 10**digits)
    return SupNorm(named("relu"), network("relu", Fraction(1), error), UNIT, error)


@spec(
    "hidden-pole",
    source="a pole between the points of any grid",
    cases=[Case({"residue": "1e-12"}, "refuted"), Case({"residue": "0"})],
)
def hidden_pole(residue: str) -> SupNorm:
    """x + residue/(x² − 2) is within 1e-3 of x on [0, 2]: false, however small the residue, for √2 is a pole."""
    r = Rational.make((0, 1)) + Rational.make((Fraction(residue),), (-2, 0, 1))
    return SupNorm(named("identity"), rational(r.reduced()), ((Fraction(0), Fraction(2)),), Fraction(1, 1000))


@spec(
    "activation-network",
    source="rational activations (2026): polylogarithmic size",
    cases=[
        *cases(name=["swish", "mish", "softplus", "elu", "tanh"], digits=[3]),
        *cases(name=["gelu_tanh"], digits=[3, 8, 16]),
        *cases(name=["gelu"], digits=[3, 8, 16, 50, 100]),
        *cases(quick=False, name=["swish", "mish", "softplus", "elu", "tanh"], digits=[16, 50, 100]),
        *cases(quick=False, name=["gelu_tanh"], digits=[50, 100, 200, 300]),
    ],
)
def activation_network(name: str, digits: int) -> SupNorm:
    """The rational network for the activation is within 10^−digits of it on [−1, 1]."""
    error = Fraction(1, 10**digits)
    return SupNorm(named(name), network(name, Fraction(1), error), UNIT, error)
