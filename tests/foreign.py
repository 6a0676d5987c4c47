"""Other people's patches, made with their own tools: git in several ways, and GNU diff."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.upstream import Project, git

DIFF = shutil.which("diff")
needs_diff = pytest.mark.skipif(DIFF is None, reason="there is no diff(1)")


def commit(project: Project, files: Mapping[str, bytes | None], message: str = "A change") -> str:
    """Commit to the upstream repository; returns the commit's id."""
    return project.upstream.commit(files, message)


def mail(project: Project, commit: str, *words: str) -> bytes:
    """The commit as git format-patch mails it."""
    return raw(project, "format-patch", "-1", "--stdout", *words, commit)


def raw(project: Project, *words: str) -> bytes:
    """What git says, byte by byte."""
    done = subprocess.run(
        ["git", "-c", "user.name=x", "-c", "user.email=x@x.invalid", *words],
        cwd=project.upstream.repo,
        capture_output=True,
        check=True,
    )
    return done.stdout


def diffed(
    project: Project, before: str, after: str, folder: Path, *words: str, below: str = ""
) -> bytes:
    """What `diff -ruN old new` says of two commits, in the folder `below` of both."""
    assert DIFF is not None
    for name, commit in (("old", before), ("new", after)):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
        archive = raw(project, "archive", "--format=tar", commit)
        subprocess.run(["tar", "-x", "-C", str(folder / name)], input=archive, check=True)
    done = subprocess.run(
        [DIFF, *(words or ("-ruN",)), f"old/{below}".rstrip("/"), f"new/{below}".rstrip("/")],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def plain(diff: bytes) -> bytes:
    """A git diff without any of git's own lines, as diff -u writes it."""
    return re.sub(rb"(?m)^(?:diff --git|index|new file mode|deleted file mode) .*\n", b"", diff)


def tree(project: Project, commit: str) -> str:
    """The id of a commit's tree in the upstream repository."""
    return git(project.upstream.repo, "rev-parse", f"{commit}^{{tree}}")
