"""CHANGELOG.md: a section for each version that is distributed, newest first."""

import re
from collections.abc import Sequence

_SECTION = re.compile(r"^## ", re.MULTILINE)


def add(text: str, version: str, lines: Sequence[str]) -> str:
    """The changelog `text` with `lines` as the first points of the section `version`.

    The section is made where there is none. Lines that stand there already are not added again.
    """
    body = text or "# Changelog\n"
    header = f"## {version}\n"
    fresh = [f"- {line}\n" for line in lines if f"- {line}\n" not in body]
    if not fresh:
        return body
    if f"\n{header}" in body:
        before, _, after = body.partition(f"\n{header}")
        return f"{before}\n{header}\n{''.join(fresh)}{after.removeprefix(chr(10))}"
    found = _SECTION.search(body)
    start = found.start() if found else len(body)
    head = body[:start].rstrip("\n")
    rest = f"\n{body[start:]}" if found else ""
    return f"{head}\n\n{header}\n{''.join(fresh)}{rest}"
