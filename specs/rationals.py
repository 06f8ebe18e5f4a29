"""Rational approximation over the reals: public rationals and reports, Zolotarev's sign, networks for activations.

Nothing is rounded here: the claims are about real functions.  The float programs that evaluate a rational are another
subject.
"""

from __future__ import annotations

from fractions import Fraction

from fpsmt.claims import BestError, Case, SupNorm, cases, spec
from fpsmt.rational import Rational, constant, named, rational
from fpsmt.rational.activations import network
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


@spec(
    "best-tanh",
    source="de la Vallée-Poussin",
    cases=[
        Case({"n": 5, "bound": "6.00e-7"}),
        Case({"n": 7, "bound": "2.93e-10"}),
        Case({"n": 7, "bound": "2.94e-10"}, "refuted"),
    ],
)
def best_tanh(n: int, bound: str) -> BestError:
    """No rational of type (n, n) is nearer to tanh on [0, 8] than the bound."""
    return BestError(named("tanh"), ((Fraction(0), Fraction(8)),), (n, n), Fraction(bound))


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
    "activation-network",
    source="rational activations (2026): polylogarithmic size",
    cases=[
        *cases(name=["gelu_tanh", "gelu", "swish", "mish", "softplus", "elu", "relu"], digits=[3]),
        *cases(name=["gelu_tanh", "gelu", "tanh"], digits=[8]),
        *cases(quick=False, name=["gelu_tanh", "tanh", "softplus"], digits=[16]),
        *cases(name=["gelu"], digits=[16, 50, 100]),
        *cases(quick=False, name=["gelu_tanh"], digits=[50]),
    ],
)
def activation_network(name: str, digits: int) -> SupNorm:
    """The rational network for the activation is within 10^−digits of it on [−1, 1]."""
    error = Fraction(1, 10**digits)
    return SupNorm(named(name), network(name, Fraction(1), error), UNIT, error)
