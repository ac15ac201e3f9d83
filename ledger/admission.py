"""Whether a record may stand at the end of a chain: `admit` checks it and moves the state on.

Append and verify both call this, step by step in the order of docs/spec/verification.md. Pure: `resolve`
fetches an earlier record by id, certified by its hash; nothing is read from a clock, file or socket.
"""

from __future__ import annotations

from collections.abc import Callable

from ledger import ed25519, statements
from ledger.checks import CHECKS, Context, advance
from ledger.dsse import pae
from ledger.errors import EvidenceError
from ledger.merkle import CompactRange
from ledger.record import PAYLOAD_TYPE, Record, check_body
from ledger.records.base import Body, Statement
from ledger.rules import ANY, RULES, Rule
from ledger.state import KeyState, State

Resolve = Callable[[str], Record | None]
Verify = Callable[[bytes, bytes, bytes], bool]


class Chain:
    """The end of a ledger: state, tree and last record.

    Args:
        state: the reducer's state after the last record.
        tree: the compact range over all records so far.
        last_id: id of the last record, None for an empty ledger.
        resolve: fetches an earlier record by id.
        verify_signature: (public key, message, signature) -> bool.

    Attributes:
        last_public: the raw public key that must have signed the record admitted last.
    """

    def __init__(
        self,
        state: State,
        tree: CompactRange,
        last_id: str | None,
        resolve: Resolve,
        verify_signature: Verify = ed25519.verify,
    ) -> None:
        self.state = state
        self.tree = tree
        self.last_id = last_id
        self.resolve = resolve
        self.verify_signature = verify_signature
        self.last_public = b""

    @property
    def size(self) -> int:
        """How many records stand in the chain."""
        return self.tree.size

    def admit(self, record: Record, *, signature_known_good: bool = False) -> list[str]:
        """Check a record against everything before it, then make it the last one.

        Args:
            record: the next record, as `ledger.record.parse` gave it.
            signature_known_good: the caller has verified the writer's signature over the same bytes.

        Returns:
            Codes of warnings, e.g. `CLOCK_BACKWARDS`; they never refuse.

        Raises:
            EvidenceError: the first thing that is wrong, with its code; the chain is then unchanged.
        """
        try:
            warnings = self._check(record, signature_known_good)
        except EvidenceError as error:
            raise _placed(error, record) from None
        advance(self.state, record, self.tree, self.resolve)
        self.tree.append(bytes.fromhex(record.id[7:]))
        self.last_id = record.id
        self.state.last_time = record.time
        return warnings

    def check_apart(self, record: Record) -> Context:
        """Check of a record what can be told without all that stands before it, and change nothing.

        Its body, its writer's key and signature, its statement but for nonce and head, and its refs, by the keys of
        this chain's state. For records that come without their history and are proven to be in it.

        Returns:
            What the rules beyond the refs would look at.

        Raises:
            EvidenceError: the first thing that is wrong, with its code.
        """
        try:
            body = check_body(record.kind, record.schema, record.body)
            rule = RULES[record.kind]
            self._check_key(record, rule, body)
            self._check_signature(record)
            self._check_statement(record, rule, seen=False)
            refs = self._check_refs(record, rule)
        except EvidenceError as error:
            raise _placed(error, record) from None
        return Context(self.state, record, body, refs, self.tree, self.resolve)

    def _check(self, record: Record, signature_known_good: bool) -> list[str]:
        self._check_place(record)
        body = check_body(record.kind, record.schema, record.body)
        rule = RULES[record.kind]
        self._check_key(record, rule, body)
        if not signature_known_good:
            self._check_signature(record)
        self._check_statement(record, rule)
        refs = self._check_refs(record, rule)
        checks = CHECKS.get(record.kind)
        if checks is not None:
            context = Context(self.state, record, body, refs, self.tree, self.resolve)
            for check in checks:
                check(context)
        if record.time < self.state.last_time:
            return ["CLOCK_BACKWARDS"]
        return []

    def _check_place(self, record: Record) -> None:
        if record.seq != self.size:
            raise EvidenceError(
                "SEQ_GAP",
                f"seq {record.seq} where {self.size} comes next",
                record=record.id,
                seq=self.size,
                expected=str(self.size),
                actual=str(record.seq),
            )
        if record.prev != self.last_id:
            raise EvidenceError(
                "CHAIN_BROKEN",
                "prev is not the id of the record before",
                field="prev",
                expected=str(self.last_id),
                actual=str(record.prev),
            )
        if (record.kind == "ledger.created") != (record.seq == 0):
            raise EvidenceError(
                "GENESIS_MISPLACED", "ledger.created is record 0, and only record 0"
            )
        if record.seq > 0 and record.ledger != self.state.origin:
            raise EvidenceError(
                "ORIGIN_FOREIGN",
                "the record belongs to another ledger",
                field="ledger",
                expected=self.state.origin,
                actual=record.ledger,
            )

    def _check_key(self, record: Record, rule: Rule, body: Body) -> None:
        if record.seq == 0:
            _check_genesis_key(record, body)
            self.last_public = bytes.fromhex(record.body["root_public"])
            return
        key = key_at(self.state, record.actor, record.seq)
        self.last_public = bytes.fromhex(key.public)
        if rule.roles != ANY and set(key.roles).isdisjoint(rule.roles):
            raise EvidenceError(
                "ROLE_MISSING",
                f"{record.kind} needs a key with role {' or '.join(rule.roles)}",
                field="actor",
                expected=" or ".join(rule.roles),
                actual=", ".join(key.roles),
            )

    def _check_signature(self, record: Record) -> None:
        """Refuse a record whose signature is not its writer's.

        Raises:
            EvidenceError: `SIGNATURE_INVALID`.
        """
        message = pae(PAYLOAD_TYPE, record.entry)
        if not self.verify_signature(self.last_public, message, record.signature):
            raise EvidenceError(
                "SIGNATURE_INVALID", "the signature is not the writer's over these bytes"
            )

    def _check_statement(self, record: Record, rule: Rule, *, seen: bool = True) -> None:
        statement = record.statement
        if rule.statement is None:
            if statement is not None:
                raise EvidenceError("STATEMENT_UNEXPECTED", f"{record.kind} carries no statement")
            return
        if statement is None:
            raise EvidenceError(
                "STATEMENT_MISSING",
                f"{record.kind} needs a statement by a key with role {rule.statement}",
                field="statement",
            )
        key = key_at(self.state, statement.key, record.seq)
        if rule.statement not in key.roles:
            raise EvidenceError(
                "STATEMENT_ROLE",
                f"the statement's key has not the role {rule.statement}",
                field="statement.key",
                expected=rule.statement,
                actual=", ".join(key.roles),
            )
        if seen:
            self._check_seen(statement)
        message = statements.signed_message(
            record.ledger, record.kind, record.refs, record.body, statement
        )
        public = bytes.fromhex(key.public)
        if not self.verify_signature(public, message, bytes.fromhex(statement.signature)):
            raise EvidenceError(
                "STATEMENT_INVALID",
                "the statement's signature does not cover these refs and this body",
            )

    def _check_seen(self, statement: Statement) -> None:
        if statement.nonce in self.state.nonces:
            raise EvidenceError(
                "STATEMENT_REPLAYED",
                f"the statement was already used by record {self.state.nonces[statement.nonce]}",
                field="statement.nonce",
            )
        seen = statement.seal
        root = (
            self.tree.root().hex()
            if seen.size == self.size
            else self.state.heads.get(str(seen.size))
        )
        if root is None:
            raise EvidenceError(
                "STATEMENT_STALE",
                f"the statement saw a head of {seen.size} records that is not among the last seals",
                field="statement.seal",
            )
        if root != seen.root:
            raise EvidenceError(
                "STATEMENT_FOREIGN",
                "the statement saw a head that is no prefix of this ledger",
                field="statement.seal",
                expected=root,
                actual=seen.root,
            )

    def _check_refs(self, record: Record, rule: Rule) -> dict[str, list[Record]]:
        if not record.refs.keys() <= rule.refs.keys():
            role = next(role for role in record.refs if role not in rule.refs)
            raise EvidenceError(
                "REF_UNEXPECTED", f"{record.kind} has no ref called {role}", field=f"refs.{role}"
            )
        found: dict[str, list[Record]] = {}
        for role, spec in rule.refs.items():
            value = record.refs.get(role)
            if value is None:
                if spec.required:
                    raise _ref_missing(record.kind, role, spec.made_by)
                continue
            if isinstance(value, list) != spec.many:
                raise EvidenceError(
                    "REF_SHAPE",
                    f"ref {role} of {record.kind} is {'a list of ids' if spec.many else 'one id'}",
                    field=f"refs.{role}",
                )
            ids = value if isinstance(value, list) else [value]
            if len(ids) > 1 and len(set(ids)) != len(ids):
                raise EvidenceError(
                    "REF_SHAPE", f"ref {role} names a record twice", field=f"refs.{role}"
                )
            found[role] = [self._resolve_ref(record, role, ref, spec.kinds) for ref in ids]
        for choices in rule.one_of:
            present = [role for role in choices if role in record.refs]
            if len(present) != 1:
                made_by = next(
                    (rule.refs[role].made_by for role in choices if rule.refs[role].made_by), ""
                )
                raise _ref_missing(record.kind, " or ".join(choices), made_by, len(present))
        return found

    def _resolve_ref(self, record: Record, role: str, ref: str, kinds: tuple[str, ...]) -> Record:
        target = self.resolve(ref)
        if target is None or target.seq >= record.seq:
            raise EvidenceError(
                "REF_NOT_FOUND",
                f"ref {role} names a record that is not in this ledger",
                field=f"refs.{role}",
                actual=ref,
            )
        if kinds != ANY and target.kind not in kinds:
            raise EvidenceError(
                "REF_KIND",
                f"ref {role} of {record.kind} names a {target.kind}",
                field=f"refs.{role}",
                expected=" or ".join(kinds),
                actual=target.kind,
            )
        return target


