"""The bump from its command line: lock and series together, or nothing; and it explains itself."""

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import lock, series
from tests.upstream import FILES, VERSION, Project, git

SIZES, GATE = "python/sglang/sizes.py", "python/sglang/gate.py"
ROW = b"    12: [6, 8],\n"


def bump(
    project: Project, *words: str, rc: int = 0, environment: dict[str, str] | None = None
) -> dict[str, Any]:
    done = project.scripts("bump", *words, "--json", connected=False, **environment or {})
    assert done.returncode == rc, (done.stdout, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {"error": done.stderr}
    return found


def fates(found: dict[str, Any]) -> list[str]:
    return [patch["fate"] for patch in found["patches"]]


def kinds(found: dict[str, Any]) -> list[str]:
    return [objection["kind"] for objection in found["objections"]]


def checkout(project: Project) -> dict[str, bytes]:
    """Every file that a bump may change."""
    paths = [*project.patchset.iterdir(), project.root / "upstream.lock"]
    paths += [path for path in [project.root / "CHANGELOG.md"] if path.exists()]
    return {path.name: path.read_bytes() for path in paths if path.name != ".lock"}


def tree(project: Project) -> Path:
    return project.root / "build" / "sglang"


def built(project: Project, path: str) -> bytes:
    """A file of the patched tree."""
    done = project.scripts("apply", "--force")
    assert done.returncode == 0, done.stderr
    return (tree(project) / path).read_bytes()


ELSEWHERE = {"python/sglang/data.json": b'{"a": 2}\n'}
ABOVE = {SIZES: b'"""Sizes."""\n\nONE = 1\nTWO = 2\n' + FILES[SIZES].partition(b"\n\n")[2]}
CONTEXT = {SIZES: FILES[SIZES].replace(b"    9: [4, 8],", b"    9: [2, 4, 8],")}
OURS_OTHERWISE = {SIZES: FILES[SIZES].replace(b"}\n", b"    12: [8],\n}\n")}


@pytest.mark.parametrize(
    ("change", "fate"), [(ELSEWHERE, "unchanged"), (ABOVE, "moved"), (CONTEXT, "merged")]
)
def test_a_clean_bump(patched_project: Project, change: dict[str, bytes | None], fate: str) -> None:
    project = patched_project
    before = checkout(project)
    commit = project.upstream.release(change, "0.5.19")
    found = bump(project, "v0.5.19")
    assert found["done"]
    assert fates(found)[0] == fate
    pinned = project.lock()
    assert (pinned.commit, pinned.version, pinned.revision) == (commit, "0.5.19", 1)
    after = checkout(project)
    changed = {name for name in after if before.get(name) != after[name]}
    patches = set() if fate == "unchanged" else set(series.parse(after["series"].decode()))
    assert changed - {"0002-gate-open-it-for-12.patch"} == {
        "upstream.lock",
        "CHANGELOG.md",
        *(patches - {"0002-gate-open-it-for-12.patch"}),
    }
    assert b"On SGLang v0.5.19" in after["CHANGELOG.md"]
    content = change.get(SIZES, FILES[SIZES])
    assert content is not None
    ours = content.replace(b"    10: [4, 6, 8],\n", b"    10: [4, 6, 8],\n    12: [6, 8]  # 12,\n")
    assert built(project, SIZES) == ours
    assert bump(project, "v0.5.19")["same"]


def test_there_and_back_is_bit_identical(patched_project: Project) -> None:
    project = patched_project
    project.scripts("apply")
    assert project.scripts("refresh").returncode == 0
    before = checkout(project)
    project.upstream.release(ABOVE, "0.5.19", wheels=True)
    assert bump(project, "v0.5.19")["done"]
    assert bump(project, f"v{VERSION}")["done"]
    after = checkout(project)
    after.pop("CHANGELOG.md")
    assert after == before


def test_a_dry_run_changes_nothing(patched_project: Project) -> None:
    project = patched_project
    before = checkout(project)
    project.upstream.release(ABOVE, "0.5.19")
    project.upstream.release(OURS_OTHERWISE, "0.5.20")
    assert fates(bump(project, "v0.5.19", "--dry-run")) == ["moved", "moved"]
    found = bump(project, "v0.5.20", "--dry-run", rc=1)
    assert fates(found) == ["conflict", "conflict"]
    assert checkout(project) == before
    assert not tree(project).exists()
    assert not (project.root / "build" / "bump.json").exists()


def test_a_look_alike_above_is_not_edited(project: Project) -> None:
    """git am -3 takes any place where the lines fit, here the wrong function."""
    head, one = b"import os\n\n\n", b"def right():\n    a = 1\n    b = 2\n    c = 3\n    return a\n"
    ours = one.replace(b"b = 2", b"b = 12")
    project = _with_file(project, head + one)
    project.add_patch({GATE: head + ours}, "twelve")
    look_alike = one.replace(b"right", b"wrong") + b"\n\n"
    project.upstream.release({GATE: head + look_alike + one}, "0.5.19")
    assert fates(bump(project, "v0.5.19")) == ["moved"]
    assert built(project, GATE) == head + look_alike + ours


def _with_file(project: Project, content: bytes, path: str = GATE) -> Project:
    """The project on an upstream whose release has another file."""
    commit = project.upstream.commit({path: content}, "another file")
    git(project.upstream.repo, "tag", "-f", f"v{VERSION}")
    moved = Project(
        root=project.root, upstream=project.upstream, base=commit, wheels=(), said=project.said
    )
    moved.write_lock()
    return moved


def test_an_edit_that_comes_to_another_symbol_stops_it(project: Project) -> None:
    body = b"    a = 1\n    b = 2\n    c = 3\n    return a\n"
    project = _with_file(project, b"def one():\n" + body)
    project.add_patch({GATE: b"def one():\n" + body.replace(b"b = 2", b"b = 12")}, "twelve")
    before = checkout(project)
    project.upstream.release({GATE: b"def another():\n" + body}, "0.5.19")
    found = bump(project, "v0.5.19", rc=1)
    assert kinds(found) == ["another symbol"]
    what = found["objections"][0]["what"]
    assert "in one:" in what
    assert "in another:" in what
    assert checkout(project) == before
    assert bump(project, "v0.5.19", "--accept", "0001")["done"]


def test_lines_that_upstream_put_elsewhere_stop_it(project: Project) -> None:
    def module(first: bytes, second: bytes) -> bytes:
        return b"A = [\n%b]\n\n%b\nB = [\n%b]\n" % (first, b"x = 1\n" * 9, second)

    added = b"    'capability twelve',\n    'six or eight',\n    'ranks',\n"
    project = _with_file(project, module(b"    'a',\n", b"    'b',\n"))
    project.add_patch({GATE: module(b"    'a',\n", b"    'b',\n" + added)}, "rows")
    before = checkout(project)
    project.upstream.release({GATE: module(b"    'a',\n" + added, b"    'b',\n")}, "0.5.19")
    found = bump(project, "v0.5.19", rc=1)
    assert kinds(found) == ["there twice"]
    assert f"{GATE}:3" in found["objections"][0]["what"]
    assert checkout(project) == before
    assert bump(project, "v0.5.19", "--retire", "0001")["done"]
    assert series.load(project.patchset).patches == ()


def landed(project: Project) -> dict[str, bytes | None]:
    """What upstream has where it took our first patch."""
    test = "test/registered/unit/test_sizes.py"
    row = FILES[SIZES].replace(b"    10: [4, 6, 8],\n", b"    10: [4, 6, 8],\n" + ROW)
    return {SIZES: row, test: b"def test_sizes():\n    assert True\n"}


def test_a_landed_patch_is_not_dropped_unasked(patched_project: Project) -> None:
    project = patched_project
    before = checkout(project)
    project.upstream.release(landed(project), "0.5.19")
    found = bump(project, "v0.5.19", rc=1)
    assert fates(found) == ["landed", "unchanged"]
    assert kinds(found) == ["landed"]
    assert checkout(project) == before
    assert bump(project, "v0.5.19", "--retire")["done"]
    (kept,) = series.load(project.patchset).patches
    assert kept.name == "0002-gate-open-it-for-12.patch"
    assert "# in the order in which" in (project.patchset / "series").read_text()
    log = (project.root / "CHANGELOG.md").read_text()
    assert "- Retired 0001 (sizes: a row for 12): upstream has it.\n" in log
    assert ROW.strip(b" ,\n") in built(project, SIZES)


def test_a_patch_that_landed_and_was_reverted_is_kept(patched_project: Project) -> None:
    project = patched_project
    project.upstream.release(landed(project), "0.5.19rc1")
    undone = {SIZES: FILES[SIZES], "test/registered/unit/test_sizes.py": None}
    project.upstream.release(undone, "0.5.19", since="v0.5.19rc1")
    found = bump(project, "v0.5.19")
    assert fates(found) == ["unchanged", "unchanged"]
    assert len(series.load(project.patchset).patches) == 2


def test_a_landed_patch_in_another_form(project: Project) -> None:
    project.add_patch(
        {SIZES: FILES[SIZES].replace(b"}\n", ROW + b"}\n"), "python/sglang/x.py": b"X = 1\n"}, "row"
    )
    theirs = {
        SIZES: FILES[SIZES].replace(b"}\n", ROW + b"}\n"),
        "python/sglang/x.py": b"X = 1  # one\n",
    }
    project.upstream.release(theirs, "0.5.19")
    found = bump(project, "v0.5.19", "--dry-run", rc=1)
    assert fates(found) in (["landed-modified"], ["conflict"])


def test_a_patch_that_only_deletes(project: Project) -> None:
    shorter = FILES[SIZES].replace(b"    9: [4, 8],\n", b"")
    project.add_patch({SIZES: shorter}, "one row less")
    project.upstream.release(ELSEWHERE, "0.5.19")
    assert fates(bump(project, "v0.5.19", "--dry-run")) == ["unchanged"]
    project.upstream.release({SIZES: shorter}, "0.5.20")
    assert fates(bump(project, "v0.5.20", "--dry-run", rc=1)) == ["landed"]


def test_an_empty_patch_stays_empty(project: Project) -> None:
    project.add_patch({}, "nothing")
    before = checkout(project)
    project.upstream.release(ABOVE, "0.5.19")
    assert fates(bump(project, "v0.5.19")) == ["empty"]
    name = series.load(project.patchset).patches[0].name
    assert checkout(project)[name] == before[name]


def test_upstream_renamed_the_file(patched_project: Project) -> None:
    """By the git route the store has no blob of the new path until git asks for it."""
    project = patched_project
    renamed = {SIZES: None, "python/sglang/world_sizes.py": FILES[SIZES]}
    project.upstream.release(renamed, "0.5.19")
    found = bump(project, "v0.5.19")
    assert fates(found)[0] == "merged"
    assert ROW.strip(b" ,\n") in built(project, "python/sglang/world_sizes.py")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({GATE: None}, "modify/delete"),
        ({GATE: FILES[GATE].replace(b"\n", b"\r\n")}, "contents"),
        ({GATE: b"from .low import gate\n", "python/sglang/low.py": FILES[GATE]}, "contents"),
    ],
    ids=["deleted", "CRLF", "split"],
)
def test_what_upstream_does_to_a_patched_file(
    patched_project: Project, change: dict[str, bytes | None], kind: str
) -> None:
    project = patched_project
    before = checkout(project)
    project.upstream.release(change, "0.5.19")
    found = bump(project, "v0.5.19", "--dry-run", rc=1)
    assert fates(found) == ["unchanged", "conflict"]
    (conflict,) = found["patches"][1]["conflicts"]
    assert (conflict["path"], conflict["kind"]) == (GATE, kind)
    assert checkout(project) == before


