-- Each candidate beside its baseline: gain, McNemar's p, and whether it may be chosen.
-- units: gain in shares of cases, from -1 to 1; p from 0 to 1; paired counts in cases
SELECT
    c.id AS comparison, candidate ->> 'evaluation' AS evaluation, (candidate ->> 'gain')::DOUBLE AS gain,
    (candidate ->> 'mcnemar_p')::DOUBLE AS mcnemar_p, (candidate -> 'paired' ->> 'candidate_only')::BIGINT AS candidate_only,
    (candidate -> 'paired' ->> 'baseline_only')::BIGINT AS baseline_only, (candidate ->> 'eligible')::BOOLEAN AS eligible,
    c.recommendation, c.descriptive, c.time
FROM comparisons AS c, unnest(CAST(c.candidates AS JSON[])) AS candidates (candidate)
ORDER BY c.seq, evaluation;
