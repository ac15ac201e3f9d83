-- What was begun and not ended: plans that nobody launched, runs whose newest attempt nobody ended.
-- units: since in UTC
WITH resumed AS (
    SELECT ref_run, max(seq) AS seq
    FROM resumptions
    GROUP BY ref_run
)
SELECT 'plan' AS what, p.id, p.time AS since
FROM plans AS p
WHERE p.id NOT IN (SELECT ref_plan FROM runs)
UNION ALL
SELECT 'run' AS what, r.id, r.time AS since
FROM runs AS r
LEFT JOIN resumed AS s ON s.ref_run = r.id
WHERE NOT EXISTS (
    SELECT 1 FROM run_ends AS e
    WHERE e.ref_run = r.id AND (s.seq IS NULL OR e.seq > s.seq)
)
ORDER BY since;
