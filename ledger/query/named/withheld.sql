-- Blobs that are absent on purpose: of which record, and why.
-- units: time in UTC
SELECT w.digest, w.why, r.kind, w.ref_record AS record, w.time
FROM withheld AS w
LEFT JOIN records AS r ON r.seq = w.ref_record_seq
ORDER BY w.seq;
