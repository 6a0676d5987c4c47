"""Running a program: the only module that starts one."""

import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
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
) -> bytes:
    """Run `argv` to its end and return its standard output.

    `env` is the whole environment; `timeout` is in seconds. `on_line` sees each line of standard
    output as it comes. Raises CommandFailed, in which credentials in URLs are left out.
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
        if process.returncode:
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
    for line in process.stdout:
        lines.append(line)
        on_line(line.decode(errors="replace").rstrip())
    process.wait()
    return b"".join(lines)


def _tail(output: bytes, lines: int = 30) -> str:
    return redact("\n".join(output.decode(errors="replace").strip().splitlines()[-lines:]))
