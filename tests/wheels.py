"""Small wheels made by hand, and an environment for tests that has pytest already."""

import os
import shutil
import site
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from scripts import environment, wheelfile
from scripts.workspace import Workspace
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


LISTS = ("requirements", "constraints", "no-deps", "alone", "also", "deselect", "affected")


def packages(folder: Path) -> Path:
    """A cache folder `environments` for empty requirements that has our own packages in it.

    Nothing is installed: they are those of the interpreter which runs this, pytest among them.
    """
    _write_lists(folder)
    workspace = Workspace(
        root=folder, cache=folder / "cache", environment={"PATH": os.environ["PATH"]}
    )
    base = environment.packages(environment.requirements(workspace), workspace)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    below = base / "lib" / version / "site-packages" / "below.pth"
    below.write_text("".join(f"{path}\n" for path in site.getsitepackages()))
    return workspace.cache / "environments"


def ready(project: Project, environments: Path) -> Project:
    """`project` with the lists of upstream-tests/, and with such a folder in its cache."""
    _write_lists(project.root)
    shutil.copytree(environments, project.root / ".cache" / "environments", symlinks=True)
    return project


def _write_lists(root: Path) -> None:
    (root / "upstream-tests").mkdir()
    for name in LISTS:
        (root / "upstream-tests" / f"{name}.txt").write_text("")
