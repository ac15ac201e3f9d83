-- A run's learning curve: step, loss, gradient norm, learning rate and tokens of each update that was not superseded.
-- parameter run: the run's id or the beginning of it
SELECT
    u.step, u.loss, u.gradient_norm, u.learning_rate,
    sum(b.trainable_tokens) AS trainable_tokens, u.time, u.id AS update
FROM updates AS u
LEFT JOIN batches AS b ON list_contains(u.ref_batch, b.id)
WHERE
    (starts_with(u.ref_run, $run) OR starts_with(u.ref_run, 'sha256:' || $run))
    AND NOT EXISTS (
        SELECT 1 FROM resumptions AS s
        WHERE s.ref_run = u.ref_run AND s.seq > u.seq AND s.from_update < u.step
    )
GROUP BY ALL
ORDER BY u.step, u.time;
