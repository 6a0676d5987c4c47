"""Which expressions the names of a scope stand for, as far as assignments say it."""

import ast
from collections import defaultdict
from collections.abc import Iterator

from scripts.capability import Bindings, name_of

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def assigned(scope: ast.AST) -> Bindings:
    """What is assigned to the names of a module, class or function, not of those within it."""
    found: defaultdict[str, list[ast.expr]] = defaultdict(list)
    for node in _within(scope):
        for name, value in pairs(node):
            found[name].append(value)
    return found


def attributes(tree: ast.Module) -> Bindings:
    """What is assigned to `self.NAME` anywhere in a module."""
    found: defaultdict[str, list[ast.expr]] = defaultdict(list)
    for node in ast.walk(tree):
        for name, value in pairs(node):
            if name.startswith("self."):
                found[name].append(value)
    return found


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _SCOPES):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement or an expression assigns to, each with what it gets."""
    match node:
        case ast.Assign():
            for target in node.targets:
                yield from _bind(target, node.value)
        case ast.AnnAssign(value=ast.expr() as value) | ast.NamedExpr(value=value):
            yield from _bind(node.target, value)


def _bind(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Tuple | ast.List):
        for index, part in enumerate(target.elts):
            item = (
                value.elts[index]
                if isinstance(value, ast.Tuple) and index < len(value.elts)
                else ast.Subscript(value=value, slice=ast.Constant(value=index), ctx=ast.Load())
            )
            yield from _bind(part, item)
    elif isinstance(target, ast.Name | ast.Attribute):
        yield name_of(target), value
