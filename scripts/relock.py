"""upstream.lock rewritten for another commit: comments, order and foreign spelling stay."""

import copy
import re
from collections.abc import Sequence
from typing import cast

import tomlkit
from tomlkit.items import AoT, Table

from scripts import lock
from scripts.errors import LockError
from scripts.lock import Lock, ReleaseWheel


def rewrite(text: str, new: Lock) -> str:
    """The lock file `text` with the values of `new`; lock.parse() of it is `new`.

    A value that stays is not touched, nor are line ends, nor the comment behind one that changes.
    Raises LockError where `text` is no lock file, or is spelled in a way that has no place for the
    values.
    """
    old = lock.parse(text)
    document = tomlkit.parse(text)
    upstream = cast(Table, document["upstream"])
    distribution = cast(Table, document["distribution"])
    vcs = cast(Table, upstream["vcs"])
    _set(upstream, "name", new.name)
    _set(upstream, "version", new.version)
    _set(vcs, "url", new.url)
    _set(vcs, "requested-revision", new.requested_revision)
    _set(vcs, "commit-id", new.commit)
    if old.commit_time != new.commit_time:
        _set(vcs, "commit-time", new.commit_time)
    _set(vcs, "subdirectory", new.subdirectory)
    _set(distribution, "local", new.local)
    _set(distribution, "revision", new.revision)
    if old.wheels != new.wheels:
        _set_wheels(upstream, new.wheels)
    written = tomlkit.dumps(document)
    try:
        found, why = lock.parse(written), ""
    except LockError as error:
        found, why = None, f": with the new values it would be read as\n{error}"
    if found != new:
        raise LockError(
            f"upstream.lock is spelled in a way that cannot be rewritten{why}",
            then="give [upstream], [upstream.vcs] and [[upstream.wheels]] headers of their own",
        )
    whole = "\n" in text and not re.search(r"(?<!\r)\n", text)
    return re.sub(r"\r?\n", "\r\n", written) if whole else written


def _set(table: Table, key: str, value: object) -> None:
    if table.get(key) == value:
        return
    item = tomlkit.item(value)
    if key in table:
        item.trivia.comment_ws = table[key].trivia.comment_ws
        item.trivia.comment = table[key].trivia.comment
    table[key] = item


def _set_wheels(upstream: Table, wheels: Sequence[ReleaseWheel]) -> None:
    known = upstream.get("wheels")
    if not wheels:
        upstream.pop("wheels", None)
        return
    if not isinstance(known, AoT):
        known = tomlkit.aot()
        upstream["wheels"] = known
    while len(known) > len(wheels):
        known.pop()
    for number, wheel in enumerate(wheels):
        if number == len(known):
            known.append(copy.deepcopy(known[-1]) if len(known) else tomlkit.table())
        _set_wheel(known[number], wheel)


def _set_wheel(table: Table, wheel: ReleaseWheel) -> None:
    _set(table, "name", wheel.name)
    _set(table, "size", wheel.size)
    if "hashes" not in table:
        hashes = tomlkit.inline_table()
        hashes["sha256"] = wheel.sha256
        table["hashes"] = hashes
        table.add(tomlkit.nl())
    cast(Table, table["hashes"])["sha256"] = wheel.sha256
