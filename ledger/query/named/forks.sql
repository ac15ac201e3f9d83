-- Which checkpoints something went on from: exactly, from their weights, or as a fork, and by which run.
-- units: step in optimizer steps; time in UTC
SELECT
    c.id AS checkpoint, c.ref_run AS run, c.step, n.start, n.fork, n.id AS plan, r.id AS next_run, n.time
FROM plans AS n
JOIN checkpoints AS c ON c.id = n.ref_parent
LEFT JOIN runs AS r ON r.ref_plan = n.id
ORDER BY c.seq, n.seq;
