"""What git says is taken apart at its own line ends alone, whatever a title or a branch is called.

Python's splitlines() ends a line at a form feed, at U+0085 and at U+2028 as well.
"""

import os
import subprocess

from scripts import diff, source, span, target
from tests.upstream import FILES, TIME, TRAILERS, Project, git

SIZES, GATE = "python/sglang/sizes.py", "python/sglang/gate.py"
ODD = "a\rb\x0cc\x1cd\x85e\u2028f"


def release(project: Project) -> None:
    """The release v0.5.19, in which a commit of an odd title touches a patched file."""
    repo = project.upstream.repo
    git(repo, "checkout", "-q", "-B", "next", "v0.5.18^{commit}")
    later = f"@{TIME + 60} +0000"
    row = FILES[SIZES].replace(b"[4, 8]", b"[2, 4, 8]")
    project.upstream.commit({SIZES: row}, f"{ODD}\n\nWhy.", GIT_COMMITTER_DATE=later)
    git(repo, "tag", "v0.5.19")


def test_a_title_of_upstream_on_the_way(patched_project: Project) -> None:
    release(patched_project)
    workspace = patched_project.workspace()
    pinned = target.find("v0.5.19", patched_project.lock(), workspace, wheels=False)
    old, new = (source.obtain(one, workspace) for one in (patched_project.lock(), pinned))
    way = span.between(old, new, workspace)
    assert [step.title for step in way.steps([SIZES])] == [ODD]


def test_a_bump_across_such_a_title(patched_project: Project) -> None:
    release(patched_project)
    done = patched_project.scripts("bump", "v0.5.19")
    assert done.returncode == 0, done.stderr
    assert patched_project.lock().version == "0.5.19"


def test_a_title_of_our_own(patched_project: Project) -> None:
    assert patched_project.scripts("apply").returncode == 0
    tree = patched_project.root / "build/sglang"
    git(tree, "config", "user.name", "me")
    git(tree, "config", "user.email", "me@host.invalid")
    (tree / GATE).write_bytes(b"def gate(major):\n    return 12\n")
    git(tree, "commit", "-qaF", "-", input=f"{ODD}\n\n{TRAILERS}".encode())
    for verb in ("status", "refresh", "status", "apply"):
        done = patched_project.scripts(verb)
        assert done.returncode == 0, (verb, done.stderr)
    third = patched_project.patchset / "0003-a-b-c-d-e-f.patch"
    assert third.name in (patched_project.patchset / "series").read_text()
    assert git(tree, "log", "-1", "--format=%s") == ODD


def test_branches_that_are_not_named_for_a_screen(patched_project: Project) -> None:
    project = patched_project
    release(project)
    for name in ("a\u2028b\x85c".encode(), b"not-utf-8-\xff"):
        words = [b"git", b"update-ref", b"refs/heads/" + name, project.base.encode()]
        subprocess.run(words, cwd=project.upstream.repo, check=True)
    refs = source.list_remote(project.lock(), project.workspace(), "refs/heads/*")
    assert refs["refs/heads/a\u2028b\x85c"] == project.base
    assert refs[os.fsdecode(b"refs/heads/not-utf-8-\xff")] == project.base
    done = project.scripts("bump", "v0.5.19", "--dry-run")
    assert done.returncode == 0, done.stderr


def test_a_diff_with_line_ends_of_others_in_names_and_lines() -> None:
    name = "a\u2028b\x85c.py"
    text = (
        f"diff --git a/{name} b/{name}\nindex {'1' * 40}..{'2' * 40} 100644\n--- a/{name}\n"
        f"+++ b/{name}\n@@ -1,2 +1,2 @@\n a\r-b\x0c\n-c\r\n+d\r+e\n\\ No newline at end of file\n"
    )
    (change,) = diff.parse(text.encode())
    assert change.paths == (name,)
    (hunk,) = change.hunks()
    assert hunk.lines == (b" a\r-b\x0c\n", b"-c\r\n", b"+d\r+e\n")
