"""`rebase` after a person has edited no more of upstream.lock than where it is to go."""

import json

import pytest

from tests.test_bump import ABOVE, OURS_OTHERWISE, checkout
from tests.upstream import VERSION, Project, git


@pytest.fixture
def committed(patched_project: Project) -> Project:
    """A checkout whose lock and series are in git, and a next release that they move to."""
    project = patched_project
    git(project.root, "init", "-q")
    git(project.root, "add", "upstream.lock", "patchset")
    git(project.root, "commit", "-q", "-m", "ours")
    project.upstream.release(ABOVE, "0.5.19", wheels=True)
    return project


def edit(project: Project, *pairs: tuple[str, str]) -> None:
    path = project.root / "upstream.lock"
    text = path.read_text()
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path.write_text(text)


TAG = (f'requested-revision = "v{VERSION}"', 'requested-revision = "v0.5.19"')
NUMBER = (f'\nversion = "{VERSION}"', '\nversion = "0.5.19"')


@pytest.mark.parametrize("edits", [[TAG], [NUMBER], [TAG, NUMBER]])
def test_the_rest_is_filled_in(committed: Project, edits: list[tuple[str, str]]) -> None:
    edit(committed, *edits)
    done = committed.scripts("rebase", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"]
    assert "upstream.lock asks for v0.5.19" in done.stderr
    pinned = committed.lock()
    assert (pinned.version, pinned.requested_revision) == ("0.5.19", "v0.5.19")
    assert pinned.commit == git(committed.upstream.repo, "rev-parse", "v0.5.19^{commit}")
    assert {wheel.name.split("-")[1] for wheel in pinned.wheels} == {"0.5.19"}
    again = json.loads(committed.scripts("rebase", "--json").stdout)
    assert again["same"]
    bumped = checkout(committed)
    git(committed.root, "checkout", "-q", "--", "upstream.lock", "patchset")
    (committed.root / "CHANGELOG.md").unlink()
    assert committed.scripts("bump", "v0.5.19").returncode == 0
    assert checkout(committed) == bumped, "as a bump does it"


def test_a_dry_run_fills_in_nothing(committed: Project) -> None:
    edit(committed, TAG)
    before = checkout(committed)
    done = committed.scripts("rebase", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "this would go through" in done.stdout
    assert checkout(committed) == before


def test_a_conflict_is_aborted_to_the_edited_lock(committed: Project) -> None:
    committed.upstream.release(OURS_OTHERWISE, "0.5.20", wheels=True)
    edit(committed, (TAG[0], 'requested-revision = "v0.5.20"'))
    done = committed.scripts("rebase")
    assert done.returncode == 1, done.stderr
    assert "stopped at 'sizes: a row for 12'" in done.stdout
    assert committed.scripts("bump", "--abort").returncode == 0
    assert committed.lock().version == "0.5.20"
    assert "--abort" not in committed.scripts("rebase", "--dry-run").stderr


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([TAG, ("revision = 1", "revision = 3")], "is no tag of version"),
        ([("subdirectory", "sub-directory")], "is not a key of this format"),
        ([(TAG[0], 'requested-revision = "v9"')], "no tag or branch v9"),
    ],
)
def test_what_cannot_be_completed(
    committed: Project, edits: list[tuple[str, str]], said: str
) -> None:
    edit(committed, *edits)
    before = checkout(committed)
    done = committed.scripts("rebase")
    assert done.returncode in (2, 3), done.stdout
    assert said in done.stderr
    assert checkout(committed) == before


def test_a_commit_that_is_not_the_tags(committed: Project) -> None:
    edit(committed, TAG, (committed.base, "12" * 20))
    done = committed.scripts("rebase")
    assert done.returncode == 3
    assert f"upstream.lock has commit-id {'12' * 20}; v0.5.19 is " in done.stderr
