-- Each judge pass: what was asked in which order, how much stayed undecided, and whether the judge is qualified.
-- units: undecided and cases in cases; undecided_share from 0 to 1
SELECT
    j.id AS pass, p.name AS protocol, p.judging, j.pass_kind, j."order", j.undecided, a.cases,
    j.undecided / a.cases AS undecided_share, j.qualified
FROM passes AS j
JOIN protocols AS p ON p.id = j.ref_protocol
JOIN arms AS a ON a.id = j.ref_arm
ORDER BY j.seq;
