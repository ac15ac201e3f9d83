-- Each acknowledged update, and whether it is superseded: its run went back before it, so it is kept and does not count.
SELECT
    u.*,
    EXISTS (
        SELECT 1 FROM resumptions AS s
        WHERE s.ref_run = u.ref_run AND s.seq > u.seq AND s.from_update < u.step
    ) AS superseded
FROM recorded_updates AS u
