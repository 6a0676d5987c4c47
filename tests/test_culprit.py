"""Who broke a patch: the planted commit is found, wherever on the way it stands."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from scripts import build, culprit, landing, rebase, source, span, target
from scripts.errors import SourceError
from scripts.git import Repository
from scripts.patched import Patched
from scripts.rebase import Fate
from scripts.source import Route
from scripts.span import Span
from tests.upstream import FILES, TIME, VERSION, Project, git

SIZES = "python/sglang/sizes.py"
BREAKS: Mapping[str, Mapping[str, bytes | None]] = {
    "context": {
        SIZES: FILES[SIZES].replace(b"    10: [4, 6, 8],\n}", b"    10: [2],\n    11: [],\n}")
    },
    "deleted": {SIZES: None},
    "taken": {
        SIZES: FILES[SIZES].replace(b"8],\n}", b"8],\n    12: [6, 8],\n}"),
        "test/registered/unit/test_sizes.py": b"def test_sizes():\n    assert True\n",
    },
}
LENGTH = 7


def history(
    project: Project, breaks: Mapping[str, bytes | None], at: int, *, since: str = f"v{VERSION}"
) -> str:
    """Commits on the branch next, one of which breaks; the tag v0.5.19 at its end."""
    repo = project.upstream.repo
    git(repo, "checkout", "-q", "-B", "next", f"{since}^{{commit}}")
    broke = ""
    for number in range(LENGTH):
        later = f"@{TIME + 60 * number + 60} +0000"
        sizes = (repo / SIZES).read_bytes() if (repo / SIZES).exists() else b""
        touched = {SIZES: b"# %d\n" % number + sizes} if sizes and number % 2 else {}
        other: Mapping[str, bytes | None] = {"python/sglang/data.json": b"%d\n" % number}
        title = f"step {number} (#{1000 + number})"
        if number == at:
            changed = {
                path: None
                if content is None
                else _on_top(sizes, content)
                if path == SIZES
                else content
                for path, content in breaks.items()
            }
            broke = project.upstream.commit(changed, title, GIT_COMMITTER_DATE=later)
        else:
            project.upstream.commit({**touched, **other}, title, GIT_COMMITTER_DATE=later)
    git(repo, "tag", "-f", "v0.5.19")
    return broke


def _on_top(now: bytes, content: bytes) -> bytes:
    """The content below the comments that stand above the file now."""
    return now[: now.index(FILES[SIZES][:9])] + content


def way(project: Project, to: str = "v0.5.19") -> tuple[Patched, Span]:
    workspace = project.workspace()
    old = build.job(workspace, Route.GIT).patched()
    pinned = target.find(to, project.lock(), workspace, wheels=False)
    new = source.obtain(pinned, workspace, Route.GIT)
    return old, span.between(old.base, new, workspace)


@pytest.mark.parametrize("at", range(LENGTH))
@pytest.mark.parametrize("what", BREAKS)
def test_the_planted_commit_is_found(patched_project: Project, what: str, at: int) -> None:
    project = patched_project
    broke = history(project, BREAKS[what], at)
    old, span = way(project)
    found = culprit.find(old, span, "0001", project.workspace())
    assert found is not None
    assert found.step.commit == broke
    assert found.step.pull == 1000 + at
    assert found.among < LENGTH
    expected = Fate.LANDED if what == "taken" else Fate.CONFLICT
    assert found.carried.fate in (expected, Fate.LANDED_MODIFIED)
    if what == "context":
        assert culprit.find(old, span, "0002", project.workspace()) is not None, "it needs 0001"


def test_all_versions_come_in_one_fetch(
    patched_project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    history(patched_project, BREAKS["context"], 3)
    old, span = way(patched_project)
    fetches: list[tuple[str, ...]] = []
    fetch = Repository.fetch

    def counted(store: Repository, *args: str, input: bytes = b"") -> None:
        fetches.append(args)
        fetch(store, *args, input=input)

    monkeypatch.setattr(Repository, "fetch", counted)
    found = culprit.find(old, span, "0001", patched_project.workspace())
    assert found is not None
    assert found.probes > 2
    assert len(fetches) == 1
    assert not landing.reverted(
        rebase.rebase(old, span.new, patched_project.workspace()),
        span,
        patched_project.workspace(),
    )
    assert len(fetches) == 1


def test_a_patch_that_holds_has_no_culprit(patched_project: Project) -> None:
    project = patched_project
    history(project, {}, 99)
    old, span = way(project)
    assert culprit.find(old, span, "0001", project.workspace()) is None
    done = project.scripts("culprit", "0001", "--to", "v0.5.19")
    assert done.returncode == 0, done.stderr
    assert "0001 applies at v0.5.19" in done.stdout


def test_the_way_leads_over_the_fork(patched_project: Project) -> None:
    """A release branch is undone to where it left the line that the next release stands on."""
    project = patched_project
    repo = project.upstream.repo
    fork = project.base
    git(repo, "checkout", "-q", "--detach", f"v{VERSION}^{{commit}}")
    pinned = project.upstream.commit({"README.md": b"# on the release branch\n"}, "only there (#1)")
    git(repo, "tag", "-f", f"v{VERSION}")
    moved = Project(
        root=project.root, upstream=project.upstream, base=pinned, wheels=(), said=project.said
    )
    moved.write_lock()
    broke = history(moved, BREAKS["context"], 3, since=fork)
    old, way_there = way(moved)
    assert way_there.fork == fork
    steps = way_there.steps()
    assert [step.undone for step in steps] == [True] + [False] * LENGTH
    assert (steps[0].commit, steps[0].there) == (pinned, fork)
    assert [step.title for step in steps[1:]] == [f"step {n} (#{1000 + n})" for n in range(LENGTH)]
    found = culprit.find(old, way_there, "0001", moved.workspace())
    assert found is not None
    assert found.step.commit == broke


def test_back_to_an_older_release_it_is_the_commit_that_is_missing(
    patched_project: Project,
) -> None:
    project = patched_project
    repo = project.upstream.repo
    history(project, {}, 99)
    newer = project.upstream.commit(BREAKS["context"], "a row more (#7)")
    git(repo, "tag", "-f", "v0.5.19")
    on_newer = Project(
        root=project.root, upstream=project.upstream, base=newer, wheels=(), said=project.said
    )
    for path in project.patchset.glob("*.patch"):
        path.unlink()
    (project.patchset / "series").write_text("")
    on_newer.write_lock(revision="v0.5.19")
    ours = (repo / SIZES).read_bytes().replace(b"    11: [],\n", b"    11: [12],\n")
    on_newer.add_patch({SIZES: ours}, "twelve")
    old, span = way(on_newer, f"v{VERSION}")
    found = culprit.find(old, span, "0001", on_newer.workspace())
    assert found is not None
    assert found.step.undone
    assert found.step.commit == newer


def test_a_rename_is_followed(patched_project: Project) -> None:
    """The renaming commit is no culprit; the one that changes the context under the new name is."""
    project = patched_project
    repo = project.upstream.repo
    history(project, {}, 99)
    renamed = "python/sglang/world_sizes.py"
    git(repo, "mv", SIZES, renamed)
    later = f"@{TIME + 3600} +0000"
    project.upstream.commit({}, "rename (#2000)", GIT_COMMITTER_DATE=later)
    content = (
        (repo / renamed).read_bytes().replace(b"10: [4, 6, 8],\n}", b"10: [2],\n    11: [],\n}")
    )
    broke = project.upstream.commit({renamed: content}, "break (#2001)", GIT_COMMITTER_DATE=later)
    git(repo, "tag", "-f", "v0.5.19")
    old, span = way(project)
    found = culprit.find(old, span, "0001", project.workspace())
    assert found is not None
    assert (found.step.commit, found.step.pull) == (broke, 2001)


def test_landed_and_reverted_is_told(patched_project: Project) -> None:
    project = patched_project
    landed = history(project, BREAKS["taken"], 2)
    repo = project.upstream.repo
    undone = (repo / SIZES).read_bytes().replace(b"    12: [6, 8],\n", b"")
    project.upstream.commit(
        {SIZES: undone, "test/registered/unit/test_sizes.py": None},
        "Revert",
        GIT_COMMITTER_DATE=f"@{TIME + 7200} +0000",
    )
    git(repo, "tag", "-f", "v0.5.19")
    old, span = way(project)
    rebased = rebase.rebase(old, span.new, project.workspace())
    assert rebased.carried[0].fate is Fate.MOVED
    found = landing.reverted(rebased, span, project.workspace())
    assert {number: step.commit for number, step in found.items()} == {"0001": landed}
    done = project.scripts("bump", "v0.5.19", "--json")
    data: dict[str, Any] = json.loads(done.stdout)
    assert data["done"]
    assert data["patches"][0]["reverted"]["commit"] == landed
    assert data["patches"][1]["reverted"] is None


def test_a_bump_names_the_commit(patched_project: Project) -> None:
    project = patched_project
    broke = history(project, BREAKS["context"], 4)
    done = project.scripts("bump", "v0.5.19", "--dry-run", "--json")
    assert json.loads(done.stdout)["patches"][0]["culprit"]["commit"] == broke
    shown = project.scripts("bump", "v0.5.19", "--dry-run").stdout
    assert f"since: {broke[:12]} step 4 (#1004)" in shown
    done = project.scripts("culprit", "0001", "--to", "v0.5.19", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["culprit"]["commit"] == broke
    assert found["conflicts"] == [SIZES]


def test_no_history_is_said(patched_project: Project) -> None:
    project = patched_project
    history(project, {}, 99)
    unknown = project.scripts("culprit", "0009")
    assert unknown.returncode == 2
    assert "it has 0001, 0002" in unknown.stderr
    workspace = project.workspace()
    old = build.job(workspace, Route.WHEEL).patched()
    with pytest.raises(SourceError, match="no history"):
        span.between(old.base, old.base, workspace)
    offline = project.workspace(offline=True)
    base = build.job(workspace, Route.GIT).patched().base
    pinned = target.find("v0.5.19", project.lock(), workspace, wheels=False)
    new = source.obtain(pinned, workspace, Route.GIT)
    with pytest.raises(SourceError, match="--offline was given"):
        span.between(base, new, offline)


def test_by_wheels_it_is_the_first_release(patched_project: Project) -> None:
    project = patched_project
    project.upstream.release({"python/sglang/data.json": b"{}\n"}, "0.5.19", wheels=True)
    project.upstream.release(BREAKS["context"], "0.5.20", wheels=True)
    project.upstream.release(BREAKS["context"], "0.5.21", wheels=True)
    project.upstream.repo.rename(project.upstream.repo.with_name("away"))
    done = project.scripts("culprit", "0001", "--json")
    assert done.returncode == 1, done.stderr
    assert "releases are looked at, and not commits" in done.stderr
    assert json.loads(done.stdout)["release"] == "0.5.20"
    done = project.scripts("culprit", "0001", "--to", "v0.5.19")
    assert done.returncode == 0
    assert "0001 holds on each of 0.5.18, 0.5.19" in done.stdout
    done = project.scripts("culprit", "0001", "--to", "v0.6")
    assert done.returncode == 2
    assert "give one of: v0.5.18, v0.5.19" in done.stderr
