"""Public reports about approximations: the right answers, proved and refuted."""

from __future__ import annotations

from fractions import Fraction as F

import pytest
from flint import arb, fmpq

from fpsmt import kernel
from fpsmt.claims import BestError, MeetsContract, SupNorm
from fpsmt.engines import Options, decide
from fpsmt.engines.approximation import certified_minimax, certified_sup_norm
from fpsmt.errors import Unsupported
from fpsmt.floats import context, exactly
from fpsmt.functions import Implementation, enclose, exp, implementation_named, tanh
from fpsmt.rational import Builder, Formula, Problem, Rational, constant, named, rational
from fpsmt.rational.models import working
from fpsmt.rational.supnorm import error_at
from fpsmt.rational.zolotarev import sign, zolotarev, zolotarev_balls
from fpsmt.terms.programs import program
from fpsmt.terms.programs_library import LIBRARY

UNIT = ((F(-1), F(1)),)

TANH_TOP = "4.89352455891786e-03 6.37261928875436e-04 1.48572235717979e-05 5.12229709037114e-08 -8.60467152213735e-11 \
2.00018790482477e-13 -2.76076847742355e-16"
TANH_BELOW = "4.89352518554385e-03 2.26843463243900e-03 1.18534705686654e-04 1.19825839466702e-06"


def widely_copied_tanh() -> Rational:
    """x·P(x²)/Q(x²) of type (13, 6), its coefficients taken as exact decimals."""
    top = [c for a in TANH_TOP.split() for c in (F(0), F(a))]
    below = [c for b in TANH_BELOW.split() for c in (F(b), F(0))]
    return Rational(tuple(top), tuple(below))


def verdict(claim, seconds=30.0):
    return decide(claim, Options(timeout=seconds)).name


# -- a rational tanh that is in many libraries (tensorflow#23054, sonos/tract#2715) --------------------------


def test_the_copied_tanh_as_a_real_function():
    """sup |r − tanh| ≤ 3.5e-8 on [0, 9], and in fact 2.566e-8; r < 1 everywhere there; no pole at all."""
    r = rational(widely_copied_tanh())
    assert widely_copied_tanh().type == (13, 6) and widely_copied_tanh().poles() == []
    domain = ((F(0), F(9)),)
    assert verdict(SupNorm(named("tanh"), r, domain, F("3.5e-8"))) == "proved"
    assert verdict(SupNorm(named("tanh"), r, domain, F("2.5660e-8"))) == "proved"
    assert verdict(SupNorm(named("tanh"), r, domain, F("2.5659e-8"))) == "refuted"
    below_one = SupNorm(constant(F(1, 2)), r, domain, F(1, 2) - F(1, 10**9))  # 1e-9 ≤ r would need x ≥ 1e-9
    assert verdict(below_one) == "refuted"
    assert verdict(SupNorm(constant(F(1, 2)), r, ((F(1, 2), F(9)),), F(1, 2) - F(1, 10**8))) == "proved"
    clamped = ((F(1, 2), F("7.90531110763549805")),)
    assert verdict(SupNorm(constant(0), r, clamped, 1 - F(1, 10**7))) == "proved"


def test_tanh_of_the_clamp():
    """1 − tanh(7.5) = 6.118044538512494…e-07, as a bound for the constant 1 and at that point; in double precision
    the digits from the tenth on are lost."""
    there = ((F("7.5"), F(8)),)
    one = constant(1)
    assert verdict(SupNorm(named("tanh"), one, there, F("6.118044538513e-07"))) == "proved"
    assert verdict(SupNorm(named("tanh"), one, there, F("6.118044538512e-07"))) == "refuted"


