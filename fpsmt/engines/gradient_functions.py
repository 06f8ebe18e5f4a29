"""Networks whose gradients are functions of the loss derivative, and that every table has one."""

from __future__ import annotations

from fpsmt import kernel
from fpsmt.claims.gradient_functions import AllGradientFunctions, RepresentsGradientFunctions
from fpsmt.engines.engine import Options, engine
from fpsmt.kernel import Verdict


@engine("gradient function traces", RepresentsGradientFunctions)
def gradient_function_traces(claim: RepresentsGradientFunctions, options: Options) -> Verdict:
    """Both passes at every input of the table, for every loss derivative."""
    return kernel.apply("traces of gradient functions", claim)


@engine("gradient circuits", AllGradientFunctions)
def gradient_circuits(claim: AllGradientFunctions, options: Options) -> Verdict:
    """The construction for every table at once."""
    return kernel.apply("every table of gradient functions", claim)
