"""Running programs: errors carry what was said, and no secret."""

import os
import sys

import pytest

from scripts import proc
from scripts.errors import CommandFailed

ENV = {"PATH": os.environ["PATH"]}


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_credentials_are_left_out() -> None:
    said = "https://me:hush@host.invalid/x"
    with pytest.raises(CommandFailed) as caught:
        proc.run(python(f"import sys; sys.exit('cannot reach {said}')"), env=ENV)
    assert "hush" not in str(caught.value)
    assert "cannot reach https://host.invalid/x" in caught.value.output


def test_a_program_that_does_not_end() -> None:
    with pytest.raises(CommandFailed, match=r"did not end:\nno answer after 0\.2 s"):
        proc.run(python("import time; time.sleep(60)"), env=ENV, timeout=0.2)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(CommandFailed, match="did not end"):
        proc.run(["no-such-program"], env=ENV)


def test_lines_are_seen_as_they_come() -> None:
    lines: list[str] = []
    out = proc.run(python("print('one'); print('two')"), env=ENV, on_line=lines.append)
    assert (lines, out) == (["one", "two"], b"one\ntwo\n")


def test_input_in_pieces() -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read()[::-1])"
    assert proc.run(python(code), env=ENV, input=iter([b"ab", b"c"])) == b"cba"


def test_the_environment_is_what_was_given() -> None:
    out = proc.run(python("import os; print(sorted(os.environ))"), env={"ONE": "1"})
    assert b"ONE" in out
    assert b"HOME" not in out
