-- Each leakage audit: held-out rows touched at each level, and whether a reviewer accepted the findings.
-- units: exact, normalised, masked and near_duplicate in held-out rows touched; pairs in pairs of rows
SELECT
    a.id AS audit, a.ref_split AS split, a.verdict, a.levels_exact AS exact, a.levels_normalised AS normalised,
    a.levels_masked AS masked, a.levels_near_duplicate AS near_duplicate, a.pairs,
    count(c.id) > 0 AS accepted
FROM audits AS a
LEFT JOIN acceptances AS c ON c.ref_audit = a.id
GROUP BY ALL
ORDER BY split, audit;
