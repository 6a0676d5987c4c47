"""Sign what published wheels were made from; `verify --trust` proves it."""

import argparse
from pathlib import Path

from rich.table import Table

from scripts import attest, lock, publish
from scripts.report import Outcome
from scripts.shelf import Shelf
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sign",
        metavar="KEY",
        required=True,
        help="a private key's file (PEM or OpenSSH; its passphrase in SIGNING_PASSPHRASE), "
        "or a URI that securesystemslib knows, such as hsm: or sigstore:",
    )
    parser.add_argument("--public", type=Path, help="the public key's file, for --sign with a URI")
    parser.add_argument(
        "--index", type=Path, metavar="FOLDER", help="the index's folder (default: ROOT/index)"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    folder = (arguments.index or workspace.index).resolve()
    shelf = Shelf(folder=folder, project=lock.load(workspace.lock).name)
    by = attest.signer_of(arguments.sign, arguments.public, workspace.environment)
    key = by.public_key.keyid
    names = publish.sign(shelf, by, workspace)
    table = Table("wheel", "signed with key", box=None, padding=(0, 2, 0, 0))
    for name in names:
        table.add_row(name, key[:16])
    return Outcome(data={"signed": {name: [key] for name in names}}, shown=table)
