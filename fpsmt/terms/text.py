"""Terms as text for people."""

from __future__ import annotations

from collections.abc import Callable

from fpsmt.terms.terms import Term, postorder

_INFIX = {
    "add": "⊕", "mul": "⊗", "div": "⊘", "same": "≡", "eq": "=", "lt": "<", "le": "≤", "and": "∧", "or": "∨",
    "bits_add": "+", "bits_sub": "−", "bits_less": "<", "bits_and": "&", "shift_left": "<<",
}  # fmt: skip


def text(root: Term, limit: int = 2000) -> str:
    """The term in infix; shared sub-terms are written out; cut at `limit` characters."""
    return texts(root, limit)[root]


def texts(root: Term, limit: int = 2000) -> dict[Term, str]:
    """The text of every sub-term; those of more than `limit` characters are cut and end in …."""
    words: dict[Term, str] = {}
    for term in postorder(root):
        words[term] = _word(term, [words[arg] for arg in term.args])
        if len(words[term]) > limit:
            words[term] = words[term][:limit] + "…"
    return words


def _word(term: Term, args: list[str]) -> str:
    if term.op == "var":
        return str(term.data)
    if term.op == "const":
        return str(term.data)
    if term.op in _INFIX:
        return f"({f' {_INFIX[term.op]} '.join(args)})"
    special: dict[str, Callable[[], str]] = {
        "not": lambda: f"¬{args[0]}",
        "neg": lambda: f"−{args[0]}",
        "abs": lambda: f"|{args[0]}|",
        "cast": lambda: f"{term.data}({args[0]})",
        "apply": lambda: f"{term.data[0].text}{'@' + term.data[2] if term.data[2] else ''}({args[0]})",
        "ite": lambda: f"({args[1]} if {args[0]} else {args[2]})",
        "choose": lambda: f"[{', '.join(args[1:])}][{args[0]}]",
        "choice_is": lambda: f"{args[0]} is {term.data}",
        "extract": lambda: f"{args[0]}[{term.data[0]}:{term.data[1]}]",
        "from_bits": lambda: f"{term.format}({args[0]})",
    }
    if term.op in special:
        return special[term.op]()
    return f"{term.op}({', '.join(args)})"
