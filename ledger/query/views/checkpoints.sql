-- Each published checkpoint, and whether it is superseded: its run went back before the step at which it was published.
SELECT
    c.*,
    c.seq IN (
        SELECT o.seq
        FROM recorded_checkpoints AS o
        JOIN resumptions AS s ON s.ref_run_seq = o.ref_run_seq AND s.seq > o.seq AND s.from_update < o.step
    ) AS superseded
FROM recorded_checkpoints AS c
