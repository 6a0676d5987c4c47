"""A gate: a decision on compute capability that leaves 12 out, or takes it in with 10 unasked."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from scripts.capability import (
    SM80,
    SM90,
    SM100,
    SM120,
    UNKNOWN,
    Capability,
    Reader,
    Unknown,
    helper,
    mentions_12,
    name_of,
)

_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_ANYTHING = "..."


class Kind(StrEnum):
    """How a gate is written."""

    TABLE = "table"  # a dict with rows for 9 and 10, and none for 12
    LOOKUP = "lookup"  # such a table read at the capability
    EITHER = "either"  # sm90 or sm100, without sm120
    MEMBER = "member"  # in (9, 10)
    THRESHOLD = "threshold"  # >= 10: 12 is taken in with 10
    CHAIN = "chain"  # if sm100 ... elif sm90 ..., with no branch for 12
    CHOICE = "choice"  # A if sm100 else B
    NEGATION = "negation"  # not sm100
    EQUALITY = "equality"  # major == 10
    HELPER = "helper"  # sm100 alone


Key = tuple[str, str, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A decision at a line of an upstream file (counted from 1), in a function or class.

    `condition` is what it asks of the capability, in words of its own (sm90, major); whatever
    else it asks stands as `...`. `occurrence` tells gates apart that are alike but for the line.
    `effect` is what happens at capability (12, 0). `table` names the dict of a lookup.
    """

    path: str
    line: int
    symbol: str
    kind: Kind
    condition: str
    effect: str
    occurrence: int = 1
    table: str = ""

    @property
    def key(self) -> Key:
        """Path, symbol, kind, condition, occurrence: the same while lines move above it."""
        return (self.path, self.symbol, str(self.kind), self.condition, self.occurrence)

    @property
    def takes_in(self) -> bool:
        """Whether 12 is let in here; else it is left out."""
        return self.kind is Kind.THRESHOLD


Truths = Mapping[Capability, bool | Unknown]


def classify(node: ast.expr, reads: Reader) -> Kind | None:
    """The kind of gate that a condition is, or None where it is none."""
    truths = reads.truths(node)
    if len(set(truths.values())) == 1 or mentions_12(node, reads) or _names_parts(node, reads):
        return None
    if truths[SM120] == truths[SM100]:
        opens_at_10 = truths[SM80] == truths[SM90] != truths[SM100]
        return Kind.THRESHOLD if opens_at_10 and _is_ordered(node, reads) else None
    compared = _comparisons(node, reads)
    if any(isinstance(op, ast.In | ast.NotIn) for part in compared for op in part.ops):
        return Kind.MEMBER
    if truths[SM90] == truths[SM100]:
        return Kind.EITHER
    if compared:
        return Kind.EQUALITY
    return Kind.NEGATION if _negates(node, reads) else Kind.HELPER


def singles_out(truths: Truths) -> int | None:
    """9 or 10, where a condition is about that architecture alone; else None."""
    if truths[SM90] != truths[SM120] == truths[SM100] == truths[SM80]:
        return 9
    if truths[SM100] != truths[SM120] == truths[SM90]:
        return 10
    return None


def _comparisons(node: ast.expr, reads: Reader) -> list[ast.Compare]:
    """The comparisons of a reading within `node`."""
    return [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Compare)
        and any(reads.is_reading(side) for side in (part.left, *part.comparators))
    ]


def _is_ordered(node: ast.expr, reads: Reader) -> bool:
    if any(isinstance(op, _ORDERED) for part in _comparisons(node, reads) for op in part.ops):
        return True
    names = [
        name_of(part).rpartition(".")[2]
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    ]
    return any(
        helper(name) and name.endswith(("_plus", "_or_newer", "_or_later")) for name in names
    )


def _names_parts(node: ast.expr, reads: Reader) -> bool:
    """Whether a condition picks parts by their number, as (100, 103), and not an architecture."""
    for part in _comparisons(node, reads):
        if any(isinstance(op, _ORDERED) for op in part.ops):
            continue
        sides = (part.left, *part.comparators)
        values = [reads.value(side, SM100) for side in sides if not reads.is_reading(side)]
        if values and all(_is_part(value) for value in values):
            return True
    return False


def _is_part(value: object) -> bool:
    if isinstance(value, int):
        return value // 10 == 10
    if isinstance(value, tuple) and value:
        return value[0] == 10 if len(value) == 2 and _is_minor(value[1]) else _all_parts(value)
    return False


def _is_minor(value: object) -> bool:
    return isinstance(value, int) and value < 9


def _all_parts(values: tuple[object, ...]) -> bool:
    return all(_is_part(value) for value in values)


def _negates(node: ast.expr, reads: Reader) -> bool:
    return any(
        isinstance(part, ast.UnaryOp)
        and isinstance(part.op, ast.Not)
        and len(set(reads.truths(part).values())) > 1
        for part in ast.walk(node)
    )


def wording(node: ast.expr, reads: Reader) -> str:
    """What `node` asks of the capability; all else it asks is `...`."""
    if not isinstance(node, ast.Compare) and _constant(node, reads):
        return _ANYTHING
    match node:
        case ast.UnaryOp(op=ast.Not()):
            return f"not {_grouped(node.operand, reads)}"
        case ast.BoolOp():
            word = " and " if isinstance(node.op, ast.And) else " or "
            parts = [_grouped(part, reads) for part in node.values]
            asked = [part for part in parts if part != _ANYTHING]
            return word.join(asked + ([_ANYTHING] if len(asked) < len(parts) else []))
        case ast.Compare():
            if _constant(node, reads):
                return _ANYTHING
            return _comparison(node, reads)
    says = [sm for sm in (80, 90, 100, 103, 110, 120) if reads.value(node, divmod(sm, 10)) is True]
    return "sm" + "+".join(str(sm) for sm in says if sm != 103 or 100 not in says)


def _constant(node: ast.expr, reads: Reader) -> bool:
    return len(set(reads.truths(node).values())) == 1


def _grouped(node: ast.expr, reads: Reader) -> str:
    text = wording(node, reads)
    return f"({text})" if isinstance(node, ast.BoolOp) and text != _ANYTHING else text


def _comparison(node: ast.Compare, reads: Reader) -> str:
    words = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
    words |= {ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
    text = _side(node.left, reads)
    for op, side in zip(node.ops, node.comparators, strict=True):
        text += f" {words[type(op)]} {_side(side, reads)}"
    return text


def _side(node: ast.expr, reads: Reader) -> str:
    if not reads.is_reading(node):
        value = reads.value(node, SM100)
        return _ANYTHING if value is UNKNOWN else repr(value)
    read = reads.value(node, SM100)
    if isinstance(read, tuple):
        return "capability"
    return "major" if read == 10 else "sm" if read == 100 else "minor"
