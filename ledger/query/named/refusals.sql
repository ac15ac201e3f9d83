-- Every reason why a checkpoint was not promoted, by refusal.
-- units: time in UTC
SELECT
    r.id AS refusal, r.ref_checkpoint AS checkpoint, reason ->> 'code' AS code, reason ->> 'message' AS message,
    reason ->> 'hint' AS hint, r.time
FROM refusals AS r, unnest(CAST(r.reasons AS JSON[])) AS reasons (reason)
ORDER BY r.seq, code;
