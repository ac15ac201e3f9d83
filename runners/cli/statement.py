"""`evidence statement`: what is asked on one machine is read and signed on another."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import UsageError
from ledger.records.base import Seen
from runners.cli import render
from runners.cli.commands import Group
from runners.cli.context import App, pass_app
from runners.cli.targets import put

if TYPE_CHECKING:
    from ledger.book import Ledger
    from ledger.record import Record, Refs
    from ledger.requests import Request
    from verifiers.report import Report

_FILE = click.Path(path_type=Path)


@click.group(cls=Group)
def statement() -> None:
    """Ask for statements, sign them, hand them in."""


@statement.command(
    example="evidence statement request leakage.accepted --ref audit=4f2a81 --set why='two greetings' --out ask.json"
)
@click.argument("kind", metavar="KIND")
@click.option(
    "--ref",
    "refs",
    multiple=True,
    metavar="ROLE=RECORD",
    help="What the record names; may be repeated.",
)
@click.option(
    "--set",
    "fields",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A field of its body: JSON, or plain text; may be repeated.",
)
@click.option("--out", type=_FILE, required=True, metavar="FILE", help="Where the request goes.")
@pass_app
def request(app: App, kind: str, refs: tuple[str, ...], fields: tuple[str, ...], out: Path) -> None:
    """Ask somebody on another machine for a statement; nothing is recorded.

    What is asked follows the newest sealed head, so the answer stays good for 256 seals. Send the request with a bundle of
    the record that it is about; the answer is handed in with evidence statement record.
    """
    from ledger import requests

    with app.read_ledger() as ledger:
        named = _named_refs(ledger, kind, refs)
        seen = _sealed_head(ledger)
        asked = requests.Request(
            ledger.origin, kind, named, dict(map(_field, fields)), seen, secrets.token_hex(16)
        )
    data = asked.encode()
    requests.Request.decode(data)  # the kind carries a statement, and this is its body
    put(out, data)
    about = next((name for value in named.values() for name in _ids(value)), None)
    app.emit(
        {**_told(asked), "file": str(out)},
        render.fields([*_words(asked), ("request", out)]),
        next_step=f"evidence export bundle FILE --of {about[7:19]}, and send both"
        if about
        else None,
    )


@statement.command(example="evidence statement record ask.json.signed")
@click.argument("answer", type=_FILE, metavar="ANSWER")
@pass_app
def record(app: App, answer: Path) -> None:
    """Hand a signed answer in: the record is appended with the statement.

    A statement that the ledger is restored goes to evidence restore --statement.
    """
    from ledger import requests
    from ledger.digests import open_regular

    with open_regular(answer) as stream:
        asked, made = requests.read_answer(stream.read(requests.MAX_FILE_BYTES + 1))
    if asked.kind == "ledger.restored":
        raise UsageError(
            "USAGE", "a restore is handed in another way", hint="evidence restore --statement FILE"
        )
    with app.open_ledger() as ledger:
        if asked.ledger != ledger.origin:
            raise UsageError(
                "STATEMENT_FOREIGN",
                f"{answer} is about another ledger",
                expected=ledger.origin,
                actual=asked.ledger,
            )
        done = ledger.append(asked.kind, asked.body, asked.refs, made)
    app.emit(
        {"record": done.id, "seq": done.seq, "kind": done.kind, "key": made.key},
        render.fields([("recorded", f"{done.kind} {render.short(done.id)}"), ("by", made.key)]),
        next_step=f"evidence show {render.short(done.id)}",
    )


@statement.command(
    example="evidence statement sign restore.json --key /media/safe/root.pem\n"
    "evidence statement sign ask.json --key reviewer.pem --bundle audit.tar --root ed25519:4f2a81…"
)
@click.argument("request", type=_FILE, metavar="REQUEST")
@click.option(
    "--bundle",
    type=_FILE,
    metavar="FILE",
    help="Verify this bundle first, and show from it the records that you state something about.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="KEYID",
    help="With --bundle: a root key that you trust; may be repeated.",
)
@click.option("--out", type=_FILE, metavar="FILE", help="Where the answer goes [REQUEST.signed].")
@pass_app
def sign(
    app: App, request: Path, bundle: Path | None, roots: tuple[str, ...], out: Path | None
) -> None:
    """Sign a request with your own key; no ledger is needed.

    Read what is shown: you state exactly that, after exactly this head. With --bundle nothing is signed unless the bundle is
    verified, holds every record that the request names, and was made under the head that it names. Whoever asked
    hands the answer in.
    """
    from ledger import requests
    from ledger.digests import open_regular

    if app.key is None and not app.environment.get("EVIDENCE_KEY"):
        raise UsageError(
            "KEY_MISSING",
            "name the key that you sign with",
            field="--key",
            hint="give it with --key FILE or EVIDENCE_KEY",
        )
    with open_regular(request) as stream:
        asked = requests.Request.decode(stream.read(requests.MAX_FILE_BYTES + 1))
    report, about = _checked(app, bundle, roots, asked)
    signer = app.writer_key()
    file = out or request.with_name(request.name + ".signed")
    put(file, requests.sign(asked, signer), new=out is None)
    app.emit(
        {
            "key": signer.id,
            **_told(asked),
            "file": str(file),
            "trust": None if report is None else report.trust,
            "about": [item.as_dict() for item in about],
        },
        [
            *render.fields(
                [
                    *_words(asked),
                    ("bundle", None if report is None else f"verified, {_trusted(report)}"),
                    ("signed by", signer.id),
                    ("answer", file),
                ]
            ),
            *(line for item in about for line in _shown(item)),
        ],
        next_step=f"hand {file} back to whoever asked",
    )


def _checked(
    app: App, bundle: Path | None, roots: tuple[str, ...], asked: Request
) -> tuple[Report | None, list[Record]]:
    """What a bundle shows of the records that a request names; nothing where there is no bundle."""
    if bundle is None:
        if roots:
            raise UsageError("USAGE", "--root goes with --bundle", field="--root")
        return None, []
    from runners.bundles import shown
    from runners.cli.verify import check_roots
    from verifiers.verify import Options

    check_roots(roots)
    options = Options(pinned_roots=frozenset(roots), state_dir=app.state_dir)
    return shown(bundle, options, asked)


def _trusted(report: Report) -> str:
    if report.trust == "pinned":
        return "under a root key that you named"
    return "its root key taken on faith: name one with --root"


def _shown(about: Record) -> list[str]:
    """A record that something is stated about, field by field."""
    title = f"about {about.kind} at seq {about.seq}, {about.id}"
    refs = [(role, ref) for role, ref in about.all_refs()]
    fields = [*refs, *((name, _word(value)) for name, value in about.body.items())]
    return ["", render.Styled(title, bold=True), *(f"  {line}" for line in render.fields(fields))]


def _named_refs(ledger: Ledger, kind: str, words: tuple[str, ...]) -> Refs:
    """The refs named on the command line, whole ids of the kinds that the rule allows."""
    from ledger.rules import ANY, RULES

    rule = RULES.get(kind)
    if rule is None or rule.statement is None:
        raise UsageError(
            "KIND_UNKNOWN" if rule is None else "STATEMENT_UNEXPECTED",
            f"{kind[:60]!r} is no kind that carries a statement",
            field="KIND",
            hint="see which do: evidence schema KIND",
        )
    found: Refs = {}
    for word in words:
        role, _, name = word.partition("=")
        spec = rule.refs.get(role)
        if spec is None:
            raise UsageError(
                "REF_UNEXPECTED", f"{kind} has no ref called {role[:40]}", field="--ref"
            )
        target = ledger.get(name, *(() if spec.kinds == ANY else spec.kinds)).id
        found[role] = [*_ids(found.get(role, [])), target] if spec.many else target
    return found


def _sealed_head(ledger: Ledger) -> Seen:
    """The newest head that was sealed."""
    from ledger import seals

    notes = ledger.seals()
    if not notes:
        raise UsageError("NOT_SEALED", "the ledger has no seal yet", hint="evidence seal")
    head = seals.read_unverified(notes[-1][1])
    return Seen(size=head.size, root=head.root.hex())


def _field(word: str) -> tuple[str, Any]:
    """A field and its value: JSON where it is JSON, else the text."""
    name, _, text = word.partition("=")
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


def _ids(value: str | list[str]) -> list[str]:
    return value if isinstance(value, list) else [value]


def _told(asked: Request) -> dict[str, Any]:
    return {
        "ledger": asked.ledger,
        "kind": asked.kind,
        "refs": asked.refs,
        "body": asked.body,
        "seal": asked.seal.model_dump(),
    }


def _words(asked: Request) -> list[tuple[str, object]]:
    """What is stated, one line a field."""
    fields = {**asked.refs, **asked.body}
    return [
        ("ledger", asked.ledger),
        ("record", asked.kind),
        *((name, _word(value)) for name, value in fields.items()),
        ("after", f"{render.count(asked.seal.size, 'record')}, root {asked.seal.root}"),
    ]


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
