-- Success of each family of cases over updates: by protocol, family and the step of the checkpoint that answered.
-- units: step in optimizer steps, 0 for a model before training; success and cases in cases; success_rate from 0 to 1
WITH each_family AS (
    SELECT e.*, unnest(json_keys(e.families)) AS family
    FROM evaluations AS e
)
SELECT
    p.name AS protocol, f.family, coalesce(c.step, 0) AS step, coalesce(m.name, 'checkpoint') AS answered_by,
    ((f.families -> f.family) ->> 0)::BIGINT AS success, ((f.families -> f.family) ->> 1)::BIGINT AS cases,
    (((f.families -> f.family) ->> 0)::DOUBLE) / (((f.families -> f.family) ->> 1)::DOUBLE) AS success_rate, f.id AS evaluation
FROM each_family AS f
JOIN protocols AS p ON p.id = f.ref_protocol
LEFT JOIN arms AS a ON a.id = f.ref_arm[1]
LEFT JOIN models AS m ON m.id = a.ref_model
LEFT JOIN checkpoints AS c ON c.id = a.ref_checkpoint
ORDER BY p.seq, f.family, step, f.seq;
