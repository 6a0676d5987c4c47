"""The lock that a series was made for, looked for in this repository's own history."""

import pytest

from scripts import former, series
from scripts.errors import SourceError, UsageError
from scripts.source import Route
from tests.upstream import FILES, Project, git

SIZES = "python/sglang/sizes.py"
OTHER = {SIZES: FILES[SIZES].replace(b"    10: [4, 6, 8],\n", b"    10: [2],\n")}


def committed(project: Project, message: str) -> None:
    git(project.root, "add", "upstream.lock")
    git(project.root, "commit", "-q", "-m", message)


@pytest.fixture
def moved(patched_project: Project) -> Project:
    """Three locks: the first fits the series, the second's commit is gone, the last is at hand."""
    project = patched_project
    git(project.root, "init", "-q")
    committed(project, "the first")
    gone = project.upstream.release(OTHER, "0.5.19")
    project.write_lock(commit=gone, revision="next", time="2026-08-21T21:29:24Z")
    committed(project, "of a branch")
    forced = project.upstream.release(OTHER | {"README.md": b"forced\n"}, "0.5.19")
    git(project.upstream.repo, "reflog", "expire", "--expire=now", "--all")
    git(project.upstream.repo, "gc", "-q", "--prune=now")
    project.write_lock(commit=forced, revision="next", time="2026-08-21T21:29:24Z")
    return project


def test_a_commit_that_was_forced_away_is_passed_over(moved: Project) -> None:
    done = moved.scripts("rebase", "--dry-run", "--json", "--route", "git")
    assert done.returncode == 1, done.stderr
    assert '"revision": "v0.5.18"' in done.stdout
    assert "a former upstream.lock was passed over: next" in done.stderr


def test_where_only_that_one_is_left_it_is_told(moved: Project) -> None:
    order = series.load(moved.patchset)
    git(moved.root, "checkout", "-q", "--orphan", "later")
    committed(moved, "the last alone")
    with pytest.raises(UsageError, match="in this repository's history"):
        former.find(order, moved.lock(), moved.workspace(), Route.GIT)
    moved.write_lock(commit="12" * 20, revision="gone")
    committed(moved, "one that nobody has")
    git(moved.root, "checkout", "-q", "HEAD^", "--", "upstream.lock")
    with pytest.raises(SourceError, match=f"gone \\({'12' * 20}\\): .* could not be fetched"):
        former.find(order, moved.lock(), moved.workspace(), Route.GIT)


def test_out_of_reach_the_cache_is_looked_into(moved: Project) -> None:
    pinned = moved.lock()
    moved.write_lock()
    assert moved.scripts("apply").returncode == 0
    moved.write_lock(commit=pinned.commit, revision="next", time="2026-08-21T21:29:24Z")
    moved.upstream.repo.rename(moved.root / "away")
    found = former.find(series.load(moved.patchset), moved.lock(), moved.workspace(), Route.GIT)
    assert found.commit == moved.base
