"""What a person can do to the rebase in build/sglang: each is taken for what it is."""

from pathlib import Path

import pytest

from scripts import handwork, series
from tests.upstream import FILES, Project, git

SIZES, GATE, FRESH = "python/sglang/sizes.py", "python/sglang/gate.py", "python/sglang/fresh.py"
ROW = b"    12: [6, 8],\n"
OURS = FILES[SIZES].replace(b"}\n", ROW + b"}\n")
THEIRS = FILES[SIZES].replace(b"}\n", b"    12: [8],\n}\n")
MARKED = OURS.replace(ROW, b"<<<<<<< HEAD\n    12: [8],\n=======\n" + ROW + b">>>>>>> row\n")


@pytest.fixture
def stopped(project: Project) -> Project:
    """A bump of three patches that waits for a person at the first."""
    project.add_patch({SIZES: OURS}, "row")
    project.add_patch({GATE: FILES[GATE].replace(b"(9, 10)", b"(9, 10, 12)")}, "gate")
    project.add_patch({FRESH: b"FRESH = 1\n"}, "fresh")
    project.upstream.release({SIZES: THEIRS}, "0.5.19")
    assert project.scripts("bump", "v0.5.19").returncode == 1
    return project


def tree(project: Project) -> Path:
    return project.root / "build" / "sglang"


def settle(project: Project, content: bytes = OURS, path: str = SIZES) -> None:
    """Write a file as a person wants it, and tell git so."""
    (tree(project) / path).write_bytes(content)
    git(tree(project), "add", path)


def plan(project: Project, old: str, new: str) -> None:
    """Edit what is still to be done in the rebase, as git rebase --edit-todo lets one."""
    words = ("-c", f"sequence.editor=sed -i 's/{old}/{new}/'", "rebase", "--edit-todo")
    git(tree(project), *words)


def refused(project: Project) -> str:
    """What --continue says where it does not go on."""
    before = {path.name: path.read_bytes() for path in project.patchset.iterdir()}
    done = project.scripts("bump", "--continue")
    assert done.returncode == 8, (done.stdout, done.stderr)
    assert {path.name: path.read_bytes() for path in project.patchset.iterdir()} == before
    return done.stderr


def finished(project: Project) -> None:
    """Go on, to the end."""
    done = project.scripts("bump", "--continue")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert project.lock().version == "0.5.19"


def test_markers_are_not_committed(stopped: Project) -> None:
    settle(stopped, MARKED)
    said = refused(stopped)
    assert f"conflict markers were left for 'row': {SIZES}:6" in said
    assert "`git add` the files there" in said
    settle(stopped)
    finished(stopped)


def test_markers_in_an_earlier_commit_are_taken_out_of_that_one(stopped: Project) -> None:
    """A later commit without them does not make the earlier patch whole."""
    settle(stopped, MARKED)
    git(tree(stopped), "rebase", "--continue", GIT_EDITOR="true")
    settle(stopped)
    git(tree(stopped), "commit", "-q", "--amend", "--no-edit")
    said = refused(stopped)
    first = git(tree(stopped), "rev-parse", "HEAD~2")[:12]
    assert f"conflict markers were left in 'row' ({first}): {SIZES}:6" in said
    assert f"git rebase -i {first}^" in said
    editor = "sed -i 1s/pick/edit/"
    git(tree(stopped), "rebase", "-q", "-i", f"{first}^", GIT_SEQUENCE_EDITOR=editor)
    settle(stopped)
    git(tree(stopped), "commit", "-q", "--amend", "--no-edit")
    git(tree(stopped), "rebase", "--continue", GIT_EDITOR="true")
    finished(stopped)
    assert not [one for one in series.load(stopped.patchset).patches if b"<<<<" in one.content]


def test_markers_in_the_last_commit_are_amended(stopped: Project) -> None:
    settle(stopped)
    git(tree(stopped), "rebase", "--continue", GIT_EDITOR="true")
    settle(stopped, b"<<<<<<< HEAD\n", FRESH)
    git(tree(stopped), "commit", "-q", "--amend", "--no-edit")
    said = refused(stopped)
    assert f"{FRESH}:1" in said
    assert "rebase -i" not in said
    settle(stopped, b"FRESH = 2\n", FRESH)
    git(tree(stopped), "commit", "-q", "--all", "--amend", "--no-edit")
    finished(stopped)


def test_a_heading_is_no_marker(stopped: Project) -> None:
    (tree(stopped) / "docs").mkdir()
    settle(stopped, b"Heading\n=======\n", "docs/x.rst")
    settle(stopped)
    finished(stopped)


def test_an_untracked_file_in_the_way_is_named(stopped: Project) -> None:
    mine = tree(stopped) / FRESH
    mine.write_bytes(b"MINE = 1\n")
    settle(stopped)
    for _ in range(2):
        said = refused(stopped)
        assert "untracked working tree files would be overwritten" in said
        assert FRESH in said
        assert "was resolved before" not in said
    assert mine.read_bytes() == b"MINE = 1\n"
    mine.unlink()
    finished(stopped)


def test_a_todo_list_that_git_cannot_read(stopped: Project) -> None:
    settle(stopped)
    todo = tree(stopped) / ".git" / "rebase-merge" / "git-rebase-todo"
    good = todo.read_text()
    todo.write_text(f"garbage in it\n{good}")
    assert "garbage in it" in refused(stopped)
    todo.write_text(good)
    finished(stopped)


