"""The files of a patched tree as syntax trees, and how to find one's way in them."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from scripts.capability import name_of

SRT = "python/sglang/srt"
Read = Callable[[str], bytes]
Function = ast.FunctionDef | ast.AsyncFunctionDef

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}


class Missing(Exception):
    """A file, function or table that a post-condition is about is not there."""


class Tree:
    """The files of a patched tree, parsed on first use; `pristine` reads them unpatched."""

    def __init__(self, read: Read, pristine: Read | None = None) -> None:
        self._read = read
        self._parsed: dict[str, Code] = {}
        self.pristine = None if pristine is None else Tree(pristine)

    def code(self, path: str) -> "Code":
        """A file below srt. Raises Missing where it is not there, or does not parse."""
        if path not in self._parsed:
            try:
                self._parsed[path] = Code(path, ast.parse(self._read(f"{SRT}/{path}")))
            except KeyError as error:
                raise Missing(f"{path} is not there") from error
            except (SyntaxError, ValueError) as error:
                raise Missing(f"{path} does not parse: {error}") from error
        return self._parsed[path]

    def first(self, *paths: str) -> "Code":
        """The first of `paths` that is there: upstream moves files."""
        for path in paths[:-1]:
            try:
                return self.code(path)
            except Missing:
                continue
        return self.code(paths[-1])


class Code:
    """A parsed file."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.path = path
        self.tree = tree

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """Every function and method by its bare name, the last of a name standing."""
        return {node.name: node for node in ast.walk(self.tree) if isinstance(node, Function)}

    def function(self, name: str) -> Function:
        if name not in self.functions:
            raise Missing(f"{self.path} has no function {name}")
        return self.functions[name]

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What `node` stands in, from the inside out."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def value(self, name: str, *, within: str = "") -> ast.expr:
        """What is assigned to a name of the module, or of the class `within`, once.

        Raises Missing where there is none, or more than one.
        """
        body = self.tree.body
        if within:
            classes = [node for node in body if isinstance(node, ast.ClassDef)]
            found = [node for node in classes if node.name == within]
            body = found[0].body if found else []
        values = [
            node.value
            for node in body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and node.value is not None
            and name in {name_of(target) for target in _targets(node)}
        ]
        if len(values) != 1:
            raise Missing(f"{self.path} assigns {name} {len(values)} times, not once")
        return values[0]

    def number(self, node: ast.expr) -> int | None:
        """A whole number that is written as one, or as a product of names of the module."""
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return value
            case ast.BinOp() if type(node.op) in _OPERATORS:
                left, right = self.number(node.left), self.number(node.right)
                if left is None or right is None:
                    return None
                return _OPERATORS[type(node.op)](left, right)
            case ast.Name():
                return self.number(self.value(node.id))
        return None

    def binds(self, name: str) -> bool:
        """Whether a name is imported, defined or assigned in the module."""
        return any(name in _bound(node) for node in ast.walk(self.tree))


def _bound(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Import() | ast.ImportFrom():
            return tuple(alias.asname or alias.name for alias in node.names)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return (node.name,)
        case ast.Name(ctx=ast.Store()):
            return (node.id,)
    return ()


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def calls(node: ast.AST, *names: str) -> list[ast.Call]:
    """The calls within `node` to functions of these bare names, in the order of their lines."""
    found = [
        part
        for part in ast.walk(node)
        if isinstance(part, ast.Call) and name_of(part.func).rpartition(".")[2] in names
    ]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def words(node: ast.AST) -> set[str]:
    """Every identifier within `node`: names, attributes, keywords of calls and texts."""
    found: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Name():
                found.add(part.id)
            case ast.Attribute():
                found.add(part.attr)
            case ast.keyword(arg=str() as name):
                found.add(name)
            case ast.Constant(value=str() as text):
                found.add(text)
    return found


def reachable(code: Code, start: ast.AST) -> list[Function]:
    """The functions of `code` that `start` leads to by name, directly or not."""
    waiting, found = [start], dict[str, Function]()
    while waiting:
        for name in words(waiting.pop()) & set(code.functions) - set(found):
            found[name] = code.functions[name]
            waiting.append(code.functions[name])
    return list(found.values())
