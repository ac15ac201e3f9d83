"""`evidence key`: who may sign what, from when to when."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ledger.errors import EvidenceError, UsageError
from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import PASSPHRASE_VARIABLE, App, pass_app

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record
    from ledger.state import State

ENROLLED_ROLES = ("ingest", "train", "judge", "review", "audit", "promote", "seal")
_MAX_PUBLIC_FILE_BYTES = 4096
_SECRET = "PRIVATE KEY"  # noqa: S105 - what every PEM file with a private key says of itself

root_key_option = click.option(
    "--root-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The root key [the one that init made].",
)


@click.group(cls=Group)
def key() -> None:
    """List, make, enrol and revoke keys."""


@key.command("list", example="evidence key list")
@pass_app
def list_keys(app: App) -> None:
    """List the ledger's keys with their roles and windows."""
    with app.read_ledger() as ledger:
        state = ledger.state()
    enrolled = sorted(state.keys.items(), key=lambda item: (item[1].from_seq, item[0]))
    keys = [
        {
            "key": name,
            "public_key": item.public,
            "roles": item.roles,
            "owner": item.owner,
            "from_seq": item.from_seq,
            "until_seq": item.until_seq,
        }
        for name, item in enrolled
    ]
    rows = [
        (name, ", ".join(item.roles), item.owner, item.from_seq, item.until_seq)
        for name, item in enrolled
    ]
    app.emit(
        {"root_key": state.root_key, "keys": keys},
        render.table(("key", "roles", "owner", "from", "before"), rows),
        next_step="evidence key enroll PUBLIC --role ROLE --owner NAME",
    )


@key.command("new", example="evidence key new ~/keys/reviewer.pem")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--passphrase-env",
    default=PASSPHRASE_VARIABLE,
    metavar="NAME",
    help=f"The environment variable with the key's passphrase [{PASSPHRASE_VARIABLE}].",
)
@pass_app
def new(app: App, file: Path, passphrase_env: str) -> None:
    """Make a private key and print its public half.

    The private key goes to FILE, the public key also to FILE.pub. Nothing is recorded: whoever holds the
    root key enrols the public key.
    """
    from ledger.ed25519 import PrivateKey

    _check_place(file)
    public_file = file.with_name(file.name + ".pub")
    if os.path.lexists(public_file):
        raise UsageError("KEY_FILE_EXISTS", f"{public_file} exists", field="FILE")
    made = PrivateKey.generate()
    made.save(file, app.new_passphrase(passphrase_env))
    with public_file.open(
        "x", encoding="ascii"
    ) as stream:  # never through a link, never over a file
        stream.write(made.public.hex() + "\n")
    app.emit(
        {
            "key": made.id,
            "public_key": made.public.hex(),
            "file": str(file),
            "public_file": str(public_file),
        },
        render.fields(
            [
                ("key", made.id),
                ("public", made.public.hex()),
                ("private file", file),
                ("public file", public_file),
            ]
        ),
        next_step=f"evidence key enroll {public_file} --role ROLE --owner NAME",
    )


@key.command(example="evidence key enroll reviewer.pem.pub --role review --owner 'Ada Lovelace'")
@click.argument("public", metavar="PUBLIC|FILE")
@click.option(
    "--role",
    "roles",
    multiple=True,
    required=True,
    type=click.Choice(ENROLLED_ROLES),
    help="What the key may sign; may be repeated.",
)
@click.option("--owner", required=True, metavar="NAME", help="Whose key it is.")
@click.option(
    "--from-seq",
    type=click.IntRange(min=0),
    metavar="N",
    help="The first record it may sign [the next].",
)
@root_key_option
@pass_app
def enroll(
    app: App,
    public: str,
    roles: tuple[str, ...],
    owner: str,
    from_seq: int | None,
    root_key: Path | None,
) -> None:
    """Let a key sign from now on, by root's statement.

    PUBLIC is 64 hex digits or a file that holds them. A review key holds no other role.
    """
    from ledger.ed25519 import key_id

    raw = _public_key(public)
    with app.open_ledger() as ledger:
        body = {
            "key": key_id(raw),
            "public_key": raw.hex(),
            "roles": list(roles),
            "from_seq": ledger.size if from_seq is None else from_seq,
            "owner": owner,
        }
        record = _state(app, ledger, "key.enrolled", body, root_key)
    app.emit(
        {"record": record.id, "seq": record.seq, **body},
        [f"enrolled {body['key']} ({owner}) for {', '.join(roles)} at seq {record.seq}"],
        next_step="evidence key list",
    )