SETTINGS = {
    "gpg": "[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = /bin/false\n",
    "hooks": "[core]\n\thooksPath = {hooks}\n",
    "autocrlf": "[core]\n\tautocrlf = true\n\teol = crlf\n",
    "am": "[am]\n\tthreeWay = true\n[rebase]\n\tautoStash = true\n[merge]\n\tff = only\n",
    "nobody": "[user]\n\tname =\n\temail =\n\tuseConfigOnly = true\n",
    "diff": "[diff]\n\tnoprefix = true\n\tcontext = 9\n"
    "\talgorithm = patience\n\trenames = copies\n",
    "branch": "[init]\n\tdefaultBranch = trunk\n[format]\n\tsignature = mine\n\tattach = x\n",
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_users_settings_do_not_matter(
    patched_project: Project, tmp_path: Path, setting: str
) -> None:
    project = patched_project
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "commit-msg", "pre-rebase", "post-checkout"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(SETTINGS[setting].format(hooks=hooks))
    project.upstream.release(ABOVE, "0.5.19")
    project.upstream.release(OURS_OTHERWISE, "0.5.20")
    environment = {
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_DIR": str(tmp_path / "nowhere"),
        "GIT_INDEX_FILE": str(tmp_path / "no-index"),
        "LANG": "de_DE.UTF-8",
        "LANGUAGE": "de",
    }
    bump(project, "v0.5.19", environment=environment)
    assert _digest(project) == _ABOVE_DIGEST.setdefault("digest", _digest(project))
    assert bump(project, "v0.5.20", rc=1, environment=environment)["waits"]
    resolve(project)
    assert bump(project, "--continue", environment=environment)["done"]


_ABOVE_DIGEST: dict[str, dict[str, bytes]] = {}


def _digest(project: Project) -> dict[str, bytes]:
    found = checkout(project)
    return {name: found[name] for name in found if name.endswith(".patch")}


THEIRS = b"    12: [8],\n"


def resolve(project: Project) -> None:
    """Settle the conflict in the sizes for ours, as a person does it."""
    path = tree(project) / SIZES
    content = path.read_bytes()
    assert b"<<<<<<<" in content
    assert b"|||||||" in content, "the base is shown too"
    path.write_bytes(FILES[SIZES].replace(b"}\n", ROW + b"}\n"))
    git(tree(project), "add", SIZES)


def conflicted(project: Project) -> dict[str, bytes]:
    """A bump that waits for a person; returns the files before it."""
    before = checkout(project)
    project.upstream.release(OURS_OTHERWISE, "0.5.19")
    found = bump(project, "v0.5.19", rc=1)
    assert found["waits"]
    assert kinds(found) == ["conflict", "conflict"]
    assert checkout(project) == before
    return before


def test_a_conflict_is_resolved_and_finished(patched_project: Project) -> None:
    project = patched_project
    conflicted(project)
    status = git(tree(project), "status")
    assert "rebase" in status
    assert git(tree(project), "diff", "--name-only", "--diff-filter=U") == SIZES
    resolve(project)
    found = bump(project, "--continue")
    assert found["done"]
    assert fates(found) == ["resolved", "unchanged"]
    assert project.lock().version == "0.5.19"
    assert not (project.root / "build" / "bump.json").exists()
    assert built(project, SIZES) == FILES[SIZES].replace(b"}\n", b"    12: [6, 8]  # 12,\n}\n")
    assert [patch.name for patch in series.load(project.patchset).patches] == [
        "0001-sizes-a-row-for-12.patch",
        "0002-gate-open-it-for-12.patch",
    ]


def test_git_itself_may_finish_it(patched_project: Project) -> None:
    project = patched_project
    conflicted(project)
    resolve(project)
    words = ["-c", "user.name=me", "-c", "user.email=me@host.invalid", "rebase", "--continue"]
    git(tree(project), *words, GIT_EDITOR="true")
    assert bump(project, "--continue")["done"]


def test_a_skipped_patch_leaves_the_series(project: Project) -> None:
    project.add_patch({SIZES: FILES[SIZES].replace(b"}\n", ROW + b"}\n")}, "row")
    project.add_patch({GATE: FILES[GATE].replace(b"(9, 10)", b"(9, 10, 12)")}, "gate")
    project.upstream.release(OURS_OTHERWISE, "0.5.19")
    assert bump(project, "v0.5.19", rc=1)["waits"]
    git(tree(project), "rebase", "--skip")
    found = bump(project, "--continue")
    assert found["done"]
    assert fates(found) == ["unchanged", "dropped"]
    assert [one.number for one in series.load(project.patchset).patches] == ["0002"]
    assert "- Retired 0001 (row)" in (project.root / "CHANGELOG.md").read_text()


def test_an_unresolved_conflict_is_not_continued(patched_project: Project) -> None:
    project = patched_project
    before = conflicted(project)
    done = project.scripts("bump", "--continue")
    assert done.returncode == 8
    assert f"is not resolved: {SIZES}" in done.stderr
    git(tree(project), "add", SIZES)
    done = project.scripts("bump", "--continue")
    assert done.returncode == 8
    assert "conflict markers were left" in done.stderr
    assert checkout(project) == before


@pytest.mark.parametrize("tree_before", [False, True])
def test_abort_restores_everything(patched_project: Project, tree_before: bool) -> None:
    project = patched_project
    if tree_before:
        assert project.scripts("apply").returncode == 0
        head = git(tree(project), "rev-parse", "HEAD")
    before = conflicted(project)
    assert project.scripts("bump", "--abort").returncode == 0
    assert checkout(project) == before
    assert tree(project).exists() == tree_before
    if tree_before:
        assert git(tree(project), "rev-parse", "HEAD") == head
        assert git(tree(project), "status", "--porcelain") == ""
    assert project.scripts("bump", "--abort").returncode == 2


def test_a_resolution_is_remembered(patched_project: Project) -> None:
    project = patched_project
    before = conflicted(project)
    resolve(project)
    assert bump(project, "--continue")["done"]
    for name, content in before.items():
        path = project.root / name if name == "upstream.lock" else project.patchset / name
        path.write_bytes(content)
    assert fates(bump(project, "v0.5.19", "--dry-run")) == ["resolved", "unchanged"]
    found = bump(project, "v0.5.19")
    assert found["done"]
    assert fates(found) == ["resolved", "unchanged"]


def test_while_one_waits_no_other_begins(patched_project: Project) -> None:
    project = patched_project
    conflicted(project)
    for words in (["bump", "v0.5.19"], ["rebase"], ["refresh"], ["apply", "--force"]):
        done = project.scripts(*words)
        assert done.returncode == 8, words
        assert "in conflict when it began: 0001, 0002" in done.stderr
        assert "--continue" in done.stderr
    status = project.scripts("status")
    assert "under way: a bump to v0.5.19" in status.stdout


def test_a_kill_before_the_tree_was_there(patched_project: Project) -> None:
    project = patched_project
    conflicted(project)
    tree(project).rename(project.root / "build" / "moved-away")
    found = bump(project, "--continue", rc=1)
    assert found["waits"]
    assert git(tree(project), "diff", "--name-only", "--diff-filter=U") == SIZES


@pytest.mark.parametrize("what", ["dirty", "commit", "am"])
def test_work_in_the_tree_is_not_lost(patched_project: Project, what: str) -> None:
    project = patched_project
    assert project.scripts("apply").returncode == 0
    mine = tree(project) / "python/sglang/mine.py"
    mine.write_text("mine\n")
    if what == "commit":
        git(tree(project), "add", "-A")
        git(tree(project), "commit", "-q", "-m", "mine")
    if what == "am":
        mine.unlink()
        (tree(project) / ".git" / "rebase-apply").mkdir()
    before = checkout(project)
    project.upstream.release(ABOVE, "0.5.19")
    done = project.scripts("bump", "v0.5.19")
    assert done.returncode == 8
    assert "next: nox -s refresh" in done.stderr
    assert checkout(project) == before
    assert what == "am" or mine.read_text() == "mine\n"
    assert bump(project, "v0.5.19", "--dry-run")["patches"]


def test_where_it_goes_to(patched_project: Project) -> None:
    project = patched_project
    commit = project.upstream.release(ABOVE, "0.5.19")
    done = project.scripts("bump", "v9.9")
    assert done.returncode == 2
    assert "has no tag or branch v9.9" in done.stderr
    done = project.scripts("bump", "0.5.19")
    assert "next: nox -s bump -- v0.5.19" in done.stderr
    done = project.scripts("bump", commit[:12])
    assert "all 40 digits" in done.stderr
    found = bump(project, commit, "--dry-run")
    assert found["to"]["version"] == "0.5.20.dev20260821+sm120.1"
    assert bump(project, "next", "--version", "0.5.19.dev7")["done"]
    pinned = project.lock()
    assert (pinned.commit, pinned.version) == (commit, "0.5.19.dev7")
    assert pinned.requested_revision == "next"
    forced = project.upstream.release(CONTEXT, "0.5.19")
    assert bump(project, "next")["to"]["commit"] == forced


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["v0.5.19+foo"], "the tag v0.5.19+foo has the local version +foo"),
        (["--", "-x"], "'-x' is not a tag, branch or commit that upstream.lock can name"),
        (["next", "--version", "garbage"], "--version 'garbage' is not a PEP 440 version"),
        (["next", "--version", "1+l"], "--version '1+l' must be upstream's, without a local part"),
        (["v0.5.19", "--version", "x y"], "--version 'x y' is not a PEP 440 version"),
    ],
)
def test_what_the_lock_cannot_hold_is_refused_at_once(
    project: Project, words: list[str], said: str
) -> None:
    commit = project.upstream.release(ABOVE, "0.5.19", wheels=True)
    for name in ("refs/tags/v0.5.19+foo", "refs/heads/-x"):
        git(project.upstream.repo, "update-ref", name, commit)
    before = checkout(project)
    for options in (["--dry-run"], []):
        done = project.scripts("bump", *options, *words)
        assert done.returncode == 2, (done.stdout, done.stderr)
        assert said in done.stderr
    assert checkout(project) == before