def test_the_clamp_as_floats():
    """Clamped at 7.5 and near the clamp, the float32 program stays seven steps of 2⁻²⁴ below 1 with fma, but six
    without; clamped at 9 it returns more than 1, although the real function is below 1."""
    body, ctx = LIBRARY["tanh_rational"].body, context("float32")
    ends = exactly(ctx.format, F("7.4375")), exactly(ctx.format, F("7.5"))
    for fma, steps, expected in (("always", 7, "proved"), ("never", 7, "refuted"), ("never", 6, "proved")):
        clamped = Implementation(tanh, program(body.replace("-9, 9", "-7.5, 7.5"), fma))
        below = implementation_named(f"tanh:error=1:range=-1..{1 - steps * F(2) ** -24}").contract
        assert verdict(MeetsContract(clamped, ctx, below, ctx.format, *ends)) == expected
    as_published = Implementation(tanh, program(body, "always"))
    below_one = implementation_named("tanh:error=1:range=-1..1").contract
    ends = exactly(ctx.format, 8), exactly(ctx.format, 9)
    refuted = decide(MeetsContract(as_published, ctx, below_one, ctx.format, *ends))
    assert refuted.name == "refuted" and "1.0000001" in str(refuted)


def test_a_hidden_pole():
    """A pole of residue 1e-12 at √2, between all points of any grid of floats."""
    pole = Rational.make((0, 1)) + Rational.make((F(1, 10**12),), (-2, 0, 1))
    line, domain = rational(pole), ((F(0), F(2)),)
    assert pole.count_poles(0, 2) == 1
    assert verdict(SupNorm(named("identity"), line, domain, F(1, 1000))) == "refuted"
    with pytest.raises(Unsupported, match="no bound"):
        certified_sup_norm(Problem(named("tanh"), line, domain), options=Options(timeout=2))


# -- intervals that do not enclose (mpmath#1181, #241) -------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "bits"),
    [(F(3893924827815215, 1125899906842624), 53), (F(1381846513289487, 70368744177664), 113)],
)
def test_exp_is_enclosed(x, bits):
    """Where another interval arithmetic has an upper end below exp(x)."""
    low, high = enclose(exp, x, x, bits)
    with working(600, 1):
        true = arb(fmpq(x.numerator, x.denominator)).exp()
        assert fmpq(low.numerator, low.denominator) < true < fmpq(high.numerator, high.denominator)


def test_inputs_are_exact_numbers():
    """0.09 as a decimal is not the float 0.09: two inputs, two values that 60 digits tell apart."""
    decimal, binary = F("0.09"), F(0.09)
    with working(300, 1):
        k = [arb.pi() / (2 * arb(1).agm((1 - arb(fmpq(m.numerator, m.denominator))).sqrt())) for m in (decimal, binary)]
    assert decimal != binary and k[0].str(20, radius=False).startswith("1.60804861993051280")
    assert not k[0].overlaps(k[1]) and abs(k[0] - k[1]) < 1e-15


# -- Zolotarev's coefficients near m = 1 (scipy#8480) --------------------------------------------------------


@pytest.mark.parametrize(("ell", "error"), [("1e-2", 8.95195e-5), ("1e-4", 9.39323e-3), ("1e-6", 0.0587407)])
def test_zolotarev_is_optimal(ell, error):
    """Type (13, 12) on [ℓ, 1]: the certified error is the optimal one."""
    _, _, best, _ = zolotarev_balls(13, F(ell), 80)
    assert float(best) == pytest.approx(error, rel=2e-6)
    claim = SupNorm(constant(1), sign(13, F(ell)).formula, ((F(ell), F(1)),), F(float(best)) * (1 + F(1, 10**6)))
    assert verdict(claim) == "proved"


def test_zolotarev_at_ten_to_the_minus_eight():
    """0.155872 is optimal; coefficients computed in double precision gave 0.171921, which is only near-optimal."""
    ell = F(1, 10**8)
    _, _, best, _ = zolotarev_balls(13, ell, 80)
    assert float(best) == pytest.approx(0.155872, rel=2e-6)
    r = sign(13, ell).formula
    domain = ((ell, F(1)),)
    assert verdict(SupNorm(constant(1), r, domain, F("0.155873"))) == "proved"
    assert verdict(SupNorm(constant(1), r, domain, F("0.155871"))) == "refuted"
    nearly = zolotarev(13, ell).scaled(F("1.0139"))  # not centred
    assert verdict(SupNorm(constant(1), rational(nearly), domain, F("0.1559"))) == "refuted"
    assert verdict(SupNorm(constant(1), rational(nearly), domain, F("0.1720"))) == "proved"


