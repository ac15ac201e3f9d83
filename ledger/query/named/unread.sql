-- Data that was ingested and that no plan and no protocol rests on.
-- units: accepted in rows; time in UTC
SELECT d.id AS dataset, d.name, d.accepted, d.time
FROM datasets AS d
WHERE NOT EXISTS (
    SELECT 1 FROM splits AS s
    JOIN plans AS p ON p.ref_split = s.id
    WHERE list_contains(s.ref_dataset, d.id)
)
AND NOT EXISTS (
    SELECT 1 FROM protocols AS q
    LEFT JOIN splits AS s ON s.id = q.ref_split
    WHERE q.ref_dataset = d.id OR list_contains(s.ref_dataset, d.id)
)
ORDER BY d.seq;
