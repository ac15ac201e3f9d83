-- Each evaluation: the model or checkpoint that answered, its success rate and its undecided share.
-- units: cases, success, failure, undecided and truncated in cases; rates and shares from 0 to 1
SELECT
    e.id AS evaluation, p.name AS protocol, p.role, coalesce(m.name, 'checkpoint at step ' || c.step) AS answered_by,
    e.cases, e.success, e.failure, e.undecided, e.success / e.cases AS success_rate,
    e.undecided / e.cases AS undecided_share, e.truncated, e.time
FROM evaluations AS e
JOIN protocols AS p ON p.id = e.ref_protocol
LEFT JOIN arms AS a ON a.id = e.ref_arm[1]
LEFT JOIN models AS m ON m.id = a.ref_model
LEFT JOIN checkpoints AS c ON c.id = a.ref_checkpoint
ORDER BY e.seq;
