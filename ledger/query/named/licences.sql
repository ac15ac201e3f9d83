-- Each source: its licence, who reviewed it, whether its bytes are withheld, and how many plans rest on it.
-- units: bytes in bytes; plans in plans; time in UTC
SELECT
    s.id AS source, s.name, s.licence, s.review_status AS review, s.review_reviewer AS reviewer, s.origin,
    s.content_size AS bytes, count(DISTINCT n.id) AS plans, count(DISTINCT w.id) > 0 AS withheld, s.time
FROM sources AS s
LEFT JOIN datasets AS d ON list_contains(d.ref_source, s.id)
LEFT JOIN splits AS p ON list_contains(p.ref_dataset, d.id)
LEFT JOIN plans AS n ON n.ref_split = p.id
LEFT JOIN withheld AS w ON w.ref_record = s.id AND w.digest = s.content_digest
GROUP BY ALL
ORDER BY s.time, source;
