"""What came of a bump, for people and for machines."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.console import Group
from rich.table import Table
from rich.text import Text

from scripts import lock
from scripts.bump import Bump
from scripts.culprit import Culprit
from scripts.judgement import Judgement
from scripts.rebase import Carried, Fate
from scripts.report import Outcome
from scripts.span import Step
from scripts.verbs.culprit import describe, describe_step, words


@dataclass(frozen=True, slots=True)
class Reasons:
    """What upstream's history says of patches, by number; empty where it cannot be had."""

    culprits: Mapping[str, Culprit] = field(default_factory=dict)
    reverted: Mapping[str, Step] = field(default_factory=dict)


def show(done: Bump, arguments: argparse.Namespace, reasons: Reasons) -> Outcome:
    """The outcome of `bump` and `rebase`."""
    judgement = done.judgement
    return Outcome(
        data=_data(done, reasons),
        shown=Group(
            _table(judgement),
            *_objections(judgement, reasons),
            *_reverted(reasons),
            *_gates(judgement),
            _end(done, wrote=arguments.write_gates),
        ),
        exit_code=1 if judgement.objections else 0,
    )


def _data(done: Bump, reasons: Reasons) -> dict[str, object]:
    judgement = done.judgement
    return {
        "done": done.done,
        "waits": done.waits,
        "from": _place(judgement.old),
        "to": _place(judgement.new),
        "route": str(judgement.rebased.new.route),
        "patches": [_row(one, reasons) for one in judgement.rebased.carried],
        "objections": [
            {"patch": one.patch, "kind": str(one.kind), "what": one.what, "then": one.then}
            for one in judgement.objections
        ],
        "gates": judgement.gates
        and {
            "new": len(judgement.gates.new),
            "moved": len(judgement.gates.moved),
            "vanished": len(judgement.gates.vanished),
        },
    }


def _place(pinned: lock.Lock) -> dict[str, str]:
    return {
        "revision": pinned.requested_revision,
        "version": pinned.distribution_version,
        "commit": pinned.commit,
    }


def _row(one: Carried, reasons: Reasons) -> dict[str, object]:
    found = reasons.culprits.get(one.before.number)
    step = reasons.reverted.get(one.before.number)
    return {
        "name": one.before.name,
        "title": one.before.title,
        "fate": str(one.fate),
        "unsettled": list(one.unsettled),
        "culprit": found and describe(found)["culprit"],
        "reverted": step and describe_step(step),
        "conflicts": [{"path": c.path, "kind": c.kind, "what": c.what} for c in one.conflicts],
    }


_COLOURS = {Fate.CONFLICT: "red", Fate.LANDED: "yellow", Fate.LANDED_MODIFIED: "yellow"}


def _table(judgement: Judgement) -> Table:
    old, new = judgement.old, judgement.new
    title = f"{old.requested_revision} ({old.commit[:12]}) to {new.requested_revision} "
    table = Table("patch", "title", "", title=f"{title}({new.commit[:12]})")
    for one in judgement.rebased.carried:
        below = f" (given {', '.join(one.unsettled)})" if one.unsettled else ""
        fate = Text(f"{one.fate}{below}", style=_COLOURS.get(one.fate, ""))
        table.add_row(one.before.number, one.before.title, fate)
    return table


def _objections(judgement: Judgement, reasons: Reasons) -> list[Text]:
    texts = []
    for one in judgement.objections:
        found = reasons.culprits.get(one.patch)
        since = f"\n  since: {words(found.step)}" if found else ""
        texts.append(
            Text(f"{one.patch or 'tree'}: {one.kind}: {one.what}{since}\n  next: {one.then}")
        )
    return texts


def _reverted(reasons: Reasons) -> list[Text]:
    return [
        Text(f"{number}: upstream had it after {words(step)}, and has it no more: it is kept")
        for number, step in reasons.reverted.items()
    ]


def _gates(judgement: Judgement) -> list[Text]:
    if judgement.gates is None:
        return []
    seen = judgement.gates
    lines = [f"new gate: {gate.path}:{gate.line} {gate.condition}" for gate in seen.new]
    lines += [
        f"moved gate: {known.key[0]} {known.key[1]} is now {gate.path}:{gate.line} {gate.symbol}"
        for known, gate in seen.moved
    ]
    lines += [f"vanished gate: {known.key[0]} {known.key[1]}" for known in seen.vanished]
    return [Text(line) for line in lines]


def _end(done: Bump, *, wrote: bool) -> Text:
    new = done.judgement.new
    if wrote and not done.done:
        return Text(
            f"patchset/gates.toml has the gates of {new.requested_revision} now: set the `status` "
            "of each undecided one, and run this again without --write-gates"
        )
    if done.done:
        return Text(
            f"upstream.lock and patchset/ are at {new.requested_revision}, "
            f"{new.distribution_version}; look at `git diff`, then nox -s build_wheel"
        )
    if done.stop is not None:
        files = ", ".join(done.stop.unmerged)
        return Text(
            f"stopped at {done.stop.title!r}; resolve {files} in build/sglang, `git add` there,\n"
            "  then nox -s bump -- --continue (or --abort)"
        )
    if done.waits:
        return Text(
            "a person has to look at this; the rebase in build/sglang waits: decide, and run\n"
            "  nox -s bump -- --continue, with the answers named above (or --abort)"
        )
    if done.judgement.objections:
        return Text("a person has to look at this; nothing was changed")
    return Text("this would go through; nothing was changed")
