"""`evidence seal` and `evidence prove`: signed tree heads, and records under them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import EvidenceError, UsageError
from runners.cli import render
from runners.cli.boundary import exit_code
from runners.cli.commands import Verb
from runners.cli.context import App, pass_app
from runners.cli.targets import Target, put

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record
    from ledger.seals import Seal

_FILE = click.Path(path_type=Path)


@click.command(cls=Verb, example="evidence seal --out latest.seal")
@click.option("--out", type=_FILE, metavar="FILE", help="Write the seal there too.")
@pass_app
def seal(app: App, out: Path | None) -> None:
    """Sign the ledger's size and root.

    The seal is a C2SP checkpoint. Keep a copy where nobody who writes the ledger can change it: verify with
    --expect-seal then notices a ledger that was cut or rewritten.
    """
    from ledger import seals

    target = Target.reserved(out) if out is not None else None
    try:
        with app.open_ledger() as ledger:
            note = ledger.seal()
        head = seals.read_unverified(note)
        unwritten = _unwritten(target, note, head.size)
    finally:
        if target is not None:
            target.release()
    app.emit(
        {
            "origin": head.origin,
            "size": head.size,
            "root": head.root.hex(),
            "seal": note.decode(),
            "file": None if out is None or unwritten else str(out),
        },
        note.decode().splitlines(),
        next_step="evidence verify --expect-seal FILE",
        failure=unwritten,
        exit_code=exit_code(unwritten.code) if unwritten else None,
    )


def _unwritten(target: Target | None, note: bytes, size: int) -> UsageError | None:
    """Write the seal out; where that fails, say that it was made all the same: it is in the ledger and in the answer."""
    if target is None:
        return None
    try:
        target.write(note)
    except UsageError as error:
        return UsageError(
            error.code,
            f"the seal of {render.count(size, 'record')} was made and is kept in the ledger, but not written out: "
            f"{error.message}",
            field="--out",
            hint="keep the seal from this answer, or seal again: evidence seal --out FILE",
        )
    return None


@click.command(
    cls=Verb,
    example="evidence prove 4f2a81 --out 4f2a81.tlog-proof\n"
    "evidence prove --check 4f2a81.tlog-proof --origin example.com/bot --public 1f2e…",
)
@click.argument("record", required=False)
@click.option("--out", type=_FILE, metavar="FILE", help="Write the proof there.")
@click.option("--check", type=_FILE, metavar="FILE", help="Check this proof instead of making one.")
@click.option("--vkey", metavar="KEY", help="The seal key to trust, as NAME+ID+BASE64.")
@click.option("--origin", metavar="NAME", help="The ledger to expect, with --public.")
@click.option(
    "--public",
    "publics",
    multiple=True,
    metavar="HEX",
    help="A seal key to trust; may be repeated.",
)
@pass_app
def prove(
    app: App,
    record: str | None,
    out: Path | None,
    check: Path | None,
    vkey: str | None,
    origin: str | None,
    publics: tuple[str, ...],
) -> None:
    """Prove that a record is under a seal, or check such a proof.

    The proof is a C2SP tlog-proof file that carries the record itself, so it can be checked without the
    ledger. Give the seal key you trust with --vkey, or with --origin and --public; without them the keys
    of the ledger at hand are used, and RECORD may name the record to expect.
    """
    if check is not None:
        _check(app, check, record, _given_keys(vkey, origin, publics))
    elif record is not None:
        _prove(app, record, out)
    else:
        raise UsageError("USAGE", "name a record, or a proof with --check", field="RECORD")


def _prove(app: App, name: str, out: Path | None) -> None:
    from ledger import notes, proofs, seals

    with app.read_ledger() as ledger:
        record = ledger.get(name, raw=True)
        note = _newest_seal(ledger, record)
        head = seals.open_seal(note, ledger.origin, _seal_keys(ledger))
        leaves = (bytes.fromhex(item.id[7:]) for item in ledger.records(0, head.size))
        leaf = bytes.fromhex(record.id[7:])
        proof = proofs.build(note, record.seq, leaf, leaves, extra=record.signature + record.entry)
        keys = [notes.VerifierKey(ledger.origin, notes.ED25519, raw) for raw in _seal_keys(ledger)]
    if out is not None:
        put(out, proof)
    result = {
        **_described(record, head),
        "vkeys": [item.encode() for item in keys],
        "proof": proof.decode(),
        "file": None if out is None else str(out),
    }
    lines = _lines(result) if out else proof.decode().splitlines()
    app.emit(
        result,
        lines,
        next_step=f"evidence prove --check {out or 'FILE'} --vkey {keys[-1].encode()}",
    )


def _check(app: App, path: Path, name: str | None, given: tuple[str, list[bytes]] | None) -> None:
    from ledger import proofs
    from ledger.digests import open_regular
    from ledger.record import parse, record_id

    with open_regular(path) as stream:
        data = stream.read(proofs.MAX_PROOF_BYTES + 1)
    carried = proofs.TlogProof.decode(data).extra
    record: Record | None = None
    origin_keys = given
    if name is not None or given is None:
        with app.read_ledger() as ledger:
            record = ledger.get(name, raw=True) if name is not None else None
            origin_keys = given or (ledger.origin, _seal_keys(ledger))
    assert origin_keys is not None
    if record is None:
        if carried is None or len(carried) <= 64:
            raise UsageError("USAGE", "the proof carries no record: name it too", field="RECORD")
        leaf = bytes.fromhex(record_id(carried[:64], carried[64:])[7:])
    else:
        leaf = bytes.fromhex(record.id[7:])
    index, head = proofs.verify(data, leaf, origin_keys[0], origin_keys[1])
    if record is None:
        assert carried is not None
        record = parse(carried[64:], carried[:64])
    _expect_place(record, index, head)
    trust = "pinned" if given else "on_faith"
    result = {**_described(record, head), "trust": trust}
    note = "" if given else " (by the keys of the ledger at hand; pin one with --vkey)"
    app.emit(
        result,
        [render.Styled(f"proven{note}", fg="green", bold=True), *_lines(result)],
        next_step=None if given else f"evidence prove --check {path} --vkey KEY",
    )


def _given_keys(
    vkey: str | None, origin: str | None, publics: tuple[str, ...]
) -> tuple[str, list[bytes]] | None:
    """The ledger and keys that the options name, None where they name none."""
    from ledger import notes

    if vkey is not None:
        if origin is not None or publics:
            raise UsageError("USAGE", "give --vkey, or --origin and --public", field="--vkey")
        key = notes.VerifierKey.decode(vkey)
        return key.name, [key.public]
    if origin is None and not publics:
        return None
    if origin is None or not publics:
        raise UsageError("USAGE", "--origin and --public go together", field="--origin")
    return origin, [_raw_public(text) for text in publics]


def _raw_public(text: str) -> bytes:
    from runners.cli.keys import _public_key

    return _public_key(text)


def _newest_seal(ledger: Ledger, record: Record) -> bytes:
    covering = [note for size, note in ledger.seals() if size > record.seq]
    if not covering:
        raise UsageError("NOT_SEALED", f"no seal covers seq {record.seq} yet", record=record.id)
    return covering[-1]


def _seal_keys(ledger: Ledger) -> list[bytes]:
    keys = ledger.state().keys.values()
    return [bytes.fromhex(key.public) for key in keys if "seal" in key.roles]


def _expect_place(record: Record, index: int, head: Seal) -> None:
    """The record says itself where it stands; the seal must agree."""
    if (record.seq, record.ledger) != (index, head.origin):
        raise EvidenceError(
            "PROOF_INVALID",
            "the record names another place than the proof",
            record=record.id,
            expected=f"seq {index} of {head.origin}",
            actual=f"seq {record.seq} of {record.ledger}",
        )


def _described(record: Record, head: Seal) -> dict[str, Any]:
    return {
        "record": record.id,
        "seq": record.seq,
        "kind": record.kind,
        "seal": {"origin": head.origin, "size": head.size, "root": head.root.hex()},
    }


def _lines(result: dict[str, Any]) -> list[str]:
    head = result["seal"]
    return render.fields(
        [
            ("record", f"{result['kind']} {result['record']}"),
            ("seq", str(result["seq"])),
            ("ledger", head["origin"]),
            ("under the seal of", render.count(head["size"], "record")),
            ("root", head["root"]),
        ]
    )