def test_a_commit_that_git_cannot_make(stopped: Project) -> None:
    settle(stopped)
    held = tree(stopped) / ".git" / "HEAD.lock"
    held.touch()
    for _ in range(2):
        said = refused(stopped)
        assert "HEAD.lock" in said
        assert "was resolved before" not in said
    held.unlink()
    finished(stopped)


def test_a_stop_to_edit_is_left_to_the_person(stopped: Project) -> None:
    plan(stopped, "^pick \\(.* gate\\)", "edit \\1")
    settle(stopped)
    assert "stopped for you to edit 'gate'" in refused(stopped)
    ours = FILES[GATE].replace(b"(9, 10)", b"(9, 10, 12, 13)")
    settle(stopped, ours, GATE)
    finished(stopped)
    (_, gate, _) = series.load(stopped.patchset).patches
    assert b"12, 13" in gate.content


def test_unsaved_edits_at_such_a_stop_are_told(stopped: Project) -> None:
    plan(stopped, "^pick \\(.* gate\\)", "edit \\1")
    settle(stopped)
    refused(stopped)
    (tree(stopped) / GATE).write_bytes(b"unsaved\n")
    assert f"not added to one: {GATE}\n" in refused(stopped)
    assert (tree(stopped) / GATE).read_bytes() == b"unsaved\n"


def test_a_break_is_gone_on_from(stopped: Project) -> None:
    plan(stopped, "^pick \\(.* gate\\)", "break\\npick \\1")
    settle(stopped)
    assert "stopped at `break`" in refused(stopped)
    finished(stopped)


def test_a_command_that_fails_is_shown(stopped: Project) -> None:
    command = "exec echo not this way >\\&2; false"
    plan(stopped, "^pick \\(.* gate\\)", f"{command}\\npick \\1")
    settle(stopped)
    said = refused(stopped)
    assert "`exec echo not this way >&2; false` of the rebase's todo list failed" in said
    assert "\nnot this way\n" in said
    finished(stopped)


def test_what_could_not_begin_is_not_taken_for_resolved(stopped: Project) -> None:
    """Who decided on a patch counts: what git alone merged is looked at more closely."""
    (tree(stopped) / FRESH).touch()
    settle(stopped)
    refused(stopped)
    row = git(tree(stopped), "rev-parse", "ORIG_HEAD~2")
    assert handwork.stood_at(tree(stopped)) == {row}


def test_an_edit_after_the_end_is_named(stopped: Project) -> None:
    settle(stopped)
    git(tree(stopped), "rebase", "--continue", GIT_EDITOR="true")
    (tree(stopped) / GATE).write_bytes(b"MINE = 1\n")
    assert f"has changes that are not committed:  M {GATE}\n" in refused(stopped)
    assert (tree(stopped) / GATE).read_bytes() == b"MINE = 1\n"


def test_half_of_the_series_is_not_taken_for_all_of_it(stopped: Project) -> None:
    settle(stopped)
    git(tree(stopped), "rebase", "--continue", GIT_EDITOR="true")
    git(tree(stopped), "bisect", "start", "HEAD", "HEAD~3")
    assert "has an unfinished bisection" in refused(stopped)
    git(tree(stopped), "bisect", "reset")
    finished(stopped)


def test_a_commit_that_a_person_emptied_is_not_said_to_be_upstreams(stopped: Project) -> None:
    settle(stopped)
    git(tree(stopped), "rebase", "--continue", GIT_EDITOR="true")
    git(tree(stopped), "rm", "-q", FRESH)
    git(tree(stopped), "commit", "-q", "--amend", "--no-edit", "--allow-empty")
    finished(stopped)
    assert [one.number for one in series.load(stopped.patchset).patches] == ["0001", "0002"]
    assert "- Retired 0003 (fresh).\n" in (stopped.root / "CHANGELOG.md").read_text()


def test_one_that_upstream_has_still_wants_a_yes(stopped: Project) -> None:
    """It is empty too, but because what it brings is there already."""
    assert stopped.scripts("bump", "--abort").returncode == 0
    stopped.upstream.release({SIZES: THEIRS, FRESH: b"FRESH = 1\n"}, "0.5.20")
    assert stopped.scripts("bump", "v0.5.20").returncode == 1
    settle(stopped)
    done = stopped.scripts("bump", "--continue", "--json")
    assert done.returncode == 1, done.stderr
    assert '"what": "upstream has it as it is"' in done.stdout
    assert stopped.scripts("bump", "--continue", "--retire", "0003").returncode == 0
    assert "(fresh): upstream has it.\n" in (stopped.root / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("how", ["reset", "stash"])
def test_a_resolution_that_was_thrown_away_is_not_a_skip(stopped: Project, how: str) -> None:
    settle(stopped)
    if how == "reset":
        git(tree(stopped), "reset", "-q", "--hard")
    else:
        git(tree(stopped), "-c", "user.name=me", "-c", "user.email=me@host.invalid", "stash")
    assert "nothing is left of 'row' after a git reset or stash" in refused(stopped)
    if how == "reset":
        git(tree(stopped), "rebase", "--skip")
    else:
        git(tree(stopped), "stash", "pop", "-q", "--index")
    finished(stopped)
    kept = [one.title for one in series.load(stopped.patchset).patches]
    assert kept == (["gate", "fresh"] if how == "reset" else ["row", "gate", "fresh"])