def test_a_lock_that_cannot_be_rewritten_is_told_in_a_dry_run_too(project: Project) -> None:
    project.upstream.release(ABOVE, "0.5.19", wheels=True)
    path = project.root / "upstream.lock"
    plain = path.read_text().partition("[[upstream.wheels]]")[0].replace('lock-version = "1.0"', "")
    rows, table = ['lock-version = "1.0"'], ""
    for line in [*plain.split("\n"), "[distribution]", 'local = "sm120"', "revision = 1"]:
        table = f"{line[1:-1]}." if line.startswith("[") else table
        rows += [] if not line or line.startswith("[") else [f"{table}{line}"]
    path.write_text("\n".join(rows))
    done = project.scripts("bump", "v0.5.19", "--dry-run")
    assert done.returncode == 3, (done.stdout, done.stderr)
    assert "headers of their own" in done.stderr


def test_a_version_is_written_as_it_is_normally_spelled(project: Project) -> None:
    project.upstream.release(ABOVE, "0.5.19", wheels=True)
    assert bump(project, "v0.5.19", "--version", "v0.5.19")["done"]
    assert (project.lock().version, len(project.lock().wheels)) == ("0.5.19", 1)


def test_a_release_has_the_wheels_of_its_own_version_alone(project: Project) -> None:
    project.upstream.release(ABOVE, "0.5.19", wheels=True)
    assert bump(project, "v0.5.19", "--version", VERSION)["done"]
    assert project.lock().wheels == ()


