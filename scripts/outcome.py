"""What a program does next, in a few words: read off the statements, for the effect of a gate."""

import ast
from collections.abc import Sequence

from scripts.capability import UNKNOWN, Unknown, name_of

_LENGTH = 40
_LOGS = {"warning", "warn", "warning_once", "print_warning_once", "info", "error", "debug"}


def short(node: ast.expr | None) -> str:
    """An expression on one line, cut to a few words."""
    if node is None:
        return "None"
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LENGTH else text[: _LENGTH - 3] + "..."


def of_block(body: Sequence[ast.stmt]) -> str:
    """What the first statements of a block do."""
    said = ""
    for statement in body:
        match statement:
            case ast.Expr(value=ast.Call() as call) if _last(call) in _LOGS:
                said = "warns, " if "warn" in _last(call) else said
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Return():
                return f"{said}returns {short(statement.value)}"
            case ast.Raise():
                return f"raises {_last(statement.exc) if statement.exc else 'again'}"
            case ast.Assign() | ast.AnnAssign():
                targets = statement.targets if isinstance(statement, ast.Assign) else ()
                target = targets[0] if targets else getattr(statement, "target", None)
                return f"{said}sets {short(target)} = {short(statement.value)}"
            case _:
                return f"{said}goes on"
    return f"{said}goes on"


def of_branch(
    statement: ast.stmt, truth: bool | Unknown, otherwise: Sequence[ast.stmt], *, takes_in: bool
) -> str:
    """What `statement` does where the condition it asks has come out as `truth`."""
    match statement:
        case ast.If():
            if truth is False:
                return f"skipped: {of_block(otherwise)}"
            holds = "taken" if truth is True else "taken where the rest holds"
            return f"{holds}: {of_block(statement.body)}"
        case ast.Assert():
            return "raises AssertionError" if truth is False else "passes"
        case ast.Return():
            return f"returns {_as_word(truth)}"
        case ast.Assign(targets=[target]):
            return f"sets {short(target)} = {_as_word(truth)}"
    return f"is {_as_word(truth)}" + (", as on 10" if takes_in else "")


def leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether what follows a block is never come to from within it."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return leaves(last.body) and leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)


def _last(node: ast.expr) -> str:
    return name_of(node).rpartition(".")[2]


def _as_word(truth: bool | Unknown) -> str:
    return "what the rest says" if truth is UNKNOWN else str(truth)
