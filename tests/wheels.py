"""Small wheels made by hand, and an environment for tests that has pytest already."""

import site
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from scripts import environment, wheelfile
from tests.upstream import Project


def small_wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str] | None = None,
    *,
    requires: str = "",
) -> Path:
    """A pure wheel of one package that knows its VERSION."""
    info = f"{name}-{version}.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    members = {
        f"{name}/__init__.py": f"VERSION = {version!r}\n",
        **{f"{name}/{path}": text for path, text in (files or {}).items()},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [wheelfile.record_line(path, text.encode()) for path, text in members.items()]
    members[f"{info}/RECORD"] = "".join(record) + f"{info}/RECORD,,\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
    return path


def ready(project: Project) -> Project:
    """`project` with the lists of upstream-tests/, and packages that need no installation.

    They are those of the interpreter which runs this, pytest among them.
    """
    folder = project.root / "upstream-tests"
    folder.mkdir()
    names = ("requirements", "constraints", "no-deps", "alone", "also", "deselect")
    for name in names:
        (folder / f"{name}.txt").write_text("")
    workspace = project.workspace()
    base = environment.packages(environment.requirements(workspace), workspace)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    below = base / "lib" / version / "site-packages" / "below.pth"
    below.write_text("".join(f"{path}\n" for path in site.getsitepackages()))
    return project
