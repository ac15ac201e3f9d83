-- Which batches carried no signal: every advantage of their groups is zero, or the gradient was.
-- units: step in optimizer steps; groups in rollout groups of the batch
WITH silent_groups AS (
    SELECT seq, list_min(advantages) = 0 AND list_max(advantages) = 0 AS silent
    FROM groups
),
sampled AS (
    SELECT b.seq, count(*) AS groups, bool_and(g.silent) AS silent
    FROM (SELECT seq, unnest(ref_group_seq) AS group_seq FROM recorded_batches) AS b
    JOIN silent_groups AS g ON g.seq = b.group_seq
    GROUP BY b.seq
),
applied AS (
    SELECT unnest(ref_batch_seq) AS batch_seq, id, gradient_norm
    FROM recorded_updates
)
SELECT
    b.ref_run AS run, b.step, b.id AS batch, coalesce(s.groups, 0) AS groups, u.gradient_norm, u.id AS update,
    CASE WHEN s.silent THEN 'every advantage is zero' ELSE 'the gradient was zero' END AS why
FROM recorded_batches AS b
LEFT JOIN sampled AS s ON s.seq = b.seq
LEFT JOIN applied AS u ON u.batch_seq = b.seq
WHERE s.silent OR u.gradient_norm = 0
ORDER BY b.seq;
