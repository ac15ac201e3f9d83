-- name: tail
SELECT seq, id FROM records NOT INDEXED ORDER BY seq DESC LIMIT 1;
-- name: append
INSERT INTO records (seq, id, prev, signature, entry) VALUES (?, ?, ?, ?, ?);
-- name: rows
SELECT seq,
    CASE WHEN length(id) = 32 THEN id END,
    CASE WHEN length(signature) = 64 THEN signature END,
    CASE WHEN length(entry) <= 65535 THEN entry END,
    length(entry)
FROM records NOT INDEXED WHERE seq >= ? AND seq <= ? ORDER BY seq;
-- name: put_seal
INSERT INTO seals (size, note) VALUES (?, ?) ON CONFLICT DO NOTHING;
-- name: seals
SELECT size, CASE WHEN length(note) <= 1000000 THEN note END FROM seals NOT INDEXED ORDER BY size;
-- name: newest_seal
SELECT size, CASE WHEN length(note) <= 1000000 THEN note END FROM seals NOT INDEXED ORDER BY size DESC LIMIT 1;
-- name: objects
SELECT type, name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name;
-- name: indexed
SELECT size, last_id FROM indexed;
-- name: set_indexed
UPDATE indexed SET size = ?, last_id = ?;
-- name: put_id
INSERT OR REPLACE INTO ids VALUES (?, ?);
-- name: put_kind
INSERT OR REPLACE INTO kinds VALUES (?, ?);
-- name: put_edge
INSERT OR REPLACE INTO edges VALUES (?, ?, ?);
-- name: seq_of
SELECT seq FROM ids WHERE id = ?;
-- name: ids_between
SELECT seq FROM ids WHERE id >= ? AND id <= ? LIMIT 3;
-- name: seqs_of_kind
SELECT seq FROM kinds WHERE kind = ? ORDER BY seq;
-- name: last_of_kind
SELECT seq FROM kinds WHERE kind = ? AND seq < ? ORDER BY seq DESC LIMIT 1;
-- name: referrers
SELECT source, role FROM edges WHERE target = ? ORDER BY source, role;
