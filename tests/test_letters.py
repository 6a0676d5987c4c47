"""Letters that no commit can hold, or that are hard to read: each is told by its own name."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import letter, series, source
from scripts.git import Repository
from scripts.misfit import Reason
from tests.foreign import mail, raw
from tests.test_adopt import attempt, patchset
from tests.test_header import AUTHORS
from tests.upstream import Project

GATE = "python/sglang/gate.py"
HEAD = (
    b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
    b"From: A B <a@b.invalid>\nDate: Thu, 20 Aug 2026 14:29:24 -0730\nSubject: [PATCH] words\n\n"
    b"Why.\n---\n"
)
DIFF = (
    b"--- a/python/sglang/gate.py\n+++ b/python/sglang/gate.py\n"
    b"@@ -1 +1,2 @@\n+x = 1\n def gate(major):\n"
)
OTHER = (
    b"--- a/python/sglang/data.json\n+++ b/python/sglang/data.json\n@@ -1 +1 @@\n"
    b'-{"a": 1}\n+{"a": 2}\n'
)
SHOWN = b"commit 0123456789\nAuthor: %b\nDate:   Thu Aug 20 14:29:24 2026 -0730\n\n    words\n\n"
BELOW_A_FILE = (
    b"--- a/python/sglang/run.sh\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-#!/bin/sh\n-exec true\n"
    b"--- /dev/null\n+++ b/python/sglang/run.sh/x.py\n@@ -0,0 +1 @@\n+x\n"
)
NEW = b"@@ -0,0 +1 @@\n+x\n"


@pytest.fixture
def store(project: Project) -> Repository:
    return source.obtain(project.lock(), project.workspace()).store


BAD = {
    "NUL, raw": (HEAD.replace(b"words", b"wo\0rds") + DIFF, Reason.MESSAGE, "a NUL"),
    "NUL, encoded": (
        HEAD.replace(b"words", b"=?utf-8?q?wo=00rds?=") + DIFF,
        Reason.MESSAGE,
        "a NUL byte in 'Subject'",
    ),
    "NUL, free text": (b"wo\0rds\n\n" + DIFF, Reason.MESSAGE, "NUL"),
    "NUL, name": (HEAD.replace(b"A B", b"=?utf-8?q?a=00b?=") + DIFF, Reason.MESSAGE, "NUL"),
    "no name": (HEAD.replace(b"A B", b'"."') + DIFF, Reason.MESSAGE, "no name that git takes"),
    "unknown charset": (
        HEAD.replace(b"A B", b"=?foo?q?a?=") + DIFF,
        Reason.MESSAGE,
        "unknown encoding: foo",
    ),
    "1926": (HEAD.replace(b"2026", b"1926") + DIFF, Reason.MESSAGE, "before 1970"),
    "1901": (HEAD.replace(b"2026", b"1901") + DIFF, Reason.MESSAGE, "before 1970"),
    "99999": (HEAD.replace(b"2026", b"99999") + DIFF, Reason.MESSAGE, "cannot be read"),
    "no date": (HEAD.replace(b"20 Aug", b"some day") + DIFF, Reason.MESSAGE, "can be read"),
    "1926, DEP-3": (
        b"Description: x\nLast-Update: 1926-08-20\n---\n" + DIFF,
        Reason.MESSAGE,
        "before 1970",
    ),
    "1926, git show": (
        (SHOWN % b"A B <a@b.invalid>").replace(b"2026", b"1926") + DIFF,
        Reason.MESSAGE,
        "before 1970",
    ),
    "absolute": (HEAD + b"--- /dev/null\n+++ /etc/xxx\n" + NEW, Reason.UNSAFE, "/etc/xxx"),
    "absolute, changed": (
        b"--- /etc/xxx\n+++ /etc/xxx\n@@ -1 +1 @@\n-a\n+b\n",
        Reason.UNSAFE,
        "/etc/xxx",
    ),
    "absolute, git": (
        b"diff --git a/etc/xxx b/etc/xxx\nnew file mode 100644\n--- /dev/null\n+++ /etc/xxx\n"
        + NEW,
        Reason.UNSAFE,
        "/etc/xxx",
    ),
    "a pattern": (b"--- /dev/null\n+++ :(x)y/z\n" + NEW, Reason.MISSING, ":(x)y/z"),
    "file to folder": (HEAD + BELOW_A_FILE, Reason.FOLDER, "python/sglang/run.sh is a file"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_one_is_told_and_the_others_go_in(project: Project, what: str) -> None:
    content, expected, said = BAD[what]
    _, answers = attempt(project, content, HEAD + OTHER)
    bad, good = answers
    assert bad.misfit is not None
    assert bad.misfit.reason is expected
    assert said in bad.misfit.what
    assert good.misfit is None
    assert good.patch is not None


def test_the_verb_names_it_and_passes_over_it(project: Project, tmp_path: Path) -> None:
    paths = []
    for number, what in enumerate(BAD):
        paths.append(tmp_path / f"{number}.patch")
        paths[-1].write_bytes(BAD[what][0])
    good = tmp_path / "good.patch"
    good.write_bytes(HEAD + OTHER)
    words = ("adopt", *map(str, paths), str(good), "--json")
    before = patchset(project)
    done = project.scripts(*words)
    assert done.returncode == 1, done.stderr
    assert patchset(project) == before
    done = project.scripts(*words, "--skip-failing")
    assert done.returncode == 1, done.stderr
    told: dict[str, Any] = {one["given"]: one for one in json.loads(done.stdout)["patches"]}
    assert told["good.patch"]["becomes"]
    assert all(told[path.name]["reason"] for path in paths)


@pytest.mark.parametrize(("name", "address"), AUTHORS)
def test_the_author_of_a_mail(project: Project, store: Repository, name: str, address: str) -> None:
    who = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": address}
    made = project.upstream.commit({GATE: b"x = 1\n"}, "Ä title\n\nA body.", **who)
    for sent in (
        mail(project, made),
        mail(project, made, "--no-encode-email-headers"),
        mail(project, made, '--from=An "Other" <other@x.invalid>'),
        mail(project, made).replace(b"\n", b"\r\n"),
        raw(project, "show", made),
    )[: 1 if "=?" in name else None]:  # where git does not encode, that is no literal any more
        (found,) = letter.read(sent, store)
        assert (found.author, found.email, found.problem) == (name, address, "")
        assert (found.title, found.body, found.date) == ("Ä title", "A body.", "1787261364 +0000")
    (answer,) = attempt(project, mail(project, made))[1]
    assert answer.patch is not None
    assert (answer.patch.author, answer.patch.email) == (name, address)


def test_a_mail_that_does_not_say_how_it_is_encoded(project: Project) -> None:
    words = HEAD.replace(b"A B", "Müller".encode("latin-1"))
    words = words.replace(b"words", "tét \u201cquoted\u201d".encode("cp1252"))
    both = "Weil es grün ist.\n".encode("latin-1") + "Und ö in UTF-8.".encode()
    (answer,) = attempt(project, words.replace(b"Why.", both) + DIFF)[1]
    assert answer.patch is not None
    assert answer.patch.author == "Müller"
    assert answer.patch.title == "tét \u201cquoted\u201d"
    assert "Weil es grün ist.\nUnd ö in UTF-8." in answer.patch.message.decode()


def test_text_above_a_diff_that_is_latin_1(project: Project) -> None:
    for text in (
        "Tét\n\nGrün.\n".encode("latin-1"),
        "Description: Tét\n Grün.\nAuthor: Müller <a@b.invalid>\n".encode("latin-1"),
        SHOWN.replace(b"words", "Tét\n    \n    Grün.".encode("latin-1")) % b"A <a@b.invalid>",
    ):
        (answer,) = attempt(project, text + DIFF)[1]
        assert answer.patch is not None
        assert answer.patch.title == "Tét"
        assert "Grün." in answer.patch.message.decode()


def test_a_title_with_a_line_end_of_others(project: Project) -> None:
    (answer,) = attempt(project, HEAD.replace(b"words", "two\x85words".encode()) + DIFF)[1]
    assert answer.patch is not None
    assert answer.patch.title == "two words"


def test_an_author_on_the_command_line(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "a.patch"
    file.write_bytes(DIFF)
    author = "Müller, Hans <1+hans[bot]@x.invalid>"
    done = project.scripts("adopt", str(file), "--author", author)
    assert done.returncode == 0, done.stderr
    (patch,) = series.load(project.patchset).patches
    assert f"{patch.author} <{patch.email}>" == author
    for wrong in (". <a@b.invalid>", "a@b.invalid", "A <>"):
        done = project.scripts("adopt", str(file), "--author", wrong)
        assert done.returncode == 2
        assert "--author" in done.stderr
