"""The lock rewritten: what it says is new, how it says it is not."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts import lock, relock
from scripts.errors import LockError
from scripts.git import CommitId
from scripts.lock import Lock, ReleaseWheel

TEXT = (Path(__file__).parent.parent / "upstream.lock").read_text()


def test_nothing_new_is_the_same_text() -> None:
    assert relock.rewrite(TEXT, lock.parse(TEXT)) == TEXT


def wheel(version: str, tag: str) -> ReleaseWheel:
    return ReleaseWheel(name=f"sglang-{version}-{tag}.whl", size=7, sha256="ab" * 32)


def moved(version: str, tags: list[str]) -> Lock:
    return replace(
        lock.parse(TEXT),
        version=version,
        requested_revision=f"v{version}",
        commit=CommitId("12" * 20),
        commit_time=datetime(2026, 11, 30, 12, 34, 56, tzinfo=UTC),
        wheels=tuple(wheel(version, tag) for tag in tags),
        revision=1,
    )


TAGS = [f"cp3{minor}-cp3{minor}-manylinux_2_34_x86_64" for minor in range(10, 22)]


@settings(deadline=None)
@given(st.lists(st.sampled_from(TAGS), unique=True), st.sampled_from(["0.5.19", "0.6.0.dev3"]))
def test_what_is_written_is_what_is_read(tags: list[str], version: str) -> None:
    new = moved(version, tags)
    once = relock.rewrite(TEXT, new)
    assert lock.parse(once) == new
    assert relock.rewrite(once, new) == once
    back = relock.rewrite(once, lock.parse(TEXT))
    assert lock.parse(back) == lock.parse(TEXT)


def test_comments_and_order_stay() -> None:
    old, new = TEXT.splitlines(), relock.rewrite(TEXT, moved("0.5.19", TAGS[:10])).splitlines()
    comments = [line.partition("#")[2] for line in old if "#" in line]
    assert comments == [line.partition("#")[2] for line in new if "#" in line]
    assert [line for line in old if line.startswith("[") and "wheels" not in line] == [
        line for line in new if line.startswith("[") and "wheels" not in line
    ]
    assert "\n\n\n" not in "\n".join(new)


def test_a_foreign_spelling() -> None:
    foreign = TEXT.replace('name = "sglang"\n', "name='sglang' # theirs\n", 1)
    new = relock.rewrite(foreign, moved("0.5.19", TAGS[:8]))
    assert "name='sglang' # theirs\n" in new


def test_what_cannot_be_rewritten_says_so() -> None:
    with pytest.raises(LockError, match=r"lock-version"):
        relock.rewrite("[upstream]\n", moved("0.5.19", []))


def test_a_spelling_that_has_no_place_for_the_wheels_says_so() -> None:
    text = """
lock-version = "1.0"
upstream.name = "sglang"
upstream.version = "0.5.18"
upstream.vcs.type = "git"
upstream.vcs.url = "https://host.invalid/sglang.git"
upstream.vcs.requested-revision = "v0.5.18"
upstream.vcs.commit-id = "abababababababababababababababababababab"
upstream.vcs.commit-time = 2026-08-20T21:29:24Z
upstream.vcs.subdirectory = "python"
distribution.local = "sm120"
distribution.revision = 1
"""
    with pytest.raises(LockError, match=r"headers of their own"):
        relock.rewrite(text, moved("0.5.19", TAGS[:2]))
