"""Every error a user can meet.  One base class, few subclasses; the message says what, where, what to do."""


class FpsmtError(Exception):
    """Base of all errors raised on purpose."""


class UsageError(FpsmtError, ValueError):
    """The request is malformed or outside what the mathematics allows (exit code 2)."""


class Unsupported(FpsmtError):
    """A part of the tool declines: the message says which and why (exit code 2, or another part takes over)."""


class InternalError(FpsmtError):
    """Something that cannot happen did, e.g. a counterexample that does not replay (exit code 4)."""


class EvidenceError(FpsmtError):
    """Evidence does not establish the claim it is attached to."""
