"""A small upstream in the shape of SGLang: a real git repository, and its release wheels."""

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from packaging import tags

from scripts import lock, wheelfile
from scripts.workspace import Workspace

VERSION = "0.5.18"
TIME = 1_787_261_364  # 2026-08-20T21:29:24Z
HERE = next(tags.sys_tags())
OTHER = "cp312-cp312-manylinux_2_34_aarch64" if HERE.interpreter != "cp312" else "cp311-cp311-any"
TRAILERS = (
    "Why it is so.\n\nUpstream-Status: Pending\nBug: https://host.invalid/issues/1\n"
    "Drop-When: upstream has it\n"
)

FILES: Mapping[str, bytes] = {
    "README.md": b"# upstream\n",
    "python/pyproject.toml": b"""\
[build-system]
requires = ["setuptools>=61", "setuptools-scm>=8"]
build-backend = "setuptools.build_meta"
[project]
name = "sglang"
dynamic = ["version"]
description = "small"
[tool.setuptools.packages.find]
include = ["sglang*"]
[tool.setuptools.package-data]
"sglang" = ["**/*"]
[tool.setuptools_scm]
root = ".."
version_file = "sglang/_version.py"
""",
    "python/sglang/__init__.py": b"from sglang._version import __version__\n",
    "python/sglang/sizes.py": b'"""Sizes."""\n\nSIZES = {\n    9: [4, 8],\n    10: [4, 6, 8],\n}\n',
    "python/sglang/gate.py": b"def gate(major):\n    return major in (9, 10)\n",
    "python/sglang/run.sh": b"#!/bin/sh\nexec true\n",
    "python/sglang/crlf.py": b"a = 1\r\nb = 2\r\nc = 3\r\n",
    "python/sglang/data.json": b'{"a": 1}\n',
    "python/sglang/no_end.py": b"x = 1\ny = 2",
    "python/sglang/old/__init__.py": b"",
    "python/sglang/old/gone.py": b"OLD = 1\n",
    "rust/lib.rs": b"fn main() {}\n",
    "test/registered/unit/test_gate.py": b"def test_gate():\n    assert True\n",
}


def git(cwd: Path, *args: str, input: bytes = b"", **settings: str) -> str:
    """Run git with a fixed identity and nobody's settings."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "LC_ALL": "C",
        **{
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (
                ("NAME", "Ünal Üpstream"),
                ("EMAIL", "up@stream.invalid"),
                ("DATE", f"@{TIME} +0000"),
            )
        },
        **settings,
    }
    done = subprocess.run(
        ["git", *args], cwd=cwd, env=env, input=input, capture_output=True, check=False
    )
    assert done.returncode == 0, (args, done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="surrogateescape").strip()


@dataclass(frozen=True, slots=True)
class Upstream:
    """The upstream repository, and the folder that serves as package index."""

    repo: Path
    shelf: Path

    def commit(
        self, files: Mapping[str, bytes | None], message: str = "change", **settings: str
    ) -> str:
        """Write or (None) remove files, and commit; returns the commit's id."""
        for name, content in files.items():
            path = self.repo / os.fsencode(name).decode(errors="surrogateescape")
            if content is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        git(self.repo, "add", "--all")
        words = ("commit", "-q", "--allow-empty", "-F", "-")
        git(self.repo, *words, input=message.encode(), **settings)
        return git(self.repo, "rev-parse", "HEAD")

    def release(
        self,
        files: Mapping[str, bytes | None],
        version: str,
        *,
        since: str = f"v{VERSION}",
        wheels: bool = False,
    ) -> str:
        """Commit on top of `since`, on the branch `next`, and tag it; returns the commit's id."""
        git(self.repo, "checkout", "-q", "-B", "next", f"{since}^{{commit}}")
        later = f"@{TIME + 86400} +0000"
        commit = self.commit(files, f"release {version}", GIT_COMMITTER_DATE=later)
        git(self.repo, "tag", "-f", f"v{version}")
        if wheels:
            names = git(self.repo, "ls-files", "-z", "python").split("\0")[:-1]
            content = {name: (self.repo / name).read_bytes() for name in names}
            release_wheel(self, str(HERE), files=content, version=version)
        return commit

    def patch(self, since: str, folder: Path, *, number: int = 1) -> list[Path]:
        """Export the commits since `since` as a series does."""
        out = git(
            self.repo,
            *("format-patch", "--zero-commit", "--full-index", "--no-signature", "--no-stat"),
            *("-N", "-k", "--no-renames", "--binary", "--pretty=mboxrd", "--always"),
            *("-o", str(folder), f"--start-number={number}", since),
        )
        return [Path(line) for line in out.splitlines()]


def make(folder: Path, files: Mapping[str, bytes] = FILES) -> Upstream:
    """A repository with one commit, and the annotated tag v0.5.18 on it."""
    repo, shelf = folder / "upstream", folder / "shelf"
    repo.mkdir(parents=True)
    shelf.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(repo, "config", "uploadpack.allowAnySHA1InWant", "true")
    upstream = Upstream(repo, shelf)
    for name, content in files.items():
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (repo / "python/sglang/run.sh").chmod(0o755)
    upstream.commit({}, "release")
    git(repo, "tag", "-a", f"v{VERSION}", "-m", "release")
    return upstream


