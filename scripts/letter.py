"""What a patch file says besides its diff: who, when and why.

Mails as git format-patch writes them, one or many in a file (read with git-mailinfo(1), as git am
does); the output of git show and git log; DEP-3 headers (dep-team.debian.net/deps/dep3); free text.
"""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from scripts import foreign, header
from scripts.errors import CommandFailed
from scripts.git import Repository
from scripts.header import Unreadable

_FROM = rb"From \S+ [^\n]*\d\d:\d\d:\d\d[^\n]* \d{4}\r?\n(?=[A-Za-z-]+: )"
_SHOWN = rb"commit [0-9a-f]{7,40}[^\n]*\n(?=(?:Merge|Author|AuthorDate|tree|parent):? )"
LEGACY = "cp1252"  # what Latin-1 is where nobody says which encoding it is
_BEGIN = re.compile(rb"^(?:%b|%b)" % (_FROM, _SHOWN), re.MULTILINE)
_SENT = re.compile(rb"^From:.*(?:\n[ \t].*)*", re.MULTILINE | re.IGNORECASE)
_ADDRESS = "sender@header.invalid"
_SENDER = f"From: sender <{_ADDRESS}>".encode()
_FIELD = re.compile(r"([A-Za-z][A-Za-z-]*):[ \t]*(.*)")
_DEP3 = {"description", "subject", "origin", "forwarded", "author", "applied-upstream"}
_KEPT = ("bug", "reviewed-by", "signed-off-by", "acked-by", "applied-upstream")


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A patch before its diff is read; what is not said is empty.

    `date` is as git stores it. `diff` begins at line `line` of the file. `status` is the
    Upstream-Status that DEP-3 fields amount to, `trailers` are fields that stay fields. `problem`
    is why no commit can hold what is said.
    """

    line: int
    diff: bytes
    author: str = ""
    email: str = ""
    date: str = ""
    title: str = ""
    body: str = ""
    status: str = ""
    trailers: tuple[tuple[str, str], ...] = field(default=())
    problem: str = ""


def read(content: bytes, store: Repository) -> tuple[Letter, ...]:
    """The patches of a file, in its order. `store` is where git runs; nothing is written to it."""
    return tuple(_open(part, line, store) for part, line in _split(content))


def _split(content: bytes) -> Iterator[tuple[bytes, int]]:
    """The parts of a file that are a patch each, and the line that each begins at."""
    starts = [found.start() for found in _BEGIN.finditer(content)]
    if starts and not foreign.START.search(content, 0, starts[0]):
        starts[0] = 0
    elif starts:
        starts.insert(0, 0)
    for start, end in zip(starts or [0], [*starts[1:], len(content)], strict=True):
        yield content[start:end], content.count(b"\n", 0, start) + 1


def _open(part: bytes, line: int, store: Repository) -> Letter:
    if re.match(_FROM, part) or _is_mail(part):
        return _mail(part, line, store)
    found = foreign.START.search(part)
    start = found.start() if found else len(part)
    head = _text(part[:start]).replace("\r\n", "\n")
    at, text = line + part.count(b"\n", 0, start), part[start:]
    if re.match(_SHOWN, part):
        return _shown(head, at, text)
    fields = _fields(head)
    if _DEP3.intersection(fields):
        return _dep3(fields, at, text)
    title, body = _titled(head)
    return Letter(line=at, diff=text, title=title, body=body)


def _is_mail(part: bytes) -> bool:
    head = part.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    return all(re.search(rb"^%b:" % name, head, re.MULTILINE) for name in (b"From", b"Date"))


def _mail(part: bytes, line: int, store: Repository) -> Letter:
    """A mail as git-mailinfo(1) reads it, but for the author's name, which that takes apart."""
    head = re.split(rb"\n\r?\n", part, maxsplit=1)[0]
    try:
        facts, body, diff = _mailinfo(_SENT.sub(_SENDER, head) + part[len(head) :], store)
        sender = header.fields(head, legacy=LEGACY).get("from", "")
        if facts.get("Email", "") not in ("", _ADDRESS):  # of the message's own first lines
            _, whole, _ = _mailinfo(part, store, "--no-inbody-headers")
            sender = header.fields(whole.lstrip("\n").encode()).get("from", "")
        author, address = header.author(sender)
        date = header.date(facts["Date"]) if facts.get("Date") else ""
        problem = "a NUL is in its headers" if b"\0" in head else ""
    except (CommandFailed, Unreadable) as error:
        said = error.output if isinstance(error, CommandFailed) else str(error)
        return Letter(line=line, diff=part, problem=said)
    if part.endswith(diff):  # else it was encoded for the way, and has no lines of the file's
        line += part.count(b"\n", 0, len(part) - len(diff))
    return Letter(
        line=line,
        diff=diff,
        author=author,
        email=address,
        date=date,
        title=facts.get("Subject", "").strip(),
        body=body.replace("\r\n", "\n").strip("\n"),
        problem=problem,
    )


