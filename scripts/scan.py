"""The gates of one Python file, found on its syntax tree; the file is never run.

A gate is looked for only where a GPU of capability (12, 0) can come: what stands below a test
that is false there, or after a return that is taken there, decides nothing for it.
"""

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scripts.bindings import assigned, attributes
from scripts.capability import SM100, SM120, UNKNOWN, Bindings, Reader, helper, mentions_12, name_of
from scripts.chain import Chain, Link, chain_at
from scripts.gate import Gate, Kind, classify, singles_out, wording
from scripts.landmarks import Landmarks
from scripts.outcome import leaves, of_block, of_branch, short

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_WIDTH = re.compile(r"vec|width|bits", re.IGNORECASE)
_ROWS = ({9, 10}, {90, 100})


def gates(content: bytes, path: str) -> tuple[Gate, ...]:
    """The gates of a file in the order of their lines; `path` goes into them.

    Raises what ast.parse raises: SyntaxError, ValueError, RecursionError or MemoryError.
    """
    tree = ast.parse(content, filename=path)
    scanner = _Scanner(path, attributes(tree), Landmarks(content, tree))
    scanner.block(tree.body, _Place(symbol="", reads=scanner.reader(tree)))
    seen: Counter[tuple[str, str, str, str]] = Counter()
    numbered = []
    for gate in sorted(scanner.found, key=lambda gate: gate.line):
        alike = gate.key[:4]
        seen[alike] += 1
        numbered.append(replace(gate, occurrence=seen[alike]))
    return tuple(numbered)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the scanner is: in which function or class, and how names are read there."""

    symbol: str
    reads: Reader

    def below(self, name: str) -> str:
        return f"{self.symbol}.{name}" if self.symbol else name


class _Scanner:
    """Walks a module, statement by statement, and collects what it finds."""

    def __init__(self, path: str, attributes: Bindings, landmarks: Landmarks) -> None:
        self.found: list[Gate] = []
        self._path = path
        self._landmarks = landmarks
        self._scopes: list[Bindings] = [attributes]

    def reader(self, scope: ast.AST) -> Reader:
        self._scopes.insert(0, assigned(scope))
        return Reader(*self._scopes)

    def block(self, body: Sequence[ast.stmt], at: _Place) -> None:
        """Scan statements up to where capability 12 has left the block for certain."""
        done = 0
        for index, statement in enumerate(body):
            if index < done:
                continue
            if isinstance(statement, ast.If):
                chain = chain_at(body, index)
                done = index + chain.length
                if self._passes_by(body[index:done]):
                    continue
                if self._chain(chain, at):
                    return
            else:
                self._statement(statement, at)
                if isinstance(statement, ast.Assert) and not at.reads.truths(statement.test)[SM120]:
                    return

    def _statement(self, statement: ast.stmt, at: _Place) -> None:
        if not self._landmarks.within(statement):
            return
        if isinstance(statement, _SCOPES):
            self._scope(statement, at)
            return
        for name, value in ast.iter_fields(statement):
            if isinstance(value, ast.expr):
                self._value(value, statement, at)
            elif name in {"body", "orelse", "finalbody"} and value:
                self.block(value, at)
            elif isinstance(value, list):
                for part in value:
                    self._part(part, statement, at)

    def _part(self, part: object, statement: ast.stmt, at: _Place) -> None:
        if isinstance(part, ast.expr):
            self._value(part, statement, at)
        elif isinstance(part, ast.ExceptHandler | ast.match_case):
            self.block(part.body, at)
        elif isinstance(part, ast.withitem):
            self._value(part.context_expr, statement, at)

    def _scope(self, scope: ast.stmt, at: _Place) -> None:
        assert isinstance(scope, _SCOPES)
        for decorator in scope.decorator_list:
            self._expression(decorator, scope, at)
        place = _Place(symbol=at.below(scope.name), reads=self.reader(scope))
        self.block(scope.body, place)
        del self._scopes[0]

    def _value(self, value: ast.expr, statement: ast.stmt, at: _Place) -> None:
        match statement:
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                name = name_of(target)
                if isinstance(value, ast.Dict):
                    self._table(value, at.below(name), at)
                    return
                if helper(name.rpartition(".")[2]) and _is_alias(value, at.reads):
                    return
        is_test = isinstance(statement, ast.Assert | ast.While | ast.Return | ast.Assign)
        self._expression(value, statement, at, is_test=is_test)

    def _chain(self, chain: Chain, at: _Place) -> bool:
        """Scan an if/elif chain; whether capability 12 never comes to what follows it."""
        aware = [link.start for link in chain.links if mentions_12(link.test, at.reads)]
        split = [] if aware or _asks(chain.rest, at.reads) else self._split(chain, at)
        for link in chain.links:
            truths = at.reads.truths(link.test)
            truth = truths[SM120]
            into = truth is True or (truth is UNKNOWN and truths[SM100] is False)
            unaware = link.start not in aware and link not in split
            if unaware and not _asks(link.body if into else link.otherwise, at.reads):
                self._expression(link.test, link.node, at, is_test=True, otherwise=link.otherwise)
            if truth is not False:
                self.block(link.body, at)
            if truth is True:
                return leaves(link.body)
        self.block(chain.otherwise, at)
        return False

    def _split(self, chain: Chain, at: _Place) -> list[Link]:
        """The links of a chain with a branch for 10, another for 9, and none for 12."""
        majors = {link: singles_out(at.reads.truths(link.test)) for link in chain.links}
        if not {9, 10} <= set(majors.values()):
            return []
        links = [link for link, major in majors.items() if major is not None]
        if not any(classify(link.test, at.reads) for link in links):
            return []
        said = " / ".join(wording(link.test, at.reads) for link in links)
        effect = f"no branch: {of_block(chain.otherwise or chain.rest)}"
        self._add(Kind.CHAIN, links[0].test.lineno, said, effect, at)
        return links

    def _passes_by(self, body: Sequence[ast.stmt]) -> bool:
        return not any(self._landmarks.within(statement) for statement in body)

    def _expression(
        self,
        node: ast.expr,
        statement: ast.stmt,
        at: _Place,
        *,
        is_test: bool = False,
        otherwise: Sequence[ast.stmt] = (),
    ) -> None:
        if not self._landmarks.within(node):
            return
        if isinstance(node, ast.IfExp):
            self._choice(node, statement, at)
            return
        asks = isinstance(node, ast.BoolOp | ast.Compare) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        )
        if (asks or is_test or _is_helper(node)) and not at.reads.is_reading(node):
            truths = at.reads.truths(node)
            if len(set(truths.values())) > 1:
                kind = classify(node, at.reads)
                defines = helper(at.symbol.rpartition(".")[2]) and kind is not Kind.THRESHOLD
                if kind is not None and not defines:
                    line = _line(node, at.reads)
                    takes_in = kind is Kind.THRESHOLD
                    effect = of_branch(statement, truths[SM120], otherwise, takes_in=takes_in)
                    self._add(kind, line, wording(node, at.reads), effect, at)
                return
            if asks and truths[SM120] is not UNKNOWN:
                return  # decided by what no capability changes
        if isinstance(node, ast.Dict):
            self._table(node, at.symbol, at)
        self._lookup(node, at)
        for child in ast.iter_child_nodes(node):
            self._child(child, statement, at)

    def _child(self, child: ast.AST, statement: ast.stmt, at: _Place) -> None:
        if isinstance(child, ast.expr):
            self._expression(child, statement, at)
        elif isinstance(child, ast.keyword | ast.comprehension):
            for part in ast.iter_child_nodes(child):
                self._child(part, statement, at)

    def _choice(self, node: ast.IfExp, statement: ast.stmt, at: _Place) -> None:
        truths = at.reads.truths(node.test)
        if at.reads.is_reading(node):
            return
        kind = None if _is_width(node, statement) else classify(node.test, at.reads)
        nested = [part for part in (node.body, node.orelse) if isinstance(part, ast.IfExp)]
        if kind is not None and not any(mentions_12(part.test, at.reads) for part in nested):
            written = kind if kind in {Kind.THRESHOLD, Kind.EITHER, Kind.MEMBER} else Kind.CHOICE
            taken = node.body if truths[SM120] is True or kind is Kind.THRESHOLD else node.orelse
            effect = f"gets {short(taken)}"
            self._add(written, node.lineno, wording(node.test, at.reads), effect, at)
        elif kind is None and len(set(truths.values())) == 1:
            self._expression(node.test, statement, at, is_test=True)
        if truths[SM120] is not False:
            self._expression(node.body, statement, at)
        if truths[SM120] is not True:
            self._expression(node.orelse, statement, at)

    def _table(self, node: ast.Dict, symbol: str, at: _Place) -> None:
        keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
        if len(keys) != len(node.keys) or not all(type(key) is int for key in keys):
            return
        numbers = {key for key in keys if isinstance(key, int)}
        for rows in _ROWS:
            small = max(rows) == 10
            known = set(range(7, 12)) if small else {70, 75, 80, 86, 87, 89, 90, 100, 103, 110}
            if rows <= numbers <= known:
                said = f"rows {', '.join(str(key) for key in sorted(numbers))}"
                place = _Place(symbol=symbol, reads=at.reads)
                self._add(Kind.TABLE, node.lineno, said, "no row", place)

    def _lookup(self, node: ast.expr, at: _Place) -> None:
        match node:
            case ast.Call(func=ast.Attribute(attr="get", value=table), args=[key, *rest]):
                effect = f"finds no row, gets {short(rest[0]) if rest else None}"
            case ast.Subscript(value=table, slice=key):
                effect = "finds no row, raises KeyError"
            case _:
                return
        if name_of(table) and not at.reads.is_reading(node) and at.reads.is_reading(key):
            name = name_of(table).rpartition(".")[2]
            self._add(Kind.LOOKUP, node.lineno, f"{name}[major]", effect, at, table=name)

    def _add(
        self, kind: Kind, line: int, condition: str, effect: str, at: _Place, *, table: str = ""
    ) -> None:
        self.found.append(
            Gate(
                path=self._path,
                line=line,
                symbol=at.symbol,
                kind=kind,
                condition=condition,
                effect=effect,
                table=table,
            )
        )


def _asks(body: Sequence[ast.stmt], reads: Reader) -> bool:
    """Whether the first thing a block does is to ask for capability 12."""
    first = body[0] if body else None
    return isinstance(first, ast.If) and mentions_12(first.test, reads)


def _is_width(node: ast.IfExp, statement: ast.stmt) -> bool:
    """Whether the choice is of how wide a vector access is: every part from 10 on has the wide."""
    numbers = all(
        isinstance(part, ast.Constant) and isinstance(part.value, int)
        for part in (node.body, node.orelse)
    )
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    return numbers and any(_WIDTH.search(name_of(target)) for target in targets)


def _is_helper(node: ast.expr) -> bool:
    return helper(name_of(node).rpartition(".")[2]) is not None


def _is_alias(value: ast.expr, reads: Reader) -> bool:
    """Whether a helper is only given another name."""
    compares = any(isinstance(part, ast.Compare) for part in ast.walk(value))
    return not compares and UNKNOWN not in reads.truths(value).values()


def _line(node: ast.expr, reads: Reader) -> int:
    """The line of the first part of a condition that is about a capability."""
    while isinstance(node, ast.BoolOp | ast.UnaryOp):
        parts = node.values if isinstance(node, ast.BoolOp) else [node.operand]
        node = next(part for part in parts if len(set(reads.truths(part).values())) > 1)
    return node.lineno
