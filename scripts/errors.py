"""What can go wrong in a way that the user can act on: one root, and an exit code for each kind."""

from collections.abc import Sequence
from typing import ClassVar


class Error(Exception):
    """Says what failed and where, and in `then` the next thing to type."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, then: str | None = None) -> None:
        super().__init__(what)
        self.then = then

    def __str__(self) -> str:
        what = super().__str__()
        return f"{what}\n  next: {self.then}" if self.then else what


class UsageError(Error):
    """The command line asks for something that does not exist."""

    exit_code = 2


class LockError(Error):
    """upstream.lock is malformed, or does not describe what is there."""

    exit_code = 3


class SeriesError(Error):
    """patchset/series or a patch is malformed."""

    exit_code = 4


class ApplyError(Error):
    """A well-formed patch does not apply to its base."""

    exit_code = 5


class SourceError(Error):
    """The pinned source cannot be had, or is not what the lock says."""

    exit_code = 6


class FetchError(Error):
    """A release file cannot be had, or is not what the lock says."""

    exit_code = 7


class TreeError(Error):
    """The work tree holds something that would be lost."""

    exit_code = 8


class WheelError(Error):
    """A wheel cannot be read, overlaid or built."""

    exit_code = 9


class VerifyError(Error):
    """A wheel is not what it says it is."""

    exit_code = 10


class PostconditionError(Error):
    """A patched tree is not what its patches are for."""

    exit_code = 20


class GateError(Error):
    """A gate of upstream's wants a decision, or patchset/gates.toml is malformed."""

    exit_code = 21


class CommandFailed(Error):
    """A program that we ran exited with an error, or could not be started.

    `returncode` is None where it could not be started or ran out of time; `output` is what it
    said on standard error, else on standard output.
    """

    exit_code = 11

    def __init__(self, command: str, *, returncode: int | None, output: str) -> None:
        ended = "did not end" if returncode is None else f"exited with {returncode}"
        super().__init__(f"`{command}` {ended}" + (f":\n{output}" if output else ""))
        self.returncode = returncode
        self.output = output


class InstallError(Error):
    """An environment for SGLang's own tests cannot be made."""

    exit_code = 22


class FailedTests(Error):
    """SGLang's own tests say that the series broke something, or that a patch does nothing."""

    exit_code = 23


class PublishError(Error):
    """An index refuses a wheel, or cannot be read or written."""

    exit_code = 12


def raise_all(kind: type[Error], findings: Sequence[str], *, then: str | None = None) -> None:
    """Raise one `kind` that lists every finding; return where there is none."""
    if len(findings) == 1:
        raise kind(findings[0], then=then)
    if findings:
        lines = "".join(f"\n  - {finding}" for finding in findings)
        raise kind(f"{len(findings)} problems:{lines}", then=then)
