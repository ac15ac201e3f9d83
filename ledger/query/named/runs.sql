-- Each run: its method, its budget, the updates acknowledged on any path, and how its last attempt ended.
WITH ends AS (
    SELECT ref_run, arg_max(outcome, seq) AS outcome, arg_max(failure, seq) AS failure, max(time) AS ended
    FROM run_ends
    GROUP BY ref_run
),
counted AS (
    SELECT ref_run, count(*) AS updates
    FROM updates
    GROUP BY ref_run
)
SELECT
    r.id AS run, p.method, p.start, p.budget_updates AS budget, coalesce(c.updates, 0) AS updates,
    coalesce(e.outcome, 'not ended') AS outcome, e.failure, r.time AS launched, e.ended
FROM runs AS r
JOIN plans AS p ON p.id = r.ref_plan
LEFT JOIN ends AS e ON e.ref_run = r.id
LEFT JOIN counted AS c ON c.ref_run = r.id
ORDER BY r.seq;
