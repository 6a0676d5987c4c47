"""patchset/gates.toml: each known gate of upstream's, and what was decided about it."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

import tomlkit

from scripts import files
from scripts.errors import GateError, raise_all
from scripts.gate import Gate, Key, Kind

_HEADER = """\
Known decisions of upstream's on compute capability that leave 12 out, or take it in with 10.
`nox -s audit` compares this list with a tree; `nox -s audit -- --write` brings it up to date.
status: covered (opened by `patch`), accepted (see `why`), open, or undecided, which stops a bump.
"""
_KEYS = {"path", "symbol", "kind", "condition", "occurrence", "status", "patch", "why"}


class Status(StrEnum):
    """What was decided: undecided is what nobody has looked at yet."""

    COVERED = "covered"
    ACCEPTED = "accepted"
    OPEN = "open"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A gate on record. `patch` is the number of the patch that opens it, "" where none does."""

    key: Key
    status: Status
    patch: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        where = f"gates.toml: {':'.join(self.key[:2])}"
        findings = []
        if (self.status is Status.COVERED) != bool(self.patch):
            findings.append(f"{where}: `patch` belongs to status covered, and only there")
        if self.status is Status.ACCEPTED and not self.why:
            findings.append(f"{where}: status accepted needs a `why`")
        if self.key[2] not in set(Kind) or self.key[4] < 1:
            findings.append(f"{where}: no such gate: {self.key[2]}, occurrence {self.key[4]}")
        raise_all(GateError, findings, then="edit patchset/gates.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratchet:
    """The gates on record, and which places are on the all-reduce paths.

    A place is a pattern of fnmatch's, over `path::symbol`.
    """

    all_reduce: tuple[str, ...]
    known: tuple[Known, ...]

    def __post_init__(self) -> None:
        keys = [known.key for known in self.known]
        twice = sorted({":".join(map(str, key)) for key in keys if keys.count(key) > 1})
        raise_all(GateError, [f"gates.toml lists {key} twice" for key in twice])

    def is_on_all_reduce_path(self, key: Key) -> bool:
        """Whether a gate decides on all-reduce."""
        place = f"{key[0]}::{key[1]}"
        return any(fnmatchcase(place, pattern) for pattern in self.all_reduce)


def parse(text: str) -> Ratchet:
    """Read gates.toml. Raises GateError that lists everything wrong with it."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GateError(f"gates.toml is not TOML: {error}") from error
    findings: list[str] = []
    known = []
    tables = document.get("gates", [])
    places = document.get("all-reduce", [])
    if not _is_list_of(places, str) or not _is_list_of(tables, dict):
        raise GateError("gates.toml: expected all-reduce = [patterns] and [[gates]]")
    for number, table in enumerate(tables, 1):
        try:
            known.append(_known(table))
        except (GateError, KeyError, TypeError, ValueError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            findings.append(f"gates.toml: gate {number}: {what}")
    raise_all(GateError, findings, then="edit patchset/gates.toml")
    return Ratchet(all_reduce=tuple(places), known=tuple(known))


def _is_list_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(part, kind) for part in value)


def _known(table: Mapping[str, object]) -> Known:
    strange = sorted(set(table) - _KEYS)
    if strange:
        known = ", ".join(sorted(_KEYS))
        raise ValueError(f"has unknown keys: {', '.join(strange)} (known are {known})")
    occurrence = table.get("occurrence", 1)
    if not isinstance(occurrence, int):
        raise TypeError(f"occurrence is not a number: {occurrence!r}")
    path, symbol, kind, condition = (
        str(table[key]) for key in ("path", "symbol", "kind", "condition")
    )
    return Known(
        key=(path, symbol, kind, condition, occurrence),
        status=Status(str(table["status"])),
        patch=str(table.get("patch", "")),
        why=str(table.get("why", "")),
    )


def format(ratchet: Ratchet) -> str:
    """The text of gates.toml; parse() gives the ratchet back."""
    document = tomlkit.document()
    for line in _HEADER.splitlines():
        document.add(tomlkit.comment(line))
    places = tomlkit.array().multiline(True)
    places.extend(ratchet.all_reduce)
    document.add("all-reduce", places)
    gates = tomlkit.aot()
    for known in sorted(ratchet.known, key=lambda known: known.key):
        path, symbol, kind, condition, occurrence = known.key
        table = tomlkit.table()
        table.update({"path": path, "symbol": symbol, "kind": kind, "condition": condition})
        if occurrence > 1:
            table["occurrence"] = occurrence
        table["status"] = str(known.status)
        if known.patch:
            table["patch"] = known.patch
        if known.why:
            table["why"] = known.why
        gates.append(table)
    if gates:
        document.add("gates", gates)
    return tomlkit.dumps(document)


def load(path: Path) -> Ratchet:
    """Read patchset/gates.toml. Raises GateError."""
    try:
        return parse(path.read_bytes().decode())
    except FileNotFoundError as error:
        raise GateError(f"{path} does not exist", then="nox -s audit -- --write") from error
    except (OSError, UnicodeDecodeError) as error:
        raise GateError(f"{path} cannot be read: {error}") from error


def save(ratchet: Ratchet, path: Path) -> None:
    """Write patchset/gates.toml, whole or not at all; hold a lock against other writers."""
    with files.replacing(path) as new:
        new.write_text(format(ratchet))


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A tree's gates against those on record.

    `moved` pairs what was on record with where it is now; `false_claims` are sentences on gates
    that a patch is said to open and does not.
    """

    ratchet: Ratchet
    new: tuple[Gate, ...]
    moved: tuple[tuple[Known, Gate], ...]
    vanished: tuple[Known, ...]
    standing: tuple[tuple[Known, Gate], ...]
    false_claims: tuple[str, ...] = ()

    @property
    def undecided(self) -> tuple[Gate, ...]:
        """The gates on the all-reduce paths about which somebody has to decide."""
        waiting = [gate for known, gate in self.standing if known.status is Status.UNDECIDED]
        waiting += [gate for known, gate in self.moved if known.status is Status.UNDECIDED]
        on_path = self.ratchet.is_on_all_reduce_path
        return tuple(gate for gate in (*self.new, *waiting) if on_path(gate.key))


def review(
    gates: Sequence[Gate], ratchet: Ratchet, opened: Mapping[Key, str] | None = None
) -> Review:
    """Compare a pristine tree's gates with the record; `opened` is what a series really opens."""
    now = {gate.key: gate for gate in gates}
    standing = [(known, now[known.key]) for known in ratchet.known if known.key in now]
    on_record = {known.key for known in ratchet.known}
    gone = [known for known in ratchet.known if known.key not in now]
    new = [gate for gate in gates if gate.key not in on_record]
    moved = _pair(gone, new)
    still = {known.key for known, _ in moved}
    found = {gate.key for _, gate in moved}
    return Review(
        ratchet=ratchet,
        new=tuple(gate for gate in new if gate.key not in found),
        moved=tuple(moved),
        vanished=tuple(known for known in gone if known.key not in still),
        standing=tuple(standing),
        false_claims=() if opened is None else _false_claims([*standing, *moved], opened),
    )


def _pair(gone: Sequence[Known], new: Sequence[Gate]) -> list[tuple[Known, Gate]]:
    """Gates that ask the same elsewhere, or something else in the same place; closest first."""
    pairs: list[tuple[Known, Gate]] = []
    free, left = list(new), list(gone)
    for alike in (_same_name, _same_file, _same_place):
        for known in list(left):
            near = [gate for gate in free if alike(known.key, gate.key)]
            rivals = [other for other in left if near and alike(other.key, near[0].key)]
            if near and len(near) == len(rivals):
                pairs.append((known, near[0]))
                free.remove(near[0])
                left.remove(known)
    return pairs


def _same_name(old: Key, new: Key) -> bool:
    return old[2:4] == new[2:4] and old[1].rpartition(".")[2] == new[1].rpartition(".")[2]


def _same_file(old: Key, new: Key) -> bool:
    return old[2:4] == new[2:4] and old[0] == new[0]


def _same_place(old: Key, new: Key) -> bool:
    return old[:3] == new[:3]


def _false_claims(
    pairs: Sequence[tuple[Known, Gate]], opened: Mapping[Key, str]
) -> tuple[str, ...]:
    claims = []
    for known, gate in pairs:
        really = opened.get(gate.key, "")
        if known.status is Status.COVERED and known.patch != really:
            by = f"patch {really} does" if really else "no patch of the series does"
            claims.append(
                f"{gate.path}:{gate.line} ({gate.condition}) is said to be opened by patch "
                f"{known.patch}; {by}"
            )
    return tuple(claims)


def updated(seen: Review, opened: Mapping[Key, str]) -> Ratchet:
    """The record brought up to date: decisions stay, what vanished goes, what is new comes in.

    A gate that a patch opens is covered. A new one on the all-reduce paths comes in as
    undecided, any other as open.
    """
    new = [(Known(key=gate.key, status=Status.UNDECIDED), gate) for gate in seen.new]
    known = [
        _settled(entry, gate, opened, seen.ratchet)
        for entry, gate in (*seen.standing, *seen.moved, *new)
    ]
    return Ratchet(all_reduce=seen.ratchet.all_reduce, known=tuple(known))


def _settled(known: Known, gate: Gate, opened: Mapping[Key, str], ratchet: Ratchet) -> Known:
    patch = opened.get(gate.key, "")
    if patch:
        return Known(key=gate.key, status=Status.COVERED, patch=patch, why=known.why)
    status = known.status
    if status is Status.COVERED:  # by a patch that does not do it any more
        status = Status.UNDECIDED
    if status is Status.UNDECIDED and not ratchet.is_on_all_reduce_path(gate.key):
        status = Status.OPEN
    return Known(key=gate.key, status=status, why=known.why)


def stop_undecided(seen: Review) -> None:
    """Raise GateError where a gate on the all-reduce paths waits for a decision."""
    raise_all(
        GateError,
        [
            f"{gate.path}:{gate.line}, {gate.symbol}: {gate.condition} (12: {gate.effect})"
            for gate in seen.undecided
        ],
        then="nox -s audit -- --write, then set `status` of each in patchset/gates.toml",
    )
