-- Each pass of a judge, with what it judged: the protocol, the judge, the arm and who had answered.
SELECT
    j.seq, j.id, j.time, j.actor, j.pass_kind, j."order", p.judging, a.cases, j.undecided, j.qualified,
    p.name AS protocol_name, p.id AS protocol, p.ref_judge AS judge, a.id AS arm, a.ref_model AS model,
    a.ref_checkpoint AS checkpoint
FROM passes AS j
JOIN protocols AS p ON p.id = j.ref_protocol
JOIN arms AS a ON a.id = j.ref_arm
