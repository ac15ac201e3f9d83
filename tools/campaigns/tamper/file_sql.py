"""Attacks on the database through SQL, as somebody with the file and a SQLite shell makes them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from pysqlite3 import dbapi2 as sqlite

from campaigns.tamper.disk import DiskBase
from campaigns.tamper.file_bytes import Change
from ledger.book import DATABASE, INDEX
from ledger.store import connection as store
from ledger.store.durable import FORMAT_VERSION

_COLUMNS = ("id", "prev", "signature", "entry")
_ROW = (
    "CREATE TABLE records (seq INTEGER PRIMARY KEY, id BLOB, prev BLOB, signature BLOB, entry BLOB)"
)


def _connect(path: Path) -> Any:
    db = sqlite.connect(str(path), isolation_level=None)
    db.execute("PRAGMA ignore_check_constraints = ON")
    return db


def _guarded_edit(*statements: str) -> Change:
    """Edits with the triggers out of the way, which are put back, or left away, or never touched."""

    def run(base: DiskBase, folder: Path, random: Random) -> None:
        one, two = sorted(random.sample(range(base.size), 2))
        values: dict[str, object] = {
            "one": one,
            "two": two,
            "last": base.size - 1,
            "far": 2**62 + one,
        }
        values |= {"seal": random.choice(base.notes)[0], "column": random.choice(_COLUMNS)}
        values["noise"] = f"x'{random.randbytes(random.choice((32, 64, 500))).hex()}'"
        db = _connect(folder / DATABASE)
        triggers = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        guards = random.choice(("put back", "put back", "left away", "one left away", "untouched"))
        if guards != "untouched":
            for name, _ in triggers:
                db.execute(f"DROP TRIGGER {name}")
        with suppress(sqlite.IntegrityError):  # the guards held, or the row is there already
            db.execute(random.choice(statements).format(**values))
        kept = {"put back": triggers, "one left away": triggers[1:]}.get(guards, [])
        for _, text in kept:
            db.execute(text)
        db.close()

    return run


def _script(path: str, *scripts: str) -> Change:
    """One of some scripts, run as it is; what SQLite refuses of it is left undone."""

    def run(_base: DiskBase, folder: Path, random: Random) -> None:
        db = _connect(folder / path)
        try:
            db.executescript(random.choice(scripts))
        except sqlite.DatabaseError:
            if db.in_transaction:
                db.execute("ROLLBACK")
        db.close()

    return run


def _crafted(base: DiskBase, folder: Path, random: Random) -> None:
    """Values of types that the tables forbid, under the proper tables' own text."""
    path = folder / DATABASE
    wanted = store.expected_objects("schema.sql")
    db = _connect(path)
    rows = db.execute("SELECT * FROM records").fetchall()
    notes = db.execute("SELECT * FROM seals").fetchall()
    db.close()
    path.unlink()
    db = _connect(path)
    db.execute("CREATE TABLE records (seq INTEGER PRIMARY KEY, id, prev, signature, entry)")
    db.execute("CREATE TABLE seals (size INTEGER PRIMARY KEY, note)")
    seq, column = random.randrange(base.size), random.randrange(1, 5)
    other = random.choice(
        (None, 5, 7.5, "text", rows[seq][column].hex() if rows[seq][column] else "x")
    )
    rows[seq] = (*rows[seq][:column], other, *rows[seq][column + 1 :])
    if random.random() < 0.2:
        notes[-1] = (notes[-1][0], other)
    db.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
    db.executemany("INSERT INTO seals VALUES (?, ?)", notes)
    db.execute("PRAGMA writable_schema = ON")
    for (kind, name), text in wanted.items():
        if kind == "table":
            db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (text, name))
    db.execute("PRAGMA writable_schema = RESET")
    for (kind, _), text in wanted.items():
        if kind == "trigger":
            db.execute(text)
    db.execute(f"PRAGMA application_id = {store.APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    db.close()


def _instead(*made: str) -> Change:
    """The records under another table, and something else by their name."""
    rename = "PRAGMA legacy_alter_table = ON; ALTER TABLE records RENAME TO hidden;"
    return _script(DATABASE, *(f"{rename} {text}" for text in made))


def _schema(*updates: str) -> Change:
    edits = (
        f"PRAGMA writable_schema = ON; {text}; PRAGMA writable_schema = RESET;" for text in updates
    )
    return _script(DATABASE, *edits)


_COPY = "INSERT INTO records SELECT * FROM hidden;"
DATABASE_SQL: dict[str, Change] = {
    "sql: a record changed": _guarded_edit(
        "UPDATE records SET {column} = (SELECT {column} FROM records WHERE seq = {two}) WHERE seq = {one}",
        "UPDATE records SET {column} = zeroblob(length({column})) WHERE seq = {one}",
        "UPDATE records SET {column} = {noise} WHERE seq = {one}",
        "UPDATE records SET entry = entry || x'20' WHERE seq = {one}",
        "UPDATE records SET entry = replace(entry, '1', '2') WHERE seq = {one}",
        "UPDATE records SET entry = CAST(replace(entry, '1', '2') AS BLOB) WHERE seq = {one}",
        "UPDATE records SET entry = zeroblob(70000) WHERE seq = {one}",
        "UPDATE records SET entry = zeroblob(3000000) WHERE seq = {one}",
        "UPDATE records SET entry = x'' WHERE seq = {one}",
        "UPDATE records SET signature = x'00' WHERE seq = {one}",
    ),
    "sql: records removed": _guarded_edit(
        "DELETE FROM records WHERE seq = {one}",
        "DELETE FROM records WHERE seq >= {two}",
        "DELETE FROM records WHERE seq BETWEEN {one} AND {two}",
        "DELETE FROM records WHERE seq = {last}",
        "DELETE FROM records",
    ),
    "sql: or replace": _guarded_edit(
        "INSERT OR REPLACE INTO records SELECT {one}, id, prev, signature, entry FROM records WHERE seq = {two}",
        "REPLACE INTO records SELECT {two}, id, prev, signature, entry FROM records WHERE seq = {one}",
        "UPDATE OR REPLACE records SET seq = {one} WHERE seq = {two}",
    ),
    "sql: records added": _guarded_edit(
        "INSERT INTO records SELECT {last} + 1, id, prev, signature, entry FROM records WHERE seq = {one}",
        "INSERT INTO records SELECT {last} + 1, id, prev, signature, entry FROM records WHERE seq = {last}",
        "INSERT INTO records SELECT {last} + 2, id, id, signature, entry FROM records WHERE seq = {last}",
        "INSERT INTO records SELECT -1 - {one}, id, prev, signature, entry FROM records WHERE seq = {two}",
        "INSERT INTO records SELECT {far}, id, prev, signature, entry FROM records WHERE seq = {two}",
        "INSERT INTO records SELECT 9223372036854775807, id, prev, signature, entry FROM records WHERE seq = 0",
        "INSERT INTO records SELECT -9223372036854775808, id, prev, signature, entry FROM records WHERE seq = 0",
    ),
    "sql: records renumbered": _guarded_edit(
        "UPDATE records SET seq = -seq - 1",
        "UPDATE records SET seq = seq + {far} WHERE seq >= {two}",
        "UPDATE records SET seq = {far} WHERE seq = {one}",
        "UPDATE records SET seq = -5 WHERE seq = {one}",
        "UPDATE records SET seq = seq + 4611686018427387904",
        "UPDATE records SET seq = {last} + 1 WHERE seq = {one}",
    ),
    "sql: seals changed": _guarded_edit(
        "UPDATE seals SET note = zeroblob(length(note)) WHERE size = {seal}",
        "UPDATE seals SET note = note || x'0a' WHERE size = {seal}",
        "UPDATE seals SET note = zeroblob(2000000) WHERE size = {seal}",
        "UPDATE seals SET size = size + 1 WHERE size = {seal}",
        "UPDATE seals SET size = -size WHERE size = {seal}",
        "INSERT INTO seals SELECT {far}, note FROM seals WHERE size = {seal}",
        "INSERT INTO seals SELECT 0, note FROM seals WHERE size = {seal}",
        "DELETE FROM seals WHERE size = {seal}",
        "DELETE FROM seals",
    ),
    "sql: values of forbidden types": _crafted,
    "schema: something else called records": _instead(
        "CREATE VIEW records AS SELECT * FROM hidden;",
        "CREATE VIEW records AS SELECT * FROM hidden WHERE seq <> 3;",
        "CREATE TABLE other AS SELECT * FROM hidden; CREATE VIEW records AS SELECT * FROM other;",
        "CREATE VIRTUAL TABLE records USING fts5(seq, id, prev, signature, entry);",
        "CREATE VIRTUAL TABLE records USING rtree(seq, a, b);",
        "CREATE TABLE records AS SELECT * FROM hidden; DROP TABLE hidden;",
    ),
    "schema: another table called records": _instead(
        f"{_ROW}; {_COPY} DROP TABLE hidden;",
        f"{_ROW} STRICT, WITHOUT ROWID; {_COPY} DROP TABLE hidden;",
        f"{_ROW.replace('entry BLOB', 'entry TEXT COLLATE NOCASE')}; {_COPY} DROP TABLE hidden;",
        f"{_ROW.replace('seq INTEGER', 'seq INT')}; {_COPY} DROP TABLE hidden;",
        "CREATE TABLE records (seq INTEGER PRIMARY KEY, id BLOB, prev BLOB, signature BLOB, "
        "entry BLOB AS (x'7b7d')); DROP TABLE hidden;",
        "CREATE TABLE records (seq INTEGER PRIMARY KEY DESC, id, prev, signature, entry);"
        f"{_COPY} DROP TABLE hidden;",
    ),
    "schema: something more": _script(
        DATABASE,
        "CREATE INDEX more ON records (entry)",
        "CREATE UNIQUE INDEX more ON records (id)",
        "CREATE TABLE more (x)",
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER more AFTER INSERT ON records BEGIN SELECT 1; END",
        "CREATE TRIGGER more BEFORE INSERT ON seals BEGIN DELETE FROM seals; END",
        "ALTER TABLE records ADD COLUMN more BLOB",
        "ANALYZE",
        "CREATE VIRTUAL TABLE more USING fts5(x)",
    ),
    "schema: triggers dropped or changed": _script(
        DATABASE,
        "DROP TRIGGER records_append",
        "DROP TRIGGER records_no_update",
        "DROP TRIGGER records_no_delete; DROP TRIGGER seals_no_delete",
        "DROP TRIGGER seals_no_update; CREATE TRIGGER seals_no_update BEFORE UPDATE ON seals BEGIN SELECT 1; END",
        "DROP TRIGGER records_append; CREATE TRIGGER records_append AFTER INSERT ON records BEGIN "
        "UPDATE records SET entry = x'7b7d' WHERE seq = 1; END",
    ),
    "schema: its text written over": _schema(
        "UPDATE sqlite_master SET sql = replace(sql, 'STRICT', '') WHERE name = 'records'",
        "UPDATE sqlite_master SET sql = sql || ' ' WHERE name = 'records'",
        "UPDATE sqlite_master SET sql = 'CREATE TABLE records (seq INTEGER PRIMARY KEY)' WHERE name = 'records'",
        "UPDATE sqlite_master SET sql = 'no sql at all' WHERE name = 'records'",
        "UPDATE sqlite_master SET sql = NULL WHERE name = 'records'",
        "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'seals') "
        "WHERE name = 'records'",
        "UPDATE sqlite_master SET rootpage = 1 WHERE name = 'records'",
        "UPDATE sqlite_master SET rootpage = 0 WHERE name = 'records'",
        "UPDATE sqlite_master SET rootpage = 99999 WHERE name = 'seals'",
        "UPDATE sqlite_master SET rootpage = rootpage + 1 WHERE name = 'records'",
        "UPDATE sqlite_master SET name = 'other' WHERE name = 'records'",
        "UPDATE sqlite_master SET type = 'view' WHERE name = 'records'",
        "DELETE FROM sqlite_master",
        "DELETE FROM sqlite_master WHERE name = 'seals'",
        "INSERT INTO sqlite_master VALUES ('table', 'sqlite_more', 'sqlite_more', 2, 'CREATE TABLE sqlite_more (x)')",
        "INSERT INTO sqlite_master VALUES ('index', 'sqlite_autoindex_records_1', 'records', 2, NULL)",
        "INSERT INTO sqlite_master VALUES ('index', 'sqlite_more', 'records', 2, "
        "'CREATE INDEX sqlite_more ON records (seq, id, signature, entry)')",
        "INSERT INTO sqlite_master VALUES ('trigger', 'sqlite_more', 'records', 0, 'CREATE TRIGGER sqlite_more "
        "AFTER INSERT ON records BEGIN SELECT 1; END')",
        "INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = 'records'",
    ),
    "schema: version or application": _script(
        DATABASE,
        "PRAGMA user_version = 0",
        "PRAGMA user_version = 2",
        "PRAGMA user_version = -1",
        "PRAGMA application_id = 0",
        "PRAGMA application_id = 1",
        "PRAGMA schema_version = 77",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM",
        "PRAGMA journal_mode = DELETE; PRAGMA encoding = 'UTF-16'; PRAGMA auto_vacuum = 1; VACUUM",
        "VACUUM",
    ),
}
INDEX_SQL: dict[str, Change] = {
    "index: ids changed": _script(
        INDEX,
        "UPDATE ids SET seq = (SELECT max(seq) / 2 FROM ids)",
        "UPDATE ids SET seq = seq + 1",
        "UPDATE ids SET seq = -seq - 1",
        "UPDATE ids SET seq = 9223372036854775807 - seq",
        "DELETE FROM ids WHERE seq = (SELECT max(seq) / 2 FROM ids)",
        "INSERT INTO ids VALUES (zeroblob(32), 0)",
        "UPDATE ids SET id = zeroblob(32) WHERE seq = (SELECT max(seq) / 2 FROM ids)",
        "UPDATE ids SET id = x'00' WHERE seq = 1",
        "DELETE FROM ids",
    ),
    "index: kinds changed": _script(
        INDEX,
        "UPDATE kinds SET kind = 'snapshot.recorded'",
        "UPDATE kinds SET kind = 'x' WHERE seq = 1",
        "UPDATE OR REPLACE kinds SET seq = seq + 1",
        "INSERT INTO kinds VALUES ('snapshot.recorded', -7), ('snapshot.recorded', 9223372036854775807)",
        "INSERT INTO kinds VALUES ('snapshot.recorded', 1), ('note.added', 0)",
        "DELETE FROM kinds",
    ),
    "index: edges changed": _script(
        INDEX,
        "UPDATE OR REPLACE edges SET target = target + 1",
        "UPDATE OR REPLACE edges SET role = 'about'",
        "UPDATE OR REPLACE edges SET source = -1",
        "INSERT OR IGNORE INTO edges SELECT seq, 9223372036854775807, 'x' FROM ids",
        "INSERT OR IGNORE INTO edges SELECT seq, 0, 'run' FROM ids",
        "DELETE FROM edges",
    ),
    "index: how far it goes": _script(
        INDEX,
        "UPDATE indexed SET size = 0",
        "UPDATE indexed SET size = size - 1",
        "UPDATE indexed SET size = size + 5",
        "UPDATE indexed SET size = -3",
        "UPDATE indexed SET size = 9223372036854775807",
        "UPDATE indexed SET last_id = NULL",
        "UPDATE indexed SET last_id = zeroblob(32)",
        "UPDATE indexed SET last_id = x''",
        "DELETE FROM indexed",
    ),
    "index: laid out in another way": _script(
        INDEX,
        "DROP TABLE edges; CREATE VIEW edges AS SELECT seq AS target, seq AS source, 'x' AS role FROM ids",
        "DROP TABLE kinds; CREATE TABLE kinds (kind, seq)",
        "DROP TABLE ids",
        "CREATE TABLE more (x)",
        "CREATE TRIGGER more AFTER INSERT ON ids BEGIN DELETE FROM edges; END",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'no sql'; PRAGMA writable_schema = RESET",
        "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 2; PRAGMA writable_schema = RESET",
        "PRAGMA encoding = 'UTF-16'; PRAGMA page_size = 512; VACUUM",
        "ANALYZE",
    ),
}
