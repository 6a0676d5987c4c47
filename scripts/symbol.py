"""The symbol that encloses a line of a Python file: module-level name, class, function."""

import ast
import functools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The lines, from 1 and both included, that a symbol takes with its decorators."""

    name: str
    first: int
    last: int


@functools.lru_cache(maxsize=512)  # the same file is looked at before and after each patch
def spans(content: bytes) -> tuple[Span, ...]:
    """The symbols of a file, outer before inner; none where it is not Python that parses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(content)
        return tuple(_below(tree, "", local=False))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()


def _below(node: ast.AST, inside: str, *, local: bool) -> Iterator[Span]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Scope):
            name = inside + child.name
            first = min([child.lineno, *(mark.lineno for mark in child.decorator_list)])
            yield Span(name=name, first=first, last=child.end_lineno or first)
            yield from _below(child, f"{name}.", local=not isinstance(child, ast.ClassDef))
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            target = child.targets[0] if isinstance(child, ast.Assign) else child.target
            if isinstance(target, ast.Name) and not local:
                last = child.end_lineno or child.lineno
                yield Span(name=inside + target.id, first=child.lineno, last=last)
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _below(child, inside, local=local)


def enclosing(found: tuple[Span, ...], line: int) -> str:
    """The innermost symbol of `found` that a line is in; "" at the top of the module."""
    return next((span.name for span in reversed(found) if span.first <= line <= span.last), "")
