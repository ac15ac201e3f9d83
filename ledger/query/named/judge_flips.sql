-- How often each judge contradicted itself when the order was turned round, by evaluation.
-- units: flips in cases, compared in cases that both passes could read; flip_rate from 0 to 1
SELECT
    e.id AS evaluation, p.name AS protocol, p.judging, j.name AS judge, e.flips[1] AS flips, e.flips[2] AS compared,
    e.flips[1] / nullif(e.flips[2], 0) AS flip_rate, e.undecided, e.cases, e.time
FROM evaluations AS e
JOIN protocols AS p ON p.id = e.ref_protocol
LEFT JOIN models AS j ON j.id = p.ref_judge
WHERE e.flips IS NOT NULL
ORDER BY e.seq;