@key.command(example="evidence key revoke ed25519:4f2a81 --from-seq 120 --reason 'laptop stolen'")
@click.argument("key_name", metavar="KEY")
@click.option(
    "--from-seq",
    type=click.IntRange(min=0),
    metavar="N",
    help="The first record that is not to be trusted [the next].",
)
@click.option("--reason", required=True, help="Why; kept in the record.")
@root_key_option
@pass_app
def revoke(
    app: App, key_name: str, from_seq: int | None, reason: str, root_key: Path | None
) -> None:
    """End a key's window, by root's statement.

    With an earlier --from-seq the records it signed from there on, and what rests on them, are suspect; the
    chain stays valid. A key that was revoked is revoked again only from a still earlier seq.
    """
    with app.open_ledger() as ledger:
        body = {
            "key": _find(ledger.state(), key_name),
            "from_seq": ledger.size if from_seq is None else from_seq,
            "reason": reason,
        }
        record = _state(app, ledger, "key.revoked", body, root_key)
    app.emit(
        {"record": record.id, "seq": record.seq, **body},
        [f"revoked {body['key']} from seq {body['from_seq']}"],
        next_step="evidence verify",
    )


@key.command("rotate-root", example="evidence key rotate-root --new-key /media/safe/root-2.pem")
@click.option(
    "--new-key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the new root key goes, or the file of one made before [your configuration folder].",
)
@root_key_option
@pass_app
def rotate_root(app: App, new_key: Path | None, root_key: Path | None) -> None:
    """Hand the root's office to a new key, signed by both."""
    from ledger import places
    from ledger.checks.identity import rotation_message
    from ledger.ed25519 import PrivateKey

    if new_key is not None:
        _check_place(new_key)
    with app.open_ledger() as ledger:
        old = app.root_key(ledger, root_key)
        if new_key is not None and new_key.exists():
            fresh, file = app.load_key(new_key), new_key
        else:
            fresh = PrivateKey.generate()
            file = new_key or places.rotated_root(app.key_dir(ledger), fresh.id)
            fresh.save(file, app.passphrase())
        message = rotation_message(ledger.state().ledger_id, old.id, fresh.id, ledger.seen())
        body = {
            "old_key": old.id,
            "new_key": fresh.id,
            "new_public": fresh.public.hex(),
            "acceptance": fresh.sign(message).hex(),
        }
        record = ledger.append_stated(
            "root.rotated", body, {}, signer=old, nonce=secrets.token_hex(16)
        )
    app.emit(
        {
            "record": record.id,
            "seq": record.seq,
            "old_key": old.id,
            "new_key": fresh.id,
            "file": str(file),
        },
        render.fields([("old root", old.id), ("new root", f"{fresh.id} in {file}")]),
        next_step="evidence seal",
    )


def _check_place(file: Path) -> None:
    """A ledger folder is handed on, and a key in it would be handed on too; by no way round through a link."""
    from ledger.book import DATABASE
    from ledger.store.address import POINTER

    _refuse_secret(str(file))
    for folder in (*file.absolute().parents, *file.resolve().parents):
        if (folder / DATABASE).exists() or (folder / POINTER).exists():
            raise UsageError("KEY_INSIDE_LEDGER", f"{file} lies inside {folder}", field="file")


def _refuse_secret(text: str) -> None:
    """Somebody pasted the key itself where its file belongs: say so, and repeat nothing of it."""
    if _SECRET in text:
        raise UsageError(
            "KEY_MALFORMED",
            "a private key was given in the place of a file or of a public key",
            hint="give the name of its file, or its public half; the key is now in your shell's history",
        )


def _state(
    app: App, ledger: Ledger, kind: str, body: dict[str, object], root_key: Path | None
) -> Record:
    """Append a record with root's statement."""
    signer = app.root_key(ledger, root_key)
    return ledger.append_stated(kind, body, {}, signer=signer, nonce=secrets.token_hex(16))


def _public_key(text: str) -> bytes:
    """A raw public key from 64 hex digits or from a file that holds them."""
    _refuse_secret(text)
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        text = _public_file(Path(text))
    return bytes.fromhex(text)


def _public_file(path: Path) -> str:
    from ledger.digests import open_regular

    try:
        with open_regular(path) as stream:
            data = stream.read(_MAX_PUBLIC_FILE_BYTES)
    except FileNotFoundError:
        raise UsageError(
            "KEY_MALFORMED",
            f"{str(path)[:80]!r} is neither 64 hex digits nor a file",
            field="PUBLIC",
        ) from None
    if _SECRET.encode() in data:
        raise EvidenceError(
            "KEY_MALFORMED",
            f"{path} is a private key; only its public half is enrolled",
            field="PUBLIC",
            hint=f"give {path}.pub, or the public key that evidence key new printed",
        )
    text = data.strip().decode("ascii", "replace")
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise EvidenceError("KEY_MALFORMED", f"{path} does not hold 64 hex digits", field="PUBLIC")
    return text


def _find(state: State, name: str) -> str:
    """The whole id of the key that a prefix names."""
    digits = name.removeprefix("ed25519:")
    found = [item for item in state.keys if item.removeprefix("ed25519:").startswith(digits)]
    if len(digits) < 6 or not found:
        raise UsageError(
            "KEY_UNKNOWN",
            f"no key {name[:80]!r} in this ledger",
            field="KEY",
            hint="evidence key list",
        )
    if len(found) > 1:
        raise UsageError("REF_AMBIGUOUS", f"{name!r} fits several keys", field="KEY")
    return found[0]
