-- Who may sign from when: each key's roles, owner and window, and from where it is suspect.
-- units: from_seq, revoked_at and suspect_from are positions from 0
SELECT
    k.key, k.owner, k.roles, k.from_seq, min(r.seq) AS revoked_at, min(r.from_seq) AS suspect_from,
    arg_max(r.reason, r.seq) AS reason
FROM keys AS k
LEFT JOIN revocations AS r ON r.key = k.key
GROUP BY k.key, k.owner, k.roles, k.from_seq
ORDER BY k.from_seq, k.key;
