"""The specs about gradients say what they mean: thresholds by the interpreter and in real numbers, and tight."""

from fractions import Fraction

import pytest

from fpsmt.claims.functions import read_value
from fpsmt.engines import decide
from fpsmt.floats import exactly, float16, pow2
from fpsmt.functions import enclose, sigmoid
from fpsmt.networks import FROM_OUTPUT, Network, gradient, run
from specs import gradients as specs


@pytest.mark.parametrize("case", specs.sigmoid_gradient_vanishes.cases, ids=lambda case: case.name)
def test_the_first_zero_of_the_sigmoid_gradient(case):
    """1 − sigmoid(x) falls to half an ulp below 1, 2^−(precision + 1), and no float before."""
    fmt = case.arguments["fmt"]
    first = read_value(fmt, case.arguments["threshold"])
    net, one = Network.sequential(fmt.name, 1, ["sigmoid"]), exactly(fmt, 1)
    half_ulp = pow2(-fmt.precision - 1)
    for x, vanishes in ((first.next_down, False), (first, True), (first.next_up, True)):
        assert gradient(run(net, [x]), [one], rules=FROM_OUTPUT).gradient[0].is_zero == vanishes
        low, high = enclose(sigmoid, x.fraction, x.fraction)
        assert (1 - low <= half_ulp) == (1 - high <= half_ulp) == vanishes


@pytest.mark.parametrize("case", specs.sigmoid_gradient_survives.cases, ids=lambda case: case.name)
def test_the_last_sure_gradient_within_one_ulp(case):
    """1 is within an ulp, 2^−precision, of sigmoid(x) exactly where the claim is refuted."""
    fmt = case.arguments["fmt"]
    x = read_value(fmt, case.arguments["last"]).fraction
    low, high = enclose(sigmoid, x, x)
    assert (1 - low <= pow2(-fmt.precision)) == (1 - high <= pow2(-fmt.precision)) == (case.expected == "refuted")


@pytest.mark.parametrize("step", [-1, 1])
def test_the_threshold_is_tight(step):
    first = read_value(float16, "8.3203125")
    other = first.next_up if step > 0 else first.next_down
    assert decide(specs.sigmoid_gradient_vanishes.build(float16, other.decimal)).name == "refuted"


def test_x_cubed_overflows_where_the_report_says():
    """x³ is infinite from 40.34375 on; the gradient there is still a number."""
    net = specs.gelu_program(float16)
    for x, finite, number in ((Fraction(645, 16), True, True), (Fraction(1291, 32), False, True), (256, False, False)):
        forward = run(net, [exactly(float16, x)])
        assert forward.values["x³"][0].is_finite == finite and forward.output[0].is_finite
        back = gradient(forward, [exactly(float16, 1)], rules={"t": FROM_OUTPUT})
        assert back.gradient[0].is_nan != number
