"""Conflict markers that a person left in a file, as git diff --check finds them."""

import re
from collections.abc import Iterator

from scripts.git import CommitId, Repository

_FOUND = re.compile(rb"(.+):([0-9]+): leftover conflict marker\.?")
_SURE = (b"<<<<<<<", b"|||||||", b">>>>>>>")  # a line of seven = underlines a heading, too


def staged(repo: Repository) -> list[str]:
    """The places, as path:line, of those that the next commit would bring in."""
    return list(_places(repo, repo.run("diff", "--check", "--cached", accept=(0, 2)), ":0"))


def committed(repo: Repository, base: str) -> dict[CommitId, list[str]]:
    """Those that a commit after `base` brings in, by commit, oldest first."""
    words = ("log", "--reverse", "--topo-order", "--check", "--format=%x00%H")
    said = repo.run(*words, f"{base}..HEAD", accept=(0, 2))
    found = {}
    for part in said.split(b"\0")[1:]:
        head, _, rows = part.partition(b"\n")
        commit = CommitId(head.decode())
        places = list(_places(repo, rows, commit))
        if places:
            found[commit] = places
    return found


def _places(repo: Repository, said: bytes, commit: str) -> Iterator[str]:
    """What git said of the files of `commit` (":0": of the index), without what is no marker."""
    rows: dict[str, list[int]] = {}
    for line in said.splitlines():
        found = _FOUND.fullmatch(line)
        if found:
            rows.setdefault(found[1].decode(errors="surrogateescape"), []).append(int(found[2]))
    for path, numbers in rows.items():
        content = repo.run("cat-file", "blob", f"{commit}:{path}").split(b"\n")
        if any(content[number - 1].startswith(_SURE) for number in numbers):
            yield from (f"{path}:{number}" for number in numbers)
