"""build/sglang: made whole or not at all; what a person did there is never lost."""

import json
from pathlib import Path

import pytest

from scripts.errors import TreeError
from tests.upstream import Project, git

TREE = Path("build/sglang")


@pytest.fixture
def applied(patched_project: Project) -> Project:
    done = patched_project.scripts("apply")
    assert done.returncode == 0, done.stderr
    return patched_project


def test_one_commit_a_patch_on_the_base(applied: Project) -> None:
    tree = applied.root / TREE
    log = git(tree, "log", "--format=%s").splitlines()
    assert log == ["gate: open it for 12", "sizes: a row for 12", "release"]
    assert git(tree, "rev-parse", "HEAD~2") == applied.base
    assert git(tree, "status", "--porcelain", "--ignored") == ""
    assert (tree / "rust/lib.rs").exists()
    assert (tree / "python/sglang/run.sh").stat().st_mode & 0o100


def test_again_is_a_no_op(applied: Project) -> None:
    before = (applied.root / TREE).stat().st_ino
    result = json.loads(applied.scripts("apply", "--json").stdout)
    assert result["fresh"] is False
    assert (applied.root / TREE).stat().st_ino == before


def test_a_changed_series_makes_it_anew(applied: Project) -> None:
    applied.add_patch({"python/sglang/new.py": b"x = 1\n"}, "third")
    assert applied.scripts("apply").returncode == 0
    assert git(applied.root / TREE, "log", "-1", "--format=%s") == "third"


def edit(tree: Path) -> None:
    (tree / "python/sglang/gate.py").write_text("mine\n")


def untracked(tree: Path) -> None:
    (tree / "mine.py").write_text("mine\n")


def staged(tree: Path) -> None:
    edit(tree)
    git(tree, "add", "--all")


def commit(tree: Path) -> None:
    staged(tree)
    git(tree, "commit", "-q", "-m", "mine")


def other_branch(tree: Path) -> None:
    git(tree, "checkout", "-q", "-b", "mine")
    commit(tree)
    git(tree, "checkout", "-q", "patched")


def stash(tree: Path) -> None:
    edit(tree)
    git(tree, "stash")


def unfinished_am(tree: Path) -> None:
    (tree / ".git" / "rebase-apply").mkdir()


def unfinished_rebase(tree: Path) -> None:
    (tree / ".git" / "rebase-merge").mkdir()


def not_ours(tree: Path) -> None:
    (tree / ".git").rename(tree / "git")


def broken(tree: Path) -> None:
    (tree / ".git" / "HEAD").write_text("nonsense")


WORK = {
    edit: "changes that are not committed:  M python/sglang/gate.py",
    untracked: "changes that are not committed: ?? mine.py",
    staged: "changes that are not committed: M  python/sglang/gate.py",
    commit: "has 1 commits that patchset/ does not have",
    other_branch: "has 1 commits that patchset/ does not have",
    stash: "has a stash",
    unfinished_am: "has an unfinished git am",
    unfinished_rebase: "has an unfinished git rebase",
    not_ours: "is not a work tree of ours",
    broken: "cannot be read",
}


@pytest.mark.parametrize("work", WORK)
def test_work_is_never_overwritten(applied: Project, work: object) -> None:
    assert callable(work)
    tree = applied.root / TREE
    work(tree)
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    done = applied.scripts("apply")
    assert done.returncode == TreeError.exit_code, done.stderr
    assert WORK[work] in done.stderr
    assert "--force" in done.stderr
    for path, content in before.items():
        if ".git/index" not in str(path):
            assert path.read_bytes() == content
    forced = applied.scripts("apply", "--force")
    assert forced.returncode == 0, forced.stderr
    (aside,) = tree.parent.glob(".sglang.*.bad")
    assert aside.name in forced.stderr
    assert {path.relative_to(tree) for path in before} <= {
        path.relative_to(aside) for path in aside.rglob("*")
    }
    assert git(tree, "status", "--porcelain") == ""


def test_ignored_files_are_no_work(applied: Project) -> None:
    tree = applied.root / TREE
    (tree / ".git" / "info").mkdir(exist_ok=True)
    (tree / ".git" / "info" / "exclude").write_text("*.egg-info\n")
    (tree / "python" / "sglang.egg-info").mkdir()
    (tree / "python" / "sglang.egg-info" / "PKG-INFO").write_text("x")
    assert applied.scripts("apply").returncode == 0
