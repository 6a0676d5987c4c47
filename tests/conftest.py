"""Fixtures: a small upstream, and a checkout of ours on it, in folders of the test's own."""

import shutil
from pathlib import Path

import pytest

from scripts import ratchet
from scripts.ratchet import Ratchet
from tests import upstream
from tests.upstream import HERE, OTHER, Project, Upstream, git


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    """The small upstream with its release wheels, made once; copy it before you change it."""
    made = upstream.make(tmp_path_factory.mktemp("release"))
    for tag in (str(HERE), OTHER):
        upstream.release_wheel(made, tag)
    return made


@pytest.fixture
def project(release: Upstream, tmp_path: Path) -> Project:
    """A checkout with a lock on a copy of the small upstream, and an empty series."""
    copied = Upstream(tmp_path / "upstream", tmp_path / "shelf")
    shutil.copytree(release.repo, copied.repo)
    shutil.copytree(release.shelf, copied.shelf)
    root = tmp_path / "project"
    (root / "patchset").mkdir(parents=True)
    (root / "patchset" / "series").write_text("# in the order in which they are applied\n")
    made = Project(
        root=root,
        upstream=copied,
        base=git(copied.repo, "rev-parse", "HEAD"),
        wheels=tuple(sorted(copied.shelf.glob("*.whl"))),
    )
    made.write_lock()
    (root / "patchset" / "gates.toml").write_text(ratchet.format(Ratchet(all_reduce=(), known=())))
    return made


@pytest.fixture
def patched_project(project: Project) -> Project:
    """The same with two patches: a changed file and a test, and a second change on top."""
    sizes = upstream.FILES["python/sglang/sizes.py"]
    once = sizes.replace(b"    10: [4, 6, 8],\n", b"    10: [4, 6, 8],\n    12: [6, 8],\n")
    test = b"def test_sizes():\n    assert True\n"
    files = {"python/sglang/sizes.py": once, "test/registered/unit/test_sizes.py": test}
    project.add_patch(files, "sizes: a row for 12")
    gate = upstream.FILES["python/sglang/gate.py"].replace(b"(9, 10)", b"(9, 10, 12)")
    twice = once.replace(b"[6, 8]", b"[6, 8]  # 12")
    project.add_patch(
        {"python/sglang/gate.py": gate, "python/sglang/sizes.py": twice}, "gate: open it for 12"
    )
    return project
