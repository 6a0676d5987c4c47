"""The gates of an upstream tree, and the files that could not be read; nothing of it is run."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import landmarks, ratchet, scan, source
from scripts.gate import Gate, Key, Kind
from scripts.git import Entry, Repository, Tree
from scripts.memo import Memo
from scripts.patched import Patched
from scripts.ratchet import Review

UNDER = ("python/sglang/srt",)
LARGEST = 4_000_000  # bytes; the largest module of SGLang 0.5.18 has 0.4 million
_TESTS = re.compile(r"(^|/)(tests?/|test_[^/]*\.py$|conftest\.py$)")

_Found = dict[str, Sequence[Gate]]  # by path, with lookups in tables that may have a row


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
    found, unread = _look(contents)
    return Audit(gates=_settled(found), unread=tuple(unread), files=len(found))


def _look(contents: Iterable[tuple[str, bytes]]) -> tuple[_Found, list[Unread]]:
    found: _Found = {}
    unread: list[Unread] = []
    for path, content in contents:
        found[path] = ()
        try:
            found[path] = of_file(path, content)
        except Unreadable as error:
            unread.append(Unread(path=path, why=str(error)))
    return found, unread


def _settled(found: _Found) -> tuple[Gate, ...]:
    """The gates of all files, where lookups count only in tables that lack a row."""
    gates = [gate for path in sorted(found) for gate in found[path]]
    tables = {gate.symbol.rpartition(".")[2] for gate in gates if gate.kind is Kind.TABLE}
    return tuple(gate for gate in gates if gate.kind is not Kind.LOOKUP or gate.table in tables)


def of_tree(store: Repository, tree: Tree, under: Sequence[str] = UNDER) -> Audit:
    """The gates of a commit's files. Raises KeyError where a blob is not in `store`."""
    audited = ((path, entry) for path, entry in tree.items() if is_audited(path, under))
    return audit(store.contents((path, entry) for path, entry in audited if _is_file(entry)))


def _is_file(entry: Entry) -> bool:
    return entry.mode != "120000"


def _memo(store: Repository) -> Memo:
    """What was found before in files of this store's, by the code that looks into them."""
    here = Path(__file__).parent
    names = (*("audit", "scan", "gate", "landmarks", "capability"), *("bindings", "chain"))
    code = [here / f"{name}.py" for name in (*names, "outcome")]
    return Memo(store.git_dir.parent / "gates", code)


def _look_at(
    store: Repository, tree: Tree, under: Sequence[str], memo: Memo
) -> tuple[_Found, list[Unread]]:
    """As _look() does, but only into files that were not looked into before."""
    known: _Found = {}
    fresh: list[tuple[str, Entry]] = []
    for path, entry in tree.items():
        if is_audited(path, under) and _is_file(entry):
            gates = memo.get(path, entry.blob)
            if gates is None:
                fresh.append((path, entry))
            else:
                known[path] = gates
    found, unread = _look(store.contents(fresh))
    bad = {one.path for one in unread}
    for path, entry in fresh:
        if path not in bad:  # why it could not be read is said each time
            memo.put(path, entry.blob, found[path])
    return known | found, unread


def of_series(patched: Patched, under: Sequence[str] = UNDER) -> tuple[Audit, Mapping[Key, str]]:
    """The audit of a series' base, and by gate the number of the patch that opens it.

    A gate is opened by the first patch after which it is gone, and not only renamed.
    """
    store = patched.base.store
    source.complete(patched.base, [p for p in patched.base.tree if is_audited(p, under)])
    memo = _memo(store)
    found, unread = _look_at(store, patched.base.tree, under, memo)
    before = _settled(found)
    base = Audit(gates=before, unread=tuple(unread), files=len(found))
    opened: dict[Key, str] = {}
    origins = {gate.key: gate.key for gate in before}
    for patch, commit in zip(patched.series.patches, patched.commits, strict=True):
        paths = [path for change in patch.changes for path in change.paths]
        touched = store.tree(commit, paths) if paths else {}
        found |= {path: () for path in paths if path in found}
        found |= _look_at(store, touched, under, memo)[0]
        after = _settled(found)
        for gate, now in _followed(before, after):
            origin = origins.pop(gate.key, None)
            if origin is not None and now is None:
                opened[origin] = patch.number
            elif origin is not None and now is not None:
                origins[now.key] = origin
        before = after
    memo.save()
    return base, opened


def decided(patched: Patched, record: Path) -> Review:
    """The base's gates against gates.toml at `record`, for a bump: what is new, moved, vanished.

    Raises GateError where one on the all-reduce paths waits for a decision.
    """
    found, opened = of_series(patched)
    seen = ratchet.review(found.gates, ratchet.load(record), opened)
    ratchet.stop_undecided(seen)
    return seen


def _followed(before: Sequence[Gate], after: Sequence[Gate]) -> list[tuple[Gate, Gate | None]]:
    """Each gate that is elsewhere after a patch, with where: the same file, asking the same.

    None stands for a gate that is gone.
    """
    kept = {gate.key for gate in before} & {gate.key for gate in after}
    fresh = [gate for gate in after if gate.key not in kept]
    pairs: list[tuple[Gate, Gate | None]] = []
    for gate in before:
        if gate.key in kept:
            continue
        asks = (gate.path, gate.kind, gate.condition)
        now = next((new for new in fresh if (new.path, new.kind, new.condition) == asks), None)
        if now is not None:
            fresh.remove(now)
        pairs.append((gate, now))
    return pairs


class Unreadable(Exception):
    """A file is not what the audit can look into."""


def of_file(path: str, content: bytes) -> Sequence[Gate]:
    """The gates of one file. Raises Unreadable."""
    if not landmarks.speaks(content):
        return ()
    if len(content) > LARGEST:
        raise Unreadable(f"{len(content)} bytes, more than {LARGEST}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return scan.gates(content, path)
    except SyntaxError as error:
        at = f", line {error.lineno}" if error.lineno else ""
        raise Unreadable(f"is not Python that this interpreter parses: {error.msg}{at}") from error
    except (UnicodeDecodeError, ValueError) as error:
        raise Unreadable(f"cannot be decoded: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise Unreadable("is nested too deeply") from error
