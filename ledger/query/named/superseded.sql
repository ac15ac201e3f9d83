-- Updates that are kept and do not count, and by which update each was done again.
-- units: step in optimizer steps; time in UTC
SELECT u.ref_run AS run, u.step, u.id AS update, r.id AS redone_by, r.after_value = u.after_value AS same_state, u.time
FROM updates AS u
LEFT JOIN updates AS r ON r.ref_replays = u.id
WHERE u.superseded
ORDER BY u.seq;
