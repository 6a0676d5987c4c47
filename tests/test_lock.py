"""upstream.lock: what is wrong is told by key and line; the git host and the wheels are asked."""

from pathlib import Path

import pytest

from scripts import files, lock, pin
from scripts.errors import LockError
from tests import upstream
from tests.upstream import Project, git

REAL = Path(__file__).parent.parent / "upstream.lock"


def test_the_real_lock() -> None:
    pinned = lock.load(REAL)
    assert pinned.distribution_version == f"{pinned.version}+sm120.{pinned.revision}"
    assert {wheel.tag.split("-")[0] for wheel in pinned.wheels} == {
        "cp310",
        "cp311",
        "cp312",
        "cp313",
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('lock-version = "1.0"', 'lock-version = "2.0"', 1, "lock-version: must be 1.0"),
        ('lock-version = "1.0"', "", 1, "lock-version: is missing"),
        ('version = "0.5.18"', 'version = "0.5.x"', 4, "upstream.version: is not a PEP 440"),
        ('version = "0.5.18"', 'version = "0.5.18+cu130"', 4, "without a local part"),
        ('type = "git"', 'type = "svn"', 6, 'upstream.vcs.type: must be "git"'),
        ('type = "git"', "type = 1", 6, "upstream.vcs.type: must be a string"),
        ("commit-time = ", "commit-time = 2026-08-20T21:29:24 #", 10, "must have an offset"),
        ("commit-time = ", "commit-time = 3 #", 10, "must be a date and time"),
        ('subdirectory = "python"', 'subdirectory = "../x"', 11, "a relative path inside"),
        ("size = ", "size = -1 #", 14, "wheels.0.size: must be 1 or more"),
        ("size = ", "size = true #", 14, "wheels.0.size: must be a whole number"),
        ("sha256 = ", 'sha256 = "00" } #', 15, "wheels.0.hashes.sha256: is not 64"),
        ("sglang-0.5.18-", "sglang-0.5.17-", 13, "is no file of sglang 0.5.18"),
        ('name = "sglang-', 'name = "x" #', 13, "is no wheel's file name"),
        ('local = "sm120"', 'local = "SM_120"', 21, "distribution.local: is not a PEP 440"),
        ("revision = 1", "revision = 0", 22, "distribution.revision: must be 1 or more"),
        ("revision = 1", "revison = 1", 22, "distribution.revison: is not a key"),
        ("[upstream.vcs]", "[upstream.hg]", 6, "upstream.hg.type: is not a key"),
        ('url = "file://', 'url = "https://me:secret@', 7, "holds a password"),
        ('url = "file://', 'url = "--upload-pack=', 7, "is not a URL"),
        ("requested-revision = ", 'requested-revision = "" #', 8, "is not a tag"),
    ],
)
def test_a_malformed_lock(project: Project, old: str, new: str, line: int, message: str) -> None:
    text = upstream.lock_text(project)
    assert old in text
    with pytest.raises(LockError, match=r"upstream\.lock:") as caught:
        lock.parse(text.replace(old, new, 1))
    assert message in str(caught.value)
    assert f"upstream.lock:{line}:" in str(caught.value)


def test_a_commit_id_that_is_cut_short(project: Project) -> None:
    text = upstream.lock_text(project, commit=project.base[:12])
    with pytest.raises(LockError, match=r"lock:9: upstream\.vcs\.commit-id: is neither 40 hex"):
        lock.parse(text)


def test_no_toml_at_all(project: Project) -> None:
    with pytest.raises(LockError, match=r"upstream\.lock:2: not TOML"):
        lock.parse('lock-version = "1.0"\n[[[\n')


def test_a_wheel_that_stands_twice(project: Project) -> None:
    text = upstream.lock_text(project)
    table = text[text.index("[[upstream.wheels]]") :].partition("\n[[")[0]
    with pytest.raises(LockError, match="stands twice"):
        lock.parse(text.replace(table, f"{table}\n{table}", 1))


def test_all_problems_at_once(project: Project) -> None:
    text = upstream.lock_text(project).replace("revision = 1", "revision = 0")
    text = text.replace('type = "git"', 'type = "svn"')
    with pytest.raises(LockError, match="2 problems"):
        lock.parse(text)


def test_no_lock(project: Project) -> None:
    (project.root / "upstream.lock").unlink()
    done = project.scripts("lock", "--check")
    assert done.returncode == 3
    assert "does not exist" in done.stderr


def test_check_a_good_lock(project: Project) -> None:
    assert pin.check(project.lock(), project.workspace()) == f"v0.5.18 is at {project.base}"


def test_an_annotated_tags_own_id(project: Project) -> None:
    tag = git(project.upstream.repo, "rev-parse", "v0.5.18")
    project.write_lock(commit=tag)
    with pytest.raises(LockError, match=f"id of the annotated tag v0.5.18(.|\n)*{project.base}"):
        pin.check(project.lock(), project.workspace())
    done = project.scripts("apply")
    assert done.returncode == 3
    assert "is the id of an annotated tag" in done.stderr


def test_a_tag_that_moved(project: Project) -> None:
    new = project.upstream.commit({"README.md": b"moved\n"})
    git(project.upstream.repo, "tag", "-f", "-a", "v0.5.18", "-m", "moved")
    with pytest.raises(LockError, match=f"v0.5.18 has moved: (.*){project.base}(.*){new}"):
        pin.check(project.lock(), project.workspace())


def test_a_revision_that_is_not_there(project: Project) -> None:
    project.write_lock(revision="nowhere")
    with pytest.raises(LockError, match="no tag or branch nowhere"):
        pin.check(project.lock(), project.workspace())


def test_a_branch_is_a_revision(project: Project) -> None:
    project.write_lock(revision="main")
    assert pin.check(project.lock(), project.workspace()) == f"main is at {project.base}"


def test_check_says_when_the_host_is_out_of_reach(project: Project) -> None:
    files.remove(project.upstream.repo)
    assert "out of reach" in pin.check(project.lock(), project.workspace())
    assert "--offline" in pin.check(project.lock(), project.workspace(offline=True))


def test_a_wrong_commit_time(project: Project) -> None:
    project.write_lock(time="2026-08-20T21:29:25Z")
    done = project.scripts("apply", "--route", "git")
    assert done.returncode == 3
    assert "2026-08-20T21:29:24Z" in done.stderr


def test_verify_compares_every_shared_file(project: Project) -> None:
    shared = pin.compare(project.lock(), project.workspace())
    package = [name for name in upstream.FILES if name.startswith("python/sglang/")]
    assert shared == len(package)


def test_verify_finds_a_wheel_that_is_not_of_the_commit(project: Project) -> None:
    other = dict(upstream.FILES) | {
        "python/sglang/gate.py": b"other\n",
        "python/sglang/more.py": b"more\n",
    }
    for path in project.wheels:
        tag = path.name.removeprefix("sglang-0.5.18-").removesuffix(".whl")
        upstream.release_wheel(project.upstream, tag, files=other)
    project.write_lock()
    with pytest.raises(LockError) as caught:
        pin.compare(project.lock(), project.workspace())
    assert "python/sglang/gate.py: blob" in str(caught.value)
    assert "python/sglang/more.py is in the wheel and not in the commit" in str(caught.value)


def test_a_tag_of_another_release(project: Project) -> None:
    project.write_lock(revision="v0.5.17")
    with pytest.raises(LockError, match=r"requested-revision: is no tag of version 0\.5\.18"):
        project.lock()
    project.write_lock(revision="release/v0.5.17")
    assert project.lock().version == "0.5.18"
