"""Campaign `keys`: constructed Ed25519 cases before the rule, the product, libsodium and admission.

Each case is judged by the rule as mathematics (`signature_rule`), by `ledger.ed25519`, by libsodium through
PyNaCl and by OpenSSL through cryptography alone. Keys that may not be enrolled are shown to every door through
which a key comes in. The rule and the product must agree on each case, code by code, and what they accept both
libraries must accept. What a library accepts beyond the rule is no failure: it is counted by class and reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.backends.openssl import backend
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from nacl.exceptions import BadSignatureError
from nacl.exceptions import ValueError as NaclValueError
from nacl.signing import VerifyKey
from world import DRAFTS, Draft, World, clock_at

from campaigns.curve import COFACTOR, add, encode, has_mixed_order, multiply_base, torsion
from campaigns.report import Outcome, Settings
from campaigns.signature_cases import CLASSES, CONTROLS, Case, finished, unenrollable_keys
from campaigns.signature_rule import key_refusal, signature_refusal
from ledger import ed25519
from ledger import record as records
from ledger.admission import Chain
from ledger.dsse import pae
from ledger.errors import EvidenceError
from ledger.merkle import CompactRange
from ledger.record import Record
from ledger.records import KINDS
from ledger.state import State

SLICE = 64 * len(CLASSES)  # each class goes through all pairs of low-order components
FULL = 100_000
ACCEPTED = "accepted"


def run(settings: Settings) -> Outcome:
    """Run the cases, and the doors once."""
    outcome = Outcome(
        excluded={
            "signatures with a known non-canonical R of large order": "nobody can make one: R would be chosen"
            " by its bytes, and its discrete logarithm is not known",
            "batch verification": "the product has none",
        }
    )
    total = FULL if settings.full else SLICE
    chosen = range(total) if settings.case is None else [settings.case]
    for number in chosen:
        _try(settings, number, outcome)
        settings.progress(number, total)
    if settings.case is None:
        for what, failure in (*_doors(), *_mixed_keys()):
            outcome.cases += 1
            outcome.counts[what] += 1
            if failure:
                outcome.failures.append(failure)
    for library in LIBRARIES:
        beyond = (what for what in outcome.counts if what.endswith(f"; {library} accepts"))
        outcome.figures[f"{library} accepts beyond the rule"] = sum(
            outcome.counts[what] for what in beyond
        )
    outcome.figures["versions"] = {
        "PyNaCl": version("pynacl"),
        "cryptography": version("cryptography"),
        "OpenSSL": backend.openssl_version_text(),
    }
    return outcome


def _try(settings: Settings, number: int, outcome: Outcome) -> None:
    make = CLASSES[number % len(CLASSES)]
    case = make(settings.random(number), number // len(CLASSES))
    wanted, ours = ruled(case), product(case)
    taken_by = [name for name, accepts in LIBRARIES.items() if accepts(case)]
    outcome.cases += 1
    outcome.counts[f"{make.__name__}: {_in_words(case, wanted, taken_by)}"] += 1
    wrong = ""
    if (wanted == ACCEPTED) != (ours == ACCEPTED) or (_is_code(wanted) and ours != wanted):
        wrong = f"the product says {ours}, the rule {wanted}"
    elif wanted == ACCEPTED and len(taken_by) < len(LIBRARIES):
        wrong = f"only {taken_by} accept a good one"
    elif make.__name__ in CONTROLS and wanted != ACCEPTED:
        wrong = f"a control is refused: {wanted}"
    if wrong:
        outcome.failures.append(f"case {number}: {make.__name__}: {wrong}")


def ruled(case: Case) -> str:
    """What the rule makes of a case: accepted, the code of the key's refusal, or a reason."""
    return (
        key_refusal(case.public)
        or signature_refusal(case.public, case.message, case.signature)
        or ACCEPTED
    )


def product(case: Case) -> str:
    """What `ledger.ed25519` makes of it."""
    try:
        good = ed25519.verify(case.public, case.message, case.signature)
    except EvidenceError as error:
        return error.code
    return ACCEPTED if good else "refused"


def libsodium(case: Case) -> bool:
    """Whether libsodium accepts it."""
    try:
        VerifyKey(case.public).verify(case.message, case.signature)
    except (BadSignatureError, NaclValueError):
        return False
    return True


