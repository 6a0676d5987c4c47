"""A release installed from its index, in a clean environment, by the lines that users are given."""

import shutil
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from scripts import index, installed, proc, serve, snippets
from scripts.errors import CommandFailed, UsageError, VerifyError
from scripts.index import Catalog
from scripts.installed import Installed
from scripts.shelf import Shelf, checked
from scripts.workspace import Workspace

_LIMIT = 1800  # seconds that an installer may take


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An installation that is what it should be, and the command that made it."""

    installer: str
    command: str
    installed: Installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A clean environment at `folder`, to be filled with one version from the index at `url`.

    `hosted` says that users find it there, and with it the files that name that address.
    """

    folder: Path
    project: str
    version: str
    url: str
    hosted: bool
    hashes: Sequence[str]
    workspace: Workspace

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *words: str | Path) -> str:
        """Run a command in the room; returns it as a person would type it."""
        try:
            proc.run(words, env=self.workspace.environment, cwd=self.folder.parent, timeout=_LIMIT)
        except CommandFailed as error:
            raise VerifyError(
                f"{self.project} {self.version} cannot be installed from {self.url}:\n{error}",
                then="check that the release has a wheel for this interpreter (index/index.html)",
            ) from error
        return " ".join(str(word) for word in words if word != self.python)


def try_out(
    shelf: Shelf, version: str, workspace: Workspace, *, url: str | None = None
) -> tuple[Trial, ...]:
    """Install `version` with pip and with uv from the index at `url`, and prove both.

    Without `url` the folder of `shelf` is served on loopback meanwhile. What was installed is
    compared with the wheel in `shelf`. Raises VerifyError, and UsageError where the version is
    not published or uv is missing.
    """
    hosted = checked(url) if url is not None else None
    catalog = shelf.catalog()
    if not catalog.of(version):
        listed = ", ".join(catalog.versions) or "nothing"
        raise UsageError(f"{version} is not published; published are: {listed}")
    for reason in {str(file.yanked) for file in catalog.of(version) if file.yanked}:
        workspace.say(f"{version} is yanked ({reason}): it installs for who asks for it by name")
    hashes = [index.sha256_of(file) for file in catalog.of(version)]
    installers: dict[str, Callable[[Room], str]] = {"pip": _pip, "uv": _uv}
    trials = []
    with nullcontext(hosted) if hosted else _served(shelf.folder) as address:
        for name, install in installers.items():
            with (
                workspace.progress(f"install with {name}"),
                tempfile.TemporaryDirectory() as folder,
            ):
                room = Room(
                    folder=Path(folder).resolve() / "environment",
                    project=catalog.project,
                    version=version,
                    url=address,
                    hosted=hosted is not None,
                    hashes=hashes,
                    workspace=workspace,
                )
                command = install(room)
                wheel = published(shelf, catalog, room.python, workspace)
                proved = installed.verify(room.python, wheel, workspace)
                trials.append(Trial(installer=name, command=command, installed=proved))
    return tuple(trials)


def published(shelf: Shelf, catalog: Catalog, python: Path, workspace: Workspace) -> Path:
    """The published wheel that `python` says it has installed, with the record's hash.

    Raises VerifyError where no published wheel is of that version and tag, or its file is not
    what was published; UsageError where the project is not installed.
    """
    seen = installed.look(python, catalog.project, workspace)
    for file in catalog.files:
        tag = file.filename.removesuffix(".whl").split("-", 2)[2]
        if str(index.version_of(file)) == seen.versions[0] and seen.tags & _expanded(tag):
            return shelf.intact(file)
    raise VerifyError(
        f"{python} has {catalog.project} {seen.versions[0]} ({', '.join(sorted(seen.tags))}), "
        f"which is not published in {shelf.folder}",
        then=f"pip install '{snippets.requirement(catalog.project, (*catalog.versions, '')[0])}', "
        "or name the wheel",
    )


def _expanded(tag: str) -> set[str]:
    """The single tags of a compressed one (PEP 425)."""
    python, abi, platform = (part.split(".") for part in tag.split("-"))
    return {f"{a}-{b}-{c}" for a in python for b in abi for c in platform}


def _pip(room: Room) -> str:
    room.run(sys.executable, "-m", "venv", room.folder)
    lines = snippets.requirements(room.project, room.version, room.url, room.hashes)
    (room.folder.parent / "requirements.txt").write_text(lines)
    command, _ = snippets.lines(room.project, room.version, room.url)
    words = command.split()
    if not room.hosted:
        words[-1] = "requirements.txt"
    clean = ("--no-cache-dir", "--disable-pip-version-check", "--no-input")
    return room.run(room.python, "-m", *words, *clean)


def _uv(room: Room) -> str:
    uv = shutil.which("uv", path=sysconfig.get_path("scripts")) or shutil.which(
        "uv", path=room.workspace.environment.get("PATH")
    )
    if uv is None:
        raise UsageError("uv is not installed", then=f"{sys.executable} -m pip install uv")
    room.run(uv, "venv", "--no-cache", "--python", sys.executable, room.folder)
    tables = snippets.uv(room.project, room.version, room.url)
    named = tables.replace("[project]\n", '[project]\nname = "trial"\nversion = "0"\n', 1)
    (room.folder.parent / "pyproject.toml").write_text(named)
    return room.run(
        *(uv, "pip", "install", "--no-cache", "--python", room.folder, "--no-deps"),
        *("--requirement", "pyproject.toml"),
    )


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The index in `folder` on a free port of loopback; yields the URL of its simple/."""
    listening, server = serve.ready(folder, host=serve.LOOPBACK, port=0)
    with listening:
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield serve.address(listening)
        finally:
            server.should_exit = True
            thread.join()
