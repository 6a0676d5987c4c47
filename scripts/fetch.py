"""Release files, by name and hash, from whichever package index pip is set up for."""

import re
import sys
import tempfile
from pathlib import Path

from packaging.utils import parse_wheel_filename

from scripts import files
from scripts.errors import CommandFailed, FetchError
from scripts.lock import ReleaseWheel
from scripts.proc import run
from scripts.workspace import Workspace

_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")


def wheel(release: ReleaseWheel, workspace: Workspace) -> Path:
    """The pinned wheel's file in the cache, fetched if it is not there yet.

    A cached file with another hash is set aside. Raises FetchError.
    """
    path = workspace.cache / "wheels" / release.name
    with files.exclusive(path.parent):
        if path.exists():
            if files.sha256(path) == release.sha256:
                return path
            aside = files.set_aside(path)
            workspace.say(f"{path.name}: cached file has another hash, set aside as {aside.name}")
        if workspace.offline:
            raise FetchError(
                f"{release.name} is not in the cache ({path.parent}), and --offline was given",
                then="run this again without --offline",
            )
        _download(release, path, workspace)
    return path


def listed(project: str, workspace: Workspace) -> tuple[str, ...]:
    """The file names of all wheels of `project` that the package index has, sorted.

    pip tells of each link that it looks at, and of each that it passes over (--verbose twice).
    Raises FetchError.
    """
    words = [*_PIP, "index", "versions", project, "--pre", "-vv"]
    try:
        with workspace.progress(f"ask the package index for {project}"):
            said = run(words, env=dict(workspace.environment)).decode(errors="replace")
    except CommandFailed as error:
        last = error.output.strip().splitlines()[-1:] or ["no answer"]
        raise FetchError(
            f"pip could not list the releases of {project}: {last[0]}",
            then=f"check `pip config list`, and try `pip index versions {project}`",
        ) from error
    names = re.findall(rf"\b{re.escape(project)}-[0-9][\w.+!]*(?:-[\w.]+){{3}}\.whl\b", said)
    return tuple(sorted(set(names)))


def measured(name: str, workspace: Workspace) -> ReleaseWheel:
    """A wheel's size and hash, of the file in the cache, or else as the package index has it now.

    A name has one hash for ever: that of the first time is kept beside the file. Raises FetchError.
    """
    path = workspace.cache / "wheels" / name
    with files.exclusive(path.parent):
        if not path.exists():
            if workspace.offline:
                raise FetchError(f"{name} is not in the cache, and --offline was given")
            with tempfile.TemporaryDirectory(dir=path.parent, prefix=".", suffix=".new") as folder:
                _pip_download(name, Path(folder), workspace)
                (Path(folder) / name).replace(path)
        found = ReleaseWheel(name=name, size=path.stat().st_size, sha256=files.sha256(path))
        kept = path.with_name(f"{name}.sha256")
        if not kept.exists():
            with files.replacing(kept) as new:
                new.write_text(f"{found.sha256}\n")
        if kept.read_text().strip() != found.sha256:
            raise FetchError(
                f"{name} has another hash than when it was first seen: {found.sha256}",
                then=f"find out why; to start anew, remove {path} and {kept.name} beside it",
            )
        return found


def _download(release: ReleaseWheel, path: Path, workspace: Workspace) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".", suffix=".new") as folder:
        new = Path(folder) / release.name
        _pip_download(release.name, Path(folder), workspace, release)
        _check(new, release)
        new.replace(path)


def _pip_download(
    name: str, folder: Path, workspace: Workspace, locked: ReleaseWheel | None = None
) -> None:
    try:
        with workspace.progress(f"fetch {name}", locked.size if locked else None) as advance:

            def on_line(line: str) -> None:
                if found := _PROGRESS.fullmatch(line):
                    advance(int(found[1]))

            words = _words(name, folder, locked)
            run(words, env=dict(workspace.environment), on_line=on_line)
    except CommandFailed as error:
        what = f"{name} with the locked hash" if locked else name
        raise FetchError(
            f"pip could not fetch {what}:\n{error.output}",
            then="check `pip config list`, or wait for the network, and run this again",
        ) from error
    if not (folder / name).exists():
        raise FetchError(f"pip ended well without {name}", then="pip --version")


def _words(name: str, folder: Path, locked: ReleaseWheel | None) -> list[str | Path]:
    """pip's own words for one wheel of one platform: index, proxy and credentials are its."""
    project, version, _, _ = parse_wheel_filename(name)
    python, abi, platform = name.removesuffix(".whl").split("-", 2)[2].split("-")
    requirement = folder / "requirement.txt"
    pinned = f" --hash=sha256:{locked.sha256}" if locked else ""
    requirement.write_text(f"{project}=={version}{pinned}\n")
    return [
        *(*_PIP, "download", "--no-input"),
        *("--no-deps", "--only-binary", ":all:", "--progress-bar", "raw"),
        *("--implementation", python[:2], "--python-version", python[2:], "--abi", abi),
        *(word for name in platform.split(".") for word in ("--platform", name)),
        *("--dest", folder, "--requirement", requirement),
    ]


def _check(path: Path, release: ReleaseWheel) -> None:
    size, digest = path.stat().st_size, files.sha256(path)
    if (size, digest) != (release.size, release.sha256):
        raise FetchError(
            f"{release.name}: locked are {release.size} bytes with sha256 {release.sha256}, "
            f"fetched were {size} with {digest}",
            then="python -m scripts lock --check",
        )
