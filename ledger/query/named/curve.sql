-- A run's learning curve: each update that was not superseded.
-- units: loss in nats a token; trainable_tokens in tokens of the update's batches; time in UTC
-- parameter run (run.launched): the run
SELECT
    u.step, u.loss, u.gradient_norm, u.learning_rate,
    sum(b.trainable_tokens)::BIGINT AS trainable_tokens, u.time, u.id AS update
FROM updates AS u
LEFT JOIN batches AS b ON list_contains(u.ref_batch, b.id)
WHERE u.ref_run = $run AND NOT u.superseded
GROUP BY ALL
ORDER BY u.step, u.time;
