"""upstream.lock: the pinned commit, the release files of its version, and our revision."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import tomlkit
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from tomlkit.exceptions import ParseError, TOMLKitError

from scripts import files
from scripts.errors import LockError, raise_all
from scripts.git import CommitId

LOCK_VERSION = "1.0"
UNKNOWN = CommitId("unknown")  # of a lock that was written where the git host is out of reach
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWheel:
    """One of upstream's own release files: `size` in bytes, `sha256` in hexadecimal."""

    name: str
    size: int
    sha256: str

    @property
    def tag(self) -> str:
        """The compatibility tag of the file name: cp311-cp311-manylinux_2_34_x86_64."""
        return self.name.removesuffix(".whl").split("-", 2)[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """upstream.lock; what its keys mean is in README.md, its words are those of PEP 751."""

    name: str
    version: str
    url: str
    requested_revision: str
    commit: CommitId
    commit_time: datetime
    subdirectory: str
    wheels: tuple[ReleaseWheel, ...]
    local: str
    revision: int

    @property
    def epoch(self) -> int:
        """The commit's time in seconds since 1970, as SOURCE_DATE_EPOCH has it."""
        return int(self.commit_time.timestamp())

    @property
    def distribution_version(self) -> str:
        """The version that we publish: 0.5.18+sm120.1 (PEP 440, local version)."""
        return f"{self.version}+{self.local}.{self.revision}"


def load(path: Path) -> Lock:
    """Read a lock file. Raises LockError."""
    if not path.exists():
        raise LockError(f"{path} does not exist", then=f"git checkout -- {path.name}")
    return parse(files.text(path, LockError), where=path.name)


def parse(text: str, *, where: str = "upstream.lock") -> Lock:
    """The lock that `text` describes. Raises LockError that lists every wrong key with its line."""
    try:
        document = tomlkit.parse(text).unwrap()
    except ParseError as error:
        raise LockError(f"{where}:{error.line}: not TOML: {error}") from error
    except TOMLKitError as error:
        raise LockError(f"{where}: not TOML: {error}") from error
    reader = _Reader(document, lines=_lines(text), where=where)
    lock = _read(reader)
    raise_all(LockError, reader.findings)
    return lock


_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LOCAL = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*")
_CREDENTIALS = re.compile(r"[a-z+]+://[^/]*:[^/]*@")


def _read(reader: "_Reader") -> Lock:
    reader.string("lock-version", lambda value: value == LOCK_VERSION or f"must be {LOCK_VERSION}")
    version = reader.string("upstream.version", check_version)
    name = reader.string("upstream.name", lambda value: value != "" or "is empty")
    reader.string("upstream.vcs.type", lambda value: value == "git" or 'must be "git"')
    lock = Lock(
        name=name,
        version=version,
        url=reader.string("upstream.vcs.url", _check_url),
        requested_revision=reader.string("upstream.vcs.requested-revision", check_revision),
        commit=CommitId(
            reader.string(
                "upstream.vcs.commit-id",
                lambda value: (
                    value == UNKNOWN
                    or bool(_COMMIT.fullmatch(value))
                    or 'is neither 40 hexadecimal digits nor "unknown"'
                ),
            )
        ),
        commit_time=reader.time("upstream.vcs.commit-time"),
        subdirectory=reader.string("upstream.vcs.subdirectory", _check_subdirectory),
        wheels=tuple(
            _read_wheel(reader, f"upstream.wheels.{number}", name, version)
            for number in range(reader.count("upstream.wheels"))
        ),
        local=reader.string(
            "distribution.local",
            lambda value: bool(_LOCAL.fullmatch(value)) or "is not a PEP 440 local version",
        ),
        revision=reader.positive("distribution.revision"),
    )
    tag = tagged(lock.requested_revision)
    if lock.wheels and tag is not None and str(tag) != version:
        reader.report("upstream.vcs.requested-revision", f"is no tag of version {version}")
    if lock.commit == UNKNOWN and not lock.wheels:
        reader.report("upstream.vcs.commit-id", "can be unknown only where wheels are pinned")
    reader.refuse_repeated((wheel.name for wheel in lock.wheels), "upstream.wheels")
    reader.refuse_unknown()
    return lock


def _read_wheel(reader: "_Reader", table: str, name: str, version: str) -> ReleaseWheel:
    def check_name(value: str) -> bool | str:
        try:
            project, release, _, _ = parse_wheel_filename(value)
        except InvalidWheelFilename as error:
            return f"is no wheel's file name: {error}"
        return (project, str(release)) == (name, version) or f"is no file of {name} {version}"

    return ReleaseWheel(
        name=reader.string(f"{table}.name", check_name),
        size=reader.positive(f"{table}.size"),
        sha256=reader.string(
            f"{table}.hashes.sha256",
            lambda value: bool(_SHA256.fullmatch(value)) or "is not 64 hexadecimal digits",
        ),
    )


def check_version(value: str) -> bool | str:
    """Whether a version can be upstream's; where it cannot, why."""
    try:
        return Version(value).local is None or "must be upstream's, without a local part"
    except InvalidVersion:
        return "is not a PEP 440 version"


def _check_url(value: str) -> bool | str:
    if _CREDENTIALS.match(value):
        return "holds a password: leave it to git's credential helper"
    return (value != "" and not value.startswith("-")) or "is not a URL"


def check_revision(value: str) -> bool | str:
    """Whether a word can name a tag, branch or commit; where it cannot, why."""
    return (value != "" and not value.startswith("-")) or "is not a tag, branch or commit"


def tagged(revision: str) -> Version | None:
    """The version that a tag is named after, as SGLang names its tags; None: another revision."""
    try:
        return Version(revision.removeprefix("v")) if revision.startswith("v") else None
    except InvalidVersion:
        return None


def _check_subdirectory(value: str) -> bool | str:
    parts = value.split("/")
    return not {"", ".", ".."}.intersection(parts) or "must be a relative path inside the tree"


Check = Callable[[str], bool | str]


class _Reader:
    """Takes values out of the document by dotted key, and gathers what is wrong with them."""

    def __init__(self, document: object, *, lines: dict[str, int], where: str) -> None:
        self._document = document
        self._lines = lines
        self._where = where
        self._known: set[str] = set()
        self.findings: list[str] = []

    def report(self, key: str, problem: str) -> None:
        table = key
        while table and table not in self._lines:
            table = table.rpartition(".")[0]
        line = self._lines.get(table, 1)
        self.findings.append(f"{self._where}:{line}: {key}: {problem}")

    def _get(self, key: str) -> object:
        self._known.add(key)
        value: object = self._document
        for part in key.split("."):
            if isinstance(value, list) and part.isdigit() and int(part) < len(value):
                value = value[int(part)]
            elif isinstance(value, dict):
                value = value.get(part)
            else:
                return None
        return value

    def _typed(self, key: str, kind: type[T], words: str) -> T | None:
        value = self._get(key)
        if value is None:
            self.report(key, "is missing")
        elif not isinstance(value, kind) or isinstance(value, bool):
            self.report(key, f"must be {words}")
        else:
            return value
        return None

    def string(self, key: str, check: Check) -> str:
        value = self._typed(key, str, "a string")
        if value is None:
            return ""
        problem = check(value)
        if isinstance(problem, str):
            self.report(key, f"{problem} ({value!r})")
        elif not problem:
            self.report(key, f"has a wrong value ({value!r})")
        return value

    def positive(self, key: str) -> int:
        value = self._typed(key, int, "a whole number")
        if value is not None and value < 1:
            self.report(key, f"must be 1 or more ({value})")
        return value or 0

    def time(self, key: str) -> datetime:
        value = self._typed(key, datetime, "a date and time with its offset")
        if value is not None and value.tzinfo is None:
            self.report(key, "must have an offset, such as Z")
        if value is None or value.tzinfo is None:
            return datetime.fromtimestamp(0, UTC)
        return value.astimezone(UTC)

    def count(self, key: str) -> int:
        value = self._get(key)
        if value is None:
            return 0
        if not isinstance(value, list):
            self.report(key, "must be an array of tables")
            return 0
        return len(value)

    def refuse_repeated(self, names: Iterable[str], table: str) -> None:
        seen: set[str] = set()
        for number, name in enumerate(names):
            if name and name in seen:
                self.report(f"{table}.{number}.name", f"stands twice ({name!r})")
            seen.add(name)

    def refuse_unknown(self) -> None:
        def walk(value: object, key: str) -> None:
            if isinstance(value, dict):
                for part, below in value.items():
                    walk(below, f"{key}.{part}" if key else part)
            elif isinstance(value, list) and key in self._known:
                for number, below in enumerate(value):
                    walk(below, f"{key}.{number}")
            elif key not in self._known:
                self.report(key, "is not a key of this format")

        walk(self._document, "")


def _lines(text: str) -> dict[str, int]:
    """The line of each key and table, by dotted key; arrays of tables are counted from 0."""
    lines: dict[str, int] = {}
    seen: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        if array := re.match(r"\s*\[\[\s*([^]]+?)\s*\]\]", line):
            name = array[1]
            lines.setdefault(name, number)
            table = f"{name}.{seen.setdefault(name, 0)}"
            seen[name] += 1
            lines[table] = number
        elif header := re.match(r"\s*\[\s*([^]]+?)\s*\]", line):
            table = header[1]
            lines[table] = number
        elif key := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            lines[f"{table}.{key[1]}" if table else key[1]] = number
    return lines
