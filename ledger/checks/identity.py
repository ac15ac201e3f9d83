"""Rules about keys, root, snapshots (docs/spec/rules.md, K1 to K6)."""

from __future__ import annotations

from typing import cast

from ledger import ed25519
from ledger.blobs import blobs_of
from ledger.checks.context import Check, Context
from ledger.digests import sha256
from ledger.dsse import pae
from ledger.records.base import Seen
from ledger.records.identity import (
    KeyEnrolled,
    KeyRevoked,
    LedgerRestored,
    RootRotated,
    SnapshotRecorded,
)
from ledger.records.promotion import BlobWithheld

ROTATION_TYPE = "application/vnd.evidence-ledger.rotation"


def rotation_message(ledger_id: str, old_key: str, new_key: str, seen: Seen) -> bytes:
    """What a new root key signs to accept its office: in this ledger, after this very history.

    Bound to record 0's id and to the head that the old root's statement saw, so that nobody who later
    steals the old key can put the acceptance under another history.
    """
    text = f"{ledger_id}\n{old_key}\n{new_key}\n{seen.size}\n{seen.root}\n"
    return pae(ROTATION_TYPE, text.encode())


def _enrolled(context: Context) -> None:
    """K1: the key is sound, new, not back-dated, and a review key does nothing else."""
    body = cast("KeyEnrolled", context.body)
    public = bytes.fromhex(body.public_key)
    ed25519.check_public(public)
    if ed25519.key_id(public) != body.key:
        raise context.fail(
            "KEY_ID_WRONG",
            "key is not the id of public_key",
            field="body.key",
            expected=ed25519.key_id(public),
            actual=body.key,
        )
    if body.key in context.state.keys:
        raise context.fail("KEY_TWICE", f"key {body.key} is already enrolled", field="body.key")
    if body.from_seq < context.record.seq:
        raise context.fail(
            "KEY_BACKDATED",
            "a key cannot be enrolled for records that were written before",
            field="body.from_seq",
            expected=f"at least {context.record.seq}",
            actual=str(body.from_seq),
        )
    roles = set(body.roles)
    if len(roles) != len(body.roles) or "root" in roles:
        raise context.fail(
            "KEY_ROLES", "roles are named once each, and root is never enrolled", field="body.roles"
        )
    if "review" in roles and len(roles) > 1:
        raise context.fail(
            "REVIEW_KEY_SHARED", "a review key holds no other role", field="body.roles"
        )
    if "audit" in roles and roles & {"train", "judge"}:
        raise context.fail(
            "AUDIT_KEY_SHARED", "an audit key neither trains nor judges", field="body.roles"
        )


def _revoked(context: Context) -> None:
    """K2: an enrolled key is revoked from a seq that is not in the future; again only to reach further back."""
    body = cast("KeyRevoked", context.body)
    key = context.state.keys.get(body.key)
    if key is None:
        raise context.fail("KEY_UNKNOWN", f"key {body.key} is not enrolled", field="body.key")
    if "root" in key.roles:
        raise context.fail("KEY_ROLES", "the root key is rotated, not revoked", field="body.key")
    if body.from_seq > context.record.seq:
        raise context.fail(
            "KEY_BACKDATED",
            "a revocation takes effect now or earlier",
            field="body.from_seq",
            expected=f"at most {context.record.seq}",
            actual=str(body.from_seq),
        )
    if key.until_seq is None:
        return
    reached = key.until_seq if key.suspect_from is None else key.suspect_from
    if max(body.from_seq, key.from_seq) >= reached:
        raise context.fail(
            "KEY_UNKNOWN",
            f"key {body.key} was revoked before, and this reaches no further back",
            field="body.from_seq",
            expected=f"less than {reached}",
            actual=str(body.from_seq),
        )


def _rotated(context: Context) -> None:
    """K3: the old root makes the statement, the new root signs its acceptance."""
    body = cast("RootRotated", context.body)
    public = bytes.fromhex(body.new_public)
    ed25519.check_public(public)
    if body.old_key != context.state.root_key:
        raise context.fail(
            "ROOT_WRONG",
            "old_key is not the root key",
            field="body.old_key",
            expected=context.state.root_key,
            actual=body.old_key,
        )
    if ed25519.key_id(public) != body.new_key:
        raise context.fail(
            "KEY_ID_WRONG",
            "new_key is not the id of new_public",
            field="body.new_key",
            expected=ed25519.key_id(public),
            actual=body.new_key,
        )
    if body.new_key in context.state.keys:
        raise context.fail(
            "KEY_TWICE",
            "the new root key holds or held another office in this ledger",
            field="body.new_key",
            actual=body.new_key,
        )
    statement = context.record.statement
    assert statement is not None  # _check_statement demanded one
    message = rotation_message(context.state.ledger_id, body.old_key, body.new_key, statement.seal)
    if not ed25519.verify(public, message, bytes.fromhex(body.acceptance)):
        raise context.fail(
            "ROOT_WRONG", "the new root key did not sign its acceptance", field="body.acceptance"
        )


def _snapshot(context: Context) -> None:
    """K4: a snapshot holds exactly the state and the tree before it."""
    body = cast("SnapshotRecorded", context.body)
    state = context.state.to_bytes()
    if body.state.digest != sha256(state) or body.state.size != len(state):
        raise context.fail(
            "SNAPSHOT_WRONG",
            "the snapshot's state is not the state before it",
            field="body.state",
            expected=sha256(state),
            actual=body.state.digest,
        )
    tree = [item.hex() for item in context.tree.to_hashes()]
    if body.tree != tree:
        raise context.fail(
            "SNAPSHOT_WRONG", "the snapshot's tree is not the tree before it", field="body.tree"
        )


def _restored(context: Context) -> None:
    """K5: what was lost lies at or beyond the end of what is left."""
    body = cast("LedgerRestored", context.body)
    if body.lost_from != context.record.seq or body.high_water.size <= body.lost_from:
        raise context.fail(
            "RESTORE_WRONG",
            "lost_from is the seq of this record and high_water lies beyond it",
            field="body.lost_from",
            expected=str(context.record.seq),
            actual=str(body.lost_from),
        )


def _withheld(context: Context) -> None:
    """K6: what is withheld is a blob of the record that is named."""
    body = cast("BlobWithheld", context.body)
    record = context.need("record")
    if body.digest not in {digest for digest, _ in blobs_of(record.kind, record.body)}:
        raise context.fail(
            "WITHHELD_OTHER",
            f"record {record.id[7:19]} names no such blob",
            field="body.digest",
            actual=body.digest,
        )


CHECKS: dict[str, tuple[Check, ...]] = {
    "blob.withheld": (_withheld,),
    "key.enrolled": (_enrolled,),
    "key.revoked": (_revoked,),
    "root.rotated": (_rotated,),
    "snapshot.recorded": (_snapshot,),
    "ledger.restored": (_restored,),
}
