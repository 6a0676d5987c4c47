"""The lines of a file that may speak of a compute capability: only there is a gate looked for."""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from scripts.bindings import pairs
from scripts.capability import name_of

_WORDS = (
    rb"is_sm\d|is_(?:blackwell|hopper|ampere|ada)|capability|get_device_(?:sm|properties)"
    rb"|(?:sm|cc|cuda|device)_major|sm_version|device_sm|\b(?:9|90)\s*:"
)
_SPEAKS = re.compile(_WORDS)
_LINE_END = re.compile(rb"\r\n|\r|\n")


_LITERALS = (
    *(b"is_sm", b"is_blackwell", b"is_hopper", b"is_ampere", b"is_ada", b"capability"),
    *(b"get_device_properties", b"get_device_sm", b"sm_major", b"cc_major", b"cuda_major"),
    *(b"device_major", b"sm_version", b"device_sm"),
)
_ROWS = tuple(
    (re.compile(rb"\b%b\s*:" % one), re.compile(rb"\b%b\s*:" % other))
    for one, other in ((b"9", b"10"), (b"90", b"100"))
)


def speaks(content: bytes) -> bool:
    """Whether a file may speak of a capability at all: most do not, and are not parsed."""
    if any(word in content for word in _LITERALS):
        return True
    return any(one.search(content) and other.search(content) for one, other in _ROWS)


class Landmarks:
    """The numbers of the lines that speak of a capability, or of what one was assigned to."""

    def __init__(self, content: bytes, tree: ast.Module) -> None:
        self._text = _LINE_END.split(content)
        self._lines = self._matching(_SPEAKS)
        names: set[str] = set()
        while True:
            found = {
                name.rpartition(".")[2]
                for statement in self._statements(tree.body)
                for name, value in pairs(statement)
                if _may_read(value, names)
            }
            if found <= names:
                break
            names |= found
            words = b"|".join(re.escape(name.encode()) for name in sorted(names))
            self._lines = self._matching(re.compile(rb"%b|\b(?:%b)\b" % (_WORDS, words)))

    def _matching(self, pattern: re.Pattern[bytes]) -> list[int]:
        return [number for number, line in enumerate(self._text, 1) if pattern.search(line)]

    def within(self, node: ast.expr | ast.stmt) -> bool:
        """Whether one of the lines of `node` is a landmark."""
        first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", ()))])
        place = bisect_left(self._lines, first)
        last = node.end_lineno or node.lineno
        return place < len(self._lines) and self._lines[place] <= last

    def _statements(self, body: Iterable[ast.AST]) -> Iterator[ast.stmt]:
        for node in body:
            if isinstance(node, ast.stmt):
                if not self.within(node):
                    continue
                yield node
            if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
                yield from self._statements(ast.iter_child_nodes(node))


def _may_read(value: ast.expr, names: set[str]) -> bool:
    """Whether what is assigned may be a capability, or a number made of one."""
    match value:
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            return _may_read(inner, names)
        case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
            return _may_read(one, names) or _may_read(other, names)
        case ast.Call(func=func, args=args):
            made_by = name_of(func).rpartition(".")[2].encode()
            passed_on = made_by in {b"int", b"tuple"} and any(_may_read(a, names) for a in args)
            return passed_on or _SPEAKS.search(made_by) is not None
        case ast.Name() | ast.Attribute():
            words = name_of(value).split(".")
            return bool(names.intersection(words)) or _SPEAKS.search(words[-1].encode()) is not None
    return False
