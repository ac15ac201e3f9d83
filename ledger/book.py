"""`Ledger`: the one way in. Create, open, read, seal, close (spec: ledger.md, sections 7 to 10)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from ledger import beginnings, disk, highwater, restores, seals
from ledger.admission import key_at
from ledger.appending import Appending, Draft
from ledger.clock import Clock, system_clock
from ledger.ed25519 import PrivateKey
from ledger.errors import LedgerError, UsageError
from ledger.reading import BLOBS, DATABASE, INDEX
from ledger.records.base import Seen
from ledger.restores import Restored, Stating
from ledger.store import choose
from ledger.store.address import Address
from ledger.store.durable import BUSY_TIMEOUT_MS
from ledger.store.index import Index


class Ledger(Appending):
    """A ledger folder, opened by `create`, `open` or `read`; see `Reading` and `Appending`."""

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        origin: str,
        root_key: PrivateKey,
        writer_key: PrivateKey,
        writer_roles: list[str],
        nonce: str,
        owner: str = "writer",
        clock: Clock = system_clock,
        state_dir: Path | None = None,
        address: Address | None = None,
    ) -> Ledger:
        """Make a ledger: record 0 by root, then the writer's key with root's statement.

        Args:
            path: an empty or missing folder, or one with what a beginning that was killed left: it is begun again.
            origin: the ledger's name, e.g. `example.com/support-bot`.
            root_key: signs record 0 and the writer's enrolment; not kept.
            writer_key: signs from then on.
            writer_roles: the writer's roles.
            nonce: 32 hex digits for root's statement.
            owner: whose key the writer's is.
            clock: gives the time of each record.
            state_dir: where the high-water file lies; None for none.
            address: of the server that keeps the records; None to keep them in the folder.

        Raises:
            UsageError: `LEDGER_EXISTS`; `LEDGER_BUSY`, another process begins one here; `DISK_FULL`, `OS_REFUSED`, or
                what admission says of origin and roles.
        """
        with disk.translated(path):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (
            beginnings.taken(path, state_dir),
            _emptied_on_failure(path),
            choose.creating(path, address, nonce) as store,
        ):
            ledger = cls(
                path, store, Index(path / INDEX), key=root_key, clock=clock, state_dir=state_dir
            )
            ledger._origin = origin
            try:
                ledger._begin(root_key, writer_key, writer_roles, owner, nonce)
            except BaseException:
                ledger._close_files()
                raise
        ledger._key = writer_key
        return ledger

    def _begin(
        self, root_key: PrivateKey, writer_key: PrivateKey, roles: list[str], owner: str, nonce: str
    ) -> None:
        self.append(
            "ledger.created",
            {"format": 1, "root_key": root_key.id, "root_public": root_key.public.hex()},
        )
        body = {
            "key": writer_key.id,
            "public_key": writer_key.public.hex(),
            "roles": roles,
            "from_seq": 1,
            "owner": owner,
        }
        self.append_stated("key.enrolled", body, {}, signer=root_key, nonce=nonce)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        key: PrivateKey,
        clock: Clock = system_clock,
        state_dir: Path | None = None,
        busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    ) -> Ledger:
        """Open a ledger to append with a key; the high-water file is checked first.

        Args:
            path: the folder.
            key: the writer's key.
            clock: gives the time of each record.
            state_dir: where the high-water file lies; None for none.
            busy_timeout_ms: how long to wait for another process before `LEDGER_BUSY`.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`, `LEDGER_READ_ONLY`.
            EvidenceError: `LEDGER_ROLLED_BACK`, `LEDGER_FORKED`, `TAIL_CUT`, or the store's own.
        """
        store = choose.open_writer(path, busy_timeout_ms)
        index = Index(path / choose.index_name(path))
        ledger = cls(path, store, index, key=key, clock=clock, state_dir=state_dir)
        try:
            ledger._catch_up_index()
            ledger._check_high_water()
            ledger._check_newest_seal()
        except LedgerError:
            ledger._close_files()
            raise
        return ledger

    def _check_newest_seal(self) -> None:
        """A seal beyond the end tells of a cut tail, where there is a high-water file and where there is none."""
        newest = self.store.newest_seal()  # before the size: others append and seal meanwhile
        size = self.size
        if newest is not None and newest[0] > size:
            raise seals.tail_cut(newest[0], size)

    @classmethod
    def restore(
        cls,
        path: Path,
        *,
        key: PrivateKey,
        state_dir: Path,
        why: str,
        state: Stating,
        clock: Clock = system_clock,
    ) -> Restored:
        """Let a ledger that was put back from a backup go on: root's record first, then the lower mark.

        What is left is verified first, every signature of it. Where a crash came between record and mark,
        the mark is lowered and no second record made.

        Args:
            path: the folder that was put back.
            key: signs the record; any enrolled key.
            state_dir: where the high-water file lies that the ledger is behind.
            why: the reason, in the owner's words.
            state: gives root's statement over a body and a head.
            clock: gives the record's time.

        Raises:
            UsageError: `NOT_ROLLED_BACK`, or what admission says of the statement.
            EvidenceError: `LEDGER_FORKED`, `TAIL_CUT`, `HIGHWATER_INVALID`; what does not hold in what is left.
        """
        store = choose.open_writer(path)
        index = Index(path / choose.index_name(path))
        ledger = cls(path, store, index, key=key, clock=clock, state_dir=state_dir)
        try:
            ledger._catch_up_index()
            return ledger._restore(state_dir, why, state)
        finally:
            ledger._close_files()

    def _restore(self, state_dir: Path, why: str, state: Stating) -> Restored:
        with self._commit_lock:
            mark = restores.mark_of(self, state_dir)
            chain = restores.replay(self, self.size)
            before = None if mark is None else restores.settle(self, state_dir, mark)
            if before is not None:
                self._check_high_water()
                return Restored(before, True, restores.unconfirmed_runs(chain))
            body = restores.what_is_lost(self, mark, chain, why)
            statement = state(body, Seen(size=chain.size, root=chain.tree.root().hex()))
            record = self.append(restores.KIND, body, {}, statement)
            chain.admit(record)
            assert mark is not None  # what_is_lost demanded one
            highwater.lower(state_dir, mark, restores.head_of(chain))
            self._check_high_water()
            return Restored(record, False, restores.unconfirmed_runs(chain))

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Open a ledger, maybe a stranger's, only to read.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`.
            EvidenceError: the store's own.
        """
        store = choose.open_reader(path)
        ledger = cls(path, store, Index(None), key=None, clock=system_clock, state_dir=None)
        own_index = path / choose.index_name(path)
        if own_index.is_file() and not own_index.is_symlink() and own_index.stat().st_size:
            ledger._index = Index(own_index, writable=False)
        try:
            ledger._catch_up_index()
        except LedgerError:
            ledger._close_files()
            raise
        return ledger

    def close(self) -> None:
        """Write the derived index, make the high-water file durable, close the files."""
        with self._commit_lock:
            try:
                if self._key is not None and self._chain is not None and self._chain.size:
                    self._write_high_water(self._chain, durable=True)
            finally:
                self._close_files()

    def _close_files(self) -> None:
        self._index.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def seal(self) -> bytes:
        """Record a snapshot and sign the tree head over it; the seal as a signed note.

        Raises:
            UsageError: `ROLE_MISSING`, the key may not seal.
        """
        key = self._writer()
        with self._commit_lock:
            size = self._snapshot().seq + 1
            chain = self._current_chain()
            if "seal" not in key_at(chain.state, key.id, chain.size).roles:
                raise UsageError("ROLE_MISSING", "sealing needs a key with role seal", field="key")
            # the head over the snapshot itself: other processes may have appended since
            root = bytes.fromhex(chain.state.heads[str(size)])
            note = seals.sign_seal(seals.Seal(self.origin, size, root), key)
            with self.store.transaction():
                self.store.put_seal(size, note)
            self._write_high_water(chain, durable=True)
            return note


@contextmanager
def _emptied_on_failure(path: Path) -> Iterator[None]:
    """A folder that was empty before is empty again: what could be left is no ledger."""
    try:
        yield
    except BaseException:  # a Ctrl-C too
        with suppress(OSError):  # the first refusal is what is told
            for file in path.iterdir():
                file.unlink()
        raise


__all__ = ["BLOBS", "DATABASE", "INDEX", "Draft", "Ledger", "Restored"]
