"""Compiled kernels (none yet)."""
def rounded(function, ctx, x):
    return None
