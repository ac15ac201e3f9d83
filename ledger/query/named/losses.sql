-- How each run's loss moved: first, least and last, over the updates that count.
-- units: losses in nats a token; updates in optimizer steps
SELECT
    ref_run AS run, count(*) AS updates, arg_min(loss, step) AS first_loss, min(loss) AS least_loss,
    arg_min(step, loss) AS step_of_least, arg_max(loss, step) AS last_loss
FROM updates
WHERE NOT superseded
GROUP BY ref_run
ORDER BY min(seq);
