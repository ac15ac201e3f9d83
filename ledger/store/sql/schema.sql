-- The durable file: records and seals. Guard rails only; the verifier trusts none of it.
CREATE TABLE records (
    seq       INTEGER PRIMARY KEY,
    id        BLOB NOT NULL CHECK (length(id) = 32),
    prev      BLOB CHECK (length(prev) = 32),
    signature BLOB NOT NULL CHECK (length(signature) = 64),
    entry     BLOB NOT NULL CHECK (length(entry) <= 65471)
) STRICT;

CREATE TABLE seals (
    size INTEGER PRIMARY KEY,
    note BLOB NOT NULL
) STRICT;

-- Stops OR REPLACE, OR IGNORE, ON CONFLICT and forks: only the next seq on the last id is let in.
CREATE TRIGGER records_append BEFORE INSERT ON records
WHEN NEW.seq IS NOT coalesce((SELECT max(seq) + 1 FROM records), 0)
  OR NEW.prev IS NOT (SELECT id FROM records WHERE seq = NEW.seq - 1)
BEGIN
    SELECT RAISE(ABORT, 'records are only appended');
END;

CREATE TRIGGER records_no_update BEFORE UPDATE ON records
BEGIN
    SELECT RAISE(ABORT, 'records are never changed');
END;

CREATE TRIGGER records_no_delete BEFORE DELETE ON records
BEGIN
    SELECT RAISE(ABORT, 'records are never removed');
END;

CREATE TRIGGER seals_no_update BEFORE UPDATE ON seals
BEGIN
    SELECT RAISE(ABORT, 'seals are never changed');
END;

CREATE TRIGGER seals_no_delete BEFORE DELETE ON seals
BEGIN
    SELECT RAISE(ABORT, 'seals are never removed');
END;
