"""Networks, summation orders, executions, the reference interpreter and reverse mode as executed."""

from fpsmt.networks.autodiff import (
    CORRECTLY_ROUNDED,
    FRAMEWORK,
    FRAMEWORK_FMA,
    FROM_OUTPUT,
    RULES,
    DerivativeRule,
    GradientTrace,
    gradient,
    rule_named,
)
from fpsmt.networks.batch import run_batch
from fpsmt.networks.bounds import enclosures
from fpsmt.networks.executions import PAPER, PAPER_BACKWARD, Execution, execution, fusings, parse_execution
from fpsmt.networks.interpreter import ActivationOutputs, Executions, Schedules, Trace, check_schedules, run, site_of
from fpsmt.networks.networks import Network, as_implementation
from fpsmt.networks.nodes import Activation, Affine, Cast, Constant, Elementwise, Extremum, Input, Node, Select
from fpsmt.networks.orders import (
    ANY,
    CONTIGUOUS,
    LEFT_TO_RIGHT,
    PAIRWISE,
    RIGHT_TO_LEFT,
    SEQUENTIAL,
    AnyOrder,
    Blocks,
    Contiguous,
    Depth,
    FixedOrder,
    Given,
    Lanes,
    LeftToRight,
    Order,
    Pairwise,
    RightToLeft,
    Sequential,
    Union,
    given,
    parse_order,
    union,
)
from fpsmt.networks.outcomes import Sum, reachable
from fpsmt.networks.serial import load_arrays, network_digest, network_from_json, network_to_json, save_arrays
from fpsmt.networks.sums import SumFormats, SumTrace, evaluate_tree, evaluate_tree_batch
from fpsmt.networks.trees import (
    Tree,
    canonical,
    check_tree,
    read_tree,
    render,
    same_tree,
    tree_from_json,
    tree_text,
    tree_to_json,
)

__all__ = [
    "ANY", "CONTIGUOUS", "CORRECTLY_ROUNDED", "FRAMEWORK", "FRAMEWORK_FMA", "FROM_OUTPUT", "LEFT_TO_RIGHT", "PAIRWISE",
    "PAPER", "PAPER_BACKWARD", "RIGHT_TO_LEFT", "RULES", "SEQUENTIAL",
    "Activation", "ActivationOutputs", "Affine", "AnyOrder", "Blocks", "Cast", "Constant", "Contiguous", "Depth",
    "DerivativeRule", "Elementwise", "Execution", "Executions", "Extremum", "FixedOrder", "Given", "GradientTrace",
    "Input", "Lanes", "LeftToRight", "Network", "Node", "Order", "Pairwise", "RightToLeft", "Schedules", "Select",
    "Sequential", "Sum", "SumFormats", "SumTrace", "Trace", "Tree", "Union",
    "as_implementation", "canonical", "check_schedules", "check_tree", "enclosures", "evaluate_tree",
    "evaluate_tree_batch", "execution", "fusings", "given", "gradient", "load_arrays", "network_digest",
    "network_from_json", "network_to_json", "parse_execution", "parse_order", "reachable", "read_tree",
    "render", "rule_named", "run", "run_batch", "same_tree", "save_arrays", "site_of", "tree_from_json",
    "tree_text", "tree_to_json", "union",
]  # fmt: skip
