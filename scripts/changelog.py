"""CHANGELOG.md: a section for each version that is distributed, newest first."""

import re
from collections.abc import Sequence

from scripts import files

_SECTION = re.compile(r"^## ", re.MULTILINE)


def add(text: str, version: str, lines: Sequence[str]) -> str:
    """The changelog `text` with `lines` as the first points of the section `version`.

    The section is made where there is none. Lines that stand there already are not added again.
    Line ends are those that are there.
    """
    body = text or "# Changelog\n"
    end = files.end_of_line(body)
    there = {row.rstrip("\r\n") for row in files.lines(body)}
    fresh = "".join(f"- {line}{end}" for line in lines if f"- {line}" not in there)
    if not fresh:
        return body
    header = re.compile(rf"^(## {re.escape(version)}\r?\n)(\r?\n)?", re.MULTILINE)
    if found := header.search(body):
        blank = found[2] or end
        return f"{body[: found.end(1)]}{blank}{fresh}{body[found.end() :]}"
    section = _SECTION.search(body)
    start = section.start() if section else len(body)
    head = body[:start].rstrip("\r\n")
    rest = f"{end}{body[start:]}" if section else ""
    return f"{head}{end}{end}## {version}{end}{end}{fresh}{rest}"
