"""Commits taken back into patchset/: byte for byte the same where nothing changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts import export, lineage, patched, series, source
from scripts.patched import Patched
from scripts.source import Route
from tests.upstream import TRAILERS, Project, git

SIZES, GATE = "python/sglang/sizes.py", "python/sglang/gate.py"


def applied(project: Project) -> Patched:
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace, Route.GIT)
    return patched.apply(base, series.load(project.patchset), workspace)


def round_trip(project: Project) -> None:
    result = applied(project)
    names = [patch.name for patch in result.series.patches]
    store, base = result.base.store, result.base.commit
    fresh = export.patches(store, base, result.commits, names)
    for before, after in zip(result.series.patches, fresh, strict=True):
        assert export.settled(after, before) is before, before.name
        assert export.bare(after.diff) == export.bare(before.diff)
    again = export.patches(store, base, result.commits, names)
    assert [one.content for one in again] == [one.content for one in fresh]


CHANGES: dict[str, dict[str, bytes | None]] = {
    "CRLF": {"python/sglang/crlf.py": b"a = 1\r\nb = 3\r\nc = 3\r\n"},
    "no newline at the end": {"python/sglang/no_end.py": b"x = 1\ny = 3"},
    "binary": {"python/sglang/blob.bin": bytes(range(256)) * 3},
    "not UTF-8": {"python/sglang/latin.py": "# coding: latin-1\nä = 1\n".encode("latin-1")},
    "empty file": {"python/sglang/empty.py": b""},
    "deleted": {"python/sglang/old/gone.py": None},
    "renamed": {"python/sglang/old/gone.py": None, "python/sglang/kept.py": b"OLD = 1\n"},
    "a space and a quote": {'python/sglang/a b"c.py': b"x = 1\n"},
    "empty commit": {},
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_kind_of_change_comes_back(project: Project, what: str) -> None:
    project.add_patch(CHANGES[what], what)
    round_trip(project)


def test_a_note_below_the_trailers_comes_back(project: Project) -> None:
    noted = project.add_patch({GATE: b"x = 1\n"}, "noted", f"{TRAILERS}---\n note\n")
    round_trip(project)
    assert b"\n---\n note\n\ndiff --git " in noted.read_bytes()
    (made,) = applied(project).commits
    store = applied(project).base.store
    assert store.run("log", "-1", "--format=%B", made).endswith(b"\n---\n note\n\n")


def test_modes_and_links_come_back(project: Project) -> None:
    before = git(project.upstream.repo, "rev-parse", "HEAD")
    (project.upstream.repo / GATE).chmod(0o755)
    (project.upstream.repo / "python/sglang/link.py").symlink_to("gate.py")
    project.upstream.commit({}, f"modes\n\n{TRAILERS}")
    (path,) = project.upstream.patch(before, project.patchset)
    (project.patchset / "series").write_text(f"{path.name}\n")
    round_trip(project)


@pytest.mark.parametrize(
    "message",
    [
        "[core] brackets: and a colon",
        "x" * 300,
        "-".join(["ünïcödé wörds"] * 20),
        "a line\n\n---\n\nafter three dashes",
        "a From line\n\nFrom abc def\n>From the quoted\n>>From twice",
        "white space   inside\n\n  indented\n\ttab",
    ],
)
def test_every_kind_of_message_comes_back(project: Project, message: str) -> None:
    project.add_patch({GATE: b"x = 1\n"}, message)
    round_trip(project)


LINES = st.lists(st.sampled_from(["a", "b", "", "\t", "-", "+", " x", "@@ -1 +1 @@"]), max_size=12)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(before=LINES, after=LINES, end=st.booleans())
def test_any_edit_comes_back(
    project: Project, before: list[str], after: list[str], end: bool
) -> None:
    git(project.upstream.repo, "reset", "-q", "--hard", project.base)
    for path in project.patchset.glob("*.patch"):
        path.unlink()
    (project.patchset / "series").write_text("")
    content = ["\n".join(lines).encode() + b"\n" * end for lines in (before, after)]
    project.add_patch({"python/sglang/any.py": content[0]}, "before")
    project.add_patch({"python/sglang/any.py": content[1]}, "after")
    round_trip(project)


def test_two_titles_that_make_the_same_name(project: Project) -> None:
    names = ["0001-a-title.patch"]
    assert export.new_name("a: title!", names) == "0002-a-title.patch"
    assert export.new_name("[core] …", names) == "0002-core.patch"
    assert export.new_name("…", []) == "0001-patch.patch"
    assert export.new_name("x" * 300, []) == f"0001-{'x' * 52}.patch"


ORDER = "# head\n\n0001-a.patch  # first\n# about b\n0002-b.patch\n# the end\n"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["0001-a.patch", "0002-b.patch"], ORDER),
        (["0002-b.patch"], "# head\n\n# about b\n0002-b.patch\n# the end\n"),
        (
            ["0002-b.patch", "0003-c.patch", "0001-a.patch"],
            "# about b\n0002-b.patch\n0003-c.patch\n# head\n\n0001-a.patch  # first\n# the end\n",
        ),
        ([], "# head\n\n# about b\n# the end\n"),
    ],
)
def test_the_series_file_keeps_its_comments(names: list[str], expected: str) -> None:
    assert export.reorder(ORDER, names) == expected
    assert series.parse(expected) == tuple(names)


@pytest.fixture
def tree(patched_project: Project) -> Path:
    assert patched_project.scripts("apply").returncode == 0
    found = patched_project.root / "build/sglang"
    git(found, "config", "user.name", "me")
    git(found, "config", "user.email", "me@host.invalid")
    return found


def refresh(project: Project, rc: int = 0) -> dict[str, Any]:
    done = project.scripts("refresh", "--json")
    assert done.returncode == rc, done.stderr
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {"error": done.stderr}
    return found


def patchset(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in project.patchset.glob("[!.]*")}


def test_nothing_changed_is_no_change(patched_project: Project, tree: Path) -> None:
    before = patchset(patched_project)
    found = refresh(patched_project)
    assert (found["new"], found["changed"], found["gone"]) == ([], [], [])
    assert patchset(patched_project) == before


def test_a_new_commit_is_a_new_patch(patched_project: Project, tree: Path) -> None:
    before = patchset(patched_project)
    (tree / GATE).write_bytes(b"def gate(major):\n    return True\n")
    git(tree, "commit", "-qam", f"gate: always\n\n{TRAILERS}")
    assert "new: 0003-gate-always.patch" in patched_project.scripts("status").stdout
    found = refresh(patched_project)
    assert (found["new"], found["changed"]) == (["0003-gate-always.patch"], [])
    after = patchset(patched_project)
    assert {name: after[name] for name in before if name != "series"} == {
        name: before[name] for name in before if name != "series"
    }
    assert git(tree, "rev-parse", "HEAD") == applied(patched_project).commit
    assert git(tree, "status", "--porcelain") == ""
    assert "build/sglang: as patchset/ has it" in patched_project.scripts("status").stdout
    assert refresh(patched_project)["new"] == []


def test_reworded_amended_reordered_and_dropped(patched_project: Project, tree: Path) -> None:
    project = patched_project
    names = [patch.name for patch in series.load(project.patchset).patches]
    git(tree, "commit", "-q", "--amend", "-m", f"another title\n\n{TRAILERS}")
    found = refresh(project)
    assert (found["changed"], found["new"], found["gone"]) == ([names[1]], [], [])
    (tree / GATE).write_bytes(b"def gate(major):\n    return 12\n")
    git(tree, "commit", "-qa", "--amend", "--no-edit")
    found = refresh(project)
    assert (found["changed"], found["new"], found["gone"]) == ([names[1]], [], [])
    git(tree, "reset", "-q", "--hard", "HEAD~2")
    (tree / "README.md").write_bytes(b"# ours\n")
    git(tree, "commit", "-qam", f"readme\n\n{TRAILERS}")
    found = refresh(project)
    assert found["new"] == ["0003-readme.patch"]
    assert found["gone"] == names
    assert set(patchset(project)) == {"0003-readme.patch", "series", "gates.toml"}


def test_an_order_is_kept(project: Project) -> None:
    project.add_patch({"python/sglang/one.py": b"x = 1\n"}, "one")
    project.add_patch({"python/sglang/two.py": b"x = 2\n"}, "two")
    before = patchset(project)
    assert project.scripts("apply").returncode == 0
    tree = project.root / "build/sglang"
    one, two = git(tree, "rev-list", "--reverse", "HEAD~2..HEAD").split()
    git(tree, "reset", "-q", "--hard", "HEAD~2")
    git(tree, "cherry-pick", two, one)
    found = refresh(project)
    assert found["reordered"]
    assert (found["new"], found["changed"], found["gone"]) == ([], [], [])
    after = patchset(project)
    assert [name for name in after if after[name] != before[name]] == ["series"]
    assert series.parse(after["series"].decode()) == ("0002-two.patch", "0001-one.patch")


def test_a_split_patch(patched_project: Project, tree: Path) -> None:
    project = patched_project
    names = [patch.name for patch in series.load(project.patchset).patches]
    git(tree, "reset", "-q", "HEAD~1")
    message = git(tree, "log", "-1", "--format=%B", "refs/sglang-sm120/applied")
    git(tree, "commit", "-q", "-m", message, GATE)
    git(tree, "commit", "-q", "-am", f"sizes: a comment\n\n{TRAILERS}")
    found = refresh(project)
    assert found["changed"] == [names[1]]
    assert found["new"] == ["0003-sizes-a-comment.patch"]


def dirty(tree: Path) -> str:
    (tree / GATE).write_text("mine\n")
    return "has changes that are not committed"


def merged(tree: Path) -> str:
    git(tree, "checkout", "-q", "-b", "side", "HEAD~1")
    git(tree, "commit", "-q", "--allow-empty", "-m", f"side\n\n{TRAILERS}")
    git(tree, "checkout", "-q", "patched")
    git(tree, "merge", "-q", "--no-ff", "-m", "merge", "side")
    return "is not one line of commits"


def without_trailers(tree: Path) -> str:
    git(tree, "commit", "-q", "--allow-empty", "-m", "no trailers")
    return "the commit 'no trailers': its message must end with one `Upstream-Status:` trailer"


def elsewhere(tree: Path) -> str:
    git(tree, "update-ref", "refs/sglang-sm120/base", "HEAD")
    return "upstream.lock gives"


@pytest.mark.parametrize("spoil", [dirty, merged, without_trailers, elsewhere])
def test_what_cannot_be_taken_back(patched_project: Project, tree: Path, spoil: Any) -> None:
    before = patchset(patched_project)
    expected = spoil(tree)
    head = git(tree, "rev-parse", "HEAD")
    done = patched_project.scripts("refresh")
    assert done.returncode in (4, 8)
    assert expected in done.stderr
    assert expected in patched_project.scripts("status").stdout
    assert patchset(patched_project) == before
    assert git(tree, "rev-parse", "HEAD") == head


def test_who_is_who_leaves_no_doubt(project: Project) -> None:
    """Two commits with the same title are told apart by their lines, or not at all."""
    for name in ("one", "two", "three"):
        project.add_patch({f"python/sglang/{name}.py": name.encode() + b"\n"}, "the same title")
    known = series.load(project.patchset).patches
    assert lineage.match(known, known[::-1]) == known[::-1]
    assert lineage.match(known[:1], known[1:]) == (None, None)
