"""Sign what published wheels were made from (--sign), or prove it (--trust)."""

import argparse
from pathlib import Path

from rich.table import Table

from scripts import attest, lock, publish
from scripts.errors import UsageError
from scripts.report import Outcome
from scripts.shelf import Shelf
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--sign",
        metavar="KEY",
        help="a private key's file (PEM or OpenSSH; its passphrase in SIGNING_PASSPHRASE), "
        "or a URI that securesystemslib knows, such as hsm: or sigstore:",
    )
    what.add_argument(
        "--trust",
        metavar="KEY",
        type=Path,
        action="append",
        help="a public key's file; each wheel must be signed by one of those",
    )
    parser.add_argument("--public", type=Path, help="the public key's file, for --sign with a URI")
    parser.add_argument(
        "--index", type=Path, metavar="FOLDER", help="the index's folder (default: ROOT/index)"
    )
    parser.add_argument(
        "wheels", nargs="*", type=Path, help="for --trust: wheels (default: all of the index)"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    folder = (arguments.index or workspace.index).resolve()
    shelf = Shelf(folder=folder, project=lock.load(workspace.lock).name)
    if arguments.sign:
        by = attest.signer_of(arguments.sign, arguments.public, workspace.environment)
        if arguments.wheels:
            raise UsageError("--sign is for every wheel of the index", then="name no wheel")
        names = publish.sign(shelf, by, workspace)
        return _outcome("signed", {name: [by.public_key.keyid] for name in names})
    keys = [attest.trusted(path) for path in arguments.trust]
    wheels = arguments.wheels or [shelf.wheel(f.filename) for f in shelf.catalog().files]
    if not wheels:
        raise UsageError(f"there is no wheel in {folder}", then="nox -s publish")
    proved = attest.verify_all(wheels, keys)
    return _outcome("proved", {each.name: list(each.keys) for each in proved})


def _outcome(what: str, keys: dict[str, list[str]]) -> Outcome:
    table = Table("wheel", f"{what} with key", box=None, padding=(0, 2, 0, 0))
    for name, ids in keys.items():
        table.add_row(name, ", ".join(each[:16] for each in ids))
    return Outcome(data={what: keys}, shown=table)