def _mailinfo(part: bytes, store: Repository, *more: str) -> tuple[dict[str, str], str, bytes]:
    """The headers, the message and the diff of a mail. Raises CommandFailed."""
    with tempfile.TemporaryDirectory() as folder:
        message, text = Path(folder) / "message", Path(folder) / "diff"
        words = ("mailinfo", "-b", "--encoding=UTF-8", "--quoted-cr=nowarn", *more)
        said = store.run(*words, str(message), str(text), input=part)
        body, diff = message.read_bytes(), text.read_bytes()
    rows = (row.split(": ", 1) for row in _text(said).split("\n") if ": " in row)
    return {row[0]: row[1] for row in rows}, _text(body), diff


def _text(said: bytes) -> str:
    """Lines in UTF-8; one that is not, and says nothing else of itself, is Windows' Latin-1."""
    return "\n".join(header.raw(row, legacy=LEGACY) for row in said.split(b"\n"))


def _shown(head: str, line: int, text: bytes) -> Letter:
    """git show's own header: fields, and a message indented by four."""
    top, _, message = head.partition("\n\n")
    rows = (_FIELD.fullmatch(row) for row in top.split("\n"))
    fields = {row[1]: row[2].strip() for row in rows if row}
    title, body = _titled("\n".join(row.removeprefix("    ") for row in message.split("\n")))
    when = fields.get("AuthorDate") or fields.get("Date", "")
    try:
        author, address = header.author(fields.get("Author", ""))
        date = _stored(when, "%a %b %d %H:%M:%S %Y")
    except Unreadable as error:
        return Letter(line=line, diff=text, problem=str(error))
    return Letter(
        line=line,
        diff=text,
        author=author,
        email=address,
        date=date,
        title=title,
        body=body,
    )


def _stored(value: str, form: str) -> str:
    """A date of this form (strptime's) and its zone, as git stores it; "" where it is not.

    Raises Unreadable where git stores no such date.
    """
    try:
        when = datetime.strptime(value, f"{form} %z")
    except ValueError:
        return ""
    return header.stored(f"{int(when.timestamp())} {when:%z}", value)


def _titled(text: str) -> tuple[str, str]:
    """The first line that says something, and the rest up to a line of three dashes."""
    text = re.split(r"^---[ \t]*$", text, maxsplit=1, flags=re.MULTILINE)[0]
    title, _, body = text.strip().partition("\n")
    return title.strip().removeprefix("# ").strip(), body.strip("\n")


def _fields(head: str) -> dict[str, list[str]]:
    """The fields of a DEP-3 header by lower-case name, each with its lines; none is free text.

    Its end may be marked by `---`, and text between the fields and that goes to the description.
    """
    fields: dict[str, list[str]] = {}
    name = ""
    for row in head.split("\n"):
        if row.startswith("---"):
            break
        if found := _FIELD.fullmatch(row):
            name = found[1].lower()
            fields.setdefault(name, []).append(found[2])
        elif name and row[:1] in (" ", "\t"):
            fields[name].append("" if row.strip() == "." else row[1:].rstrip())
        elif row.strip() and not fields:
            return {}
        elif row.strip():
            fields.setdefault("", []).append(row.rstrip())
    return fields


def _dep3(fields: dict[str, list[str]], line: int, text: bytes) -> Letter:
    described = fields.get("description") or fields.get("subject") or [""]
    body = "\n".join([*described[1:], "", *fields.get("", [])]).strip("\n")
    day = (fields.get("last-update") or [""])[0]
    try:
        author, address = header.author((fields.get("author") or fields.get("from") or [""])[0])
        date = _stored(f"{day.strip()} +0000", "%Y-%m-%d")
    except Unreadable as error:
        return Letter(line=line, diff=text, problem=str(error))
    return Letter(
        line=line,
        diff=text,
        author=author,
        email=address,
        date=date,
        title=re.sub(r"^\[PATCH[^]]*\]\s*", "", described[0].strip()),
        body=body,
        status=_status(fields),
        trailers=tuple(
            (name.capitalize(), value)
            for name, values in fields.items()
            if name in _KEPT or name.startswith("bug-")
            for value in values
            if value
        ),
    )


def _status(fields: dict[str, list[str]]) -> str:
    """What DEP-3's Origin and Forwarded say, in the words of Upstream-Status."""
    origin = (fields.get("origin") or [""])[0].strip()
    forwarded = (fields.get("forwarded") or [""])[0].strip()
    kind, _, source = origin.partition(",")
    if kind.strip().lower() in ("upstream", "backport"):
        return f"Backport [{source.strip() or kind.strip()}]"
    if forwarded.lower() == "not-needed":
        return "Inappropriate [not needed upstream]"
    return f"Submitted [{forwarded}]" if "://" in forwarded else ""
