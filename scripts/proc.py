"""Running a program: the only module that starts one."""

import contextlib
import os
import re
import secrets
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from scripts.errors import CommandFailed

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s'\"]+@")


def redact(text: str) -> str:
    """`text` without the user names and passwords of its URLs."""
    return _CREDENTIALS.sub("", text)


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    input: bytes | Iterable[bytes] = b"",
    timeout: float | None = None,
    on_line: Callable[[str], None] | None = None,
    accept: Collection[int] = (0,),
) -> bytes:
    """Run `argv` to its end and return its standard output.

    `env` is the whole environment; `timeout` is in seconds. `on_line` sees each line of standard
    output as it comes. `accept` lists the exit statuses that are no failure. Raises
    CommandFailed, in which credentials in URLs are left out.
    """
    words = [str(word) for word in argv]
    command = redact(shlex.join(words))
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
        stdin.writelines([input] if isinstance(input, bytes) else input)
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                words, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, env=dict(env), cwd=cwd
            )
        except OSError as error:
            raise CommandFailed(command, returncode=None, output=str(error)) from error
        with process:
            try:
                stdout = _read(process, timeout, on_line)
            except subprocess.TimeoutExpired as error:
                process.kill()
                said = f"no answer after {timeout:g} s"
                raise CommandFailed(command, returncode=None, output=said) from error
            except BaseException:
                process.kill()
                raise
        if process.returncode not in accept:
            stderr.seek(0)
            said = _tail(stderr.read() or stdout)
            raise CommandFailed(command, returncode=process.returncode, output=said)
    return stdout


def _read(
    process: subprocess.Popen[bytes],
    timeout: float | None,
    on_line: Callable[[str], None] | None,
) -> bytes:
    if on_line is None:
        return process.communicate(timeout=timeout)[0]
    assert process.stdout is not None
    lines = []
    with nullcontext() if timeout is None else _deadline(process, timeout):
        for line in process.stdout:
            lines.append(line)
            on_line(line.decode(errors="replace").rstrip())
        process.wait()
    return b"".join(lines)


@contextmanager
def _deadline(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Kill `process` where the block takes longer, and raise TimeoutExpired at its end."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if late.is_set():
        raise subprocess.TimeoutExpired(process.args, seconds)


def _tail(output: bytes, lines: int = 30) -> str:
    return redact("\n".join(output.decode(errors="replace").strip().splitlines()[-lines:]))


class Group:
    """A running program with whatever it starts: what it leaves behind can be ended with it.

    `log` receives both of its outputs. The program's parent is a shell of its own, so that one
    which kills its parent does not hit us. `limit` is the largest file it may write, in bytes.
    Where we are killed, a pipe that we hold closes, and the shell kills the group.
    """

    _MARK = "SGLANG_SM120_GROUP"
    _SHELL = (
        "exec 3<&0; ulimit -f {blocks}; { read -r _ <&3; kill -KILL 0; } & "
        'env {mark} "$@" 3<&- </dev/null; exit $?'
    )

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        limit: int,
    ) -> None:
        mark = f"{self._MARK}={secrets.token_hex(8)}"
        self._mark = mark.encode()
        shell = self._SHELL.replace("{mark}", mark).replace("{blocks}", str(limit // 512))
        words = ["sh", "-c", shell, "sh", *map(str, argv)]
        with log.open("ab") as output:
            try:
                self._shell = subprocess.Popen(
                    words,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(env),
                    cwd=cwd,
                    start_new_session=True,
                )
            except OSError as error:
                command = redact(shlex.join(words[4:]))
                raise CommandFailed(command, returncode=None, output=str(error)) from error

    def poll(self) -> int | None:
        """The exit status, negative for a signal's number; None while it runs."""
        return self._shell.poll()

    def abort(self) -> None:
        """Send SIGABRT, on which a Python with faulthandler writes where it is."""
        self._signal(signal.SIGABRT)

    def end(self) -> int:
        """Kill all that is left of it, also what went to a session of its own.

        Returns how many processes were still there. Only Linux tells about those that left the
        group (proc(5), `environ`).
        """
        killed = 0
        for _ in range(20):  # what was forked meanwhile is found by the next look
            found = self._members()
            if not found:
                break
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed = max(killed, len(found))
            time.sleep(0.02)
        self._signal(signal.SIGKILL)
        self._shell.wait()
        if self._shell.stdin is not None:
            self._shell.stdin.close()
        return killed

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._shell.pid, number)

    def _members(self) -> list[int]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                marked = self._mark in (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # gone meanwhile, or another user's
            if marked:
                found.append(int(folder.name))
        return found
