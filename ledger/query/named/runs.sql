-- Each run: its method, its budget, its updates that count, those that were superseded, and how its last attempt ended.
-- units: budget, updates and superseded in optimizer steps; times in UTC
WITH resumed AS (
    SELECT ref_run, max(seq) AS seq
    FROM resumptions
    GROUP BY ref_run
),
ends AS (
    SELECT e.ref_run, arg_max(e.outcome, e.seq) AS outcome, arg_max(e.failure, e.seq) AS failure, max(e.time) AS ended
    FROM run_ends AS e
    LEFT JOIN resumed AS s ON s.ref_run = e.ref_run
    WHERE s.seq IS NULL OR e.seq > s.seq
    GROUP BY e.ref_run
),
counted AS (
    SELECT
        ref_run,
        count(*) FILTER (WHERE NOT superseded) AS updates,
        count(*) FILTER (WHERE superseded) AS superseded
    FROM updates
    GROUP BY ref_run
)
SELECT
    r.id AS run, p.method, p.start, p.budget_updates AS budget, coalesce(c.updates, 0) AS updates,
    coalesce(c.superseded, 0) AS superseded, coalesce(e.outcome, 'not ended') AS outcome, e.failure,
    r.time AS launched, e.ended
FROM runs AS r
JOIN plans AS p ON p.id = r.ref_plan
LEFT JOIN ends AS e ON e.ref_run = r.id
LEFT JOIN counted AS c ON c.ref_run = r.id
ORDER BY r.seq;
