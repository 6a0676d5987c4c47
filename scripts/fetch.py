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


def _download(release: ReleaseWheel, path: Path, workspace: Workspace) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".", suffix=".new") as folder:
        new = Path(folder) / release.name
        try:
            with workspace.progress(f"fetch {release.name}", release.size) as advance:

                def on_line(line: str) -> None:
                    if found := _PROGRESS.fullmatch(line):
                        advance(int(found[1]))

                run(
                    _pip_download(release, Path(folder)),
                    env=dict(workspace.environment),
                    on_line=on_line,
                )
        except CommandFailed as error:
            raise FetchError(
                f"pip could not fetch {release.name} with the locked hash:\n{error.output}",
                then="check `pip config list`, or wait for the network, and run this again",
            ) from error
        _check(new, release)
        new.replace(path)


def _pip_download(release: ReleaseWheel, folder: Path) -> list[str | Path]:
    """pip's own words for one wheel of one platform: index, proxy and credentials are its."""
    project, version, _, _ = parse_wheel_filename(release.name)
    python, abi, platform = release.tag.split("-")
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{project}=={version} --hash=sha256:{release.sha256}\n")
    return [
        *(sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input"),
        *("--no-deps", "--only-binary", ":all:", "--progress-bar", "raw"),
        *("--implementation", python[:2], "--python-version", python[2:], "--abi", abi),
        *(word for name in platform.split(".") for word in ("--platform", name)),
        *("--dest", folder, "--requirement", requirement),
    ]


def _check(path: Path, release: ReleaseWheel) -> None:
    if not path.exists():
        raise FetchError(f"pip ended well without {release.name}", then="pip --version")
    size, digest = path.stat().st_size, files.sha256(path)
    if (size, digest) != (release.size, release.sha256):
        raise FetchError(
            f"{release.name}: locked are {release.size} bytes with sha256 {release.sha256}, "
            f"fetched were {size} with {digest}",
            then="python -m scripts lock --check",
        )
