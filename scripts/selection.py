"""Which of upstream's test files are run, and which of them share a process."""

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from scripts.errors import UsageError
from scripts.imports import Graph

REGISTERED = "test/registered"
UNIT = f"{REGISTERED}/unit"
_HUB = 0.02  # the share of all files from which on an importer says nothing about a test
TOGETHER = 60  # test files that share a process
_UNKNOWN = 10.0  # seconds a test file takes where upstream does not say


class Name(StrEnum):
    """The selections by name."""

    AFFECTED = "affected"
    CPU = "cpu"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of upstream's test files, from the lists in upstream-tests/.

    `deselect` are never run, `alone` need a process of their own, `also` run well on a CPU though
    upstream does not register them for one. `affected` are reached by this series though no import
    shows it.
    """

    deselect: tuple[str, ...]
    alone: frozenset[str]
    also: tuple[str, ...]
    affected: tuple[str, ...] = ()


def known(folder: Path) -> Known:
    """The lists in `folder`: a path or id a line, `#` comments."""
    return Known(
        deselect=_lines(folder / "deselect.txt"),
        alone=frozenset(_lines(folder / "alone.txt")),
        also=_lines(folder / "also.txt"),
        affected=_lines(folder / "affected.txt"),
    )


def _lines(path: Path) -> tuple[str, ...]:
    rows = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return tuple(row for row in rows if row)


def named(name: Name, tree: Path, graph: Graph, touched: Sequence[str], lists: Known) -> list[str]:
    """The test files of a selection, sorted. `touched` are the paths that the series changes."""
    everything = {
        path for path in graph.sources if path.startswith(f"{REGISTERED}/") and _is_test(path)
    }
    if name is Name.ALL:
        return sorted(everything)
    unit = [path for path in everything if path.startswith(f"{UNIT}/")]
    cpu = {path for path in unit if registration((tree / path).read_bytes()) is not None}
    cpu |= everything & set(lists.also)
    if name is Name.CPU:
        return sorted(cpu)
    return sorted((cpu & affected(graph, touched)) | (everything & set(lists.affected)))


def affected(graph: Graph, touched: Sequence[str]) -> set[str]:
    """The files that import what the series touches, or read it as text.

    A file counts that imports a touched module, or a module that imports one. A module which a
    fiftieth of the tree imports leads to everything and so to nothing: only its direct importers
    count.
    """
    importers = graph.importers()
    most = max(8.0, _HUB * len(graph.sources))
    modules = [graph.modules[path] for path in touched if path in graph.modules]
    reached = set(modules)
    for module in modules:
        if len(importers[module]) <= most:
            reached |= {graph.modules[path] for path in importers[module] if path in graph.modules}
    reached = {module for module in reached if module in modules or len(importers[module]) <= most}
    found = {path for module in reached for path in importers[module]}
    names = {Path(path).name for path in touched if path.endswith(".py")}
    found |= {
        path
        for path, source in graph.sources.items()
        if source.searches or any(Path(text).name in names for text in source.strings)
    }
    return {path for path in found | set(touched) if _is_test(path)}


def _is_test(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith("test_") and name.endswith(".py")


def registration(content: bytes) -> float | None:
    """Seconds that a file takes by its register_cpu_ci(est_time=...); None where it has none.

    One that is `disabled=` does not count.
    """
    if b"register_cpu_ci(" not in content:
        return None
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Call) and _called(node) == "register_cpu_ci":
            words = {word.arg: word.value for word in node.keywords}
            if "disabled" in words:
                continue
            estimate = words.get("est_time", node.args[0] if node.args else None)
            value = estimate.value if isinstance(estimate, ast.Constant) else None
            return float(value) if isinstance(value, int | float) else _UNKNOWN
    return None


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def paths(tree: Path, words: Iterable[str]) -> list[str]:
    """The test files that `words` name: files, folders or ids of tests, relative to `tree`.

    Raises UsageError for what is not there.
    """
    found: list[str] = []
    for word in words:
        path = tree / word.partition("::")[0]
        if not path.resolve().is_relative_to(tree.resolve()) or not path.exists():
            raise UsageError(
                f"{word} is not in the tree of tests",
                then="give paths as upstream has them, such as test/registered/unit/layers",
            )
        inside = sorted(path.rglob("test_*.py")) if path.is_dir() else []
        found += [one.relative_to(tree).as_posix() for one in inside] if path.is_dir() else [word]
    return list(dict.fromkeys(found))


def deal(
    files: Sequence[str], lists: Known, seconds: Mapping[str, float], *, together: int = TOGETHER
) -> tuple[tuple[str, ...], ...]:
    """The files in batches that share a process, the longest first, the same on every machine.

    `seconds` are what upstream says that a file takes, `together` is how many share a process.
    """
    alone = [path for path in sorted(files) if path.partition("::")[0] in lists.alone]
    others = [path for path in files if path not in alone]
    count = min(len(others), max(2, math.ceil(len(others) / together)))
    batches: list[list[str]] = [[] for _ in range(count)]
    loads = [0.0] * count
    for path in sorted(others, key=lambda path: (-seconds.get(path, _UNKNOWN), path)):
        least = loads.index(min(loads))
        batches[least].append(path)
        loads[least] += seconds.get(path, _UNKNOWN)
    dealt = [*((path,) for path in alone), *(tuple(sorted(batch)) for batch in batches)]
    return tuple(sorted(dealt, key=lambda batch: -sum(seconds.get(p, _UNKNOWN) for p in batch)))
