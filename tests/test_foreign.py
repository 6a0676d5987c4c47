"""Foreign diffs, letters and strip levels: each line accounted for, each level the only one."""

import base64
from pathlib import Path

import pytest

from scripts import foreign, letter, level, source
from scripts.foreign import Section
from scripts.git import Repository
from scripts.hunk import Corrupt
from scripts.level import Level
from scripts.misfit import Misfit, Reason
from tests.foreign import commit, mail, raw
from tests.upstream import Project

GOOD = b"--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@ def f():\n a\n-b\n+c\n d\n"


@pytest.fixture
def store(project: Project) -> Repository:
    return source.obtain(project.lock(), project.workspace()).store


def sections(text: bytes) -> tuple[Section, ...]:
    return foreign.parse(text).sections


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (GOOD.replace(b"-1,3 +1,3", b"-1,4 +1,4"), 8, "cut off"),
        (GOOD.replace(b"-1,3 +1,3", b"-1,2 +1,2"), 7, "more lines than its head says"),
        (GOOD.replace(b"-1,3 +1,3", b"-1,3 +1,2"), 7, "more lines than its head says"),
        (GOOD[:-4], 7, "cut off"),
        (GOOD.replace(b"\n-b", b"\nwrapped\n-b"), 5, "wrapped or lost"),
        (GOOD.replace(b"@@ -1,3", b"@@ -x,3"), 3, "head of a hunk"),
        (GOOD[GOOD.index(b"@@") :], 1, "without the names"),
        (b"--- a/x\n+++ b/x\n\ntext\n", 3, "no hunk"),
        (b"*** a/x\n--- b/x\n***************\n*** 1 ****\n", 1, "context diff"),
        (b"1c1\n< a\n---\n> b\n", 1, "diff -u"),
        (b"diff --cc x\nindex 1,2..3\n", 1, "combined"),
        (b"Binary files a/x and b/x differ\n", 1, "--binary"),
        (b"diff --git a/x b/x\nBinary files a/x and b/x differ\n", 2, "--binary"),
        (b"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", 1, "both names"),
        (b"--- a/x\n+++ b/x\n@@ -1,0 +1,0 @@\n", 3, "no lines"),
        (GOOD.replace(b"-1,3", b"-1," + b"3" * 5000), 3, "head of a hunk"),
        (GOOD.replace(b"b/x", b"b/x\0"), 1, "a NUL is in the name"),
        (b'--- /dev/null\n+++ "b/x\\000"\n@@ -0,0 +1 @@\n+a\n', 1, "a NUL is in the name"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: bytes, line: int, what: str) -> None:
    with pytest.raises(Corrupt, match=what) as caught:
        foreign.parse(text)
    assert caught.value.line == line
    with pytest.raises(Corrupt) as caught:
        foreign.parse(text, first=11)
    assert caught.value.line == line + 10


def test_a_good_diff_with_text_around_it() -> None:
    text = b"Index: x.py\n====\n" + GOOD + b"-- \n2.39.5\n\nOnly in old/a: b.py\n"
    found = foreign.parse(text)
    (section,) = found.sections
    assert (section.old, section.new, section.stated, section.git) == (
        "a/x.py",
        "b/x.py",
        None,
        False,
    )
    (hunk,) = section.hunks
    assert hunk.before == (b"a\n", b"b\n", b"d\n")
    assert hunk.after == (b"a\n", b"c\n", b"d\n")
    assert found.left_out == ("Only in old/a: b.py",)


