"""Hostile ledger folders: the database, the derived index, blobs, high-water files, logs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random

from pysqlite3 import dbapi2 as sqlite

from campaigns.hostile_bytes import ESCAPES, HUGE_BYTES, SPECIALS, Maker, mutated, odd_name
from campaigns.hostile_child import Attack
from campaigns.hostile_place import Place
from ledger.book import DATABASE, INDEX
from ledger.store.sqlite import SqliteStore

READS = (
    ("verify",),
    ("verify", "--level", "blobs"),
    ("log",),
    ("show", "@0"),
    ("lineage", "@1"),
    ("key", "list"),
    ("checkpoint", "list"),
    ("run", "list"),
)
_STRANGER = ("outside", "tmp", "stranger")


def _read(rng: Random, place: Place, *, accepts: bool = False) -> Attack:
    """A read of the stranger's ledger, which must stay as it is."""
    return Attack(place.theirs(*rng.choice(READS)), accepts=accepts, leaves=_STRANGER)


def _script(path: Path, *statements: str, schema: bool = False) -> None:
    """Change a database by its own means, guards taken away."""
    db = sqlite.connect(str(path), isolation_level=None)
    try:
        if schema:
            db.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            db.execute(statement)
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA journal_mode = WAL")
    finally:
        db.close()


_OBJECTS = (
    "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
    "CREATE TRIGGER t AFTER INSERT ON seals BEGIN SELECT load_extension('/tmp/x'); END",
    "CREATE TABLE g (a, b GENERATED ALWAYS AS (hex(zeroblob(900000000))))",
    "CREATE VIRTUAL TABLE f USING fts5(x)",
    "CREATE VIRTUAL TABLE r USING rtree(i, a, b)",
    "CREATE INDEX e ON records (length(zeroblob(seq + 900000000)))",
    "CREATE INDEX p ON records (seq) WHERE entry LIKE '%%'",
    "ANALYZE",
    "CREATE TABLE sqlite_sequences (a)",
    'CREATE TABLE "\x1b[2J\u202e" (a)',
    "DROP TABLE seals",
    "ALTER TABLE seals ADD COLUMN more TEXT",
)
_SCHEMA = (
    "UPDATE sqlite_master SET type = x'00' WHERE name = 'records_append'",
    "UPDATE sqlite_master SET name = NULL WHERE name = 'records_append'",
    "UPDATE sqlite_master SET name = 7 WHERE name = 'records_append'",
    "UPDATE sqlite_master SET sql = NULL WHERE name = 'records_append'",
    "UPDATE sqlite_master SET sql = 'CREATE TABLE records (seq)' WHERE name = 'records'",
    "UPDATE sqlite_master SET rootpage = 1 WHERE name = 'records'",
    "UPDATE sqlite_master SET rootpage = 999999 WHERE name = 'seals'",
    "UPDATE sqlite_master SET tbl_name = 'seals' WHERE name = 'records'",
    "INSERT INTO sqlite_master VALUES ('table', 'z', 'z', 0, 'CREATE VIRTUAL TABLE z USING zipfile(''/etc/passwd'')')",
    "INSERT INTO sqlite_master VALUES (x'ff', x'ff', 1, 1, 1)",
    (
        "INSERT INTO sqlite_master SELECT 'view', 'v' || value, 'x', 0, 'CREATE VIEW v' || value || ' AS SELECT 1' "
        "FROM (WITH RECURSIVE c(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM c LIMIT 9000) SELECT * FROM c)"
    ),
)
_PRAGMAS = (
    "application_id = 1",
    "user_version = 2147483647",
    "user_version = -1",
    "user_version = 0",
)


def objects(rng: Random, place: Place) -> Attack:
    """Views, triggers, virtual tables, generated columns and indexes that a ledger does not have."""
    statement = rng.choice(_OBJECTS)
    _script(place.stranger / DATABASE, statement)
    return _read(
        rng, place, accepts=statement == "ANALYZE"
    )  # statistics are SQLite's own and change no answer


def schema(rng: Random, place: Place) -> Attack:
    """A schema table that was written to by hand."""
    _script(place.stranger / DATABASE, rng.choice(_SCHEMA), schema=True)
    # a trigger that is gone is a warning: nothing relied on it
    return _read(rng, place, accepts=True)


def pragmas(rng: Random, place: Place) -> Attack:
    """Values in the database's head that are not a ledger's."""
    _script(place.stranger / DATABASE, f"PRAGMA {rng.choice(_PRAGMAS)}")
    return _read(rng, place)


