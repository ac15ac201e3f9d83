-- How many records there are of each kind, and when the first and the last was written.
SELECT kind, count(*) AS records, min(seq) AS first_seq, max(seq) AS last_seq, max(time) AS last_time
FROM records
GROUP BY kind
ORDER BY records DESC, kind;
