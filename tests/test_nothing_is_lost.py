"""Whatever a person does beside a bump, in build/sglang or in patchset/, is there afterwards."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import series, swap
from tests.test_bump import (
    ABOVE,
    GATE,
    KILLED,
    OURS_OTHERWISE,
    ROW,
    SIZES,
    bump,
    checkout,
    resolve,
    tree,
)
from tests.upstream import FILES, TRAILERS, Project, git

ME = ["-c", "user.name=me", "-c", "user.email=me@host.invalid"]


@pytest.fixture
def two(project: Project) -> Project:
    """Two patches that do not need each other; upstream's next release conflicts with the first."""
    project.add_patch({SIZES: FILES[SIZES].replace(b"}\n", ROW + b"}\n")}, "row")
    project.add_patch({GATE: FILES[GATE].replace(b"(9, 10)", b"(9, 10, 12)")}, "gate")
    return project


def stopped(project: Project) -> None:
    project.upstream.release(OURS_OTHERWISE, "0.5.19")
    assert bump(project, "v0.5.19", rc=1)["waits"]


def aside(project: Project) -> list[Path]:
    return sorted(tree(project).parent.glob(".sglang.*.bad"))


def commit(folder: Path, title: str) -> str:
    git(folder, *ME, "commit", "-q", "--allow-empty", "-m", title)
    return git(folder, "rev-parse", "HEAD")


def ignored(folder: Path) -> None:
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "exclude").write_text("*.log\n")
    (folder / "bench.log").write_text("an hour's work\n")


def untracked(folder: Path) -> None:
    (folder / "mine.txt").write_text("mine\n")


def branch(folder: Path) -> None:
    made = git(folder, *ME, "commit-tree", "-m", "x", "-p", "HEAD", "HEAD^{tree}")
    git(folder, "branch", "side", made)


def note(folder: Path) -> None:
    git(folder, *ME, "notes", "add", "-m", "remember", "HEAD")


def stash(folder: Path) -> None:
    (folder / "README.md").write_text("mine\n")
    git(folder, *ME, "stash")


def work_tree(folder: Path) -> None:
    git(folder, "worktree", "add", "-q", "--detach", str(folder.parent / "beside"))


def unseen(folder: Path) -> None:
    git(folder, "update-index", "--assume-unchanged", "README.md")
    (folder / "README.md").write_text("mine\n")


def not_shown(folder: Path) -> None:
    git(folder, "config", "status.showUntrackedFiles", "no")
    untracked(folder)


Work = Callable[[Path], None]


@pytest.mark.parametrize("work", [branch, note, stash, work_tree, unseen, not_shown])
def test_a_bump_does_not_begin_over_it(two: Project, work: Work) -> None:
    assert two.scripts("apply").returncode == 0
    work(tree(two))
    before = checkout(two)
    two.upstream.release(ABOVE, "0.5.19")
    done = two.scripts("bump", "v0.5.19")
    assert done.returncode == 8, done.stderr
    assert checkout(two) == before
    assert not aside(two)


@pytest.mark.parametrize("upstreams", [ABOVE, OURS_OTHERWISE], ids=["clean", "conflict"])
def test_ignored_files_are_set_aside(two: Project, upstreams: dict[str, bytes]) -> None:
    assert two.scripts("apply").returncode == 0
    ignored(tree(two))
    (tree(two) / "__pycache__").mkdir()
    two.upstream.release(upstreams, "0.5.19")
    done = two.scripts("bump", "v0.5.19")
    assert "has files that git ignores: !! bench.log; it was set aside as" in done.stderr
    (old,) = aside(two)
    assert (old / "bench.log").read_text() == "an hour's work\n"


@pytest.mark.parametrize("work", [untracked, ignored, branch])
@pytest.mark.parametrize("end", ["--continue", "--abort"])
def test_what_lies_beside_the_rebase_is_set_aside(two: Project, work: Work, end: str) -> None:
    stopped(two)
    work(tree(two))
    resolve(two)
    done = two.scripts("bump", end)
    assert done.returncode == 0, done.stderr
    (old,) = aside(two)
    assert old.name in done.stderr


