-- How well each judge did on labelled cases, and whether that qualifies it.
-- units: right and total in cases; accuracy, lower and floor from 0 to 1
SELECT
    m.name AS judge, j.asked, j."right", j.total, j."right" / j.total AS accuracy, j."lower", j.floor, j.qualified,
    j.time, j.id AS qualification
FROM judges AS j
JOIN models AS m ON m.id = j.ref_model
ORDER BY j.seq;
