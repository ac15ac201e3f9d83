-- What this checkpoint was trained on: every row on its path, its ancestors' included, and how often it was read.
-- units: times in reads; first_step and last_step in optimizer steps; a batch of over 512 rows names a blob instead
-- parameter checkpoint (checkpoint.published): the checkpoint
WITH RECURSIVE path AS (
    SELECT c.ref_run AS run, c.step, c.seq
    FROM checkpoints AS c
    WHERE c.id = $checkpoint
    UNION
    SELECT c.ref_run, c.step, c.seq
    FROM path AS p
    JOIN runs AS r ON r.id = p.run
    JOIN plans AS n ON n.id = r.ref_plan
    JOIN checkpoints AS c ON c.id = n.ref_parent
),
fed AS (
    SELECT u.ref_run AS run, u.step, unnest(u.ref_batch) AS batch
    FROM path AS p
    JOIN updates AS u ON u.ref_run = p.run AND u.step <= p.step AND u.seq < p.seq
    WHERE NOT EXISTS (
        SELECT 1 FROM resumptions AS s
        WHERE s.ref_run = u.ref_run AND s.seq > u.seq AND s.seq < p.seq AND s.from_update < u.step
    )
),
batch_rows AS (
    SELECT b.id, unnest(b.rows) AS row_digest, NULL AS rows_blob
    FROM batches AS b
    WHERE b.rows_blob_digest IS NULL
    UNION ALL
    SELECT b.id, NULL, b.rows_blob_digest
    FROM batches AS b
    WHERE b.rows_blob_digest IS NOT NULL
)
SELECT
    r.row_digest, r.rows_blob, count(*) AS times, min(f.step) AS first_step, max(f.step) AS last_step,
    count(DISTINCT f.run) AS runs
FROM fed AS f
JOIN batch_rows AS r ON r.id = f.batch
GROUP BY r.row_digest, r.rows_blob
ORDER BY first_step, r.row_digest, r.rows_blob;
