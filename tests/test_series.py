"""patchset/series and the patch files: what is malformed is told before anything is done."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import patch, series
from scripts.errors import SeriesError
from scripts.series import Series
from tests.upstream import TRAILERS, Project

NAMES = st.lists(
    st.from_regex(r"[0-9]{4}-[A-Za-z0-9._-]{1,20}\.patch", fullmatch=True),
    unique_by=lambda name: name[:4],
)


@given(NAMES)
def test_parse_gives_back_what_format_was_given(names: list[str]) -> None:
    assert series.parse(series.format(names)) == tuple(names)


def test_comments_and_blank_lines() -> None:
    assert series.parse("# all\n\n 0001-a.patch  # one\n") == ("0001-a.patch",)


def test_a_patch_listed_twice() -> None:
    with pytest.raises(SeriesError, match=r"series:2: 0001-a\.patch is listed twice"):
        series.parse("0001-a.patch\n0001-a.patch\n")


def test_two_patches_of_one_number() -> None:
    said = (
        "0001-a.patch and 0001-b.patch have one number, by which verbs know a patch\n"
        "  next: git mv patchset/0001-b.patch patchset/0008-b.patch; "
        "and the same name in patchset/series"
    )
    with pytest.raises(SeriesError) as caught:
        series.parse("0001-a.patch\n0007-c.patch\n0001-b.patch\n")
    assert str(caught.value) == said
    one, seven, other = (
        patch.parse(text(), name=name) for name in ("0001-a.patch", "0007-c.patch", "0001-b.patch")
    )
    with pytest.raises(SeriesError) as caught:
        Series(patches=(one, seven, other))
    assert str(caught.value) == said


def test_numbers_that_two_patches_share_are_told_by_every_verb(patched_project: Project) -> None:
    _, second = sorted(patched_project.patchset.glob("*.patch"))
    twin = second.rename(second.with_name(f"0001{second.name[4:]}"))
    order = patched_project.patchset / "series"
    order.write_text(order.read_text().replace(second.name, twin.name))
    done = patched_project.scripts("apply")
    assert done.returncode == 4
    assert f"git mv patchset/{twin.name} patchset/0002{twin.name[4:]}" in done.stderr


def test_a_series_never_holds_a_patch_twice() -> None:
    once = patch.parse(text(), name="0001-a.patch")
    with pytest.raises(SeriesError, match=r"0001-a\.patch twice"):
        Series(patches=(once, once))


@pytest.mark.parametrize("name", ["../0001-a.patch", "a.patch", "0001-a.diff", "0001-a.patch -p2"])
def test_a_name_that_is_no_patch_of_a_series(name: str) -> None:
    with pytest.raises(SeriesError, match="is not of the form"):
        series.parse(f"{name}\n")


def test_missing_and_unlisted_patches(patched_project: Project) -> None:
    first, second = sorted(patched_project.patchset.glob("*.patch"))
    first.rename(first.with_name("0009-unlisted.patch"))
    second.unlink()
    with pytest.raises(SeriesError) as caught:
        series.load(patched_project.patchset)
    assert f"series lists {first.name}, which is not in patchset/" in str(caught.value)
    assert f"series lists {second.name}, which is not in patchset/" in str(caught.value)
    assert "patchset/0009-unlisted.patch is not listed" in str(caught.value)


def test_no_series(project: Project) -> None:
    (project.patchset / "series").unlink()
    done = project.scripts("build-wheel")
    assert done.returncode == 4
    assert "series does not exist" in done.stderr


def test_a_series_that_is_not_text(project: Project) -> None:
    (project.patchset / "series").write_bytes(b"\xff\xfe")
    with pytest.raises(SeriesError, match="cannot be read"):
        series.load(project.patchset)


HEAD = (
    "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
    "From: A <a@b.invalid>\nDate: Thu, 20 Aug 2026 14:29:24 -0730\nSubject: {subject}\n\n{body}\n"
)
DIFF = (
    "diff --git a/{path} b/{path}\nindex " + "1" * 40 + ".." + "2" * 40 + " 100644\n"
    "--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
)


def text(
    subject: str = "words", body: str = TRAILERS, diff: str = DIFF, path: str = "a.py"
) -> bytes:
    return (HEAD.format(subject=subject, body=body) + diff.format(path=path)).encode()


def test_headers() -> None:
    parsed = patch.parse(text(subject="[core] x: y\n z"), name="0001-a.patch")
    assert (parsed.author, parsed.email, parsed.date) == ("A", "a@b.invalid", "1787263164 -0730")
    assert parsed.title == "[core] x: y z"
    assert parsed.trailers("Bug") == ("https://host.invalid/issues/1",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a patch of git format-patch"),
        (b"--- a\n+++ b\n", "not a patch of git format-patch"),
        (text().replace(b"Date:", b"Dote:"), "no Date header"),
        (text().replace(b"From: A <a@b.invalid>", b"X: y"), "no From"),
        (text().replace(b"Upstream-Status: Pending", b"Status: x"), "one `Upstream-Status:` tr"),
        (text().replace(b"Status: Pending", b"Status: Perhaps"), "one `Upstream-Status:` trailer"),
        (text().replace(b"Drop-When:", b"Drop:"), "`Drop-When:` trailer"),
        (text().replace(b"1" * 40, b"1" * 12), "export the patch with --full-index"),
        (text(path="../a.py"), "outside the tree"),
        (text(path="/etc/a.py"), "outside the tree"),
        (text(path="x/../../a.py"), "outside the tree"),
        (text(path="x\0y.py"), "a NUL is in it"),
        (text(path=".git/hooks/post-checkout"), "inside git's own folder"),
        (text(path="x/.GIT/config"), "inside git's own folder"),
        (text(path="x/git~1/config"), "inside git's own folder"),
        (text(path=".git. /config"), "inside git's own folder"),
        (text().replace(b" a/a.py b/", b" c/a.py b/").replace(b"--- a/", b"--- c/"), "with a/ or"),
        (text().replace(b"+++ b/a.py", b"+++ b/b.py"), "two paths, and no rename"),
        (text().replace(b"100644", b"160000"), "a submodule"),
        (text() + DIFF.format(path="a.py").encode(), "changes a.py twice"),
        (text().partition(b"--- a/")[0] + b"Binary files differ\n", "wants --binary"),
    ],
)
def test_a_malformed_patch(content: bytes, message: str) -> None:
    with pytest.raises(SeriesError) as caught:
        patch.parse(content, name="0001-a.patch")
    assert "0001-a.patch" in str(caught.value)
    assert message in str(caught.value)


def test_a_diffstat_is_no_part_of_the_message() -> None:
    stat = "---\n a.py | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n"
    plain = patch.parse(text(), name="0001-a.patch")
    assert patch.parse(text(body=TRAILERS + stat), name="0001-a.patch").message == plain.message


STAT = (
    " a.py | 2 +-\n b.bin | Bin 0 -> 768 bytes\n 2 files changed, 1 insertion(+), 1 deletion(-)\n"
    " create mode 100644 b.bin\n"
)


@pytest.mark.parametrize(
    ("tail", "kept"),
    [
        ("---\n", ""),
        (f"---\n{STAT}", ""),
        (f"---\n\n{STAT}\n", ""),
        ("---\n note\n", "---\n note\n"),
        ("---\n note | 2\n other\n", "---\n note | 2\n other\n"),
        (f"---\nnote\n\nmore\n\n{STAT}", "---\nnote\n\nmore\n"),
        (f"---\n note\n{STAT}", "---\n note\n"),
        (f"---\n{STAT} note\n", f"---\n{STAT} note\n"),
        (f"---\na\n---\n{STAT}", "---\na\n"),
    ],
)
def test_a_note_below_three_dashes_is_kept(tail: str, kept: str) -> None:
    plain = patch.parse(text(), name="0001-a.patch")
    noted = patch.parse(text(body=TRAILERS + tail), name="0001-a.patch")
    assert noted.message.decode() == plain.message.decode() + kept
    assert noted.trailers("Drop-When") == ("upstream has it",)


def test_every_malformed_patch_is_told(patched_project: Project) -> None:
    for path in patched_project.patchset.glob("*.patch"):
        path.write_bytes(path.read_bytes().replace(b"Drop-When", b"Drop"))
    with pytest.raises(SeriesError, match="2 problems"):
        series.load(patched_project.patchset)
