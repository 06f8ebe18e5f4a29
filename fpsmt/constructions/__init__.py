"""The networks that the theorems promise.

*Detectors* are all layers but the last of a network that can take any values on a set of inputs: a detector of an input
is a neuron of the last hidden layer that is not zero there and is ±0 at the other inputs, for every order of the sums.
A *construction* (`conjunction`, `centred`, `windows`) is a function

    (shape: Shape, points: Carriers of shape (n, inputs), needed: booleans of shape (n,)) -> ending.Detectors

that raises `Unsupported` where it does not apply.  It sees no values of a table.  Detectors are wanted for the points
that are `needed`, each of them zero at every other point.  `Detectors.make(point, choice, again)` makes one that
returns `Detectors.returns[choice]` (`again`: a second, equal neuron) in `Detectors.rows`, the hidden layers so far.
What detectors return is a number in [1/2, 2.5), or the negative of one, that does not depend on the point; the
preferred one is first.

`ending` adds last layers: `network_layers` for one table, with the detectors that it needs, and `shared_detectors` with
`last_rows` for any number of tables.  Nothing that a construction says is trusted: `cones` and the kernel's rules
verify the layers.
"""
