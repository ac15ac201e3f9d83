-- Blobs that are absent on purpose: of which record, and why.
-- units: time in UTC
SELECT w.digest, w.why, e.target_kind AS kind, w.ref_record AS record, w.time
FROM withheld AS w
LEFT JOIN edges AS e ON e.seq = w.seq
ORDER BY w.seq;
