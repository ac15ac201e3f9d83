"""`evidence init`: a ledger, its keys outside it, its first seal."""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ledger.errors import UsageError
from runners.cli import render
from runners.cli.commands import Verb
from runners.cli.context import PASSPHRASE_VARIABLE, App, pass_app

if TYPE_CHECKING:
    from ledger.ed25519 import PrivateKey

WRITER_ROLES = ("ingest", "train", "judge", "seal")
_FOLDER_MODE = 0o700


@click.command(cls=Verb, example="evidence init evidence --origin example.com/support-bot")
@click.argument("directory", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--origin", required=True, metavar="NAME", help="The ledger's name, for good.")
@click.option(
    "--key-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to put the keys [a folder in your configuration folder].",
)
@click.option(
    "--passphrase-env",
    default=PASSPHRASE_VARIABLE,
    metavar="NAME",
    help=f"The environment variable with the new keys' passphrase [{PASSPHRASE_VARIABLE}].",
)
@click.option("--owner", default="writer", show_default=True, help="Whose key the writer key is.")
@pass_app
def init(
    app: App,
    directory: Path | None,
    origin: str,
    key_dir: Path | None,
    passphrase_env: str,
    owner: str,
) -> None:
    """Make a ledger, its root key and its writer key.

    The root key enrols and revokes keys; the writer key signs every record. Both lie outside the ledger
    folder. No review key is made: each reviewer makes one of their own. What an init that was killed left in DIR,
    before anybody could write a record, is begun again.
    """
    from ledger import places
    from ledger.book import Ledger
    from ledger.ed25519 import PrivateKey

    address = app.store_address
    path = directory or app.ledger_path
    _check(app, path, origin)
    passphrase = app.new_passphrase(passphrase_env)
    root, writer = PrivateKey.generate(), PrivateKey.generate()
    folder = key_dir or places.key_dir(app.config_dir, root.id)
    _refuse_inside(folder, path)
    root_file, writer_file = folder / places.ROOT_KEY, folder / places.WRITER_KEY
    path.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)  # fails before any key is made
    # keys first: a ledger without its keys could never be written again
    _save_keys(folder, [(root, root_file), (writer, writer_file)], passphrase)
    with Ledger.create(
        path,
        origin=origin,
        root_key=root,
        writer_key=writer,
        writer_roles=list(WRITER_ROLES),
        nonce=secrets.token_hex(16),
        owner=owner,
        state_dir=app.state_dir,
        address=address,
    ) as ledger:
        seal = ledger.seal().decode()
        size = ledger.size
        ledger_id = _first_id(ledger)
    app.emit(
        {
            "ledger": str(path),
            "id": ledger_id,
            "origin": origin,
            "root_key": root.id,
            "root_key_file": str(root_file),
            "writer_key": writer.id,
            "writer_key_file": str(writer_file),
            "writer_roles": list(WRITER_ROLES),
            "seal": seal,
        },
        [
            *render.fields(
                [
                    ("ledger", f"{path} ({origin})"),
                    ("root key", f"{root.id} in {root_file}"),
                    ("writer key", f"{writer.id} in {writer_file}"),
                    ("roles", ", ".join(WRITER_ROLES)),
                    ("sealed", render.count(size, "record")),
                ]
            ),
            "",
            "Move the root key to a safe place off this machine; without it no key is enrolled or revoked.",
            "No review key was made: a reviewer makes one with evidence key new FILE, and you enrol it.",
        ],
        next_step=_next(path, key_dir, writer_file),
    )


def _check(app: App, path: Path, origin: str) -> None:
    from ledger import beginnings
    from ledger.records.base import ORIGIN_PATTERN

    if not re.fullmatch(ORIGIN_PATTERN, origin):
        raise UsageError(
            "USAGE",
            f"{origin[:80]!r} cannot be an origin",
            field="--origin",
            expected="letters, digits and . _ ~ / - only, at most 128 characters",
            hint="name the ledger as example.com/support-bot",
        )
    if not path.exists():
        return
    if not path.is_dir() or not beginnings.is_free(path, app.state_dir):
        raise UsageError("LEDGER_EXISTS", f"{path} is not an empty folder")
    if any(path.iterdir()):
        app.say(
            f"an init of {path} was cut short before anybody could write a record: it is begun again, "
            "with new keys; the ones that it made lie where they are"
        )


def _refuse_inside(folder: Path, ledger: Path) -> None:
    if folder.resolve().is_relative_to(ledger.resolve()):
        raise UsageError("KEY_INSIDE_LEDGER", f"{folder} lies inside {ledger}", field="--key-dir")


def _save_keys(folder: Path, keys: list[tuple[PrivateKey, Path]], passphrase: bytes | None) -> None:
    folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    for _, file in keys:
        if file.exists():
            raise UsageError("KEY_FILE_EXISTS", f"{file} exists", field="--key-dir")
    for key, file in keys:
        key.save(file, passphrase)


def _first_id(ledger: object) -> str:
    from ledger.book import Ledger

    assert isinstance(ledger, Ledger)
    first = ledger.at(0)
    assert first is not None  # it was just made
    return first.id


def _next(path: Path, key_dir: Path | None, writer_file: Path) -> str:
    key = f" --key {writer_file}" if key_dir else ""
    ledger = "" if str(path) == "evidence" else f" --ledger {path}"
    return f"evidence policy declare FILE{ledger}{key}"
