"""What is tested: upstream's wheel, ours, and those of parts of the series, each installed."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts import build, environment, fetch, files, overlay, release
from scripts.build import Job
from scripts.environment import Environment
from scripts.lock import ReleaseWheel
from scripts.patched import Patched

_PRISTINE, _PATCHED = _KEPT = ("pristine", "patched")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """The wheels of `job` for this interpreter, each in an environment on the same `packages`."""

    job: Job
    release: ReleaseWheel
    packages: Path

    def pristine(self) -> Environment:
        """Upstream's own wheel. Raises FetchError or InstallError."""
        wheel = fetch.wheel(self.release, self.job.workspace)
        return environment.with_wheel(self.packages, wheel, _PRISTINE, self.job.workspace)

    def patched(self, describe: Callable[[Patched], dict[str, object]]) -> Environment:
        """The wheel in dist/, built where it is not there yet. Raises what build.wheels does."""
        (built,) = build.wheels(self.job, (self.release,), describe)
        return environment.with_wheel(self.packages, built.path, _PATCHED, self.job.workspace)

    @contextmanager
    def part(self, patched: Patched, name: str) -> Iterator[Environment]:
        """The wheel of another series, for as long as it is needed."""
        workspace = self.job.workspace
        base = fetch.wheel(self.release, workspace)
        with tempfile.TemporaryDirectory() as folder:
            wheel = Path(folder) / overlay.file_name(self.job.lock, self.release.tag)
            overlay.overlay(overlay.prepare(patched), self.release, base, wheel)
            made = environment.with_wheel(self.packages, wheel, name, workspace)
        try:
            yield made
        finally:
            files.remove(made.folder)


@contextmanager
def subjects(job: Job) -> Iterator[Subjects]:
    """The wheels of `job`; the packages below them are installed on first use, in minutes.

    They are held against other runs, which would install other wheels in their place. Raises
    UsageError where no wheel is pinned for this interpreter, and InstallError.
    """
    workspace = job.workspace
    chosen = release.for_interpreter(job.lock)
    with files.exclusive(workspace.cache / "environments"):
        base = environment.packages(environment.requirements(workspace), workspace)
        for folder in (base / "wheels").glob("*/"):
            if folder.name not in _KEPT:
                files.remove(folder)  # a part of the series, from a run that was killed
        yield Subjects(job=job, release=chosen, packages=base)