def rows(rng: Random, place: Place) -> Attack:
    """Rows of other types, sizes and places, written past the guards."""
    path = place.stranger / DATABASE
    drops = [
        f"DROP TRIGGER {name}"
        for name in ("records_append", "records_no_update", "records_no_delete")
    ]
    change = rng.choice(
        (
            "INSERT INTO records VALUES (9223372036854775807, zeroblob(32), NULL, zeroblob(64), x'00')",
            "INSERT INTO records VALUES (-9223372036854775808, zeroblob(32), NULL, zeroblob(64), x'00')",
            "UPDATE records SET entry = zeroblob(60000) WHERE seq = 0",
            "UPDATE records SET entry = x'5b5b5b5b' WHERE seq = 0",
            "DELETE FROM records WHERE seq = 1",
            "UPDATE records SET id = zeroblob(32)",
        )
    )
    _script(path, *drops, change)
    words = rng.choice((("verify",), ("verify", "--level", "blobs"), ("verify", "--json")))
    return Attack(place.theirs(*words), leaves=_STRANGER)


def large_rows(rng: Random, place: Place) -> Attack:
    """Entries and seals of hundreds of megabytes, the table's checks taken away."""
    path = place.stranger / DATABASE
    db = sqlite.connect(str(path), isolation_level=None)
    db.execute("PRAGMA ignore_check_constraints = ON")
    db.execute("DROP TRIGGER records_append")
    db.execute("DROP TRIGGER records_no_update")
    size = rng.choice((1 << 17, 40 << 20))
    if rng.random() < 0.5:
        db.execute("INSERT INTO seals VALUES (1, zeroblob(?))", (size,))
    else:
        db.execute("UPDATE records SET entry = zeroblob(?) WHERE seq = 0", (size,))
    db.close()
    return Attack(place.theirs("verify"), leaves=_STRANGER)


def damaged(rng: Random, place: Place) -> Attack:
    """A database with changed bytes: its head, its free list, its pages."""
    path = place.stranger / DATABASE
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 6)):
        spot = rng.choice((rng.randrange(100), rng.randrange(100, 8192), rng.randrange(len(data))))
        data[spot] = rng.choice((0, 0xFF, rng.randrange(256)))
    path.write_bytes(data)
    return _read(rng, place, accepts=True)


def page_counts(rng: Random, place: Place) -> Attack:
    """A head that claims billions of pages, a page size of none, a free list without end."""
    path = place.stranger / DATABASE
    data = bytearray(path.read_bytes())
    offset, value = rng.choice(
        (
            (28, b"\xff\xff\xff\xff"),
            (16, b"\x00\x00"),
            (16, b"\x02\x00"),
            (32, b"\x00\x00\x00\x02"),
            (36, b"\xff" * 4),
        )
    )
    data[offset : offset + len(value)] = value
    path.write_bytes(data)
    return _read(rng, place, accepts=True)


