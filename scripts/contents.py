"""What a bump writes: each file of the checkout that it changes, whole."""

from scripts import changelog, export, files, pending, ratchet, relock
from scripts.errors import LockError, SeriesError
from scripts.judgement import Judgement
from scripts.rebase import Fate
from scripts.workspace import Workspace

GATES = "patchset/gates.toml"


def of(judgement: Judgement, workspace: Workspace) -> dict[str, bytes | None]:
    """Every file of the checkout that a bump changes, by path; None for one that goes."""
    rebased, new = judgement.rebased, judgement.new
    order = files.text(workspace.patchset / "series", SeriesError)
    gone = {one.before.name: None for one in rebased.carried if one.after is None}
    patches: dict[str, bytes | None] = {**gone, **export.files(rebased.series, order)}
    log = workspace.root / "CHANGELOG.md"
    lines = [f"On SGLang {new.requested_revision} ({new.commit}).", *_left(judgement)]
    text = changelog.add(files.text(log) if log.exists() else "", new.distribution_version, lines)
    assert judgement.record is not None
    return {f"patchset/{name}": content for name, content in patches.items()} | {
        "upstream.lock": relock.rewrite(files.text(workspace.lock, LockError), new).encode(),
        GATES: ratchet.format(judgement.record).encode(),
        "CHANGELOG.md": text.encode(),
        pending.PATH: None,
    }


def _left(judgement: Judgement) -> list[str]:
    """A line for each patch that is no longer in the series."""
    return [
        f"Retired {one.before.number} ({one.before.title})"
        + (": upstream has it." if one.fate is Fate.LANDED else ".")
        for one in judgement.rebased.carried
        if one.after is None
    ]
