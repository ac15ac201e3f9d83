-- What was run again from bytes by an auditor: which update, arm or pass, and whether it agreed.
-- units: drawn_from in records that could have been drawn; position is the place drawn, from 0; time in UTC
SELECT
    CASE WHEN c.ref_update IS NOT NULL THEN 'update' WHEN c.ref_arm IS NOT NULL THEN 'arm' ELSE 'pass' END AS what,
    coalesce(c.ref_update, c.ref_arm, c.ref_pass) AS record, c.agreed, c.drawn_from, c.index AS position, c.processor,
    c.detail, c.time, c.id AS rerun
FROM checks AS c
ORDER BY c.seq;
