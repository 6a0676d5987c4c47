"""What a published release is made of, kept as JSON beside the index for the page that people read.

A wheel's bill of materials is the source; the notes leave out what differs from wheel to wheel,
and the patches' text.
"""

import json
from dataclasses import asdict, dataclass

from scripts.errors import PublishError
from scripts.lock import UNKNOWN
from scripts.sbom import Bill, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """A release: its version, upstream's release and commit (at the repository `url`), patches."""

    version: str
    upstream: str
    url: str
    commit: str
    items: tuple[Item, ...]

    @property
    def commit_link(self) -> str | None:
        """The commit's page, as the usual git hosts name it; None where there is none to name."""
        if not self.url.startswith("https://") or self.commit == UNKNOWN:
            return None
        return f"{self.url.removesuffix('/').removesuffix('.git')}/commit/{self.commit}"


def of(bill: Bill) -> Notes:
    """The notes of the release that a wheel with this bill belongs to."""
    return Notes(
        version=bill.version,
        upstream=bill.upstream,
        url=bill.url,
        commit=bill.commit,
        items=bill.items,
    )


def parse(text: str) -> Notes:
    """Read what format() wrote. Raises PublishError where it is something else."""
    try:
        row = json.loads(text)
        lists = ("links", "paths")
        items = tuple(
            Item(**item | {key: tuple(item[key]) for key in lists}) for item in row["items"]
        )
        return Notes(**row | {"items": items})
    except (ValueError, KeyError, TypeError) as error:
        raise PublishError(f"the notes of a release cannot be read: {error!r}") from error


def format(notes: Notes) -> str:
    """The notes as JSON; parse() gives them back."""
    return json.dumps(asdict(notes), indent=1, ensure_ascii=False) + "\n"
