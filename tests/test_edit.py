"""The edits of a patch: in which symbol they stand, which moved, and which stand twice."""

from pathlib import Path

import pytest

from scripts import edit, export, merge, repeat, symbol
from scripts.edit import Edit
from scripts.git import CommitId, Repository
from scripts.patch import Patch
from tests.upstream import TRAILERS, git

MODULE = b"""\
import os

TABLE: dict[int, list[int]] = {
    9: [4],
}


@decorated(
    1,
)
class Group:
    rows = 1

    async def reduce(self):
        local = {
            9: 1,
        }
        if local:
            def inner():
                return 2
        return local


try:
    from x import y
except ImportError:
    def y():
        return None
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (1, ""),
        (4, "TABLE"),
        (8, "Group"),
        (12, "Group.rows"),
        (16, "Group.reduce"),
        (20, "Group.reduce.inner"),
        (21, "Group.reduce"),
        (28, "y"),
    ],
)
def test_the_innermost_symbol(line: int, name: str) -> None:
    assert symbol.enclosing(symbol.spans(MODULE), line) == name


@pytest.mark.parametrize("content", [b"def f(:\n", b"\xff\xfe", b"x = 1\0", b"(" * 5000])
def test_what_is_not_python_has_no_symbol(content: bytes) -> None:
    assert symbol.spans(content) == ()


@pytest.fixture
def store(tmp_path: Path) -> Repository:
    git(tmp_path, "init", "-q", "-b", "main")
    return Repository(git_dir=tmp_path / ".git", environment={})


def commit(store: Repository, content: bytes, path: str = "a.py") -> CommitId:
    """A commit on top of the last one in which `path` has this content."""
    tree = store.git_dir.parent
    (tree / path).write_bytes(content)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "--allow-empty", "-m", f"change\n\n{TRAILERS}")
    return CommitId(git(tree, "rev-parse", "HEAD"))


def exported(store: Repository, base: CommitId, tip: CommitId) -> Patch:
    (patch,) = export.patches(store, base, [tip], ["0001-change.patch"])
    return patch


def test_the_runs_of_a_patch(store: Repository) -> None:
    base = commit(store, MODULE)
    ours = MODULE.replace(b"    9: [4],\n", b"    9: [4, 8],\n    12: [6],\n")
    ours = ours.replace(b"        return local\n", b"").replace(b"import os\n", b"")
    found = edit.edits(exported(store, base, commit(store, ours)), store.objects())
    assert [(one.symbol, one.line, one.removed, one.added) for one in found] == [
        ("", 1, (b"import os",), ()),
        ("TABLE", 3, (b"    9: [4],",), (b"    9: [4, 8],", b"    12: [6],")),
        ("Group.reduce", 21, (b"        return local",), ()),
    ]


def test_git_heads_what_is_not_python(store: Repository) -> None:
    lines = [b"line %d\n" % number for number in range(9)]
    base = commit(store, b"section:\n" + b"".join(lines), "a.cfg")
    tip = commit(store, b"section:\n" + b"".join([*lines[:8], b"x\n"]), "a.cfg")
    (found,) = edit.edits(exported(store, base, tip), store.objects())
    assert found.symbol == "line 4"
    assert (found.line, found.added) == (10, (b"x",))


def one(name: str, *lines: bytes, path: str = "a.py") -> Edit:
    return Edit(path=path, symbol=name, line=1, removed=(), added=lines)


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (["f", "g"], ["f", "g"], []),
        (["f", "g"], ["f", "h"], [("g", "h")]),
        (["f"], ["f", "f"], []),
        (["f"], [], [("f", None)]),
        ([], ["f"], [(None, "f")]),
    ],
)
def test_what_stands_in_another_symbol(
    before: list[str], after: list[str], moved: list[tuple[str | None, str | None]]
) -> None:
    def edits(names: list[str]) -> tuple[Edit, ...]:
        return tuple(one(name, b"line %d" % number) for number, name in enumerate(names))

    found = edit.moves(edits(before), edits(after))
    assert [(m.before and m.before.symbol, m.after and m.after.symbol) for m in found] == moved


def test_a_changed_line_in_the_same_symbol_is_no_move() -> None:
    assert edit.moves((one("f", b"x = 1"),), (one("f", b"x = 2"),)) == ()
    (found,) = edit.moves((one("f", b"x = 1"),), (one("g", b"x = 2"),))
    assert (found.before, found.after) == (one("f", b"x = 1"), one("g", b"x = 2"))


LINES = (b"    first = line()", b"", b"    second = line()", b"    third = line()")
BODY = b"def f():\n" + b"\n".join(LINES) + b"\n"


@pytest.mark.parametrize(
    ("lines", "before", "after", "place"),
    [
        (LINES, b"", BODY, ("b.py", 2)),
        (LINES, BODY, BODY, None),
        (LINES, BODY, BODY + BODY.replace(b"f()", b"g()"), ("b.py", 7)),
        (LINES, b"", BODY.replace(b"second", b"other"), None),
        (LINES, b"", BODY.replace(b"    ", b"\t"), ("b.py", 2)),
        (LINES[:1], b"", BODY, None),
        ((b"", b")"), b"", b"\n)\n", None),
    ],
    ids=["elsewhere", "before too", "once more", "not all", "indented", "too few", "says nothing"],
)
def test_lines_that_stand_twice(
    lines: tuple[bytes, ...], before: bytes, after: bytes, place: tuple[str, int] | None
) -> None:
    found = repeat.repeats([one("f", *lines)], {"b.py": before}, {"b.py": after})
    assert [(item.path, item.line) for item in found] == ([place] if place else [])


def test_a_single_line_counts_in_its_own_symbol() -> None:
    table = b"TABLE = {\n    12: [6, 8, 12, 16],\n}\n"
    row = one("TABLE", b"    12: [6, 8, 12, 16],")
    (found,) = repeat.repeats([row], {"a.py": b"TABLE = {\n}\n"}, {"a.py": table})
    assert found.line == 2
    other = table.replace(b"TABLE", b"OTHER")
    assert repeat.repeats([row], {"a.py": b""}, {"a.py": other}) == ()


def test_a_merge_carries_what_a_commit_changed(store: Repository) -> None:
    base = commit(store, MODULE)
    ours = commit(store, MODULE.replace(b"9: [4]", b"9: [4, 8]"))
    git(store.git_dir.parent, "reset", "-q", "--hard", base)
    theirs = commit(store, b"# upstream\n" + MODULE)
    merged = merge.carry(store, ours, base, theirs)
    assert merged.conflicts == ()
    expected = b"# upstream\n" + MODULE.replace(b"9: [4]", b"9: [4, 8]")
    assert store.run("cat-file", "blob", f"{merged.tree}:a.py") == expected
    back = merge.carry(store, base, ours, merged.tree)
    assert store.run("cat-file", "blob", f"{back.tree}:a.py") == b"# upstream\n" + MODULE


def test_a_conflict_is_told_by_its_kind(store: Repository) -> None:
    base = commit(store, MODULE)
    ours = commit(store, MODULE.replace(b"9: [4]", b"9: [4, 8]"))
    git(store.git_dir.parent, "reset", "-q", "--hard", base)
    theirs = commit(store, MODULE.replace(b"9: [4]", b"9: [2, 4]"))
    (found,) = merge.carry(store, ours, base, theirs).conflicts
    assert (found.path, found.kind) == ("a.py", "contents")
    git(store.git_dir.parent, "rm", "-q", "a.py")
    gone = commit(store, b"", "b.py")
    (found,) = merge.carry(store, ours, base, gone).conflicts
    assert (found.path, found.kind) == ("a.py", "modify/delete")
