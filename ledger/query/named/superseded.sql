-- Updates that are kept and do not count, and by which update each was done again.
-- units: step in optimizer steps; time in UTC
SELECT u.ref_run AS run, u.step, u.id AS update, r.id AS redone_by, r.after_value = u.after_value AS same_state, u.time
FROM updates AS u
LEFT JOIN (
    SELECT id, after_value, ref_replays_seq
    FROM recorded_updates
    WHERE ref_replays_seq IS NOT NULL
) AS r ON r.ref_replays_seq = u.seq
WHERE u.superseded
ORDER BY u.seq;
