"""The series on its base: as git am does it, exactly or not at all, the same on every machine."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts import patched, series, source
from scripts.errors import ApplyError, SeriesError
from scripts.git import IDENTITY
from scripts.patched import Patched
from scripts.source import Route
from tests import upstream
from tests.upstream import TRAILERS, Project, git


def apply(project: Project, route: Route = Route.GIT) -> Patched:
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace, route)
    return patched.apply(base, series.load(project.patchset), workspace)


def git_am(project: Project, onto: str) -> str:
    """The commit that git am makes of the series, with our committer."""
    name, email = IDENTITY
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git(project.upstream.repo, "worktree", "add", "-q", "--detach", str(tree), onto)
        git(
            tree,
            *("am", "-q", "--keep", "--keep-cr", "--committer-date-is-author-date"),
            *("--empty=keep", "--patch-format=mboxrd"),
            *map(str, sorted(project.patchset.glob("*.patch"))),
            GIT_COMMITTER_NAME=name,
            GIT_COMMITTER_EMAIL=email,
        )
        commit = git(tree, "rev-parse", "HEAD")
        git(project.upstream.repo, "worktree", "remove", "--force", str(tree))
    return commit


def test_the_commits_are_those_of_git_am(patched_project: Project) -> None:
    assert apply(patched_project).commit == git_am(patched_project, patched_project.base)


CHANGES: dict[str, dict[str, bytes | None]] = {
    "CRLF": {"python/sglang/crlf.py": b"a = 1\r\nb = 3\r\nc = 3\r\n"},
    "no newline at the end": {"python/sglang/no_end.py": b"x = 1\ny = 3"},
    "a newline at the end": {"python/sglang/no_end.py": b"x = 1\ny = 2\n"},
    "binary": {"python/sglang/blob.bin": bytes(range(256)) * 3},
    "not UTF-8": {"python/sglang/latin.py": "# coding: latin-1\nä = 1\n".encode("latin-1")},
    "empty file": {"python/sglang/empty.py": b""},
    "deleted": {"python/sglang/old/gone.py": None, "python/sglang/old/__init__.py": None},
    "a space and a quote": {'python/sglang/a b"c.py': b"x = 1\n"},
    "not ASCII": {"python/sglang/ünïcode.py": b"x = 1\n"},
    "empty commit": {},
    "dashes": {"python/sglang/sizes.py": b"-- \n--- a\n+++ b\n@@ -1 +1 @@\ndiff --git a/x b/x\n"},
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_kind_of_change(project: Project, what: str) -> None:
    project.add_patch(CHANGES[what], what)
    result = apply(project)
    assert result.commit == git_am(project, project.base)
    got = {change.path: change.after for change in result.changed}
    assert set(got) == set(CHANGES[what])
    assert {path for path, entry in got.items() if entry is None} == {
        path for path, content in CHANGES[what].items() if content is None
    }


def test_modes_and_links(project: Project) -> None:
    before = git(project.upstream.repo, "rev-parse", "HEAD")
    (project.upstream.repo / "python/sglang/gate.py").chmod(0o755)
    (project.upstream.repo / "python/sglang/link.py").symlink_to("gate.py")
    project.upstream.commit({}, f"modes\n\n{TRAILERS}")
    (path,) = project.upstream.patch(before, project.patchset)
    (project.patchset / "series").write_text(f"{path.name}\n")
    result = apply(project)
    assert result.commit == git_am(project, project.base)
    assert {change.path: change.after and change.after.mode for change in result.changed} == {
        "python/sglang/gate.py": "100755",
        "python/sglang/link.py": "120000",
    }


@pytest.mark.parametrize(
    "message",
    [
        "[core] brackets: and a colon",
        "x" * 300,
        "-".join(["ünïcödé wörds"] * 20),
        "a line\n\n---\n\nafter three dashes",
        "a From line\n\nFrom abc def\n>From the quoted\n>>From twice",
        "a diff\n\ndiff --git a/x b/x\nin the text",
        "white space   inside\n\n  indented\n\ttab",
    ],
)
def test_every_kind_of_message(project: Project, message: str) -> None:
    project.add_patch({"python/sglang/gate.py": b"x = 1\n"}, message)
    result = apply(project)
    stored = result.base.store.run("cat-file", "commit", result.commit).decode()
    assert stored.partition("\n\n")[2] == f"{message}\n\n{TRAILERS}"


LINES = st.lists(st.sampled_from(["a", "b", "", "\t", "-", "+", " x"]), max_size=12)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(before=LINES, after=LINES, end=st.booleans())
def test_any_edit_comes_out_as_it_went_in(
    project: Project, before: list[str], after: list[str], end: bool
) -> None:
    for path in project.patchset.glob("*.patch"):
        path.unlink()
    (project.patchset / "series").write_text("")
    content = ("\n".join(after) + "\n" * end).encode()
    project.add_patch({"python/sglang/new.py": ("\n".join(before) + "\n").encode()}, "one")
    project.add_patch({"python/sglang/new.py": content, "python/sglang/gate.py": content}, "two")
    git(project.upstream.repo, "reset", "-q", "--hard", project.base)
    result = apply(project)
    objects = result.base.store.objects()
    got = {change.path: change.after for change in result.changed}
    for changed in ("python/sglang/new.py", "python/sglang/gate.py"):
        entry = got[changed]
        assert entry is not None
        assert objects.read(entry.blob) == content


def test_the_wheel_route_gives_the_same_ids_from_any_wheel(patched_project: Project) -> None:
    ids = set()
    for wheel in patched_project.wheels:
        text = upstream.lock_text(
            upstream.Project(
                patched_project.root, patched_project.upstream, patched_project.base, (wheel,)
            )
        )
        (patched_project.root / "upstream.lock").write_text(text)
        workspace = patched_project.workspace()
        result = apply(patched_project, Route.WHEEL)
        ids.add(result.commit)
        (workspace.cache / "store.git").rename(workspace.cache / f"store-{wheel.name}")
    assert len(ids) == 1


HOSTILE = """\
[user]
	name = Somebody
	email = some@body.invalid
	signingKey = none
