"""What an environment has installed, proved against the wheel that it should have come from.

pip and uv check the hash of a wheel at most, and never what lies in the environment afterwards:
files of an older version may linger, another folder may shadow it, bytecode may be old.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from scripts import probe, proc, sbom, wheelfile
from scripts.errors import CommandFailed, UsageError, VerifyError, raise_all
from scripts.wheelfile import Wheel
from scripts.workspace import Workspace

_SHOWN = 5  # of many files with the same problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What an interpreter finds of a project: distributions, and where an import would go.

    `tags` are those of the first distribution's wheel; `stale` are modules whose bytecode differs.
    """

    versions: tuple[str, ...]
    folders: tuple[Path, ...]
    tags: frozenset[str]
    origin: Path | None
    locations: tuple[Path, ...]
    stale: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A proved installation: where it is, its version, how many files were compared."""

    folder: Path
    version: str
    files: int
    patched: tuple[str, ...]


def look(python: Path, project: str, workspace: Workspace, *, modules: Sequence[str] = ()) -> Seen:
    """Ask the interpreter `python` what it would import as `project`; nothing of it is run.

    `modules` are paths below site-packages whose bytecode is compared. Raises UsageError where
    the interpreter does not run, or does not have the project.
    """
    asked = json.dumps({"project": project, "modules": list(modules)}).encode()
    code = Path(probe.__file__).read_text()
    with tempfile.TemporaryDirectory() as empty:
        try:
            answer = proc.run(
                [python, "-c", code], env=workspace.environment, cwd=Path(empty), input=asked
            )
        except CommandFailed as error:
            raise UsageError(
                f"{python} cannot be asked: {error.output}", then="--python ENVIRONMENT/bin/python"
            ) from error
    said = json.loads(answer)
    if not said["versions"]:
        raise UsageError(f"{project} is not installed for {python}", then="install it first")
    marked = [line.partition(": ") for line in said["tags"][0]]
    return Seen(
        versions=tuple(said["versions"]),
        folders=tuple(map(Path, said["folders"])),
        tags=frozenset(value for key, _, value in marked if key == "Tag"),
        origin=Path(said["origin"]) if said["origin"] else None,
        locations=tuple(map(Path, said["locations"])),
        stale=tuple(said["stale"]),
    )


def verify(python: Path, wheel: Path, workspace: Workspace) -> Installed:
    """Prove that `python` imports exactly the files of `wheel`.

    One distribution of the wheel's version; every file with the wheel's content, and none beside
    them in its packages; the import goes there and nowhere else; the bytecode of patched modules
    is theirs. What a wheel puts elsewhere (.data) is not looked at. Raises VerifyError that lists
    everything that is not so, UsageError where the project is not installed.
    """
    with wheelfile.opened(wheel) as opened:
        project, version = opened.dist_info.removesuffix(".dist-info").split("-")
        patched = _patched(opened)
        seen = look(python, project, workspace, modules=patched)
        folder = seen.folders[0]
        names = [name for name, info in opened.members.items() if not info.is_dir()]
        findings = [
            *_identity(seen, project, version),
            *_content(opened, names, folder),
            *_strays(opened, names, folder),
            *(f"{name}: its bytecode is that of another file" for name in seen.stale),
        ]
        raise_all(
            VerifyError,
            [f"{folder}: {finding}" for finding in findings],
            then=f"{python} -m pip uninstall {project}, remove what is left, and install it again",
        )
    return Installed(folder=folder, version=version, files=len(names), patched=patched)


def _patched(wheel: Wheel) -> tuple[str, ...]:
    """The members that the series changes, from the wheel's bill."""
    name = f"{wheel.dist_info}/sboms/{sbom.NAME}"
    if name not in wheel.members:
        raise VerifyError(f"{wheel.path.name}: {name} is missing", then="nox -s build_wheel")
    paths = {path for item in sbom.parse(wheel.read(name)).items for path in item.paths}
    members = (path.partition("/")[2] for path in paths)
    return tuple(sorted(member for member in members if member in wheel.members))


def _identity(seen: Seen, project: str, version: str) -> Iterator[str]:
    if len(seen.versions) > 1:
        yield f"{project} is installed {len(seen.versions)} times: {', '.join(seen.versions)}"
    if seen.versions[0] != version:
        yield f"{project} {seen.versions[0]} is installed, not {version}"
    package = seen.folders[0] / project
    if seen.origin != package / "__init__.py":
        yield f"`import {project}` takes {seen.origin}, not {package}"
    elif seen.locations != (package,):
        yield f"`import {project}` also looks in {', '.join(map(str, seen.locations))}"


def _content(wheel: Wheel, names: Sequence[str], folder: Path) -> Iterator[str]:
    """Each file of the wheel against the one on disk, by the hash of its content."""
    missing, other = [], []
    record = f"{wheel.dist_info}/RECORD"
    for name, line in wheel.record().items():
        if name == record or ".data/" in name or name not in names:
            continue
        path = folder / name
        if not path.is_file():
            missing.append(name)
        elif wheelfile.record_line(name, path.read_bytes()) != f"{line.rstrip()}\n":
            other.append(name)
    yield from _few(missing, "is missing")
    yield from _few(other, "is not what the wheel has")


def _strays(wheel: Wheel, names: Sequence[str], folder: Path) -> Iterator[str]:
    """Files in the wheel's packages that are not the wheel's: an older version's, or anybody's."""
    tops = {PurePosixPath(name).parts[0] for name in names if "/" in name}
    tops -= {top for top in tops if top.endswith((".dist-info", ".data"))}
    known = set(names)
    strays = [
        path.relative_to(folder).as_posix()
        for top in sorted(tops)
        for path in sorted((folder / top).rglob("*"))
        if not path.is_dir() and "__pycache__" not in path.parts
    ]
    yield from _few([name for name in strays if name not in known], "is not of this version")


def _few(names: Sequence[str], what: str) -> Iterator[str]:
    for name in names[:_SHOWN]:
        yield f"{name} {what}"
    if len(names) > _SHOWN:
        yield f"and {len(names) - _SHOWN} more files: each {what}"
