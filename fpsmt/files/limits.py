"""Reading files that are not trusted: never more than was meant, whatever the file says about its size."""

from __future__ import annotations

from pathlib import Path

from fpsmt.errors import UsageError


def read_at_most(path: Path, most: int) -> bytes:
    """The bytes of a file, pipe or device; a usage error when it cannot be read or has more than `most` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    if len(data) > most:
        raise UsageError(f"{path} is larger than {most >> 20} MiB, which is the most that is read")
    return data