[commit]
	gpgSign = true
[gpg]
	program = /nonexistent
[core]
	autocrlf = true
	hooksPath = {hooks}
	abbrev = 4
	quotePath = true
	attributesFile = {attributes}
	whitespace = error
[apply]
	whitespace = error
[am]
	threeWay = true
[init]
	defaultBranch = strange
	templateDir = {hooks}
[diff]
	noprefix = true
	renames = copies
	external = /nonexistent
[i18n]
	commitEncoding = latin-1
[transfer]
	fsckObjects = true
[fetch]
	prune = true
[gc]
	auto = 1
"""


def test_the_users_machine_does_not_matter(patched_project: Project, tmp_path: Path) -> None:
    expected = apply(patched_project).commit
    (patched_project.root / ".cache").rename(tmp_path / "first-cache")
    hooks, attributes = tmp_path / "hooks", tmp_path / "attributes"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\nexit 1\n")
        (hooks / name).chmod(0o755)
    attributes.write_text("* text=auto eol=crlf ident\n")
    config = tmp_path / ".gitconfig"
    config.write_text(HOSTILE.format(hooks=hooks, attributes=attributes))
    done = patched_project.scripts(
        "apply",
        GIT_CONFIG_GLOBAL=str(config),
        GIT_DIR="/nonexistent",
        GIT_WORK_TREE="/nonexistent",
        GIT_INDEX_FILE="/nonexistent",
        GIT_OBJECT_DIRECTORY="/nonexistent",
        GIT_AUTHOR_NAME="Somebody",
        GIT_COMMITTER_DATE="@1 +0000",
        GIT_EXTERNAL_DIFF="/nonexistent",
        LC_ALL="tr_TR.UTF-8",
        LANG="tr_TR.UTF-8",
        TZ="Asia/Kathmandu",
        HOME=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    tree = patched_project.root / "build" / "sglang"
    assert git(tree, "rev-parse", "HEAD") == expected
    assert git(tree, "status", "--porcelain") == ""
    assert (tree / "python/sglang/crlf.py").read_bytes() == upstream.FILES["python/sglang/crlf.py"]
    hooks.rename(tree / ".git" / "hooks")
    os.utime(tree / "README.md")  # makes git refresh its index, which calls a hook
    assert patched_project.scripts("apply").returncode == 0
    assert not (tmp_path / "hook-ran").exists()


def test_a_pre_image_that_differs(patched_project: Project) -> None:
    """The patch is made for another file; no fuzz and no offset make it fit."""
    moved = b"# a line above\n" + upstream.FILES["python/sglang/sizes.py"]
    project = patched_project
    git(project.upstream.repo, "checkout", "-q", project.base)
    commit = project.upstream.commit({"python/sglang/sizes.py": moved}, "upstream moved")
    project.write_lock(commit=commit)
    with pytest.raises(ApplyError) as caught:
        apply(project)
    said = str(caught.value)
    assert "patch 1 of 2, 0001-sizes-a-row-for-12.patch: python/sglang/sizes.py" in said
    assert "hunk 1" in said
    assert "expected: SIZES = {" in said
    assert "next: export the patch from a commit on v0.5.18" in said


def test_a_file_that_is_not_there(project: Project) -> None:
    project.add_patch({"python/sglang/late.py": b"x = 1\n"}, "add")
    path = project.add_patch({"python/sglang/late.py": b"x = 2\n"}, "edit")
    (project.patchset / "series").write_text(f"{path.name}\n")
    (project.patchset / "0001-add.patch").unlink()
    with pytest.raises(ApplyError, match=r"late\.py is not in sglang 0\.5\.18"):
        apply(project)


def test_a_file_that_is_there_already(project: Project) -> None:
    path = project.add_patch({"python/sglang/new.py": b"x = 1\n"})
    path.write_bytes(path.read_bytes().replace(b"new.py", b"gate.py"))
    with pytest.raises(ApplyError, match=r"adds python/sglang/gate\.py, which is there already"):
        apply(project)


def test_a_post_image_that_is_not_what_the_index_line_announces(project: Project) -> None:
    path = project.add_patch({"python/sglang/gate.py": b"x = 1\n"})
    path.write_bytes(path.read_bytes().replace(b"+x = 1", b"+x = 2"))
    with pytest.raises(ApplyError, match=r"not what its index lines announce: .*gate\.py"):
        apply(project)


def test_a_hunk_that_is_cut_off(project: Project) -> None:
    path = project.add_patch({"python/sglang/gate.py": b"x = 1\ny = 2\n"})
    path.write_bytes(path.read_bytes().replace(b"+y = 2\n", b""))
    with pytest.raises(ApplyError, match="git apply: error: corrupt patch"):
        apply(project)


def test_a_path_through_a_symbolic_link(project: Project) -> None:
    git(project.upstream.repo, "checkout", "-q", project.base)
    (project.upstream.repo / "python/sglang/link").symlink_to("/tmp")
    project.write_lock(commit=project.upstream.commit({}, "a link"))
    path = project.add_patch({"python/sglang/other/new.py": b"x = 1\n"})
    path.write_bytes(path.read_bytes().replace(b"sglang/other/", b"sglang/link/"))
    with pytest.raises(ApplyError, match=r"python/sglang/link is a symbolic link, not a folder"):
        apply(project)


def test_nothing_is_left_of_a_series_that_fails(patched_project: Project) -> None:
    assert patched_project.scripts("apply").returncode == 0
    tree = patched_project.root / "build" / "sglang"
    before = git(tree, "rev-parse", "HEAD")
    path = sorted(patched_project.patchset.glob("*.patch"))[1]
    path.write_bytes(path.read_bytes().replace(b"+    return", b"+    return  not"))
    done = patched_project.scripts("apply")
    assert done.returncode == 5
    assert git(tree, "rev-parse", "HEAD") == before
    assert git(tree, "status", "--porcelain") == ""


def test_a_mode_that_differs(project: Project) -> None:
    path = project.add_patch({"python/sglang/gate.py": b"x = 1\n"})
    path.write_bytes(path.read_bytes().replace(b" 100644\n", b" 100755\n"))
    with pytest.raises(ApplyError, match="expected mode 100755, found 100644"):
        apply(project)
    apply(project, Route.WHEEL)  # a wheel does not carry modes faithfully


def test_a_copy_is_refused(project: Project) -> None:
    path = project.add_patch({"python/sglang/gate.py": b"x = 1\n"})
    old, new = b"index ", b"similarity index 90%\ncopy from a\ncopy to b\nindex "
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    with pytest.raises(SeriesError, match="a copy"):
        apply(project)


def test_a_rename(project: Project) -> None:
    before = git(project.upstream.repo, "rev-parse", "HEAD")
    moved = upstream.FILES["python/sglang/gate.py"] + b"# moved\n"
    project.upstream.commit(
        {"python/sglang/gate.py": None, "python/sglang/door.py": moved}, f"move\n\n{TRAILERS}"
    )
    text = git(
        project.upstream.repo,
        *("format-patch", "--zero-commit", "--full-index", "--no-signature", "--stdout"),
        *("-k", "-M50", before),
    )
    (project.patchset / "0001-move.patch").write_text(text + "\n")
    (project.patchset / "series").write_text("0001-move.patch\n")
    assert b"rename from" in (project.patchset / "0001-move.patch").read_bytes()
    result = apply(project)
    assert result.commit == git_am(project, project.base)
    assert {change.path for change in result.changed} == {
        "python/sglang/gate.py",
        "python/sglang/door.py",
    }


def test_the_environment_is_left_alone(patched_project: Project) -> None:
    before = dict(os.environ)
    apply(patched_project)
    assert dict(os.environ) == before
