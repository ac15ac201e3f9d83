-- A run's learning curve: each update that was not superseded.
-- units: loss in nats a token; trainable_tokens in tokens of the update's batches; time in UTC
-- parameter run (run.launched): the run
WITH own AS (
    SELECT u.seq, u.id, u.step, u.loss, u.gradient_norm, u.learning_rate, u.time, u.ref_batch_seq
    FROM updates AS u
    JOIN runs AS r ON r.seq = u.ref_run_seq
    WHERE r.id = $run AND NOT u.superseded
),
fed AS (
    SELECT o.seq, sum(b.trainable_tokens)::BIGINT AS trainable_tokens
    FROM (SELECT seq, unnest(ref_batch_seq) AS batch_seq FROM own) AS o
    JOIN recorded_batches AS b ON b.seq = o.batch_seq
    GROUP BY o.seq
)
SELECT u.step, u.loss, u.gradient_norm, u.learning_rate, f.trainable_tokens, u.time, u.id AS update
FROM own AS u
LEFT JOIN fed AS f ON f.seq = u.seq
ORDER BY u.step, u.time;
