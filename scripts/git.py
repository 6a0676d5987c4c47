"""Git repositories, out of reach of the user's settings, hooks and environment."""

import hashlib
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NewType

import git
from gitdb.exc import BadName, BadObject  # type: ignore[import-untyped]  # ships no types

from scripts import proc
from scripts.errors import CommandFailed

CommitId = NewType("CommitId", str)
BlobId = NewType("BlobId", str)

IDENTITY = ("sglang-sm120", "sglang-sm120@users.noreply.invalid")
NO_BLOB = BlobId("0" * 40)
_LOCATION = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE"),
    *("GIT_CEILING_DIRECTORIES", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_CONFIG"),
    *("GIT_TEMPLATE_DIR", "GIT_TRACE", "GIT_DEFAULT_HASH", "GIT_QUARANTINE_PATH"),
)
_QUIET_FETCH = (
    "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false",
    "fetch.prune=false",
    "fetch.negotiationAlgorithm=noop",
    "maintenance.auto=false",
    "gc.auto=0",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a tree holds at a path: `mode` as git writes it ("100644") and the blob's id."""

    mode: str
    blob: BlobId


Tree = dict[str, Entry]
"""The files of a commit by path; paths that are not UTF-8 carry surrogate escapes."""


def blob_id(content: bytes) -> BlobId:
    """The id that git gives to a blob of this content (gitformat-pack(5), SHA-1)."""
    header = b"blob %d\0" % len(content)
    return BlobId(hashlib.sha1(header + content, usedforsecurity=False).hexdigest())


def isolated(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` without any setting of git's, and with no way to a network."""
    kept = {key: value for key, value in environment.items() if not key.startswith("GIT_")}
    name, email = IDENTITY
    return kept | {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def connected(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` with the user's settings of git (mirrors, proxies, credentials) kept.

    Only what would point git at another repository is left out.
    """
    kept = {key: value for key, value in environment.items() if key not in _LOCATION}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository at `git_dir`; with `work_tree`, also its checked-out files."""

    git_dir: Path
    environment: Mapping[str, str]
    work_tree: Path | None = None

    def run(
        self,
        *args: str,
        input: bytes | Iterable[bytes] = b"",
        settings: Mapping[str, str] | None = None,
        accept: Collection[int] = (0,),
    ) -> bytes:
        """Run a git command out of the user's reach; `settings` are environment variables.

        `accept` lists the exit statuses that are no failure. Raises CommandFailed.
        """
        place = [f"--git-dir={self.git_dir}"]
        if self.work_tree is not None:
            place.append(f"--work-tree={self.work_tree}")
        options = ("-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
        argv = ["git", *place, *options, *args]
        env = isolated(self.environment) | dict(settings or {})
        cwd = self.work_tree or self.git_dir
        return proc.run(argv, env=env, cwd=cwd, input=input, accept=accept)

    def fetch(self, *args: str, input: bytes = b"") -> None:
        """Fetch from the remote `origin` with the user's mirrors, proxies and credentials."""
        self._remote("fetch", "--no-tags", "--no-write-fetch-head", *args, input=input)

    def list_remote(self, *patterns: str, timeout: float) -> dict[str, CommitId]:
        """What the remote `origin` has at the refs that match, by name (git-ls-remote(1)).

        An annotated tag stands there twice: its own id, and as NAME^{} its commit's. Names that are
        not UTF-8 carry surrogate escapes.
        """
        listed = self._remote("ls-remote", "--quiet", "origin", *patterns, timeout=timeout)
        rows = (row.split("\t") for row in listed.decode(errors="surrogateescape").split("\n")[:-1])
        return {name: CommitId(commit) for commit, name in rows}

    def _remote(self, *args: str, input: bytes = b"", timeout: float | None = None) -> bytes:
        settings = [word for setting in _QUIET_FETCH for word in ("-c", setting)]
        argv = ["git", f"--git-dir={self.git_dir}", *settings, *args]
        env = connected(self.environment)
        return proc.run(argv, env=env, cwd=self.git_dir, input=input, timeout=timeout)

    def resolve(self, revision: str) -> CommitId | None:
        """The commit that `revision` names here, or None."""
        try:
            found = self.run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        except CommandFailed:
            return None
        return CommitId(found.decode().strip())

    def tree(self, commit: CommitId, paths: Sequence[str] = ()) -> Tree:
        """The files of `commit`, or those of them at `paths`."""
        listed = self.run("ls-tree", "-r", "-z", commit, "--", *paths)
        tree = {}
        for row in listed.split(b"\0")[:-1]:
            meta, _, path = row.partition(b"\t")
            mode, _, blob = meta.decode().split()
            tree[path.decode(errors="surrogateescape")] = Entry(mode=mode, blob=BlobId(blob))
        return tree

    def contents(self, entries: Iterable[tuple[str, Entry]]) -> Iterator[tuple[str, bytes]]:
        """The path and content of many files at once (git-cat-file(1), --batch).

        KeyError where a blob is not here.
        """
        wanted = list(entries)
        ids = "".join(f"{entry.blob}\n" for _, entry in wanted).encode()
        stream = io.BytesIO(self.run("cat-file", "--batch", input=ids))
        for path, entry in wanted:
            header = stream.readline().split()
            if len(header) != 3:
                raise KeyError(entry.blob)
            yield path, stream.read(int(header[2]))
            stream.read(1)

    def objects(self) -> "Objects":
        """A reader of the objects that are here now."""
        return Objects(self.git_dir)


class Objects:
    """Reads a repository's objects in this process: GitPython's own readers start no git.

    So a missing blob of a partial clone is seen as missing, and not fetched unasked.
    """

    def __init__(self, git_dir: Path) -> None:
        self._odb = git.GitDB(str(git_dir / "objects"))

    def has(self, blob: BlobId) -> bool:
        return bool(self._odb.has_object(bytes.fromhex(blob)))

    def read(self, blob: BlobId) -> bytes:
        """The content of a blob; KeyError where it is not here."""
        try:
            stream = self._odb.stream(bytes.fromhex(blob))
        except (BadName, BadObject) as error:
            raise KeyError(blob) from error
        content: bytes = stream.read()
        return content
