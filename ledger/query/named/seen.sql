-- What this checkpoint was trained on: every row on its path, its ancestors' included, and how often it was read.
-- units: times in reads; first_step and last_step in optimizer steps; a batch of over 512 rows names a blob instead
-- parameter checkpoint (checkpoint.published): the checkpoint
WITH RECURSIVE path AS (
    SELECT c.ref_run_seq AS run_seq, c.step, c.seq
    FROM recorded_checkpoints AS c
    WHERE c.id = $checkpoint
    UNION
    SELECT c.ref_run_seq, c.step, c.seq
    FROM path AS p
    JOIN runs AS r ON r.seq = p.run_seq
    JOIN plans AS n ON n.seq = r.ref_plan_seq
    JOIN recorded_checkpoints AS c ON c.seq = n.ref_parent_seq
),
fed AS (
    SELECT u.ref_run_seq AS run_seq, u.step, unnest(u.ref_batch_seq) AS batch_seq
    FROM path AS p
    JOIN recorded_updates AS u ON u.ref_run_seq = p.run_seq AND u.step <= p.step AND u.seq < p.seq
    WHERE NOT EXISTS (
        SELECT 1 FROM resumptions AS s
        WHERE s.ref_run_seq = u.ref_run_seq AND s.seq > u.seq AND s.seq < p.seq AND s.from_update < u.step
    )
),
opened AS (
    -- only batches on the path are opened into rows
    SELECT
        f.run_seq, f.step, b.rows_blob_digest AS rows_blob,
        unnest(CASE WHEN b.rows_blob_digest IS NULL THEN b.rows ELSE [NULL] END) AS row_digest
    FROM fed AS f
    JOIN recorded_batches AS b ON b.seq = f.batch_seq
)
SELECT
    row_digest, rows_blob, count(*) AS times, min(step) AS first_step, max(step) AS last_step,
    count(DISTINCT run_seq) AS runs
FROM opened
GROUP BY row_digest, rows_blob
ORDER BY first_step, row_digest, rows_blob;