def openssl(case: Case) -> bool:
    """Whether OpenSSL accepts it, without the product's own checks of key and R."""
    try:
        Ed25519PublicKey.from_public_bytes(case.public).verify(case.signature, case.message)
    except (InvalidSignature, ValueError):
        return False
    return True


LIBRARIES: dict[str, Callable[[Case], bool]] = {"libsodium": libsodium, "OpenSSL": openssl}


def _in_words(case: Case, wanted: str, taken_by: list[str]) -> str:
    if wanted == ACCEPTED:
        return "accepted" + (", key of mixed order" if has_mixed_order(case.public) else "")
    what = f"key refused {wanted}" if _is_code(wanted) else f"refused {wanted}"
    return what + "".join(f"; {name} accepts" for name in taken_by)


def _is_code(verdict: str) -> bool:
    return verdict.isupper()


# --- through admission ------------------------------------------------------------------------


def _doors() -> Iterator[tuple[str, str | None]]:
    """Each key that may not be enrolled, at each door: enrolment, rotation, record 0."""
    world = World()
    for public in unenrollable_keys():
        wanted = str(key_refusal(public))
        for name, attempt in _DOORS.items():
            code = _code_of(partial(attempt, world, public))
            failure = None if code == wanted else f"key {public.hex()} at {name}: {code}"
            yield f"{name}: refused {code}", failure


def _enrolment(world: World, public: bytes) -> None:
    draft = world.draft("key.enrolled")
    draft.body.update(key=ed25519.key_id(public), public_key=public.hex())
    world.chain.admit(world.sign(draft))


def _rotation(world: World, public: bytes) -> None:
    draft = world.draft("root.rotated")
    draft.body.update(new_key=ed25519.key_id(public), new_public=public.hex())
    world.chain.admit(world.sign(draft))


def _record_0(world: World, public: bytes) -> None:
    made = DRAFTS["ledger.created"](world)
    made.body.update(root_key=ed25519.key_id(public), root_public=public.hex())
    made.seq, made.prev = 0, None
    Chain(State(), CompactRange(), None, lambda _: None).admit(world.sign(made))


_DOORS: dict[str, Callable[[World, bytes], None]] = {
    "key.enrolled": _enrolment,
    "root.rotated": _rotation,
    "ledger.created": _record_0,
}


def _mixed_keys() -> Iterator[tuple[str, str | None]]:
    """A key with a component of low order may be enrolled; its records count by the strict equation alone."""
    for in_key in range(1, COFACTOR):
        world = World()
        a = 2**200 + in_key
        public = encode(add(multiply_base(a), torsion()[in_key]))
        world.add("key.enrolled", key=ed25519.key_id(public), public_key=public.hex())
        for in_r in range(COFACTOR):
            record, strict = _signed_by(world, a, public, in_r)
            code = _code_of(partial(world.chain.admit, record))
            right = code == (ACCEPTED if strict else "SIGNATURE_INVALID")
            if code == ACCEPTED:
                world.by_id[record.id] = record
            what = "good" if strict else "good only with the cofactor"
            yield (
                f"record by a mixed-order key, {what}: {code}",
                None if right else f"mixed key {in_key}, R {in_r}: {code}",
            )


def _signed_by(world: World, a: int, public: bytes, in_r: int) -> tuple[Record, bool]:
    """A note at the end of the world by a scalar's key, and whether its signature is strictly good."""
    draft = Draft("note.added", {"text": f"R has component {in_r}"})
    entry = records.build_entry(
        ledger=draft.ledger,
        seq=world.chain.size,
        prev=world.chain.last_id,
        kind=draft.kind,
        schema=KINDS[draft.kind].version,
        time=clock_at(world.chain.size),
        actor=ed25519.key_id(public),
        refs={},
        body=draft.body,
        statement=None,
    )
    message = pae(records.PAYLOAD_TYPE, entry)
    commitment = encode(add(multiply_base(a + 1), torsion()[in_r]))
    case = finished(a, public, a + 1, commitment, message)
    return records.parse(entry, case.signature), ruled(case) == ACCEPTED


def _code_of(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except EvidenceError as error:
        return error.code
    return ACCEPTED
