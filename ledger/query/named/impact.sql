-- What would break if this source were withdrawn: all that rests on it, near or far, by kind.
-- units: records in records; first_seq and last_seq are positions from 0
-- parameter source (source.ingested): the source
WITH RECURSIVE reached AS (
    SELECT 'source.ingested' AS kind, $source AS id, -1 AS seq
    UNION
    -- an update's run leads to all of its updates, so the long way from update to update need not be walked
    SELECT e.kind, e.id, e.seq
    FROM reached AS r
    JOIN edges AS e ON e.target = r.id
    WHERE
        e.role NOT IN ('previous', 'replays')
        AND e.kind NOT IN ('note.added', 'blob.withheld', 'promotion.withdrawn')
)
SELECT kind, count(*) AS records, min(seq) AS first_seq, max(seq) AS last_seq, arg_max(id, seq) AS newest
FROM reached
WHERE seq >= 0
GROUP BY kind
ORDER BY first_seq;
