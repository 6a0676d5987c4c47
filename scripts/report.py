"""What a person or a machine sees of a run: progress on standard error, the result on output."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

_PLAIN_AFTER = 2.0  # seconds after which a step is worth a plain line


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a verb hands back: the same facts as `data` for machines and `shown` for people."""

    data: Mapping[str, object]
    shown: RenderableType
    exit_code: int = 0


class Reporter:
    """Shows bars where there is a terminal and plain lines where there is none."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._live: Progress | None = None

    def say(self, line: str) -> None:
        (self._live.console if self._live else self._console).print(line, markup=False)

    @contextmanager
    def progress(self, title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """A workspace.Progress. Bars nest: the inner stands below the outer."""
        if not self._console.is_terminal:
            started = monotonic()
            yield lambda position: None
            if monotonic() - started > _PLAIN_AFTER:
                self.say(f"{title}: {monotonic() - started:.1f} s")
            return
        outermost = self._live is None
        live = self._live or Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        if outermost:
            self._live = live
            live.start()
        task = live.add_task(title, total=total)
        try:
            yield lambda position: live.update(task, completed=position)
        finally:
            live.remove_task(task)
            if outermost:
                live.stop()
                self._live = None

    def show(self, outcome: Outcome, *, as_json: bool) -> None:
        if as_json:
            json.dump(outcome.data, sys.stdout, indent=2, ensure_ascii=False)
            sys.stdout.write("\n")
            return
        console = Console(highlight=False)
        if not console.is_terminal:
            console = Console(highlight=False, width=160)
        console.print(outcome.shown, crop=False)