def no_database(rng: Random, place: Place) -> Attack:
    """No plain file where the database, or a file beside it, should be."""
    name = rng.choice((DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal"))
    path = place.stranger / name
    path.unlink(missing_ok=True)
    SPECIALS[rng.randrange(1, len(SPECIALS))](path)
    # an empty file beside the database is what SQLite leaves itself
    return _read(rng, place, accepts=name != DATABASE)


def beside(rng: Random, place: Place) -> Attack:
    """A journal or log beside the database that is not its own."""
    suffix = rng.choice(("-wal", "-shm", "-journal"))
    magic = {
        "-wal": b"\x37\x7f\x06\x82",
        "-shm": b"",
        "-journal": b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7",
    }[suffix]
    data = magic + rng.choice((rng.randbytes(5000), b"\xff" * 40_000, bytes(40_000)))
    (place.stranger / f"{DATABASE}{suffix}").write_bytes(data)
    return Attack(place.theirs(*rng.choice(READS)), accepts=True)


def index(rng: Random, place: Place) -> Attack:
    """A derived index that lies, is damaged, or is no file: it is done without."""
    path = place.ledger / INDEX
    match rng.randrange(5):
        case 0:
            path.write_bytes(mutated(rng, path.read_bytes()))
        case 1:
            path.unlink()
            SPECIALS[rng.randrange(1, len(SPECIALS))](path)
        case 2:
            _script(path, rng.choice([item for item in _OBJECTS[:5] if "seals" not in item]))
        case 3:
            _script(path, rng.choice(_LIES))
        case _:
            path.write_bytes(b"SQLite format 3\0" + rng.randbytes(5000))
    words = rng.choice(
        (
            ("log",),
            ("verify",),
            ("show", "@0"),
            ("log", "--kind", "key.enrolled"),
            ("note", "@0", "x"),
        )
    )
    return Attack(place.own(*words), accepts=True)


_LIES = (
    "UPDATE indexed SET size = 9223372036854775807",
    "UPDATE indexed SET size = -1",
    "UPDATE indexed SET last_id = zeroblob(32)",
    "UPDATE ids SET seq = 9223372036854775807",
    (
        "INSERT INTO kinds SELECT 'key.enrolled', value FROM (WITH RECURSIVE c(value) AS "
        "(SELECT 10 UNION ALL SELECT value + 1 FROM c LIMIT 200000) SELECT * FROM c)"
    ),
    "DELETE FROM indexed",
    "DELETE FROM ids",
)


def blobs(rng: Random, place: Place) -> Attack:
    """Blobs that are links, pipes, folders, huge or changed, and folders of blobs that are links."""
    folder = place.stranger / "blobs"
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    victim = rng.choice(files)
    match rng.randrange(5):
        case 0:
            victim.unlink()
            SPECIALS[rng.randrange(len(SPECIALS))](victim)
        case 1:
            victim.chmod(0o600)
            os.truncate(victim, HUGE_BYTES >> 5)
        case 2:
            victim.chmod(0o600)
            victim.write_bytes(mutated(rng, victim.read_bytes() or b"x"))
        case 3:
            shutil.rmtree(folder)
            folder.symlink_to("/dev")
        case _:
            shutil.rmtree(folder)
            os.mkfifo(folder)
    return Attack(place.theirs("verify", "--level", "blobs"), leaves=("outside", "tmp"))


def blobs_written(rng: Random, place: Place) -> Attack:
    """The user's own folder of blobs leads elsewhere: nothing is written there."""
    folder = place.ledger / "blobs"
    target = rng.choice((folder, folder / "sha256"))
    shutil.rmtree(target)
    target.symlink_to(place.outside)
    row = b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}\n'
    return Attack(place.own("data", "ingest", place.put("rows.jsonl", row)))


def high_water(rng: Random, place: Place) -> Attack:
    """A high-water file, its lock or its temporary file that is damaged, no file, or a link."""
    found = next(place.state.glob("*.json"))
    path = found.with_suffix(rng.choice((".json", ".lock", ".tmp")))
    if rng.random() < 0.5 and path.suffix == ".json":
        path.write_bytes(
            rng.choice((mutated(rng, path.read_bytes()), b"[" * 100_000, b"{}", b"\xff" * 5000))
        )
    else:
        path.unlink(missing_ok=True)
        SPECIALS[rng.randrange(1, len(SPECIALS))](path)
    words = rng.choice((("note", "@0", "words"), ("verify",), ("seal",)))
    return Attack(
        place.own(*words),
        accepts=True,
        leaves=("outside", "tmp", "ledger") if words[0] == "verify" else ("outside", "tmp"),
    )


def run_log(rng: Random, place: Place) -> Attack:
    """A run's log in a stranger's ledger: a link, endless, or full of what a terminal obeys."""
    store = SqliteStore.open_reader(place.stranger / DATABASE)
    run = next(row for row in store.rows() if b'"kind":"run.launched"' in row[3])
    store.close()
    path = place.stranger / "work" / run[1].hex()[:16] / "child.log"
    path.parent.mkdir(parents=True)
    if rng.random() < 0.6:
        rng.choice(SPECIALS)(path)
    else:
        path.write_bytes(rng.choice(ESCAPES).encode() * 3 + b"\xff\n" * 9)
    return Attack(
        place.theirs("run", "logs", "sha256:" + run[1].hex()), accepts=True, leaves=_STRANGER
    )


def folder(rng: Random, place: Place) -> Attack:
    """A ledger folder that is empty, a file, a link, a pipe, or has an awkward name."""
    words = rng.choice(READS[2:])
    if rng.random() < 0.5:
        name = bytes(place.input) + b"/" + odd_name(rng, "")
        place.stranger.rename(os.fsdecode(name))
        return Attack(("--ledger", name, *words), accepts=True)
    path = place.input / "ledger"
    SPECIALS[rng.randrange(len(SPECIALS))](path)
    return Attack(("--ledger", str(path), *rng.choice(READS)))


DATABASES: dict[str, Maker] = {
    "objects": objects,
    "schema": schema,
    "pragmas": pragmas,
    "rows": rows,
    "large-rows": large_rows,
    "damaged": damaged,
    "page-counts": page_counts,
    "no-database": no_database,
    "beside": beside,
    "folder": folder,
}
FILES: dict[str, Maker] = {
    "index": index,
    "blobs": blobs,
    "blobs-written": blobs_written,
    "high-water": high_water,
    "run-log": run_log,
}
