"""A tree's gates, read straight from a repository; and whatever upstream may hold."""

from pathlib import Path

import pytest

from scripts import audit, build
from scripts.gate import Gate, Kind
from scripts.git import CommitId, Repository
from scripts.source import Route
from tests.upstream import Project, git

GATE = b"def f():\n    return is_sm90_supported() or is_sm100_supported()\n"
SRT = "python/sglang/srt"


def test_files_that_cannot_be_read_are_reported_and_the_rest_is_audited() -> None:
    marked = b"# is_sm100_supported\n"
    files = {
        "latin.py": marked + b"x = '\xe4'\n",
        "broken.py": marked + b"def f(:\n",
        "python2.py": marked + b"print 'x'\n",
        "null.py": marked + b"x = '\0'\n",
        "deep.py": marked + b"x = " + b"-" * 100_000 + b"1\n",
        "deeper.py": marked + b"x = " + b"(" * 5_000 + b")" * 5_000 + b"\n",
        "long.py": marked + b"x = a" + b".b" * 100_000 + b"\n",
        "unknown.py": b"# coding: klingon\n" + marked,
        "huge.py": marked + b"#" * audit.LARGEST,
        "good.py": GATE,
        "empty.py": b"",
    }
    found = audit.audit(files.items())
    assert found.files == len(files)
    assert [gate.path for gate in found.gates] == ["good.py"]
    assert {file.path for file in found.unread} == set(files) - {"good.py", "empty.py"}
    assert all(file.why for file in found.unread)


def test_a_declared_encoding_and_windows_line_ends_are_read() -> None:
    latin = b"# -*- coding: latin-1 -*-\nname = '\xe4'\n" + GATE
    (first, second) = audit.audit([("a.py", latin), ("b.py", GATE.replace(b"\n", b"\r\n"))]).gates
    assert (first.line, second.line) == (4, 2)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"{SRT}/a.py", True),
        (f"{SRT}/layers/b.py", True),
        (f"{SRT}/layers/test_b.py", False),
        (f"{SRT}/layers/tests/b.py", False),
        (f"{SRT}/latest/contest.py", True),
        (f"{SRT}/a.cu", False),
        (f"{SRT}_other/a.py", False),
        ("test/a.py", False),
    ],
)
def test_what_is_audited(path: str, expected: bool) -> None:
    assert audit.is_audited(path, audit.UNDER) is expected


def test_a_lookup_counts_only_where_its_table_lacks_12_in_whichever_file() -> None:
    use = b"from a import SIZES\nx = SIZES.get(torch.cuda.get_device_capability()[0])\n"
    without = audit.audit([("a.py", b"SIZES = {9: 1, 10: 2}\n"), ("b.py", use)])
    assert [gate.kind for gate in without.gates] == [Kind.TABLE, Kind.LOOKUP]
    with_row = audit.audit([("a.py", b"SIZES = {9: 1, 10: 2, 12: 3}\n"), ("b.py", use)])
    assert with_row.gates == ()


def test_a_revision_of_a_repository_is_read_without_a_work_tree(project: Project) -> None:
    repo = project.upstream.repo
    project.upstream.commit({f"{SRT}/a.py": GATE, f"{SRT}/data.bin": b"\0", "b.py": GATE})
    (repo / SRT / "link.py").symlink_to("a.py")
    commit = CommitId(project.upstream.commit({}))
    (repo / SRT / "a.py").write_text("changed in the work tree\n")
    store = Repository(git_dir=repo / ".git", environment=project.environment())
    found = audit.of_tree(store, store.tree(commit))
    assert [(gate.path, gate.line) for gate in found.gates] == [(f"{SRT}/a.py", 2)]
    assert found.files == 1


def test_a_series_covers_the_gates_that_are_gone_after_a_patch(project: Project) -> None:
    table = b"SIZES = {9: 1, 10: 2}\n"
    use = b"def g():\n    return SIZES.get(torch.cuda.get_device_capability()[0])\n"
    files: dict[str, bytes | None] = {
        f"{SRT}/a.py": GATE,
        f"{SRT}/table.py": table,
        f"{SRT}/use.py": use,
        f"{SRT}/b.py": GATE,
    }
    base = project.upstream.commit(files)
    project.write_lock(commit=base, revision="main")
    project.add_patch({f"{SRT}/use.py": use.replace(b"def g", b"def h")}, "rename a function")
    project.add_patch({f"{SRT}/table.py": table.replace(b"}", b", 12: 3}")}, "a row")
    opened = GATE.replace(b"return ", b"return is_sm120_supported() or ")
    project.add_patch({f"{SRT}/a.py": opened}, "open it")
    found, by = audit.of_series(build.job(project.workspace(), Route.GIT).patched())
    covered = {Path(key[0]).name: patch for key, patch in by.items()}
    assert covered == {"table.py": "0002", "use.py": "0002", "a.py": "0003"}
    assert len(found.gates) == 4  # of the pristine tree


