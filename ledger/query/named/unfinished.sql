-- What was begun and not ended: plans that nobody launched, runs that nobody ended.
SELECT 'plan' AS what, p.id, p.time AS since
FROM plans AS p
WHERE p.id NOT IN (SELECT ref_plan FROM runs)
UNION ALL
SELECT 'run' AS what, r.id, r.time AS since
FROM runs AS r
WHERE r.id NOT IN (SELECT ref_run FROM run_ends)
ORDER BY since;
