"""Measures what the project promises to be fast at: ``python -m benchmarks [NAME…]``, or ``make bench``.

Each benchmark compares with a peer in the same run where there is one, because seconds mean little on another machine.
Compilation and imports are not measured.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads of BLAS only wait for each other
