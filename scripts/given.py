"""The patches that a person hands in: files read, each patch with what is said of it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import foreign, letter
from scripts.foreign import Section
from scripts.git import IDENTITY, Repository
from scripts.hunk import Corrupt
from scripts.letter import Letter
from scripts.level import Level
from scripts.misfit import Misfit, Reason
from scripts.patch import STATUSES, Patch

LARGEST = 32 * 1024 * 1024  # bytes of a patch file; what is larger is none
PENDING = "Pending"
DROP_WHEN = "upstream has it, or nobody needs it (not said yet: written when it was adopted)"
_TRAILER = re.compile(r"[A-Za-z][A-Za-z-]*: .+|\(cherry picked from .*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is said of the patches that do not say it themselves.

    `level` is the strip level of all; `accepted` are the labels of patches whose lines a person
    wants though they stand there already, or in another symbol.
    """

    status: str | None = None
    drop_when: str | None = None
    author: tuple[str, str] | None = None
    level: Level | None = None
    accepted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A patch that was handed in.

    `label` is its file's name, or the path where others have that name too, with its number where
    the file holds several.
    """

    label: str
    letter: Letter | None
    sections: tuple[Section, ...]
    left_out: tuple[str, ...] = ()
    misfit: Misfit | None = None


def read(paths: Sequence[Path], store: Repository) -> tuple[Given, ...]:
    """The patches in these files, in order; what is none is told in its place."""
    names = [path.name for path in paths]
    told = [path.name if names.count(path.name) == 1 else str(path) for path in paths]
    return tuple(
        one for path, name in zip(paths, told, strict=True) for one in _read(path, name, store)
    )


def _read(path: Path, name: str, store: Repository) -> Iterator[Given]:
    try:
        content = _content(path)
        letters = letter.read(content, store)
    except Misfit as misfit:
        yield Given(label=name or str(path), letter=None, sections=(), misfit=misfit)
        return
    several = len(letters) > 1
    for number, one in enumerate(letters, 1):
        label = f"{name}#{number}" if several else name
        if one.problem:
            wrong = Misfit(Reason.MESSAGE, one.problem, then="put that right in the file's headers")
            yield Given(label=label, letter=one, sections=(), misfit=wrong)
            continue
        try:
            found = foreign.parse(one.diff, first=one.line)
        except Corrupt as error:
            wrong = Misfit(Reason.CORRUPT, str(error), then="get it again, as a file")
            yield Given(label=label, letter=one, sections=(), misfit=wrong)
            continue
        yield Given(
            label=label,
            letter=one,
            sections=found.sections,
            left_out=found.left_out,
            misfit=None if found.sections else Misfit(Reason.UNREADABLE, "there is no diff in it"),
        )


def _content(path: Path) -> bytes:
    """The bytes of a patch file. Raises Misfit for what cannot be one."""
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "is not there, or is no file"
            raise Misfit(Reason.UNREADABLE, f"{path} {what}")
        if path.stat().st_size > LARGEST:
            size = path.stat().st_size // 1024**2
            raise Misfit(Reason.UNREADABLE, f"{size} MiB, more than {LARGEST // 1024**2}: no patch")
        content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise Misfit(Reason.UNREADABLE, f"{path} cannot be read: {error.strerror}") from error
    start = content[:512].lstrip().lower()
    if not content.strip():
        raise Misfit(Reason.UNREADABLE, "the file is empty")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Misfit(
            Reason.UNREADABLE,
            "the file is UTF-16, as a Windows shell's > writes it",
            then="git diff --output=FILE, or git format-patch",
        )
    if content.startswith((b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ")):
        raise Misfit(Reason.UNREADABLE, "the file is compressed", then="unpack it first")
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise Misfit(
            Reason.UNREADABLE,
            "the file is a web page that shows a patch",
            then="save the patch itself (on many hosts: .patch after the page's address)",
        )
    return content


def carrier(given: Given, terms: Terms, epoch: int) -> Patch:
    """Author, date and message of a patch, for its commit."""
    said = given.letter
    assert said is not None
    author, address = said.author, said.email
    if not address:
        author, address = terms.author or IDENTITY
    return Patch(
        name="0000-adopted.patch",
        author=author or address,
        email=address,
        date=said.date or f"{epoch} +0000",
        message=message(given, terms),
        diff=b"",
        changes=(),
        content=b"",
    )


def message(given: Given, terms: Terms) -> bytes:
    """The message of an adopted patch, with the trailers that the series asks for."""
    said = given.letter
    assert said is not None
    title = " ".join(said.title.split()) or _from_name(Path(given.label).name)
    paragraphs = said.body.replace("\0", "").rstrip().split("\n\n")
    last = paragraphs[-1].split("\n")
    rows = list(last) if all(_TRAILER.fullmatch(row) for row in last) else []
    if rows:
        paragraphs.pop()
    known = [row for row in rows if row.startswith("Upstream-Status: ")]
    valid = len(known) == 1 and known[0].split(" ")[1] in STATUSES
    if terms.status or not valid:
        rows = [row for row in rows if row not in known]
        rows.append(f"Upstream-Status: {terms.status or said.status or PENDING}")
    rows += [f"{name}: {value}" for name, value in said.trailers]
    if terms.drop_when or not any(row.startswith("Drop-When: ") for row in rows):
        rows = [row for row in rows if not row.startswith("Drop-When: ")]
        rows.append(f"Drop-When: {terms.drop_when or DROP_WHEN}")
    body = "\n\n".join([title, *(one for one in paragraphs if one.strip()), "\n".join(rows)])
    return f"{body}\n".encode(errors="surrogateescape")


def _from_name(name: str) -> str:
    stem = re.sub(r"(\.(patch|diff|txt|eml|mbox))*(#\d+)?$", "", name, flags=re.IGNORECASE)
    words = re.sub(r"^v?\d+[-_.]", "", stem)
    title = re.sub(r"[-_\s]+", " ", words).strip()
    return title if re.search("[^\\W\\d]", title) else f"adopted from {name}"


def unproved(patches: Sequence[Patch]) -> tuple[Patch, ...]:
    """The patches whose Drop-When nobody has said yet."""
    return tuple(one for one in patches if DROP_WHEN in one.trailers("Drop-When"))
