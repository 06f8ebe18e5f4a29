"""What can be asked: statements with text, JSON, hash and replay; and the registry of specs."""

from fpsmt.claims.claim import Claim, Replay, claim_from_json
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Setting
from fpsmt.claims.extremes import SumExtremes, SumWithin
from fpsmt.claims.formulas import ForAll
from fpsmt.claims.functions import ConstantOn
from fpsmt.claims.gradient_conditions import GradientCondition2, GradientCondition3
from fpsmt.claims.gradients import GradientInvariant, GradientOutcomes, GradientProblem, gradient_formula
from fpsmt.claims.predictions import PredictionInvariant
from fpsmt.claims.specs import PROOFS, SPECS, Case, Obligation, Spec, cases, proof, spec
from fpsmt.claims.sums import SumInvariant, SumOutcomes

__all__ = [
    "PROOFS", "SPECS", "Case", "Claim", "ConstantOn", "Distinguishable", "ForAll", "GradientCondition2",
    "GradientCondition3", "GradientInvariant",
    "GradientOutcomes", "GradientProblem", "Inseparable", "Obligation", "PredictionInvariant", "Reading", "Replay",
    "Setting", "Spec", "SumExtremes", "SumInvariant", "SumOutcomes", "SumWithin", "cases", "claim_from_json",
    "gradient_formula", "proof", "spec",
]  # fmt: skip
