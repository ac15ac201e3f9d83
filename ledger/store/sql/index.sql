-- The derived file: ids, kinds and edges. A hint, never trusted, rebuilt on demand.
CREATE TABLE ids (
    id  BLOB PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE kinds (
    kind TEXT NOT NULL,
    seq  INTEGER NOT NULL,
    PRIMARY KEY (kind, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE edges (
    target INTEGER NOT NULL,
    source INTEGER NOT NULL,
    role   TEXT NOT NULL,
    PRIMARY KEY (target, source, role)
) STRICT, WITHOUT ROWID;

CREATE TABLE indexed (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    size    INTEGER NOT NULL,
    last_id BLOB
) STRICT;

INSERT INTO indexed VALUES (1, 0, NULL);