@pytest.mark.parametrize("option", ["--retire", "--accept"])
def test_an_answer_about_no_patch(patched_project: Project, option: str) -> None:
    project = patched_project
    project.upstream.release(ABOVE, "0.5.19")
    done = project.scripts("bump", "v0.5.19", option, "0001", "0009")
    assert done.returncode == 2
    assert "the series has no patch 0009; it has 0001, 0002" in done.stderr
    done = project.scripts("bump", option, "v0.5.19")
    assert done.returncode == 2
    assert "bump needs a revision" in done.stderr


def test_back_to_an_older_release(patched_project: Project) -> None:
    project = patched_project
    project.upstream.release(ABOVE, "0.5.19")
    bump(project, "v0.5.19")
    done = project.scripts("bump", f"v{VERSION}")
    assert done.returncode == 0
    assert "v0.5.18 is older than v0.5.19" in done.stderr


def test_a_lock_edited_by_hand(patched_project: Project) -> None:
    project = patched_project
    git(project.root, "init", "-q")
    git(project.root, "add", "upstream.lock", "patchset")
    git(project.root, "commit", "-q", "-m", "ours")
    commit = project.upstream.release(ABOVE, "0.5.19")
    text = (project.root / "upstream.lock").read_text()
    when = "2026-08-21T21:29:24Z"
    edited = (
        text.partition("[[upstream.wheels]]")[0]
        + "[distribution]"
        + text.rpartition("[distribution]")[2]
    )
    edited = edited.replace(project.base, commit).replace(VERSION, "0.5.19")
    edited = edited.replace("2026-08-20T21:29:24Z", when)
    (project.root / "upstream.lock").write_text(edited)
    assert lock.parse(edited).commit == commit
    done = project.scripts("rebase", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"]
    assert (project.root / "upstream.lock").read_text() == edited
    again = json.loads(project.scripts("rebase", "--json").stdout)
    assert again["same"]
    git(project.root, "commit", "-qam", "bumped")
    assert ROW.strip(b" ,\n") in built(project, SIZES)


def test_where_only_the_package_index_is_reachable(patched_project: Project) -> None:
    project = patched_project
    commit = project.upstream.release(ABOVE, "0.5.19", wheels=True)
    away = project.upstream.repo.with_name("away")
    project.upstream.repo.rename(away)
    done = project.scripts("bump", "v0.5.19", "--json")
    assert done.returncode == 0, done.stderr
    assert "UNKNOWN" in done.stderr
    assert project.lock().commit == lock.UNKNOWN
    text = (project.root / "upstream.lock").read_text()
    assert 'commit-id = "unknown"' in text
    built_wheel = project.scripts("build-wheel")
    assert built_wheel.returncode == 0, built_wheel.stderr
    assert "UNKNOWN" in built_wheel.stderr
    published = project.scripts("publish")
    assert published.returncode == 0, published.stderr
    (statement,) = (project.root / "index").rglob("*.statement.json")
    assert "gitCommit" not in statement.read_text()
    assert project.scripts("lock", "--verify").returncode == 3
    away.rename(project.upstream.repo)
    verified = project.scripts("lock", "--verify")
    assert verified.returncode == 0, verified.stderr
    assert project.lock().commit == commit


KILLED = """
import os, signal, sys
from scripts.__main__ import main
left = int(sys.argv[1])
def watch(event, arguments):
    global left
    if event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
sys.exit(main(sys.argv[2:]))
"""


def killed_after(project: Project, changes: int, *words: str) -> int:
    """Run the command line and kill it at a change of the file system; its return code."""
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(changes), *words, "--root", str(project.root)],
        cwd=Path(__file__).parent.parent,
        env=project.environment(),
        capture_output=True,
        check=False,
    ).returncode


