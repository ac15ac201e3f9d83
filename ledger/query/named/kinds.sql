-- How many records there are of each kind, and when the first and the last was written.
-- units: records in records; first_seq and last_seq are positions from 0; last_time in UTC
SELECT kind, count(*) AS records, min(seq) AS first_seq, max(seq) AS last_seq, max(time) AS last_time
FROM records
GROUP BY kind
ORDER BY records DESC, kind;
