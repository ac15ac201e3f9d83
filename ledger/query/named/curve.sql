-- A run's learning curve: each update that was not superseded.
-- units: loss in nats a token; trainable_tokens in tokens of the update's batches; time in UTC
-- parameter run (run.launched): the run
SELECT
    u.step, u.loss, u.gradient_norm, u.learning_rate,
    sum(b.trainable_tokens)::BIGINT AS trainable_tokens, u.time, u.id AS update
FROM updates AS u
LEFT JOIN (
    SELECT id AS fed, unnest(ref_batch) AS batch
    FROM updates
    WHERE ref_run = $run
) AS f ON f.fed = u.id
LEFT JOIN batches AS b ON b.id = f.batch
WHERE u.ref_run = $run AND NOT u.superseded
GROUP BY ALL
ORDER BY u.step, u.time;