def test_a_tree_without_work_leaves_nothing_behind(two: Project) -> None:
    assert two.scripts("apply").returncode == 0
    stopped(two)
    resolve(two)
    assert bump(two, "--continue")["done"]
    assert sorted(path.name for path in tree(two).parent.iterdir()) == [".lock", "sglang"]


def test_another_repository_in_its_place(two: Project) -> None:
    stopped(two)
    tree(two).rename(two.root / "moved")
    tree(two).mkdir()
    git(tree(two), "init", "-q")
    made = commit(tree(two), "mine")
    done = two.scripts("bump", "--continue")
    assert done.returncode == 1, done.stderr
    (old,) = aside(two)
    assert git(old, "rev-parse", "HEAD") == made
    assert git(tree(two), "diff", "--name-only", "--diff-filter=U") == SIZES


@pytest.mark.parametrize("what", ["file", "link"])
def test_no_folder_in_its_place(two: Project, what: str) -> None:
    tree(two).parent.mkdir()
    if what == "file":
        tree(two).write_text("mine\n")
    else:
        tree(two).symlink_to("nowhere")
    for words in (["apply"], ["bump", "v0.5.19"]):
        two.upstream.release(ABOVE, "0.5.19")
        done = two.scripts(*words)
        assert done.returncode == 8, done.stderr
        assert "is a link or a file, and no folder" in done.stderr
    assert two.scripts("apply", "--force").returncode == 0
    (old,) = aside(two)
    assert old.is_symlink() == (what == "link")
    assert (tree(two) / "README.md").is_file()


def a_patch_more(project: Project) -> None:
    project.add_patch({"python/sglang/new.py": b"x = 1\n"}, "third")


def a_word_more(project: Project) -> None:
    (path,) = project.patchset.glob("0002-*")
    path.write_bytes(path.read_bytes().replace(b"Why it is so.", b"Why it is really so."))


def a_patch_less(project: Project) -> None:
    (path,) = project.patchset.glob("0002-*")
    order = project.patchset / "series"
    order.write_text(order.read_text().replace(f"{path.name}\n", ""))
    path.unlink()


def another_order(project: Project) -> None:
    order = project.patchset / "series"
    head, *names = order.read_text().splitlines()
    order.write_text("\n".join([head, *reversed(names), ""]))


def another_revision(project: Project) -> None:
    path = project.root / "upstream.lock"
    path.write_text(path.read_text().replace("revision = 1", "revision = 7"))


EDITS = [a_patch_more, a_word_more, a_patch_less, another_order, another_revision]


@pytest.mark.parametrize("edit", EDITS)
def test_what_changed_in_the_checkout_since_it_began(
    two: Project, edit: Callable[[Project], None]
) -> None:
    stopped(two)
    edit(two)
    after = checkout(two)
    resolve(two)
    done = two.scripts("bump", "--continue")
    assert done.returncode == 8, done.stdout
    assert "changed after the bump began" in done.stderr
    assert checkout(two) == after
    assert (tree(two) / SIZES).exists()
    assert two.scripts("bump", "--abort").returncode == 0
    assert checkout(two) == after


@pytest.mark.parametrize("broken", [(b"(9, 10)", b"(9, 1)"), (b"Upstream-Status", b"Status")])
def test_abort_where_the_series_is_broken(two: Project, broken: tuple[bytes, bytes]) -> None:
    assert two.scripts("apply").returncode == 0
    stopped(two)
    (path,) = two.patchset.glob("0002-*")
    path.write_bytes(path.read_bytes().replace(*broken))
    done = two.scripts("bump", "--abort")
    assert done.returncode == 0, done.stderr
    assert "all is done but build/sglang, which nox -s apply makes again: " in done.stderr
    assert not (two.root / "build" / "bump.json").exists()