# -- a kernel that is documented to be accurate (tt-metal#55349) ---------------------------------------------

SECH = "5.58971869398334972323e-02 -1.15151201975556879975e-01 1.41578556434459129632e-01 -1.40162303416289407698e-01 \
1.47692044971667296727e-01 -1.43049915574319674860e-01 3.59505515570256450886e-02 5.00465512420113917136e-02 \
6.00316523798012785518e-02 -1.46346136132160548060e-01 6.33840343077387569082e-02"


def test_squared_hyperbolic_secant():
    """Degree 10 in t = (2/9)x² − 1 on |x| < 3: relative error 1.03587e-3, absolute 8.13723e-4; not 1e-6."""
    inner = rational(Rational((-1, 0, F(2, 9))))
    fit = inner.then(rational(Rational(tuple(F(c) for c in SECH.split()))))
    problem = Problem(named("tanh'"), fit, ((F(0), F(3)),), relative=True)
    refuted = decide(SupNorm.of(problem, F("1e-6")))
    assert refuted.name == "refuted"
    assert problem.fails_at(F("1e-6"), F(0)) and fit(F(0)) - F("0.999197032447") < F(1, 10**12)
    assert verdict(SupNorm.of(problem, F("1.0359e-3"))) == "proved"
    assert verdict(SupNorm.of(problem, F("1.0358e-3"))) == "refuted"
    found, _ = certified_sup_norm(Problem(named("tanh'"), fit, ((F(0), F(3)),)), F(1, 10**7))
    assert float(found.low) == pytest.approx(8.13723e-4, rel=1e-5) and float(found.at) == pytest.approx(
        0.48851, abs=1e-4
    )


def test_tail_of_the_squared_secant():
    """4e^{−2x} for sech²: with u = e^{−2x}, 4u against 4u/(1 + u)² on [0, e^{−6}]; 4.96365e-3 at x = 3."""
    target, tail = rational(Rational((0, 4), (1, 2, 1))), rational(Rational((0, 4)))
    end = F(float(arb(-6).exp()))
    domain = ((F(0), end),)
    assert verdict(SupNorm(target, tail, domain, F("4.9637e-3"), relative=True)) == "proved"
    assert verdict(SupNorm(target, tail, domain, F("4.9636e-3"), relative=True)) == "refuted"


# -- best approximation (chebfun#1949, #2242, heir#1609) -----------------------------------------------------


def alternates(target, r, type, bound, points):
    claim = BestError(target, UNIT, type, F(bound))
    data = {"approximation": r.to_json(), "points": [str(F(x)) for x in points]}
    return kernel.apply("alternation", claim, data).name


def test_absolute_value_by_constants():
    """Type (0, 0): 1/2, with error exactly 1/2."""
    half = constant(F(1, 2))
    assert verdict(SupNorm(named("abs"), half, UNIT, F(1, 2))) == "proved"
    assert alternates(named("abs"), half, (0, 0), F(1, 2), (-1, 0, 1)) == "proved"
    assert alternates(named("abs"), half, (2, 2), F(1, 2), (-1, 0, 1)) == "unknown"


def test_absolute_value_of_type_four_four():
    """0.0085014, from √ on [0, 1]; an answer of 0.018 is a factor 2.1 from optimal."""
    root = certified_minimax(named("sqrt"), (F(0), F(1)), (2, 2))
    r = rational(root.rational.compose(Rational((0, 0, 1))))
    assert verdict(SupNorm(named("abs"), r, UNIT, F("0.0085020"))) == "proved"
    squares = kernel.verdict_to_json(root.lower)["evidence"]["data"]["points"]
    sides = [F(str(round(float(F(x)) ** 0.5, 17))) for x in squares]
    points = sorted({*sides, *(-x for x in sides)})
    assert alternates(named("abs"), r, (4, 4), "0.0085011", points) == "proved"
    assert F("0.01799") / F("0.0085014") > 2


