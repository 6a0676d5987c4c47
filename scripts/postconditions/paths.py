"""The ways through a function, given what is known of its tests."""

import ast
from collections.abc import Iterator, Mapping, Sequence

from scripts.capability import SM120, UNKNOWN, Bindings, Capability, Reader, Unknown, name_of
from scripts.postconditions.code import Code, Function, Missing

_MOST = 5000  # ways; no function that a post-condition is about has more than some hundred

Facts = Mapping[str, object]
"""What is assumed, by bare name (`disabled`), or by an expression as ast.unparse writes it."""


class Assuming(Reader):
    """Reads expressions on capability 12 under assumptions.

    A call of a function of the module that is one `return` is read as what it returns.
    """

    def __init__(self, facts: Facts, code: Code | None = None, *scopes: Bindings) -> None:
        super().__init__(*scopes)
        self._facts = facts
        self._code = code

    def _value(self, node: ast.expr, at: Capability) -> object:
        if ast.unparse(node) in self._facts:
            return self._facts[ast.unparse(node)]
        if isinstance(node, ast.Name | ast.Attribute | ast.Call):
            for name in reversed(name_of(node).split(".")):
                if name in self._facts:
                    return self._facts[name]
        if isinstance(node, ast.Call) and self._code is not None:
            returned = _returned(self._code.functions.get(name_of(node.func)))
            if returned is not None:
                return self.value(returned, at)
        return super()._value(node, at)

    def truth(self, node: ast.expr) -> bool | Unknown:
        """Whether `node` holds on capability (12, 0)."""
        value = self.value(node, SM120)
        return UNKNOWN if value is UNKNOWN else bool(value)


def _returned(function: Function | None) -> ast.expr | None:
    if function is None:
        return None
    body = [node for node in function.body if not isinstance(node, ast.Expr)]
    match body:
        case [ast.Return(value=ast.expr() as value)]:
            return value
    return None


def ways(function: Function, reads: Assuming) -> Iterator[Sequence[ast.stmt]]:
    """Every way through a function: the simple statements and tests it comes by, in order.

    Where a test is not decided by what `reads` assumes, both ways are taken; a loop's body is
    taken once, or not at all. Raises Missing where there are too many.
    """
    for count, (way, _) in enumerate(_through(function.body, reads)):
        if count == _MOST:
            raise Missing(f"{function.name} has more than {_MOST} ways through it")
        yield way


Way = tuple[tuple[ast.stmt, ...], bool]  # the statements, and whether they have left the function


def _through(body: Sequence[ast.stmt], reads: Assuming) -> Iterator[Way]:
    if not body:
        yield (), False
        return
    first, rest = body[0], body[1:]
    for way, left in _step(first, reads):
        if left:
            yield way, True
            continue
        for after, gone in _through(rest, reads):
            yield way + after, gone


def _step(statement: ast.stmt, reads: Assuming) -> Iterator[Way]:
    match statement:
        case ast.If():
            truth = reads.truth(statement.test)
            if truth is not False:
                yield from _through(statement.body, reads)
            if truth is not True:
                yield from _through(statement.orelse, reads)
        case ast.For() | ast.While():
            yield from _through(statement.body, reads)
            yield (), False
        case ast.With():
            yield from _through(statement.body, reads)
        case ast.Try():
            yield from _through([*statement.body, *statement.orelse], reads)
            for handler in statement.handlers:
                yield from _through(handler.body, reads)
        case ast.Return() | ast.Raise():
            yield (statement,), True
        case _:
            yield (statement,), False
