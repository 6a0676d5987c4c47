"""Where a run reads and writes, and what it may use: handed down from the command line."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class Progress(Protocol):
    """Opens a bar of `total` units (None: not known) and yields what sets its position."""

    def __call__(
        self, title: str, total: int | None = None
    ) -> AbstractContextManager[Callable[[int], None]]: ...


def silent(title: str, total: int | None = None) -> AbstractContextManager[Callable[[int], None]]:
    """A Progress that shows nothing."""
    return nullcontext(lambda position: None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folders of a run, its environment, and its way to tell how far it is."""

    root: Path
    cache: Path
    environment: Mapping[str, str]
    offline: bool = False
    progress: Progress = field(default=silent)
    say: Callable[[str], None] = field(default=lambda line: None)

    @property
    def lock(self) -> Path:
        return self.root / "upstream.lock"

    @property
    def patchset(self) -> Path:
        return self.root / "patchset"

    @property
    def build(self) -> Path:
        return self.root / "build"

    @property
    def tree(self) -> Path:
        return self.build / "sglang"

    @property
    def dist(self) -> Path:
        return self.root / "dist"

    @property
    def index(self) -> Path:
        return self.root / "index"
