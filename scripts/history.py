"""The upstream commits that lines come from, where a clone with its history is at hand."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scripts.errors import CommandFailed
from scripts.git import CommitId, Repository

Line = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduced:
    """The commit that last changed a line, white space aside, and its subject."""

    commit: CommitId
    title: str


def introduced(
    clone: Repository, commit: CommitId, lines: Sequence[Line]
) -> Mapping[Line, Introduced]:
    """Where each line (path, number from 1) of `commit` comes from; git-blame(1).

    A line is left out where the clone does not reach back to its commit.
    """
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for path, number in lines:
        numbers[path].add(number)
    found: dict[Line, Introduced] = {}
    for path, wanted in numbers.items():
        ranges = [f"-L{number},{number}" for number in sorted(wanted)]
        try:
            said = clone.run("blame", "-w", "--porcelain", *ranges, commit, "--", path)
        except CommandFailed:
            continue  # the clone lacks the commit, or a blob on the way
        found |= {(path, number): came for number, came in _parse(said).items()}
    return found


def _parse(said: bytes) -> dict[int, Introduced]:
    """The porcelain format of git-blame(1); commits at the clone's boundary are left out."""
    titles: dict[str, str] = {}
    boundary: set[str] = set()
    came: dict[int, str] = {}
    commit = ""
    for row in said.decode(errors="replace").split("\n"):
        word, _, rest = row.partition(" ")
        if len(word) == 40 and not row.startswith("\t"):
            commit = word
            came[int(rest.split(" ")[1])] = commit
        elif word == "summary":
            titles[commit] = rest
        elif word == "boundary":
            boundary.add(commit)
    return {
        number: Introduced(commit=CommitId(commit), title=titles.get(commit, ""))
        for number, commit in came.items()
        if commit not in boundary
    }
