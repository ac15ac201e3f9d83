-- Who wrote what: records by key and kind, with the key's owner.
-- units: records in records; last_time in UTC
SELECT r.actor, coalesce(k.owner, 'root') AS owner, r.kind, count(*) AS records, max(r.time) AS last_time
FROM records AS r
LEFT JOIN keys AS k ON k.key = r.actor
GROUP BY ALL
ORDER BY r.actor, records DESC, r.kind;
