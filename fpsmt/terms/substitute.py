"""Replacing sub-terms: instances of ∀ claims, and generalisation to fresh variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fpsmt.errors import UsageError
from fpsmt.terms.build import build
from fpsmt.terms.terms import Term, postorder, var


def substitute(root: Term, replacement: Mapping[Term, Term]) -> Term:
    """The term with every occurrence of the keys replaced, outermost first; sorts must agree.

    The replacements themselves are not searched again.  What is rebuilt is simplified as the constructors do.
    """
    for old, new in replacement.items():
        if old.sort != new.sort:
            raise UsageError(f"a term of sort {old.sort} cannot be replaced by one of sort {new.sort}")
    done: dict[Term, Term] = {}
    for term in postorder(root):
        if term in replacement:
            done[term] = replacement[term]
        elif all(done[a] is a for a in term.args):
            done[term] = term
        else:
            done[term] = build(term.op, term.sort, tuple(done[a] for a in term.args), term.data)
    return done[root]


def generalise(roots: Sequence[Term], parts: Sequence[Term]) -> list[Term]:
    """The terms with the parts replaced by fresh variables, one for each part, larger parts first."""
    names = {v.data for root in roots for v in postorder(root) if v.op == "var"}
    found = list(roots)
    for k, part in enumerate(sorted(parts, key=lambda t: -sum(1 for _ in postorder(t)))):
        name = f"part{k}"
        while name in names:
            name += "_"
        names.add(name)
        found = [substitute(root, {part: var(name, part.sort)}) for root in found]
    return found
