"""The Python environments that SGLang's own tests run in.

One folder holds the pinned packages, gigabytes that are installed once; on top of it each wheel
under test has a small environment of its own, so that pristine and patched differ in it alone.
"""

import hashlib
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts import files
from scripts.errors import CommandFailed, InstallError
from scripts.proc import run
from scripts.workspace import Workspace

_STAMP = "complete"
_HOUR = 3600.0
_LAYER = "import site; site.addsitedir({packages!r})\n"
_SCHEMAS = """

# Added for the tests: the compiled operators are of a CUDA build that this torch cannot load, and
# without their schemas nothing that imports torchvision can be imported.
if not _has_ops():
    _schemas = torch.library.Library("torchvision", "DEF")
    _schemas.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _schemas.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
_CANNOT = (  # what pip says of the one that it gave up on, the more telling first
    re.compile(r"Failed to build '(?P<name>[^'\n]+)'"),
    re.compile(r"Failed building wheel for (?P<name>\S+)"),
    re.compile(r"error while generating package metadata\.\n\W*(?P<name>[\w.-]+)"),
    re.compile(r"No matching distribution found for (?P<name>[^\s(]+)"),
)
_CONFLICT = re.compile(r"The conflict is caused by:\n(?P<sides>(?:[ \t]+\S.*\n)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What the packages folder is made of: the texts of three requirement files of pip's.

    `direct` is what SGLang and its tests import, `constraints` pins all of it, and `alone` is
    installed without dependencies.
    """

    direct: Path
    constraints: Path
    alone: Path

    @property
    def key(self) -> str:
        """A hash of all that the packages folder depends on."""
        texts = [path.read_text() for path in (self.direct, self.constraints, self.alone)]
        parts = [*texts, _SCHEMAS, sys.version, sys.platform, platform.machine()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An interpreter that has the packages and one wheel; `key` names both."""

    key: str
    folder: Path
    packages: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        """The folder that the wheel was installed into."""
        return _site(self.folder)

    @property
    def path(self) -> str:
        """The folders of its programs, as PATH has them."""
        return f"{self.folder / 'bin'}:{self.packages / 'bin'}"


def requirements(workspace: Workspace) -> Requirements:
    """The requirements in upstream-tests/."""
    folder = workspace.root / "upstream-tests"
    return Requirements(
        direct=folder / "requirements.txt",
        constraints=folder / "constraints.txt",
        alone=folder / "no-deps.txt",
    )


def packages(wanted: Requirements, workspace: Workspace) -> Path:
    """The environment of the packages alone: made on first use, which takes minutes.

    One that a kill cut off has no stamp, and is made again. It is built in its place: the
    programs in it name their interpreter by its path. Raises InstallError.
    """
    home = workspace.cache / "environments"
    folder = home / wanted.key
    with files.exclusive(home):
        if (folder / _STAMP).exists():
            return folder
        if workspace.offline:
            raise InstallError(
                f"the packages that SGLang's tests need are not in the cache ({folder}), "
                "and --offline was given",
                then="run this again without --offline",
            )
        files.remove(folder)
        for old in home.glob("*/"):
            files.remove(old)  # of other requirements: gigabytes that nobody will use
        with workspace.progress("install what SGLang's tests need"):
            _venv(folder, workspace)
            _install_packages(wanted, folder, workspace)
        _repair(folder)
        (folder / _STAMP).touch()
    return folder


def with_wheel(base: Path, wheel: Path, name: str, workspace: Workspace) -> Environment:
    """The environment `name` on top of the packages at `base`, with `wheel` installed.

    What is there with this very wheel is left as it is. Raises InstallError.
    """
    folder = base / "wheels" / name
    digest = files.sha256(wheel)
    key = f"{base.name}-{digest[:16]}"
    made = Environment(key=key, folder=folder, packages=base)
    with files.exclusive(folder.parent):
        stamp = folder / _STAMP
        if stamp.exists() and stamp.read_text() == digest:
            return made
        files.remove(folder)
        _venv(folder, workspace)
        layer = _LAYER.format(packages=str(_site(base)))
        (made.site / "packages-below.pth").write_text(layer)
        _pip(folder, workspace, "--no-deps", "--no-index", "--no-compile", str(wheel))
        stamp.write_text(digest)
    return made


def _site(folder: Path) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return folder / "lib" / version / "site-packages"


def _venv(folder: Path, workspace: Workspace) -> None:
    words = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    run(words, env=dict(workspace.environment), timeout=_HOUR)


def _install_packages(wanted: Requirements, folder: Path, workspace: Workspace) -> None:
    pins = ["--constraint", str(wanted.constraints)]
    _pip(folder, workspace, *pins, "--requirement", str(wanted.direct))
    _pip(folder, workspace, "--no-deps", "--requirement", str(wanted.alone))


def _pip(folder: Path, workspace: Workspace, *words: str) -> None:
    """Install through this interpreter's pip and its settings into the environment at `folder`."""
    quiet = ("--disable-pip-version-check", "--no-input", "--no-warn-script-location")
    argv = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    lines: list[str] = []
    try:
        run(
            [*argv, *quiet, *words],
            env=dict(workspace.environment),
            timeout=_HOUR,
            on_line=lines.append,
        )
    except CommandFailed as error:
        said = "\n".join([*lines, error.output])
        raise InstallError(
            f"{_culprit(said)}:\n{error.output}",
            then="check `pip config list` and upstream-tests/, and run this again",
        ) from error


def _culprit(said: str) -> str:
    """Which requirement pip could not install, and what needs it, in words."""
    conflict = _CONFLICT.search(said)
    if conflict:
        sides = "; ".join(line.strip() for line in conflict["sides"].splitlines())
        return f"no set of packages fits what SGLang's tests need: {sides}"
    found = next(filter(None, (pattern.search(said) for pattern in _CANNOT)), None)
    if found is None:
        return "pip could not install what SGLang's tests need"
    name = found["name"]
    needed = re.search(rf"[ /]{re.escape(name)}\S* \(from (?!versions:)(?P<by>[^()]+)", said)
    by = f"; it is needed by {needed['by'].strip()}" if needed else ""
    return f"{name} cannot be installed{by}"


def _repair(folder: Path) -> None:
    """Make two packages importable whose compiled parts are of another build of torch.

    Both are what a CPU build of torch meets; where the parts can be loaded they stay.
    """
    site = _site(folder)
    extension = site / "torchvision" / "extension.py"
    if extension.exists():
        with extension.open("a") as file:
            file.write(_SCHEMAS)
    library = site / "torchaudio" / "lib"
    torch = (site / "torch" / "version.py").read_text() if library.exists() else ""
    if re.search(r"^cuda\b.*= None$", torch, re.MULTILINE):
        files.remove(library)