@pytest.mark.parametrize("start", [0, 9])
def test_a_kill_at_any_moment(patched_project: Project, start: int) -> None:
    project = patched_project
    old = checkout(project)
    project.upstream.release(ABOVE, "0.5.19")
    assert bump(project, "v0.5.19", "--dry-run")["patches"]  # everything is in the store now
    seen = set()
    for changes in range(start, 400, 23):
        for path in [*project.patchset.glob("*.patch"), project.root / "CHANGELOG.md"]:
            path.unlink(missing_ok=True)
        for name, content in old.items():
            folder = project.root if name == "upstream.lock" else project.patchset
            (folder / name).write_bytes(content)
        code = killed_after(project, changes, "bump", "v0.5.19")
        assert project.scripts("status").returncode == 0
        new = project.lock().version == "0.5.19"
        assert new or checkout(project) == old
        assert bump(project, "v0.5.19")["same" if new else "done"]
        final = checkout(project)
        seen.add(tuple(sorted(final.items())))
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert len(seen) == 1, "wherever it was killed, it came to the same end"


@pytest.mark.parametrize("start", [0, 7])
def test_a_kill_on_the_way_to_a_conflict(patched_project: Project, start: int) -> None:
    project = patched_project
    old = checkout(project)
    project.upstream.release(OURS_OTHERWISE, "0.5.19")
    assert bump(project, "v0.5.19", "--dry-run", rc=1)
    for changes in range(start, 400, 19):
        code = killed_after(project, changes, "bump", "v0.5.19")
        assert checkout(project) == old
        status = project.scripts("status")
        assert status.returncode == 0, status.stderr
        if "under way" in status.stdout:
            done = project.scripts("bump", "--continue")
            assert done.returncode in (1, 8)
            assert (
                "is not resolved: python/sglang/sizes.py" in done.stderr or "stopped" in done.stdout
            )
            assert project.scripts("bump", "--abort").returncode == 0
        assert checkout(project) == old
        assert not tree(project).exists()
        if code != -signal.SIGKILL:
            break
    found = bump(project, "v0.5.19", rc=1)
    assert found["waits"]


