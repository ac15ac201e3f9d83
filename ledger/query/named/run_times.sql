-- How long each run took: from each launch or resumption to its end, or to its last update where no end was recorded.
-- units: working_s in seconds, waiting between attempts left out; seconds_per_update likewise; times in UTC
WITH claims AS (
    SELECT id AS run, seq, time FROM runs
    UNION ALL
    SELECT ref_run, seq, time FROM resumptions
),
attempts AS (
    SELECT
        run, seq, time AS begun,
        coalesce(lead(seq) OVER (PARTITION BY run ORDER BY seq), 9223372036854775807) AS next_seq
    FROM claims
),
signs AS (
    SELECT ref_run AS run, seq, time FROM run_ends
    UNION ALL
    SELECT ref_run, seq, time FROM updates
),
spans AS (
    SELECT a.run, a.seq, a.begun, coalesce(max(s.time), a.begun) AS until
    FROM attempts AS a
    LEFT JOIN signs AS s ON s.run = a.run AND s.seq > a.seq AND s.seq < a.next_seq
    GROUP BY a.run, a.seq, a.begun
),
counted AS (
    SELECT ref_run AS run, count(*) AS updates
    FROM updates
    GROUP BY ref_run
)
SELECT
    s.run, count(*) AS attempts, min(s.begun) AS launched, max(s.until) AS last_sign,
    sum(epoch(s.until - s.begun)) AS working_s, coalesce(any_value(c.updates), 0) AS updates,
    sum(epoch(s.until - s.begun)) / any_value(c.updates) AS seconds_per_update
FROM spans AS s
LEFT JOIN counted AS c ON c.run = s.run
GROUP BY s.run
ORDER BY launched, s.run;
