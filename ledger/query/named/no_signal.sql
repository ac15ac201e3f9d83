-- Which batches carried no signal: every advantage of their groups is zero, or the gradient was.
-- units: step in optimizer steps; groups in rollout groups of the batch
WITH sampled AS (
    SELECT b.id, count(*) AS groups, min(list_min(g.advantages)) AS least, max(list_max(g.advantages)) AS most
    FROM (SELECT id, unnest(ref_group) AS group_id FROM batches) AS b
    JOIN groups AS g ON g.id = b.group_id
    GROUP BY b.id
),
applied AS (
    SELECT unnest(ref_batch) AS batch, id, gradient_norm
    FROM updates
)
SELECT
    b.ref_run AS run, b.step, b.id AS batch, coalesce(s.groups, 0) AS groups, u.gradient_norm, u.id AS update,
    CASE WHEN s.least = 0 AND s.most = 0 THEN 'every advantage is zero' ELSE 'the gradient was zero' END AS why
FROM batches AS b
LEFT JOIN sampled AS s ON s.id = b.id
LEFT JOIN applied AS u ON u.batch = b.id
WHERE (s.least = 0 AND s.most = 0) OR u.gradient_norm = 0
ORDER BY b.seq;
