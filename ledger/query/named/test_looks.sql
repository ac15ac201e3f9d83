-- Which test sets were looked at, when, by which model or checkpoint, and under which review.
-- units: cases in cases; time in UTC
SELECT
    l.protocol_name, l.cases, l.time, coalesce(m.name, 'checkpoint at step ' || c.step) AS answered_by,
    coalesce(l.checkpoint, l.model) AS who, l.review, l.protocol, coalesce(l.split, l.dataset) AS drawn_from, l.id AS arm
FROM looks AS l
LEFT JOIN models AS m ON m.id = l.model
LEFT JOIN checkpoints AS c ON c.id = l.checkpoint
WHERE l.role = 'test'
ORDER BY l.seq;
