"""Wheels to a repository: hashes are compared first, and twine sends what is not there."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import facts, proc, repository, revision
from scripts.errors import CommandFailed, PublishError, UsageError, raise_all
from scripts.facts import Facts
from scripts.repository import Repository
from scripts.workspace import Workspace

PATIENCE = 900  # seconds that one wheel may take
_SETTLE = (0.0, 0.2, 0.5, 1.0, 2.0)  # seconds until a server must list what it took


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """What was sent, and the names that the repository had with the same bytes."""

    repository: Repository
    new: tuple[Facts, ...]
    same: tuple[str, ...]


def upload(
    wheels: Sequence[Path], to: Repository, workspace: Workspace, *, patience: float = PATIENCE
) -> Uploaded:
    """Send `wheels` to the repository `to`, each within `patience` seconds.

    Nothing is sent where any name is there with other bytes. A run that is cut off sends the rest
    when it is run again. Raises PublishError, and WheelError or VerifyError for wheels that must
    not be published.
    """
    read = [facts.read(path) for path in wheels]
    projects = {each.project for each in read}
    if len(projects) != 1:
        raise UsageError("wheels of one project at a time", then="nox -s build_wheel")
    project = projects.pop()
    missing = _missing(read, to, project)
    with workspace.progress(f"upload to {to.name}", len(missing)) as advance:
        for number, each in enumerate(missing, 1):
            _send(each, to, project, workspace, patience)
            advance(number)
    same = tuple(each.name for each in read if each not in missing)
    return Uploaded(repository=to, new=tuple(missing), same=same)


def _missing(read: Sequence[Facts], to: Repository, project: str) -> list[Facts]:
    """The wheels that the repository does not list. Raises PublishError for other bytes."""
    listed = to.listed(project)
    findings = [
        f"{to.name} has {each.name} with sha256 {digest}, this one has {each.sha256}"
        for each in read
        if each.name in listed
        for digest in [to.sha256(listed[each.name])]
        if digest != each.sha256
    ]
    raise_all(PublishError, findings, then=revision.WAY_OUT)
    return [each for each in read if each.name not in listed]


def _send(each: Facts, to: Repository, project: str, workspace: Workspace, patience: float) -> None:
    environment = repository.twines(to, workspace.environment)
    said = ""
    try:
        proc.run(repository.twine(to, each.path), env=environment, timeout=patience)
    except CommandFailed as error:
        said = to.redact(error.output)
    for pause in _SETTLE if not said else _SETTLE[:1]:
        time.sleep(pause)
        if _there(each, to, project):
            return  # also where another publisher sent the same bytes meanwhile
    what = f":\n{said}" if said else ": it took the file, and does not list it"
    raise PublishError(
        f"{each.name} could not be uploaded to {to.name}{what}",
        then="see what the server says, and run this again: what is there already is left out",
    ) from None


def _there(each: Facts, to: Repository, project: str) -> bool:
    return not _missing([each], to, project)
