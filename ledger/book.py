"""`Ledger`: the one way in. Create, open, read, seal, close (spec: ledger.md, sections 7 to 10)."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from ledger import seals
from ledger.admission import key_at
from ledger.appending import Appending, Draft
from ledger.clock import Clock, system_clock
from ledger.ed25519 import PrivateKey
from ledger.errors import LedgerError, UsageError
from ledger.reading import BLOBS
from ledger.store.index import Index
from ledger.store.sqlite import SqliteStore

DATABASE = "ledger.sqlite"
INDEX = "index.sqlite"


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
    ) -> Ledger:
        """Make a ledger: record 0 by root, then the writer's key with root's statement.

        Args:
            path: an empty or missing folder.
            origin: the ledger's name, e.g. `example.com/support-bot`.
            root_key: signs record 0 and the writer's enrolment; not kept.
            writer_key: signs from then on.
            writer_roles: the writer's roles.
            nonce: 32 hex digits for root's statement.
            owner: whose key the writer's is.
            clock: gives the time of each record.
            state_dir: where the high-water file lies; None for none.

        Raises:
            UsageError: `LEDGER_EXISTS`, or what admission says of origin and roles.
        """
        if path.exists() and any(path.iterdir()):
            raise UsageError("LEDGER_EXISTS", f"{path} is not empty")
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        store = SqliteStore.create(path / DATABASE)
        ledger = cls(
            path, store, Index(path / INDEX), key=root_key, clock=clock, state_dir=state_dir
        )
        ledger._origin = origin
        try:
            ledger._begin(root_key, writer_key, writer_roles, owner, nonce)
        except LedgerError:
            ledger.close()
            for (
                file
            ) in path.iterdir():  # the folder was empty: all of it is ours, and none of it a ledger
                file.unlink()
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
    ) -> Ledger:
        """Open a ledger to append with a key; the high-water file is checked first.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`, `LEDGER_READ_ONLY`.
            EvidenceError: `LEDGER_ROLLED_BACK`, `LEDGER_FORKED`, or the store's own.
        """
        store = SqliteStore.open_writer(path / DATABASE)
        ledger = cls(path, store, Index(path / INDEX), key=key, clock=clock, state_dir=state_dir)
        try:
            ledger._catch_up_index()
            ledger._check_high_water()
        except LedgerError:
            ledger._close_files()
            raise
        return ledger

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Open a ledger, maybe a stranger's, only to read.

        Raises:
            UsageError: `LEDGER_NOT_FOUND`.
            EvidenceError: the store's own.
        """
        store = SqliteStore.open_reader(path / DATABASE)
        ledger = cls(path, store, Index(None), key=None, clock=system_clock, state_dir=None)
        own_index = path / INDEX
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
                    self._mark_durably(self._chain)
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
            self._mark_durably(chain)
            return note


__all__ = ["BLOBS", "DATABASE", "INDEX", "Draft", "Ledger"]
