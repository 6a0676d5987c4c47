"""Which modules a Python file imports, and which files of a tree import which."""

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts import files

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+", re.ASCII)
_SEARCHES = frozenset({".glob", ".rglob", "ast.parse", "inspect.getsource"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a file says without being run: the names it imports, and its strings.

    `imports` has `a.b` and `a.b.c` for `from a.b import c`: either may be a module; and so for a
    string "a.b.c", which import_module(), importorskip() or patch() may be given. `strings` are
    those that look like the name of a Python file. `searches` says that it looks for files in
    folders, or takes sources apart: which ones, it may put together when it runs.
    """

    imports: frozenset[str]
    strings: frozenset[str]
    searches: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The sources of a tree, by path relative to it; `modules` are their names by path."""

    sources: Mapping[str, Source]
    modules: Mapping[str, str]

    def importers(self) -> dict[str, set[str]]:
        """The paths that import a module, by the module's name."""
        known = set(self.modules.values())
        found: dict[str, set[str]] = {name: set() for name in known}
        for path, source in self.sources.items():
            for name in source.imports & known:
                found[name].add(path)
        return found


def read(tree: Path, roots: Mapping[str, str], cache: Path | None = None) -> Graph:
    """The graph of the Python files below `roots`, folders of `tree`.

    Each root has the name of its package, or "" where its files are no modules. `cache`, a file
    that is named after what stands in `tree`, spares reading all of it again.
    """
    texts = _cached(cache)
    modules: dict[str, str] = {}
    for root, package in roots.items():
        for path in sorted((tree / root).rglob("*.py")):
            name = path.relative_to(tree).as_posix()
            module = _module(path.relative_to(tree / root), package) if package else ""
            if module:
                modules[name] = module
            if name not in texts:
                texts[name] = source(path.read_bytes(), module, package=path.name == "__init__.py")
    if cache is not None and not cache.exists():
        with files.replacing(cache) as new:
            new.write_text(json.dumps({name: _plain(one) for name, one in texts.items()}))
    return Graph(sources=texts, modules=modules)


def _cached(cache: Path | None) -> dict[str, Source]:
    try:
        rows = json.loads(cache.read_text()) if cache else {}
        return {
            name: Source(imports=frozenset(i), strings=frozenset(s), searches=bool(w))
            for name, (i, s, w) in rows.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # none yet, or damaged: read anew


def _plain(one: Source) -> list[object]:
    return [sorted(one.imports), sorted(one.strings), one.searches]


def _module(path: Path, package: str) -> str:
    parts = [package, *path.with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def source(content: bytes, module: str, *, package: bool = False) -> Source:
    """What `content` imports and names; nothing where it is not Python.

    `module` is its own name, which relative imports start from; `package` says that it is an
    `__init__.py`.
    """
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return Source(imports=frozenset(), strings=frozenset(), searches=False)
    nodes = list(ast.walk(tree))
    home = module if package else module.rpartition(".")[0]
    return Source(
        imports=frozenset(_imports(nodes, home)),
        strings=frozenset(
            node.value
            for node in nodes
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.endswith(".py")
        ),
        searches=any(_named(node) in _SEARCHES for node in nodes),
    )


def _named(node: ast.AST) -> str:
    """The function that is called or passed on: "ast.parse", or ".glob" of whatever has it."""
    match node:
        case ast.Attribute(value=ast.Name(id="ast" | "inspect" as module), attr=name):
            return f"{module}.{name}"
        case ast.Attribute(attr=name):
            return f".{name}"
    return ""


def _imports(nodes: Iterable[ast.AST], home: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = home.split(".")
            kept = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*kept, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _dotted(node.value)


def _dotted(text: str) -> Iterator[str]:
    """The modules that a string may name: "module", "module.Class" or "module.Class.method"."""
    if _DOTTED.fullmatch(text):
        yield text
        yield text.rpartition(".")[0]
        yield text.rsplit(".", 2)[0]
