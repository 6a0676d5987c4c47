"""What `recorder` wrote down of a pytest process: which tests ended, which was running."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from scripts.case import Case, Ending

_TIMEOUT = re.compile(r"Timeout \(>[\d.]+s\) from pytest-timeout")
_WORST = tuple(Ending)


@dataclass(slots=True)
class Journal:
    """The state of a pytest process, from its events so far.

    `collected` is None until collection ended; `running` is the test that was started and not
    finished, `skips` are the reasons of its subtests so far that were skipped, `collecting` is the
    file that was opened last. `since` is how far the file was read.
    """

    path: Path
    cases: dict[str, Case] = field(default_factory=dict)
    collected: list[str] | None = None
    collecting: str | None = None
    running: str | None = None
    skips: list[str] = field(default_factory=list)
    ended: bool = False
    events: int = 0
    since: int = 0

    def read(self) -> int:
        """Take in what was written since; returns how many events that were."""
        before = self.events
        for event in self._fresh():
            self._take(event)
            self.events += 1
        return self.events - before

    def _fresh(self) -> Iterator[dict[str, object]]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.since)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # cut off, or still being written
                self.since += len(line)
                try:
                    event = json.loads(line)
                except ValueError:
                    continue  # a test wrote into it: the next whole line counts
                if isinstance(event, dict) and isinstance(event.get("id"), str):
                    yield event

    def _take(self, event: dict[str, object]) -> None:
        name = str(event["id"])
        match event.get("event"):
            case "collect":
                self.collecting = name
            case "collected":
                ids = event.get("ids")
                self.collected = [str(one) for one in ids] if isinstance(ids, list) else []
                self.collecting = None
            case "broken":
                self.add(Case(id=name, ending=Ending.ERROR, detail=str(event.get("text"))))
            case "skipped":
                self.add(Case(id=name, ending=Ending.SKIPPED, detail=str(event.get("text"))))
            case "start":
                self.running = name
                self.skips.clear()
            case "subtest skipped":
                self.skips.append(str(event.get("text") or ""))
            case "report":
                self.add(_case(name, event))
            case "finish":
                self._finish(name)
            case "end":
                self.ended = True

    def _finish(self, name: str) -> None:
        self.running = None
        if name not in self.cases:
            self.add(Case(id=name, ending=Ending.ERROR, detail="it ended without a report"))
        if self.skips:
            self.cases[name] = replace(self.cases[name], skips=tuple(self.skips))

    def add(self, case: Case) -> None:
        """Take in how a test ended; of several reports of one test the worst counts."""
        known = self.cases.get(case.id)
        if known is None or _WORST.index(known.ending) < _WORST.index(case.ending):
            self.cases[case.id] = case


def _case(name: str, event: dict[str, object]) -> Case:
    text, seconds = str(event.get("text") or ""), event.get("seconds")
    return Case(
        id=name,
        ending=_ending(event, text),
        detail=text,
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
    )


def _ending(event: dict[str, object], text: str) -> Ending:
    match event.get("outcome"):
        case "passed":
            return Ending.PASSED
        case "skipped":
            return Ending.XFAILED if event.get("xfail") else Ending.SKIPPED
    if _TIMEOUT.search(text):
        return Ending.HUNG
    return Ending.FAILED if event.get("when") == "call" else Ending.ERROR
