-- A run's learning curve: step, loss, gradient norm, learning rate and tokens of each update.
-- parameter run: the run's id or the beginning of it
SELECT
    u.step, u.loss, u.gradient_norm, u.learning_rate,
    sum(b.trainable_tokens) AS trainable_tokens, u.time, u.id AS update
FROM updates AS u
LEFT JOIN batches AS b ON list_contains(u.ref_batch, b.id)
WHERE starts_with(u.ref_run, $run) OR starts_with(u.ref_run, 'sha256:' || $run)
GROUP BY ALL
ORDER BY u.step, u.time;