def test_the_verb_records_compares_and_stops(project: Project) -> None:
    path = f"{SRT}/distributed/a.py"
    base = project.upstream.commit({path: GATE, f"{SRT}/b.py": GATE})
    project.write_lock(commit=base, revision="main")
    (project.patchset / "gates.toml").unlink()
    missing = project.scripts("audit")
    assert missing.returncode == 21
    assert "gates.toml does not exist" in missing.stderr
    record = project.patchset / "gates.toml"
    record.write_text(f'all-reduce = ["{SRT}/distributed/*"]\n')
    new = project.scripts("audit")
    assert new.returncode == 21
    assert f"undecided: {path}:2" in " ".join(new.stdout.split())
    assert project.scripts("audit", "--write").returncode == 21
    text = record.read_text()
    assert text.count("undecided") == 2  # the header has one
    record.write_text(text.replace('"undecided"', '"accepted"\nwhy = "it is fine"'))
    sarif, markdown = project.root / "out" / "a.sarif", project.root / "a.md"
    done = project.scripts("audit", "--json", "--sarif", str(sarif), "--markdown", str(markdown))
    assert done.returncode == 0, done.stdout
    assert '"status": "accepted"' in done.stdout
    assert sarif.stat().st_size
    assert "### accepted (1)" in markdown.read_text()


def test_a_bump_says_what_was_not_looked_into(project: Project) -> None:
    files = {f"{SRT}/a.py": b"# is_sm90\nx = '\0'\n", f"{SRT}/b.py": b"print 'is_sm90'\n"}
    project.upstream.release(files, "0.5.19")
    for words in (["--dry-run"], ["--json"]):
        done = project.scripts("bump", "v0.5.19", *words)
        assert done.returncode == 0, done.stderr
        for path in files:
            assert f"{path} was not read, so its gates are not known: " in done.stderr


def test_the_verb_says_which_commit_brought_a_gate(project: Project) -> None:
    project.upstream.commit({f"{SRT}/a.py": b"x = 1\n"})
    brought = project.upstream.commit({f"{SRT}/a.py": b"x = 1\n" + GATE}, "a gate")
    project.upstream.commit({f"{SRT}/a.py": b"x = 1\n\n\n" + GATE}, "blank lines")
    (project.patchset / "gates.toml").write_text("all-reduce = []\n")
    clone = str(project.upstream.repo)
    done = project.scripts("audit", "--json", "--repository", clone, "--revision", "main")
    assert done.returncode == 0, done.stderr
    assert f'"commit": "{brought}"' in done.stdout
    assert '"title": "a gate"' in done.stdout
    assert git(project.upstream.repo, "status", "--porcelain") == ""
    wrong = project.scripts("audit", "--repository", clone, "--revision", "nothing")
    assert wrong.returncode == 2


def test_a_file_is_looked_into_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{SRT}/a.py"
    base = project.upstream.commit({path: GATE, f"{SRT}/b.py": b"is_sm90 = (\n"})
    project.write_lock(commit=base, revision="main")
    applied = build.job(project.workspace(), Route.GIT).patched()
    first, _ = audit.of_series(applied)
    assert [gate.path for gate in first.gates] == [path]
    assert [one.path for one in first.unread] == [f"{SRT}/b.py"]
    looked: list[str] = []

    def look(path: str, content: bytes) -> tuple[Gate, ...]:
        looked.append(path)
        return ()

    monkeypatch.setattr(audit, "of_file", look)
    assert audit.of_series(applied)[0].gates == first.gates
    assert looked == [f"{SRT}/b.py"], "what cannot be read is looked into again"
    (memo,) = (project.root / ".cache" / "gates").iterdir()
    memo.write_text('{"not": "a memo')
    audit.of_series(applied)
    assert path in looked
