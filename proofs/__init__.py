"""Scripts that discharge the specs, in mirrored modules.  `fpsmt prove` runs them."""
