"""The store: fetched once, blobs on demand, mirrors through git's settings, safe from kills."""

from pathlib import Path

import pytest

from scripts import files, patched, series, source
from scripts.errors import CommandFailed, SourceError
from scripts.git import Repository
from scripts.source import Route
from tests import upstream
from tests.upstream import OTHER, Project, git


def store(project: Project) -> Repository:
    return Repository(git_dir=project.root / ".cache" / "store.git", environment={})


def test_depth_one_and_blobs_on_demand(patched_project: Project) -> None:
    project = patched_project
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace, Route.GIT)
    objects = base.store.objects()
    blobs = {path: entry.blob for path, entry in base.tree.items()}
    assert not any(objects.has(blob) for blob in blobs.values())
    assert (base.store.git_dir / "shallow").read_text().split() == [project.base]
    patched.apply(base, series.load(project.patchset), workspace)
    objects = base.store.objects()
    here = {path for path, blob in blobs.items() if objects.has(blob)}
    assert here == {"python/sglang/sizes.py", "python/sglang/gate.py"}


def test_no_blob_is_fetched_unasked(project: Project) -> None:
    """git itself would fetch a missing blob of a partial clone as soon as it is read."""
    base = source.obtain(project.lock(), project.workspace(), Route.GIT)
    blob = base.tree["README.md"].blob
    with pytest.raises(CommandFailed):
        base.store.run("cat-file", "blob", blob)
    with pytest.raises(KeyError):
        base.store.objects().read(blob)
    source.complete(base, ["README.md"])
    assert base.store.objects().read(blob) == upstream.FILES["README.md"]


def test_the_host_is_asked_once(patched_project: Project) -> None:
    project = patched_project
    assert project.scripts("apply").returncode == 0
    files.remove(project.upstream.repo)
    files.remove(project.root / "build")
    done = project.scripts("apply", "--route", "git")
    assert done.returncode == 0, done.stderr
    assert "in the cache" in done.stdout


def test_a_mirror_through_the_users_settings(project: Project, tmp_path: Path) -> None:
    project.write_lock(url="https://git.invalid/upstream.git")
    config = tmp_path / "gitconfig"
    config.write_text(
        f'[url "{project.upstream.repo.as_uri()}"]\n\tinsteadOf = https://git.invalid/upstream.git\n'
    )
    done = project.scripts("apply", "--route", "git", GIT_CONFIG_GLOBAL=str(config))
    assert done.returncode == 0, done.stderr


def test_a_commit_that_the_host_does_not_have(project: Project) -> None:
    project.write_lock(commit="1" * 40)
    with pytest.raises(SourceError, match=r"1{40} could not be fetched"):
        source.obtain(project.lock(), project.workspace(), Route.GIT)


def test_a_cache_that_a_kill_cut_off(project: Project) -> None:
    """Left-over locks, a half-made store, a half-fetched pack, a ref without its commit."""
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace, Route.GIT)
    git_dir = base.store.git_dir
    for lock in ("shallow.lock", "config.lock", f"refs/pins/git/{project.base}.lock"):
        (git_dir / lock).write_text("")
    (workspace.cache / ".store.git.1234.new").mkdir()
    (git_dir / "objects" / "pack" / "tmp_pack_x").write_bytes(b"PACK")
    for pack in (git_dir / "objects" / "pack").glob("pack-*"):
        pack.chmod(0o644)
        pack.write_bytes(pack.read_bytes()[:20])
    again = source.obtain(project.lock(), workspace, Route.GIT)
    assert again.tree == base.tree
    assert not (workspace.cache / ".store.git.1234.new").exists()


def test_an_import_that_a_kill_cut_off(project: Project) -> None:
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace, Route.WHEEL)
    for pack in (base.store.git_dir / "objects" / "pack").glob("pack-*"):
        pack.chmod(0o644)
        pack.write_bytes(pack.read_bytes()[:20])
    again = source.obtain(project.lock(), workspace, Route.WHEEL)
    assert (again.commit, again.tree) == (base.commit, base.tree)


def test_the_wheels_commit_has_the_trees_paths_and_blobs(project: Project) -> None:
    workspace = project.workspace()
    from_git = source.obtain(project.lock(), workspace, Route.GIT)
    from_wheel = source.obtain(project.lock(), workspace, Route.WHEEL)
    package = {p: e for p, e in from_git.tree.items() if p.startswith("python/sglang/")}
    assert from_wheel.tree == package
    assert from_wheel.commit != from_git.commit


def test_the_import_is_the_same_on_every_machine(project: Project) -> None:
    """A constant: the release wheel's files, our identity and the commit's time, and no more."""
    base = source.obtain(project.lock(), project.workspace(), Route.WHEEL)
    stored = base.store.run("cat-file", "commit", base.commit).decode()
    who = f"sglang-sm120 <sglang-sm120@users.noreply.invalid> {upstream.TIME} +0000"
    assert f"author {who}\ncommitter {who}\n\n" in stored
    assert "parent" not in stored


def test_blobs_that_cannot_be_fetched_any_more(patched_project: Project) -> None:
    project = patched_project
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace, Route.GIT)
    files.remove(project.upstream.repo)
    with pytest.raises(SourceError, match="2 files of commit"):
        patched.apply(base, series.load(project.patchset), workspace)


def test_a_host_without_partial_clones(patched_project: Project) -> None:
    project = patched_project
    git(project.upstream.repo, "config", "uploadpack.allowFilter", "false")
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace, Route.GIT)
    assert len(patched.apply(base, series.load(project.patchset), workspace).commits) == 2


def test_credentials_stay_out_of_messages(project: Project) -> None:
    """The address that a mirror setting leads to may hold a password."""
    project.write_lock(url="https://git.invalid/upstream.git")
    config = project.root / "gitconfig"
    config.write_text(
        '[url "http://me:hush@127.0.0.1:9/x"]\n\tinsteadOf = https://git.invalid/upstream.git\n'
    )
    done = project.scripts("apply", "--route", "git", GIT_CONFIG_GLOBAL=str(config))
    assert done.returncode == 6
    assert "hush" not in done.stderr + done.stdout


def test_the_first_pinned_wheel_serves_where_none_fits(project: Project) -> None:
    (wheel,) = (path for path in project.wheels if OTHER in path.name)
    alone = Project(project.root, project.upstream, project.base, (wheel,))
    alone.write_lock()
    base = source.obtain(alone.lock(), alone.workspace(), Route.WHEEL)
    assert "python/sglang/gate.py" in base.tree