CUT = """
import os, subprocess, sys
pack = subprocess.Popen(["git-upload-pack", *sys.argv[1:]], stdout=subprocess.PIPE)
left = 5000
while left > 0 and (some := os.read(pack.stdout.fileno(), left)):
    os.write(1, some)
    left -= len(some)
pack.kill()
"""


def test_a_network_that_is_cut(patched_project: Project, tmp_path: Path) -> None:
    """The host's side of the fetch ends in the middle; a second run has it all."""
    project = patched_project
    assert project.scripts("apply").returncode == 0
    before = checkout(project)
    noise = hashlib.shake_128(b"noise").hexdigest(20_000).encode()
    project.upstream.release({SIZES: b"# %b\n" % noise + FILES[SIZES]}, "0.5.19")
    cut = tmp_path / "upload-pack"
    cut.write_text(f"#!{sys.executable}\n{CUT}")
    cut.chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(f'[remote "origin"]\n\tuploadpack = {cut}\n')
    done = project.scripts("bump", "v0.5.19", GIT_CONFIG_GLOBAL=str(config))
    assert done.returncode == 6, (done.stdout, done.stderr)
    assert "could not be fetched" in done.stderr
    assert checkout(project) == before
    assert bump(project, "v0.5.19")["done"]


def test_a_conflict_settled_for_upstream_leaves_nothing(project: Project) -> None:
    """A resolution that keeps upstream's lines takes the patch out, and the changelog says so."""
    project.add_patch({SIZES: FILES[SIZES].replace(b"}\n", ROW + b"}\n")}, "row")
    project.add_patch({GATE: FILES[GATE].replace(b"(9, 10)", b"(9, 10, 12)")}, "gate")
    project.upstream.release(OURS_OTHERWISE, "0.5.19")
    assert bump(project, "v0.5.19", rc=1)["waits"]
    (tree(project) / SIZES).write_bytes(OURS_OTHERWISE[SIZES])
    git(tree(project), "add", SIZES)
    found = bump(project, "--continue")
    assert found["done"]
    assert sorted(fates(found)) == ["dropped", "unchanged"]
    assert [one.number for one in series.load(project.patchset).patches] == ["0002"]
    assert "- Retired 0001 (row)" in (project.root / "CHANGELOG.md").read_text()
