-- Each acknowledged update, and whether it is superseded: its run went back before it, so it is kept and does not count.
SELECT
    u.*,
    u.seq IN (
        SELECT o.seq
        FROM recorded_updates AS o
        JOIN resumptions AS s ON s.ref_run_seq = o.ref_run_seq AND s.seq > o.seq AND s.from_update < o.step
    ) AS superseded
FROM recorded_updates AS u
