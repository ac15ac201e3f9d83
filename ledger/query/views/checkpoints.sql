-- Each published checkpoint, and whether it is superseded: its run went back before the step at which it was published.
SELECT
    c.*,
    EXISTS (
        SELECT 1 FROM resumptions AS s
        WHERE s.ref_run = c.ref_run AND s.seq > c.seq AND s.from_update < c.step
    ) AS superseded
FROM recorded_checkpoints AS c
