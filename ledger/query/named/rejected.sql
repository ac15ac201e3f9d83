-- Rollout groups that did not count, by run and reason.
-- units: rejected and kept in groups; kept counts all groups of the run
WITH kept AS (
    SELECT ref_run, count(*) AS groups
    FROM groups
    GROUP BY ref_run
)
SELECT r.ref_run AS run, r.code, count(*) AS rejected, coalesce(any_value(k.groups), 0) AS kept
FROM rejected_groups AS r
LEFT JOIN kept AS k ON k.ref_run = r.ref_run
GROUP BY r.ref_run, r.code
ORDER BY run, rejected DESC, r.code;