@pytest.mark.parametrize("degree", [2, 3])
def test_relu_by_a_parabola(degree):
    """x²/2 + x/2 + 1/16 is best of degree 2 and of degree 3, with error exactly 1/16."""
    r = rational(Rational((F(1, 16), F(1, 2), F(1, 2))))
    assert verdict(SupNorm(named("relu"), r, UNIT, F(1, 16))) == "proved"
    assert verdict(SupNorm(named("relu"), r, UNIT, F(1, 16) - F(1, 10**20))) == "refuted"
    points = (-1, F(-1, 2), 0, F(1, 2), 1)
    assert alternates(named("relu"), r, (degree, 0), F(1, 16), points) == "proved"
    assert alternates(named("relu"), r, (4, 0), F(1, 16), points) == "unknown"


def chebyshev(n: int) -> Formula:
    """T_n by its recurrence, not expanded."""
    build = Builder()
    before, now = build.affine(1), 0
    for _ in range(n - 1):
        before, now = now, build.affine(0, (2, build.product(0, now)), (-1, before))
    return build.formula(now)


def test_more_points_than_needed():
    """The best approximation of T₄₀ of degree 20 is 0, with error exactly 1: 41 points where 22 are needed."""
    target, zero = rational(chebyshev(40).expand()), constant(0)
    with working(128, 1):
        near = [(arb.pi() * k / 40).cos() for k in range(40, -1, -1)]
    points = [F(-1), *(F(float(x)) for x in near[1:-1]), F(1)]
    assert alternates(target, zero, (20, 0), F(1) - F(1, 10**12), points) == "proved"
    assert alternates(target, zero, (20, 0), F(1) - F(1, 10**12), points[::2]) == "unknown"  # equal signs
    # exactly 1: at rational points; T₂ of T₂₀ = ±1 at ±1 only, so the bound itself is approached
    assert verdict(SupNorm(target, zero, UNIT, F(1) + F(1, 10**12))) == "proved"
    assert verdict(SupNorm(target, zero, UNIT, F(1) - F(1, 10**12))) == "refuted"


# -- piecewise linear fits (tt-metal#54602, #56076) ----------------------------------------------------------


@pytest.mark.parametrize(
    ("slope", "offset", "proved", "refuted", "at"),
    [
        ("0.1928", "-0.000104", "0.0234239", "0.0234238", 0.246568),
        ("0.1594238", "0", "0.0160354", "0.0160353", 0.202553),
    ],
)
def test_one_line_for_gelu(slope, offset, proved, refuted, at):
    """a·(Φ(a) − 1/2) = gelu(a) − a/2 on [0, 1/2]."""
    line = rational(Rational((F(offset), F(slope) + F(1, 2))))
    problem = Problem(named("gelu"), line, ((F(0), F(1, 2)),))
    found, _ = certified_sup_norm(problem, F(1, 10**8))
    assert float(found.at) == pytest.approx(at, abs=1e-4)
    assert verdict(SupNorm.of(problem, F(proved))) == "proved"
    assert float(found.low) == pytest.approx(float(refuted), abs=1.01e-7)


def test_three_lines_for_tanh():
    """0.90625x | 0.09375x + 0.8125 | 1: the largest error is 0.14465584, at 1 where the first two join."""
    first, second = rational(Rational((0, F("0.90625")))), rational(Rational((F("0.8125"), F("0.09375"))))
    for line, domain in ((first, (F(0), F(1))), (second, (F(1), F(2)))):
        problem = Problem(named("tanh"), line, (domain,))
        assert verdict(SupNorm.of(problem, F("0.144655845"))) == "proved"
        assert verdict(SupNorm.of(problem, F("0.144655835"))) == "refuted"
        assert float(error_at(problem, F(1), 40)) == pytest.approx(0.14465584, abs=5e-9)
