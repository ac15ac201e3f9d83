-- How many bytes the records of each kind take, and what share of the ledger that is.
-- units: entry_bytes in bytes of canonical entries; mean_bytes likewise; share from 0 to 1
SELECT
    kind, count(*) AS records, sum(entry_bytes)::BIGINT AS entry_bytes, avg(entry_bytes) AS mean_bytes,
    sum(entry_bytes) / sum(sum(entry_bytes)) OVER () AS share
FROM records
GROUP BY kind
ORDER BY entry_bytes DESC, kind;
