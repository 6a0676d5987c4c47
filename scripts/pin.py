"""The lock against the world: the tag at the git host, and the wheel against the commit."""

from scripts import source
from scripts.errors import CommandFailed, LockError, raise_all
from scripts.git import CommitId
from scripts.lock import UNKNOWN, Lock
from scripts.source import Route
from scripts.workspace import Workspace


def check(lock: Lock, workspace: Workspace) -> str:
    """What the git host says of the locked commit, as a sentence.

    Raises LockError where the requested revision is at another commit there, or where the locked
    id is an annotated tag's. Where the host is out of reach, the sentence says so.
    """
    if workspace.offline:
        return "the git host was not asked (--offline)"
    if lock.commit == UNKNOWN:
        return "the commit is UNKNOWN; `nox -s lock -- --verify` fills it in"
    revision = lock.requested_revision
    try:
        refs = source.list_remote(lock, workspace, f"{revision}*")
    except CommandFailed as error:
        reason = error.output.strip().splitlines()[-1:] or ["no answer"]
        return f"the git host was not asked: it is out of reach ({reason[0]})"
    if revision == lock.commit:
        return "the requested revision is the commit itself"
    tag = refs.get(f"refs/tags/{revision}")
    found = refs.get(f"refs/tags/{revision}^{{}}") or tag or refs.get(f"refs/heads/{revision}")
    if found == lock.commit:
        return f"{revision} is at {lock.commit}"
    raise _not_there(lock, tag, found)


def _not_there(lock: Lock, tag: CommitId | None, found: CommitId | None) -> LockError:
    revision = lock.requested_revision
    if found is None:
        return LockError(
            f"{lock.url} has no tag or branch {revision}", then=f"git ls-remote {lock.url}"
        )
    if tag == lock.commit:
        return LockError(
            f"commit-id {lock.commit} is the id of the annotated tag {revision}, not of a commit",
            then=f'set commit-id = "{found}" in upstream.lock',
        )
    return LockError(
        f"{revision} has moved: upstream.lock has {lock.commit}, {lock.url} has {found}",
        then="find out why it moved before you pin the new commit",
    )


def compare(lock: Lock, workspace: Workspace) -> int:
    """Compare every file that the release wheel and the commit share; returns their number.

    Needs both routes. Raises LockError that lists the files that differ. What a wheel cannot
    hold is told and passed over: symbolic links, and executable bits that its build lost.
    """
    git = source.obtain(lock, workspace, Route.GIT)
    wheel = source.obtain(lock, workspace, Route.WHEEL)
    shared = {
        path for path in wheel.tree if path not in git.tree or git.tree[path].mode != "120000"
    }
    for path in sorted(set(wheel.tree) - shared):
        workspace.say(f"{path} is a symbolic link in the commit, a file in the wheel")
    lost = [path for path in shared & set(git.tree) if git.tree[path].mode != wheel.tree[path].mode]
    if lost:
        workspace.say(f"{len(lost)} files have another executable bit in the wheel")
    findings = [
        f"{path} is in the wheel and not in the commit"
        if path not in git.tree
        else f"{path}: blob {git.tree[path].blob} in git, {wheel.tree[path].blob} in the wheel"
        for path in sorted(shared)
        if path not in git.tree or git.tree[path].blob != wheel.tree[path].blob
    ]
    raise_all(LockError, findings, then="do not build from this lock until this is explained")
    return len(shared)