def release_wheel(
    upstream: Upstream,
    tag: str,
    *,
    files: Mapping[str, bytes] = FILES,
    wrong: str = "",
    version: str = VERSION,
) -> Path:
    """A wheel of the release as setuptools makes it: compiled module, CRLF in RECORD, folders.

    RECORD has a wrong line for the member `wrong`.
    """
    info = f"sglang-{version}.dist-info"
    path = upstream.shelf / f"sglang-{version}-{tag}.whl"
    members: dict[str, bytes] = {
        name.removeprefix("python/"): content
        for name, content in files.items()
        if name.startswith("python/sglang/")
    }
    members["sglang/fast.so"] = f"compiled for {tag}".encode()
    members["sglang/_version.py"] = (
        f"__version__ = version = '{version}'\n__version_tuple__ = version_tuple = (0, 5, 18)\n"
    ).encode()
    members[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\nLicense: long\n        text\n"
        "Requires-Dist: nothing; extra == 'all'\n\nVersion: 0.5.18 is in the description too\n"
    ).encode()
    members[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nTag: {tag}\n".encode()
    record = f"{info}/RECORD"
    members[f"{info}/licenses/LICENSE"] = b"Apache\n"
    lines = [
        wheelfile.record_line(name, content + b"?" * (name == wrong), end="\r\n")
        for name, content in members.items()
    ]
    members[record] = "".join([*lines, f"{record},,\r\n"]).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        folders = {f"{Path(name).parent}/" for name in members}
        for name in sorted(folders | set(members), key=lambda name: (".dist-info" in name, name)):
            zip_info = zipfile.ZipInfo(name, (2026, 8, 21, 20, 7, 36))
            zip_info.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o40755 if name.endswith("/") else 0o100755 if ".sh" in name else 0o100644
            zip_info.external_attr = mode << 16
            archive.writestr(zip_info, members.get(name, b""))
    return path


@dataclass(frozen=True, slots=True)
class Project:
    """A checkout of ours over a small upstream: the lock, the series, and a workspace."""

    root: Path
    upstream: Upstream
    base: str
    wheels: tuple[Path, ...]
    said: list[str] = field(default_factory=list)

    @property
    def patchset(self) -> Path:
        return self.root / "patchset"

    def environment(self) -> dict[str, str]:
        """An environment in which pip knows the shelf alone."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.upstream.shelf),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def workspace(self, *, offline: bool = False, **environment: str) -> Workspace:
        return Workspace(
            root=self.root,
            cache=self.root / ".cache",
            environment=self.environment() | environment,
            offline=offline,
            say=self.said.append,
        )

    def lock(self) -> lock.Lock:
        return lock.load(self.root / "upstream.lock")

    def write_lock(self, **changes: str) -> None:
        (self.root / "upstream.lock").write_text(lock_text(self, **changes))

    def add_patch(
        self, files: Mapping[str, bytes | None], title: str = "A change", body: str = TRAILERS
    ) -> Path:
        """Commit to upstream, export the commit as the next patch, and list it."""
        number = len(list(self.patchset.glob("*.patch"))) + 1
        before = git(self.upstream.repo, "rev-parse", "HEAD")
        self.upstream.commit(files, f"{title}\n\n{body}")
        (patch,) = self.upstream.patch(before, self.patchset, number=number)
        with (self.patchset / "series").open("a") as series:
            series.write(f"{patch.name}\n")
        return patch

    def scripts(
        self, *words: str, connected: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line on this checkout; `connected` leaves pip its real settings."""
        verb, *rest = words
        code = Path(__file__).parent.parent
        return subprocess.run(
            [sys.executable, "-m", "scripts", verb, "--root", str(self.root), *rest],
            cwd=code,
            env=(dict(os.environ) if connected else self.environment()) | environment,
            capture_output=True,
            text=True,
            check=False,
        )


def lock_text(project: Project, **changes: str) -> str:
    when = datetime.fromtimestamp(TIME, UTC)
    values = {
        "url": project.upstream.repo.as_uri(),
        "revision": f"v{VERSION}",
        "commit": project.base,
        "version": VERSION,
        "time": f"{when:%Y-%m-%dT%H:%M:%SZ}",
    } | changes
    tables = "".join(
        f'[[upstream.wheels]]\nname = "{path.name}"\nsize = {path.stat().st_size}\n'
        f'hashes = {{ sha256 = "{hashlib.sha256(path.read_bytes()).hexdigest()}" }}\n'
        for path in project.wheels
        if path.name.startswith(f"sglang-{values['version']}-")
    )
    return (
        f'lock-version = "1.0"\n[upstream]\nname = "sglang"\nversion = "{values["version"]}"\n'
        f'[upstream.vcs]\ntype = "git"\nurl = "{values["url"]}"\n'
        f'requested-revision = "{values["revision"]}"\ncommit-id = "{values["commit"]}"\n'
        f'commit-time = {values["time"]}\nsubdirectory = "python"\n'
        f'{tables}[distribution]\nlocal = "sm120"\nrevision = 1\n'
    )