def test_abort_puts_the_gates_back(two: Project) -> None:
    stopped(two)
    gates = two.patchset / "gates.toml"
    before = gates.read_bytes()
    gates.write_bytes(before + b"# decided\n")
    done = two.scripts("bump", "--abort")
    assert done.returncode == 0
    assert gates.read_bytes() == before
    assert (two.root / "build" / "gates.toml").read_bytes() == before + b"# decided\n"


@pytest.mark.parametrize("what", ["untouched", "with a commit"])
def test_a_tree_of_another_series_is_not_taken_back(two: Project, what: str) -> None:
    assert two.scripts("apply").returncode == 0
    if what != "untouched":
        commit(tree(two), f"fourth\n\n{TRAILERS}")
    a_patch_more(two)
    a_word_more(two)
    before = checkout(two)
    for verb in ("refresh", "status"):
        done = two.scripts(verb)
        said = done.stdout + done.stderr
        assert "was made from another series than patchset/ holds now" in " ".join(said.split())
        assert ("nox -s apply -- --force" in said) == (what != "untouched")
    assert checkout(two) == before
    if what == "untouched":
        assert two.scripts("apply").returncode == 0
        assert git(tree(two), "log", "-1", "--format=%s") == "third"


def test_answers_that_go_with_no_bump(two: Project) -> None:
    stopped(two)
    for end in ("--continue", "--abort"):
        done = two.scripts("bump", "v0.5.20", end)
        assert done.returncode == 2
        assert "v0.5.20 is not" in done.stderr
    resolve(two)
    done = two.scripts("bump", "--continue", "--retire", "0002")
    assert done.returncode == 2
    assert "0002 is to be retired, and is in the rebase" in done.stderr
    assert bump(two, "--continue")["done"]


def test_two_at_once(two: Project, tmp_path: Path) -> None:
    """The second begins with what the first has left."""
    two.upstream.release(ABOVE, "0.5.19")
    given = tmp_path / "a.patch"
    given.write_text(
        "--- a/python/sglang/new.py\n+++ b/python/sglang/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
    )
    commands = [["bump", "v0.5.19"], ["adopt", str(given)], ["adopt", str(given)]]
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "scripts", *words, "--root", str(two.root)],
            cwd=Path(__file__).parent.parent,
            env=two.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in commands
    ]
    said = [one.communicate() for one in running]
    codes = sorted(one.returncode for one in running)
    assert codes == [0, 0, 1], said
    assert len(series.load(two.patchset).patches) == 3
    assert two.lock().version == "0.5.19"
    assert any("another run is changing this checkout" in err for _, err in said)


def test_a_kill_at_any_moment_with_a_tree(two: Project) -> None:
    """What a kill leaves of build/sglang stands in no one's way."""
    two.upstream.release(ABOVE, "0.5.19")
    old = checkout(two)
    for changes in range(3, 900, 41):
        for path in [*two.patchset.glob("*.patch"), two.root / "CHANGELOG.md"]:
            path.unlink(missing_ok=True)
        for name, content in old.items():
            folder = two.root if name == "upstream.lock" else two.patchset
            (folder / name).write_bytes(content)
        assert two.scripts("apply").returncode == 0
        code = subprocess.run(
            [
                *(sys.executable, "-c", KILLED, str(changes)),
                *("bump", "v0.5.19", "--root", str(two.root)),
            ],
            cwd=Path(__file__).parent.parent,
            env=two.environment(),
            capture_output=True,
            check=False,
        ).returncode
        done = two.scripts("apply")
        assert done.returncode == 0, done.stderr
        if code == 0:
            break
    assert not aside(two)


def test_a_folder_that_cannot_be_written_to(two: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = checkout(two)

    def refuse(dir: Path) -> io.BytesIO:
        if dir == two.patchset:
            raise PermissionError(13, "Permission denied", str(dir))
        return io.BytesIO()

    monkeypatch.setattr("scripts.swap.tempfile.TemporaryFile", refuse)
    contents = {"upstream.lock": b"new\n", "patchset/series": b"new\n"}
    with pytest.raises(PermissionError):
        swap.replace(contents, two.workspace())
    assert checkout(two) == before
    assert not (two.root / "build" / "swap").exists()
