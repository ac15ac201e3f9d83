-- What would break if this source were withdrawn: all that rests on it, near or far, by kind.
-- units: records in records; first_seq and last_seq are positions from 0
-- parameter source (source.ingested): the source
WITH RECURSIVE steps AS MATERIALIZED (
    -- what a run made by the hundred thousand names its run; the long ways from one such record to the next need not
    -- be walked
    SELECT e.seq, e.target_seq, e.kind
    FROM edges AS e
    WHERE
        e.kind NOT IN (
            'rollout.group', 'rollout.rejected', 'batch.built', 'update.acknowledged', 'note.added', 'blob.withheld',
            'promotion.withdrawn'
        )
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
made AS (
    SELECT 'rollout.group' AS kind, seq, ref_run_seq FROM groups
    UNION ALL
    SELECT 'rollout.rejected' AS kind, seq, ref_run_seq FROM rejected_groups
    UNION ALL
    SELECT 'batch.built' AS kind, seq, ref_run_seq FROM recorded_batches
    UNION ALL
    SELECT 'update.acknowledged' AS kind, seq, ref_run_seq FROM recorded_updates
),
all_reached AS (
    SELECT kind, seq FROM reached WHERE NOT is_start
    UNION ALL
    SELECT m.kind, m.seq FROM made AS m
    WHERE m.ref_run_seq IN (SELECT seq FROM reached)
),
by_kind AS (
    SELECT kind, count(*) AS records, min(seq) AS first_seq, max(seq) AS last_seq
    FROM all_reached
    GROUP BY kind
)
SELECT b.kind, b.records, b.first_seq, b.last_seq, r.id AS newest
FROM by_kind AS b
JOIN records AS r ON r.seq = b.last_seq
ORDER BY b.first_seq;
