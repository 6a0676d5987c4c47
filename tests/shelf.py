"""Wheels as this project builds them, made in a moment: one small package, any revision and tag."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts import lock, patch, sbom, wheelfile
from scripts.lock import Lock
from scripts.series import Series
from tests.upstream import HERE

TAG = "py3-none-any"
COMMIT = "71de97b264b04dcd514cf904003028aefe9775c8"
PATCH = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: Somebody <some@body.invalid>
Date: Mon, 1 Jun 2026 12:00:00 +0000
Subject: {title}

Why it is so.

Upstream-Status: Submitted [https://host.invalid/pull/7]
Bug: https://host.invalid/issues/1
Drop-When: upstream has it
---
diff --git a/python/sglang/{name}.py b/python/sglang/{name}.py
index 0000000000000000000000000000000000000001..0000000000000000000000000000000000000002 100644
--- a/python/sglang/{name}.py
+++ b/python/sglang/{name}.py
@@ -1 +1 @@
-a
+b
"""


def make_lock(revision: int = 1, version: str = "0.5.18", commit: str = COMMIT) -> Lock:
    """A lock that pins one wheel of upstream's."""
    return lock.parse(lock_text(revision, version, commit))


def lock_text(revision: int = 1, version: str = "0.5.18", commit: str = COMMIT) -> str:
    """The text of that lock."""
    return (
        f'lock-version = "1.0"\n[upstream]\nname = "sglang"\nversion = "{version}"\n'
        f'[upstream.vcs]\ntype = "git"\nurl = "https://host.invalid/sglang.git"\n'
        f'requested-revision = "v{version}"\ncommit-id = "{commit}"\n'
        'commit-time = 2026-08-20T21:29:24Z\nsubdirectory = "python"\n[[upstream.wheels]]\n'
        f'name = "sglang-{version}-{HERE}.whl"\nsize = 7\nhashes = {{ sha256 = "{"ab" * 32}" }}\n'
        f'[distribution]\nlocal = "sm120"\nrevision = {revision}\n'
    )


def make_series(titles: Sequence[str] = ("sizes: a row for 12",)) -> Series:
    """A series with one small patch for each title."""
    return Series(
        patches=tuple(
            patch.parse(
                PATCH.format(title=title, name=f"file{number}").encode(),
                name=f"{number:04}-words.patch",
            )
            for number, title in enumerate(titles, 1)
        )
    )


def write_series(folder: Path, titles: Sequence[str] = ("sizes: a row for 12",)) -> None:
    """Make `folder` the patchset/ of that series."""
    folder.mkdir(exist_ok=True)
    made = make_series(titles).patches
    for one in made:
        (folder / one.name).write_bytes(one.content)
    (folder / "series").write_text("".join(f"{one.name}\n" for one in made))


def wheel(
    folder: Path,
    revision: int = 1,
    *,
    tag: str = TAG,
    version: str = "0.5.18",
    commit: str = COMMIT,
    titles: Sequence[str] = ("sizes: a row for 12",),
    files: Mapping[str, bytes] | None = None,
    members: Mapping[str, bytes | None] | None = None,
    local: str | None = None,
) -> Path:
    """Write a wheel with a bill of materials; `members` replace or (None) leave out its own."""
    folder.mkdir(parents=True, exist_ok=True)
    pinned = make_lock(revision, version, commit)
    full = pinned.distribution_version if local is None else f"{version}{local}"
    info = f"sglang-{full}.dist-info"
    content: dict[str, bytes | None] = {
        "sglang/__init__.py": b"from sglang.sizes import SIZES\n",
        "sglang/sizes.py": f"SIZES = {{12: [6, 8]}}  # {full}\n".encode(),
        **(files or {}),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: sglang\nVersion: {full}\n"
            "Requires-Python: >=3.10, <4\n\nWords.\n"
        ).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
        f"{info}/sboms/{sbom.NAME}": sbom.make(pinned, make_series(titles), pinned.wheels[0]),
        **{name.replace("INFO", info): data for name, data in (members or {}).items()},
    }
    present = {name: data for name, data in content.items() if data is not None}
    record = f"{info}/RECORD"
    rows = [wheelfile.record_line(name, data) for name, data in present.items()]
    present.setdefault(record, "".join([*rows, f"{record},,\n"]).encode())
    path = folder / f"sglang-{full}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in present.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 8, 20, 21, 29, 24)), data)
    return path