def test_no_newline_at_the_end_on_either_side() -> None:
    end = b"\\ No newline at end of file\n"
    (section,) = sections(b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n" + end + b"+b\n" + end)
    assert (section.hunks[0].before, section.hunks[0].after) == ((b"a",), (b"b",))


def test_a_line_that_ends_in_no_newline_of_ours_stays_whole() -> None:
    (section,) = sections(b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\x0cb\rc\xff\n+d\r\n")
    assert section.hunks[0].before == (b"a\x0cb\rc\xff\n",)
    assert section.hunks[0].after == (b"d\r\n",)


@pytest.mark.parametrize(
    ("names", "old", "new"),
    [
        (
            b"--- a/x.py\t2024-01-01 10:00:00.000000000 +0100\n+++ b/x.py\t2024\n",
            "a/x.py",
            "b/x.py",
        ),
        (b"--- x.py 2024-01-01 10:00:00 +0100\n+++ x.py Mon Jan  1 00:00\n", "x.py", "x.py"),
        (b"--- a/x\t1970-01-01 01:00:00.000000000 +0100\n+++ b/x\t2024\n", None, "b/x"),
        (b"--- a/x\t2024\n+++ b/x\t1969-12-31 19:00:00 -0500\n", "a/x", None),
        (b"--- /dev/null\n+++ b/x y.py\n", None, "b/x y.py"),
        (b"--- a/x\t9999-99-99 99:99:99 +0000\n+++ b/x\t1970-01-01 +9999\n", "a/x", "b/x"),
        (b'--- "a/\\303\\274.py"\n+++ "b/\\303\\274.py"\n', "a/ü.py", "b/ü.py"),
    ],
)
def test_names_and_their_times(names: bytes, old: str | None, new: str | None) -> None:
    (section,) = sections(names + b"@@ -1 +1 @@\n-a\n+b\n")
    assert (section.old, section.new) == (old, new)


def git_section(header: bytes) -> Section:
    (section,) = sections(b"diff --git " + header + b"\nold mode 100644\nnew mode 100755\n")
    return section


@pytest.mark.parametrize(
    ("header", "stated"),
    [
        (b"a/x/y.py b/x/y.py", 1),
        (b"i/x.py w/x.py", 1),
        (b"x/y.py x/y.py", 0),
        (b"old/x/y.py new/x/y.py", 1),
        (b"a/old/y.py b/new/y.py", None),
    ],
)
def test_git_states_its_level(header: bytes, stated: int | None) -> None:
    assert git_section(header).stated == stated


TREE = ["README.md", "python/README.md", "python/sglang/a.py", "python/sglang/b/c.py"]


def resolved(text: bytes, given: Level | None = None) -> tuple[Level, list[str]]:
    found, edits = level.resolve(sections(text), TREE, subdirectory="python", given=given)
    return found, [edit.path for edit in edits]


def changed(*names: tuple[str, str]) -> bytes:
    return b"".join(f"--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n".encode() for old, new in names)


@pytest.mark.parametrize(
    ("names", "strip", "folder", "path"),
    [
        (("a/python/sglang/a.py", "b/python/sglang/a.py"), 1, "", "python/sglang/a.py"),
        (("python/sglang/a.py", "python/sglang/a.py"), 0, "", "python/sglang/a.py"),
        (("./python/sglang/a.py", "../new/python/sglang/a.py"), 0, "", "python/sglang/a.py"),
        (("python/sglang/a.py.orig", "python/sglang/a.py"), 0, "", "python/sglang/a.py"),
        (("/usr/lib/sglang/b/c.py", "/tmp/sglang/b/c.py"), 2, "python/", "python/sglang/b/c.py"),
        (("/dev/null", "b/python/sglang/b/new.py"), 1, "", "python/sglang/b/new.py"),
        (("/dev/null", "b/sglang/b/new.py"), 1, "python/", "python/sglang/b/new.py"),
    ],
)
def test_the_only_level_that_fits(
    names: tuple[str, str], strip: int, folder: str, path: str
) -> None:
    assert resolved(changed(names)) == (Level(strip=strip, folder=folder), [path])


def test_two_levels_that_fit_are_an_error_and_one_can_be_given() -> None:
    text = changed(("a/python/README.md", "b/python/README.md"))
    with pytest.raises(Misfit, match=r"--strip 1 .*--strip 2") as caught:
        resolved(text)
    assert caught.value.reason is Reason.LEVEL
    assert resolved(text, Level(strip=2))[1] == ["README.md"]
    both = text + changed(("a/python/sglang/a.py", "b/python/sglang/a.py"))
    assert resolved(both)[0] == Level(strip=1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (changed(("a/../../etc/passwd", "b/../../etc/passwd")), Reason.UNSAFE),
        (changed(("a/gone.py", "b/gone.py")), Reason.MISSING),
        (b"diff --git a/.git/x b/.git/x\nnew file mode 100644\n", Reason.UNSAFE),
        (changed(*[("a/README.md", "b/README.md")] * 2), Reason.CORRUPT),
    ],
)
def test_names_that_lead_nowhere(text: bytes, reason: Reason) -> None:
    with pytest.raises(Misfit) as caught:
        resolved(text)
    assert caught.value.reason is reason


def test_mails_one_and_many(project: Project, store: Repository) -> None:
    text = "Ä title\n\nA body.\n\nSigned-off-by: X <x@x.invalid>"
    made = commit(project, {"python/sglang/gate.py": b"x = 1\n"}, text)
    one = mail(project, made, "--subject-prefix=PATCH v2 3/7")
    found = letter.read(one + one, store)
    assert [(each.title, each.author) for each in found] == [("Ä title", "Ünal Üpstream")] * 2
    assert found[0].body == "A body.\n\nSigned-off-by: X <x@x.invalid>"
    assert found[0].date == "1787261364 +0000"
    lines = (one + one).split(b"\n")
    for each in found:
        first = each.diff.split(b"\n")[0]
        assert lines[each.line - 1] == first


def test_a_mail_that_was_encoded_for_the_way(project: Project, store: Repository) -> None:
    made = commit(project, {"python/sglang/gate.py": "ü = 1\n".encode()}, "Ä title")
    head, _, body = mail(project, made).partition(b"\n\n")
    fields = b"\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8"
    head = head.partition(b"\nMIME-Version")[0]
    sent = head + fields + b"\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(body)
    (found,) = letter.read(sent, store)
    (section,) = foreign.parse(found.diff).sections
    assert section.hunks[0].after == ("ü = 1\n".encode(),)


def test_the_output_of_git_show_and_git_log(project: Project, store: Repository) -> None:
    commit(project, {"python/sglang/gate.py": b"x = 1\n"}, "One\n\nBody one.")
    commit(project, {"python/sglang/gate.py": b"x = 2\n"}, "Two")
    found = letter.read(raw(project, "log", "-p", "--reverse", "-2"), store)
    assert [(one.title, one.body, one.email) for one in found] == [
        ("One", "Body one.", "up@stream.invalid"),
        ("Two", "", "up@stream.invalid"),
    ]
    assert {one.date for one in found} == {"1787261364 +0000"}


DEP3 = b"""\
Description: Open the gate
 for more.
 .
 And so on.
Author: A B <a@b.invalid>
Origin: backport, https://host.invalid/commit/1
Bug-Debian: https://bugs.invalid/1
Last-Update: 2026-01-02
---
This patch header follows DEP-3.
"""


def test_dep_3_headers(store: Repository) -> None:
    (found,) = letter.read(DEP3 + GOOD, store)
    assert (found.title, found.body) == ("Open the gate", "for more.\n\nAnd so on.")
    assert (found.author, found.email, found.date) == ("A B", "a@b.invalid", "1767312000 +0000")
    assert found.status == "Backport [https://host.invalid/commit/1]"
    assert found.trailers == (("Bug-debian", "https://bugs.invalid/1"),)
    assert found.line == 11


def test_free_text_and_none(store: Repository) -> None:
    (found,) = letter.read(b"Open it: a gate\n\nWhy.\n---\n x | 2 +-\n" + GOOD, store)
    assert (found.title, found.body, found.line) == ("Open it: a gate", "Why.", 6)
    (found,) = letter.read(GOOD, store)
    assert (found.title, found.author, found.line) == ("", "", 1)


def test_nothing_is_written_by_reading(project: Project, store: Repository, tmp_path: Path) -> None:
    made = commit(project, {"python/sglang/gate.py": b"x = 1\n"})
    before = sorted(path for path in store.git_dir.rglob("*"))
    letter.read(mail(project, made), store)
    assert sorted(path for path in store.git_dir.rglob("*")) == before
