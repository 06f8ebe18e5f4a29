"""What can be asked: statements with text, JSON, hash and replay; and the registry of specs."""

from fpsmt.claims.absorption import Absorbed, SizeNeeded
from fpsmt.claims.approximation import BestError, SupNorm
from fpsmt.claims.beside import TogetherBeside
from fpsmt.claims.claim import Claim, Replay, claim_from_json
from fpsmt.claims.comparison import Agree, Relation
from fpsmt.claims.conditions import Condition, PartFails, Windows, default_windows
from fpsmt.claims.contracts import AllowedOutput, MeetsContract
from fpsmt.claims.distinguishability import Distinguishable, Inseparable, Reading, Separable, Setting
from fpsmt.claims.extremes import SumExtremes, SumWithin
from fpsmt.claims.formulas import ForAll
from fpsmt.claims.functions import ConstantOn
from fpsmt.claims.gradient_conditions import GradientCondition2, GradientCondition3
from fpsmt.claims.gradient_functions import (
    AllGradientFunctions,
    GradientFunctions,
    RepresentsGradientFunctions,
)
from fpsmt.claims.gradient_representation import AllGradientTables, GradientTable, RepresentsGradients
from fpsmt.claims.gradient_vectors import RepresentsVectorGradients, VectorGradients
from fpsmt.claims.gradients import GradientInvariant, GradientOutcomes, GradientProblem, gradient_formula
from fpsmt.claims.identities import Identity, Nonnegative
from fpsmt.claims.interval_condition import IntervalCondition
from fpsmt.claims.lifting import NetworkWithin
from fpsmt.claims.line import LineClasses
from fpsmt.claims.plane import VectorClasses
from fpsmt.claims.predictions import PredictionInvariant
from fpsmt.claims.properties import Polytope, Property, Query, Safe
from fpsmt.claims.representation import Represents, Values
from fpsmt.claims.separation import AlwaysSeparates, Compliant, Run, SeparationCount, SeparationPoints
from fpsmt.claims.specs import PROOFS, SPECS, Case, Obligation, Spec, cases, proof, spec
from fpsmt.claims.steering import AllDistinguishable, SameOutput, Steering
from fpsmt.claims.sums import SumInvariant, SumOutcomes
from fpsmt.claims.universal import Universal
from fpsmt.claims.vectors import DistinguishableVectors

__all__ = [
    "Absorbed", "Agree", "AllDistinguishable", "AllGradientFunctions", "AllGradientTables", "AllowedOutput",
    "AlwaysSeparates", "BestError", "Case", "Claim", "Compliant", "Condition", "ConstantOn", "Distinguishable",
    "DistinguishableVectors", "ForAll", "GradientCondition2", "GradientCondition3", "GradientFunctions",
    "GradientInvariant", "GradientOutcomes", "GradientProblem", "GradientTable", "Identity", "Inseparable",
    "IntervalCondition", "LineClasses", "MeetsContract", "NetworkWithin", "Nonnegative", "Obligation", "PROOFS",
    "PartFails", "Polytope", "PredictionInvariant", "Property", "Query", "Reading", "Relation", "Replay",
    "Represents", "RepresentsGradientFunctions", "RepresentsGradients", "RepresentsVectorGradients", "Run", "SPECS",
    "Safe", "SameOutput", "Separable", "SeparationCount", "SeparationPoints", "Setting", "SizeNeeded", "Spec",
    "Steering", "SumExtremes", "SumInvariant", "SumOutcomes", "SumWithin", "SupNorm", "TogetherBeside", "Universal",
    "Values", "VectorClasses", "VectorGradients", "Windows", "cases", "claim_from_json", "default_windows",
    "gradient_formula", "proof", "spec",
]  # fmt: skip
