"""Hypothesis settings of the whole suite: the same examples in every run, no deadline; and Ctrl-C for tests of it."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fpsmt", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fpsmt")

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and all they start, ignore it
