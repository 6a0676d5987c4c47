"""Where a patch comes from: releases in the store and in the cache, and a clone's history."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import adopt, lock, origin, patched, series, source
from scripts import given as handed
from scripts.adopt import Answer
from scripts.errors import ApplyError
from scripts.git import Repository
from scripts.given import Terms
from scripts.misfit import Reason
from scripts.source import Route
from tests.foreign import commit, mail, plain
from tests.upstream import FILES, HERE, VERSION, Project, git, release_wheel

GATE = "python/sglang/gate.py"
LATER = b"".join(b"def g%d():\n    return %d\n\n\n" % (n, n) for n in range(6))
EDIT = LATER.replace(b"return 3", b"return 33")
NEXT = "0.5.19"


def attempt(project: Project, text: bytes, clone: Path | None = None) -> tuple[Answer, ...]:
    path = project.root / "it.patch"
    path.write_bytes(text)
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace)
    below = patched.apply(base, series.load(project.patchset), workspace)
    past = Repository(git_dir=clone, environment=workspace.environment) if clone else None
    with origin.at_hand(base.lock, base.store, workspace, past) as hand:
        given = handed.read([path], base.store)
        return adopt.attempt(below, given, Terms(), hand, workspace)


def told(answers: Sequence[Answer]) -> str:
    (answer,) = answers
    assert answer.misfit is not None
    assert answer.misfit.reason is Reason.RELEASE
    return answer.misfit.what


def later(project: Project) -> bytes:
    """A patch for a file as it is after the pinned commit, in a release of its own."""
    project.upstream.release({GATE: LATER, "python/sglang/fresh.py": b"x = 1\n"}, NEXT)
    return mail(project, commit(project, {GATE: EDIT}, "A change for later"))


def cache_next(project: Project) -> None:
    """Put the wheel of the next release into the cache, as a bump leaves it there."""
    files = {**FILES, GATE: LATER, "python/sglang/fresh.py": b"x = 1\n"}
    path = release_wheel(project.upstream, str(HERE), files=files, version=NEXT)
    place = project.root / ".cache/wheels" / path.name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(path.read_bytes())


def test_nothing_at_hand_says_so(project: Project) -> None:
    (answer,) = attempt(project, later(project))
    assert answer.misfit is not None
    assert answer.misfit.reason is Reason.CONFLICT
    assert "--repository" in answer.misfit.then


@pytest.mark.parametrize("kind", [bytes, plain])
def test_a_release_wheel_in_the_cache(project: Project, kind: type[bytes]) -> None:
    text = kind(later(project))
    cache_next(project)
    said = told(attempt(project, text))
    assert f"made for {NEXT}, not v{VERSION}" in said
    proof = "index lines" if kind is bytes else "hunks stand there"
    assert proof in said


def test_a_hunk_without_context_stands_anywhere_and_tells_nothing(project: Project) -> None:
    cache_next(project)
    text = f"--- a/{GATE}\n+++ b/{GATE}\n@@ -2,0 +3,1 @@\n+x = 1\n".encode()
    (answer,) = attempt(project, text)
    assert answer.misfit is not None
    assert answer.misfit.reason is not Reason.RELEASE
    assert "no line around it" in answer.misfit.what


def test_a_damaged_wheel_in_the_cache_tells_nothing(project: Project) -> None:
    text = later(project)
    cache_next(project)
    (path,) = (project.root / ".cache/wheels").glob(f"*-{NEXT}-*")
    path.write_bytes(path.read_bytes()[:100])
    (answer,) = attempt(project, text)
    assert answer.misfit is not None
    assert answer.misfit.reason is Reason.CONFLICT


def test_a_commit_in_the_store(project: Project) -> None:
    text = later(project)
    pinned = (project.root / "upstream.lock").read_text()
    released = git(project.upstream.repo, "rev-parse", f"v{NEXT}")
    when = git(
        project.upstream.repo,
        "show",
        "-s",
        "--format=%cd",
        "--date=format:%Y-%m-%dT%H:%M:%SZ",
        released,
    )
    project.write_lock(commit=released, revision=f"v{NEXT}", version=NEXT, time=when)
    source.obtain(project.lock(), project.workspace(), Route.GIT)
    (project.root / "upstream.lock").write_text(pinned)
    said = told(attempt(project, text))
    assert f"made for commit {released[:12]} of {when[:10]}" in said
    assert "after commit" not in said  # a shallow store does not know what came before


@pytest.mark.parametrize("kind", [bytes, plain])
def test_the_history_of_a_clone(project: Project, kind: type[bytes]) -> None:
    clone = project.upstream.repo / ".git"
    made = later(project)
    released = git(project.upstream.repo, "rev-parse", f"v{NEXT}")
    said = told(attempt(project, kind(made), clone))
    assert f"made for upstream after commit {released[:12]}" in said
    assert f"not in v{VERSION}" in said


def test_the_history_that_a_search_left_in_the_store(project: Project) -> None:
    made = later(project)
    released = git(project.upstream.repo, "rev-parse", f"v{NEXT}")
    workspace = project.workspace()
    pinned = source.obtain(project.lock(), workspace, Route.GIT)
    shallow = attempt(project, made)[0].misfit
    assert shallow is not None
    assert shallow.reason is Reason.CONFLICT
    last = commit(project, {GATE: b"other = 1\n"})
    text = (project.root / "upstream.lock").read_text()
    project.write_lock(commit=last)
    newer = source.obtain(project.lock(), workspace, Route.GIT)
    (project.root / "upstream.lock").write_text(text)
    source.deepen((pinned, newer), workspace)
    assert f"made for upstream after commit {released[:12]}" in told(attempt(project, made))


def test_a_state_before_the_pinned_commit(project: Project) -> None:
    repo = project.upstream.repo
    old = commit(project, {GATE: LATER})
    text = mail(project, commit(project, {GATE: EDIT}))
    git(repo, "checkout", "-q", "-B", "main", old)
    gone = commit(project, {GATE: b"other = 1\n"}, "Another gate")
    project.write_lock(commit=gone)
    said = told(attempt(project, text, repo / ".git"))
    assert f"before commit {gone[:12]}" in said
    assert "Another gate" in said


def test_what_upstream_did_itself_and_changed_again(project: Project) -> None:
    repo = project.upstream.repo
    git(repo, "checkout", "-q", "-B", "main", project.base)
    made = commit(project, {GATE: LATER}, "The gate (#7)")
    last = commit(project, {GATE: b"other = 1\n"}, "Another gate")
    project.write_lock(commit=last)
    (answer,) = attempt(project, mail(project, made), repo / ".git")
    assert answer.misfit is not None
    assert answer.misfit.reason is Reason.UPSTREAM
    assert made[:12] in answer.misfit.what
    git(repo, "checkout", "-q", "-B", "fork", project.base)
    fork = commit(project, {GATE: LATER + b"# fork\n"}, "[Cherry-pick] The gate (#9)")
    git(repo, "checkout", "-q", "main")
    (answer,) = attempt(project, mail(project, fork), repo / ".git")
    assert answer.misfit is not None
    assert f"commit {made[:12]}" in answer.misfit.what
    assert "has the same title" in answer.misfit.what


def test_a_file_that_only_another_release_has(project: Project) -> None:
    later(project)
    text = (
        b"--- a/python/sglang/fresh.py\n+++ b/python/sglang/fresh.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    )
    cache_next(project)
    assert f"{NEXT} has python/sglang/fresh.py" in told(attempt(project, text))
    said = told(attempt(project, text, project.upstream.repo / ".git"))
    assert "release 0.5.19) added python/sglang/fresh.py" in said


def wrong_lock(project: Project) -> None:
    """Point the lock at a release that the series was not made for."""
    released = project.upstream.release(
        {GATE: LATER, "python/sglang/sizes.py": b"SIZES = {}\n"}, NEXT
    )
    when = git(
        project.upstream.repo,
        "show",
        "-s",
        "--format=%cd",
        "--date=format:%Y-%m-%dT%H:%M:%SZ",
        released,
    )
    project.write_lock(commit=released, revision=f"v{NEXT}", version=NEXT, time=when)


def test_a_lock_at_the_wrong_release_is_one_reason(patched_project: Project) -> None:
    project, workspace = patched_project, patched_project.workspace()
    right = lock.load(project.root / "upstream.lock")
    source.obtain(right, workspace)
    wrong_lock(project)
    base = source.obtain(project.lock(), workspace)
    with pytest.raises(
        ApplyError, match=r"2 of 2 patches do not fit v0\.5\.19, all for one"
    ) as caught:
        patched.apply(base, series.load(project.patchset), workspace)
    assert f"commit {right.commit[:12]}" in str(caught.value)
    assert "nox -s rebase" in str(caught.value)
    for verb in (("apply",), ("culprit", "0001"), ("adopt", "none.patch")):
        done = project.scripts(*verb)
        assert done.returncode == ApplyError.exit_code, done.stderr
        assert "all for one reason" in done.stderr
    done = project.scripts("explain")
    assert done.returncode == 1
    assert "all for one reason" in done.stdout


def test_a_series_that_fits_nowhere_is_told_as_before(patched_project: Project) -> None:
    wrong_lock(patched_project)
    base = source.obtain(patched_project.lock(), patched_project.workspace())
    with pytest.raises(ApplyError, match="patch 1 of 2") as caught:
        patched.apply(base, series.load(patched_project.patchset), patched_project.workspace())
    assert "one reason" not in str(caught.value)


def test_all_that_are_given_fail_for_one_reason(project: Project, tmp_path: Path) -> None:
    project.upstream.release({GATE: LATER, "python/sglang/sizes.py": LATER}, NEXT)
    one = mail(project, commit(project, {GATE: EDIT}, "One"))
    two = mail(project, commit(project, {"python/sglang/sizes.py": EDIT}, "Two"))
    paths = [tmp_path / "one.patch", tmp_path / "two.patch"]
    for path, text in zip(paths, (one, two), strict=True):
        path.write_bytes(text)
    files = {**FILES, GATE: LATER, "python/sglang/sizes.py": LATER}
    path = release_wheel(project.upstream, str(HERE), files=files, version=NEXT)
    place = project.root / ".cache/wheels" / path.name
    place.parent.mkdir(parents=True)
    place.write_bytes(path.read_bytes())
    done = project.scripts("explain", *map(str, paths))
    assert done.returncode == 1
    assert f"all 2 fail for one reason: made for {NEXT}, not v{VERSION}" in done.stdout
