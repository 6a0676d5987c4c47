"""Mail headers: whatever git writes into one comes back, and what a commit cannot hold is told."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts import export, header, patch, patched, series, source
from scripts.errors import SeriesError
from scripts.header import Unreadable
from tests.test_series import text
from tests.upstream import TRAILERS, Project

AUTHORS = [
    ("dependabot[bot]", "49699333+dependabot[bot]@users.noreply.github.com"),
    ('Hans "x" Ö', "h@x.invalid"),
    ('Hans "x" O', "h@x.invalid"),
    ("Müller, Hans", "h@x.invalid"),
    ("Muller, Hans", "h@x.invalid"),
    ("mü@home", "h@x.invalid"),
    ("me@home", "h@x.invalid"),
    ("back\\slash, x", "h@x.invalid"),
    ("Ünal (at work) Üpstream", "h@x.invalid"),
    ("Y. Z. (at work)", "h@x.invalid"),
    ("=?utf-8?q?x?= literally", "h@x.invalid"),
    ("\u96ea" * 40, "h@x.invalid"),
    ("long " * 20 + "name", "very.long" * 9 + "@x.invalid"),
    ("one\u2028two\x85three", "h@x.invalid"),
    ("No Address", "not an address"),
]


def exported(project: Project, name: str, address: str, message: str) -> patch.Patch:
    """A commit of this author and message, as git format-patch writes it and we read it."""
    before = project.upstream.commit({})
    project.upstream.commit({}, message, GIT_AUTHOR_NAME=name, GIT_AUTHOR_EMAIL=address)
    (path,) = project.upstream.patch(before, project.root / "out")
    try:
        return patch.load(path)
    finally:
        path.unlink()


@pytest.mark.parametrize(("name", "address"), AUTHORS)
def test_the_author_that_git_writes_is_the_one_that_is_read(
    project: Project, name: str, address: str
) -> None:
    read = exported(project, name, address, f"x\n\n{TRAILERS}")
    assert (read.author, read.email) == (name, address)


TITLES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(TITLES.filter(lambda line: line.split() != []), min_size=1, max_size=2))
def test_the_title_that_git_writes_is_the_one_that_is_read(
    project: Project, lines: list[str]
) -> None:
    title = "\n".join("t" + line.translate({10: None}) + "t" for line in lines)
    read = exported(project, "A", "a@b.invalid", f"{title}\n\n{TRAILERS}")
    assert read.message.decode() == f"{title}\n\n{TRAILERS}"


@pytest.mark.parametrize(
    ("value", "author"),
    [
        ("a@b.invalid", ("a@b.invalid", "a@b.invalid")),
        ("", ("", "")),
        ("A B", ("A B", "")),
        ("A B <>", ("A B", "")),
        ("<a@b.invalid>", ("a@b.invalid", "a@b.invalid")),
        ("a@b.invalid (A B)", ("A B", "a@b.invalid")),
        ("A (x) B <a@b.invalid> (work)", ("A (x) B", "a@b.invalid")),
        ('"B, A" <a@b.invalid>', ("B, A", "a@b.invalid")),
        ('"=?latin-1?q?M=FCller?=" <a@b.invalid>', ("Müller", "a@b.invalid")),
        (
            "=?utf-8?b?w7w=?= =?UTF-8?Q?_=C3?=\t=?utf-8*en?q?=BC?= <a@b.invalid>",
            ("ü ü", "a@b.invalid"),
        ),
    ],
)
def test_authors_as_others_write_them(value: str, author: tuple[str, str]) -> None:
    assert header.author(value) == author


@pytest.mark.parametrize(
    "value", ['"." <a@b.invalid>', "=?utf-8?q?=00?= <a@b.invalid>", "=?utf-8?q?=0A?= <a@b.invalid>"]
)
def test_authors_that_no_commit_can_have(value: str) -> None:
    with pytest.raises(Unreadable):
        header.author(value)


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (b"Subject: words", b"Subject: =?foo?q?x?=", "unknown encoding: foo"),
        (b"Subject: words", b"Subject: =?hex?q?x?=", "cannot be decoded"),
        (b"Subject: words", b"Subject: =?utf-16?q?x?=", "cannot be decoded"),
        (b"Subject: words", b"Subject: =?utf-8?b?x?=", "=?utf-8?b?x?="),
        (b"Subject: words", b"Subject: =?utf-8?q?=00?=", "a NUL is in its message"),
        (b"Why it is", b"Why\0it is", "a NUL is in its message"),
        (b"A <a@b", b"=?foo?q?x?= <a@b", "unknown encoding: foo"),
        (b"20 Aug 2026", b"20 Aug 99999", "cannot be read"),
        (b"20 Aug 2026", b"20 Aug 1901", "before 1970"),
        (b"20 Aug 2026", b"20 Aug 1926", "before 1970"),
        (b"-0730", b"-9930", "none that git can store"),
        (b"14:29:24", b"99999999999999999999:29:24", "none that git can store"),
    ],
)
def test_a_patch_that_no_commit_can_hold_is_named(before: bytes, after: bytes, what: str) -> None:
    content = text().replace(before, after)
    assert content != text()
    with pytest.raises(SeriesError) as caught:
        patch.parse(content, name="0001-a.patch")
    assert str(caught.value).startswith("0001-a.patch: ")
    assert what in str(caught.value)


def test_a_title_that_is_not_utf_8_keeps_its_bytes() -> None:
    read = patch.parse(text().replace(b": words", b": M\xfcller"), name="0001-a.patch")
    assert read.message.startswith(b"M\xfcller\n")


@pytest.mark.parametrize("name", ['Hans "x" Ö', "Acme, Inc.", '"Hans <Ö>"'])
def test_an_author_comes_out_again_as_he_went_in(project: Project, name: str) -> None:
    address = "1+dependabot[bot]@x.invalid"
    path = project.add_patch({"python/sglang/gate.py": b"x = 1\n"})
    quoted = name.replace('"', '\\"')
    sent = re.sub(rb"\nFrom: .*", f'\nFrom: "{quoted}" <{address}>'.encode(), path.read_bytes())
    path.write_bytes(sent)
    workspace = project.workspace()
    base = source.obtain(project.lock(), workspace)
    known = series.load(project.patchset)
    made = patched.apply(base, known, workspace)
    (fresh,) = export.patches(base.store, base.commit, made.commits, [path.name])
    assert header.kept(fresh.author) == header.kept(known.patches[0].author)
    assert fresh.email == address
    assert export.settled(fresh, known.patches[0]).content == sent