def key_at(state: State, key_id: str, seq: int) -> KeyState:
    """The key if it may sign at a seq.

    Raises:
        EvidenceError: `KEY_UNKNOWN` or `KEY_OUT_OF_WINDOW`.
    """
    key = state.keys.get(key_id)
    if key is None:
        raise EvidenceError(
            "KEY_UNKNOWN",
            f"key {key_id} is not enrolled in this ledger",
            field="actor",
            actual=key_id,
        )
    if seq < key.from_seq or (key.until_seq is not None and seq >= key.until_seq):
        until = "" if key.until_seq is None else f" until {key.until_seq}"
        raise EvidenceError(
            "KEY_OUT_OF_WINDOW",
            f"key {key_id} may sign from seq {key.from_seq}{until}, not at {seq}",
            field="actor",
        )
    return key


def _check_genesis_key(record: Record, body: Body) -> None:
    root_public = bytes.fromhex(record.body["root_public"])
    ed25519.check_public(root_public)
    claimed = getattr(body, "root_key", "")
    if not ed25519.key_id(root_public) == claimed == record.actor:
        raise EvidenceError(
            "KEY_UNKNOWN", "record 0 is signed by the root key that it names", field="actor"
        )


def _ref_missing(kind: str, role: str, made_by: str, present: int = 0) -> EvidenceError:
    if present > 1:
        return EvidenceError("REF_SHAPE", f"{kind} has exactly one of {role}", field="refs")
    hint = f"make it first: {made_by}" if made_by else None
    return EvidenceError(
        "REF_MISSING", f"{kind} needs a {role}", field=f"refs.{role}", expected=role, hint=hint
    )


def _placed(error: EvidenceError, record: Record) -> EvidenceError:
    """The error with the record's position, where a check did not name another."""
    if error.seq is None:
        error.seq = record.seq
        error.record = record.id
    return error
