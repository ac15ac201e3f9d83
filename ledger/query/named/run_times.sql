-- How long each run took: from each launch or resumption to its end, or to its last update where no end was recorded.
-- units: working_s in seconds, waiting between attempts left out; seconds_per_update likewise; times in UTC
WITH claims AS (
    SELECT seq AS run_seq, seq, time FROM runs
    UNION ALL
    SELECT ref_run_seq, seq, time FROM resumptions
),
signs AS (
    SELECT ref_run_seq AS run_seq, seq, time FROM run_ends
    UNION ALL
    SELECT ref_run_seq, seq, time FROM recorded_updates
),
last_signs AS (
    -- a sign is one of the newest claim before it
    SELECT c.seq, max(s.time) AS time
    FROM signs AS s
    ASOF JOIN claims AS c ON c.run_seq = s.run_seq AND s.seq > c.seq
    GROUP BY c.seq
),
spans AS (
    SELECT c.run_seq, c.time AS begun, coalesce(s.time, c.time) AS until
    FROM claims AS c
    LEFT JOIN last_signs AS s ON s.seq = c.seq
),
counted AS (
    SELECT ref_run_seq AS run_seq, count(*) AS updates
    FROM recorded_updates
    GROUP BY ref_run_seq
)
SELECT
    r.id AS run, count(*) AS attempts, min(s.begun) AS launched, max(s.until) AS last_sign,
    sum(epoch(s.until - s.begun)) AS working_s, coalesce(any_value(c.updates), 0) AS updates,
    sum(epoch(s.until - s.begun)) / any_value(c.updates) AS seconds_per_update
FROM spans AS s
JOIN runs AS r ON r.seq = s.run_seq
LEFT JOIN counted AS c ON c.run_seq = s.run_seq
GROUP BY r.id
ORDER BY launched, run;
