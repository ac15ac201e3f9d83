-- What would break if this source were withdrawn: all that rests on it, near or far, by kind.
-- units: records in records; first_seq and last_seq are positions from 0
-- parameter source (source.ingested): the source
WITH RECURSIVE steps AS MATERIALIZED (
    -- an update's run leads to all of its updates, so the long way from update to update need not be walked
    SELECT e.seq, e.target_seq, e.kind
    FROM edges AS e
    WHERE
        e.role NOT IN ('previous', 'replays')
        AND e.kind NOT IN ('note.added', 'blob.withheld', 'promotion.withdrawn')
),
reached AS (
    SELECT 'source.ingested' AS kind, s.seq, TRUE AS is_start
    FROM sources AS s
    WHERE s.id = $source
    UNION
    SELECT e.kind, e.seq, FALSE
    FROM reached AS r
    JOIN steps AS e ON e.target_seq = r.seq
),
by_kind AS (
    SELECT kind, count(*) AS records, min(seq) AS first_seq, max(seq) AS last_seq
    FROM reached
    WHERE NOT is_start
    GROUP BY kind
)
SELECT b.kind, b.records, b.first_seq, b.last_seq, r.id AS newest
FROM by_kind AS b
JOIN records AS r ON r.seq = b.last_seq
ORDER BY b.first_seq;
