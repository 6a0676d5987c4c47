"""The gates of an upstream tree, and the files that could not be read; nothing of it is run."""

import ast
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scripts import scan
from scripts.gate import Gate, Kind

LARGEST = 4_000_000  # bytes; the largest module of SGLang 0.5.18 has 0.4 million
_WORTH_PARSING = re.compile(
    rb"is_sm\d|is_blackwell|is_hopper|capability|get_device_sm|sm_major|cuda_major|^\s*(9|90)\s*:",
    re.MULTILINE,
)
_TESTS = re.compile(r"(^|/)(tests?/|test_[^/]*\.py$|conftest\.py$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A file that could not be looked into, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was found in how many files, sorted by path and line."""

    gates: tuple[Gate, ...]
    unread: tuple[Unread, ...]
    files: int


def is_audited(path: str, under: Sequence[str]) -> bool:
    """Whether a path is a Python module below one of the folders, and not a test."""
    below = any(path == folder or path.startswith(f"{folder}/") for folder in under)
    return below and path.endswith(".py") and not _TESTS.search(path)


def audit(contents: Iterable[tuple[str, bytes]]) -> Audit:
    """Look for gates in files, given as path and content."""
    gates: list[Gate] = []
    unread: list[Unread] = []
    files = 0
    for path, content in contents:
        files += 1
        try:
            gates += of_file(path, content)
        except Unreadable as error:
            unread.append(Unread(path=path, why=str(error)))
    tables = {gate.symbol.rpartition(".")[2] for gate in gates if gate.kind is Kind.TABLE}
    found = [gate for gate in gates if gate.kind is not Kind.LOOKUP or gate.table in tables]
    return Audit(
        gates=tuple(sorted(found, key=lambda gate: (gate.path, gate.line))),
        unread=tuple(unread),
        files=files,
    )


class Unreadable(Exception):
    """A file is not what the audit can look into."""


def of_file(path: str, content: bytes) -> Sequence[Gate]:
    """The gates of one file. Raises Unreadable."""
    if not _WORTH_PARSING.search(content):
        return ()
    if len(content) > LARGEST:
        raise Unreadable(f"{len(content)} bytes, more than {LARGEST}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(content, filename=path)
        return scan.gates(tree, path)
    except SyntaxError as error:
        at = f", line {error.lineno}" if error.lineno else ""
        raise Unreadable(f"is not Python that this interpreter parses: {error.msg}{at}") from error
    except (UnicodeDecodeError, ValueError) as error:
        raise Unreadable(f"cannot be decoded: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise Unreadable("is nested too deeply") from error
