"""The build from source, by a real backend on the small upstream."""

import zipfile
from pathlib import Path

import pytest

from tests import upstream
from tests.upstream import Project


def build(project: Project) -> Path:
    """Build with the backend that upstream asks for, through pip's real settings."""
    done = project.scripts("build-wheel", "--from-source", connected=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = (project.root / "dist").glob("*.whl")
    return wheel


@pytest.fixture
def compiled(patched_project: Project) -> Project:
    """The series ends with a patch that only a build can bring into a wheel."""
    toml = upstream.FILES["python/pyproject.toml"].replace(b'"small"', b'"compiled"')
    patched_project.add_patch({"python/pyproject.toml": toml}, "a patch that needs a build")
    return patched_project


def test_it_says_what_it_is(compiled: Project) -> None:
    wheel = build(compiled)
    assert wheel.name == "sglang-0.5.18+sm120.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert b"version = '0.5.18+sm120.1'" in archive.read("sglang/_version.py")
        assert archive.read("sglang/gate.py").startswith(b"# Changed from sglang 0.5.18")
        assert "sglang-0.5.18+sm120.1.dist-info/sboms/sglang-sm120.cdx.json" in names
    done = compiled.scripts("verify", str(wheel))
    assert done.returncode == 0, done.stderr


def test_verify_finds_a_changed_file(compiled: Project) -> None:
    wheel = build(compiled)
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["sglang/run.sh"] += b"evil\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    done = compiled.scripts("verify", str(wheel))
    assert done.returncode == 10
    assert "sglang/run.sh is not what RECORD says" in done.stderr
    assert "sglang/run.sh is not the patched tree's" in done.stderr


def test_a_build_ends_with_its_proof(compiled: Project) -> None:
    """The backend leaves a patched file out."""
    toml = upstream.FILES["python/pyproject.toml"].replace(b'["sglang*"]', b'["sglang"]')
    toml = toml.replace(b'"**/*"', b'"*.json"')
    toml += b"[tool.setuptools]\ninclude-package-data = false\n"
    files = {"python/pyproject.toml": toml, "python/sglang/old/gone.py": b"OLD = 2\n"}
    compiled.add_patch(files, "narrow")
    done = compiled.scripts("build-wheel", "--from-source", connected=True)
    assert done.returncode == 10, done.stderr
    assert "sglang/old/gone.py is missing" in done.stderr
    assert not list((compiled.root / "dist").glob("*.whl"))


def test_the_wheel_route_holds_no_build(compiled: Project) -> None:
    done = compiled.scripts("build-wheel", "--from-source", "--route", "wheel")
    assert done.returncode == 5  # the patch to pyproject.toml has no pre-image there
    (compiled.patchset / "series").write_text("")
    for path in compiled.patchset.glob("*.patch"):
        path.unlink()
    done = compiled.scripts("build-wheel", "--from-source", "--route", "wheel")
    assert done.returncode == 2
    assert "next: nox -s build_wheel -- --from-source --route git" in done.stderr


def test_a_backend_that_fails(project: Project) -> None:
    toml = upstream.FILES["python/pyproject.toml"].replace(b"setuptools.build_meta", b"nothing")
    toml = toml.replace(b'requires = ["setuptools>=61", "setuptools-scm>=8"]', b"requires = []")
    project.add_patch({"python/pyproject.toml": toml}, "break the backend")
    done = project.scripts("build-wheel", "--from-source")
    assert done.returncode == 9
    assert "the build from source failed" in done.stderr
    assert not list((project.root / "dist").glob("*.whl"))
    assert not list((project.root / "build").glob("*.new"))
