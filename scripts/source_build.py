"""A wheel built from the patched tree by its own build backend (PEP 517, through `build`)."""

import sys
import tempfile
from pathlib import Path

from scripts import files, notice, repack, sbom, verify, wheelfile, worktree
from scripts.errors import CommandFailed, UsageError, WheelError
from scripts.patched import Patched
from scripts.proc import run
from scripts.repack import Member
from scripts.source import Route
from scripts.workspace import Workspace

_HOUR = 3600.0


def build(patched: Patched, workspace: Workspace) -> Path:
    """Build the patched tree into dist/ and return the wheel's path.

    The version is given through setuptools-scm's environment variable. Raises WheelError with
    what the backend said, and UsageError on the wheel route, which lacks what a build needs.
    """
    lock = patched.base.lock
    if patched.base.route is not Route.GIT:
        raise UsageError(
            f"the source came from the release wheel ({patched.base.why}), which holds no build",
            then="nox -s build_wheel -- --from-source --route git",
        )
    workspace.build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workspace.build, prefix=".", suffix=".new") as folder:
        tree = Path(folder) / "tree"
        worktree.make(patched, tree, workspace)
        _stamp(patched, tree)
        with workspace.progress(f"build {lock.name} {lock.distribution_version} from source"):
            built = _backend(patched, tree, Path(folder) / "out", workspace)
        wheel = Path(folder) / built.name
        _add_bill(patched, built, wheel)
        verify.verify_source_build(wheel, patched)
        path = workspace.dist / built.name
        with files.exclusive(workspace.dist), files.replacing(path) as new:
            wheel.rename(new)
    return path


def _stamp(patched: Patched, tree: Path) -> None:
    lock = patched.base.lock
    for change in patched.changed:
        shipped = change.path.startswith(f"{lock.subdirectory}/{lock.name}/")
        if shipped and change.before is not None and change.after is not None:
            path = tree / change.path
            said = notice.text(lock, change.patches)
            path.write_bytes(notice.stamp(change.path, path.read_bytes(), said))


def _backend(patched: Patched, tree: Path, out: Path, workspace: Workspace) -> Path:
    lock = patched.base.lock
    env = dict(workspace.environment) | {
        f"SETUPTOOLS_SCM_PRETEND_VERSION_FOR_{lock.name.upper()}": lock.distribution_version,
        "SOURCE_DATE_EPOCH": str(lock.epoch),
    }
    project = tree / lock.subdirectory
    words = [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(project)]
    try:
        run(words, env=env, timeout=_HOUR)
    except CommandFailed as error:
        raise WheelError(f"the build from source failed:\n{error.output}") from error
    wheels = list(out.glob("*.whl"))
    if len(wheels) != 1 or not wheels[0].name.startswith(
        f"{lock.name}-{lock.distribution_version}-"
    ):
        names = ", ".join(path.name for path in wheels) or "no wheel"
        raise WheelError(f"the backend made {names}, not one of {lock.distribution_version}")
    return wheels[0]


def _add_bill(patched: Patched, built: Path, new: Path) -> None:
    lock = patched.base.lock
    with wheelfile.opened(built) as wheel:
        bill = Member(content=sbom.make(lock, patched.series, None))
        repack.repack(
            wheel,
            {f"{wheel.dist_info}/sboms/{sbom.NAME}": bill},
            new,
            dist_info=wheel.dist_info,
            epoch=lock.epoch,
        )
