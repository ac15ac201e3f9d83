-- Each dataset: rows accepted, rejected and duplicate, and the licences of its sources.
-- units: accepted, rejected and duplicates in rows; time in UTC
SELECT
    d.id AS dataset, d.name, d.format, d.accepted, d.rejected, d.duplicates,
    string_agg(DISTINCT s.licence, ', ' ORDER BY s.licence) AS licences, d.time
FROM datasets AS d
LEFT JOIN sources AS s ON list_contains(d.ref_source, s.id)
GROUP BY ALL
ORDER BY d.time;
