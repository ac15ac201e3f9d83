-- Each batch, and whether it is superseded: its run went back before the step that it was built for.
SELECT
    b.*,
    b.seq IN (
        SELECT o.seq
        FROM recorded_batches AS o
        JOIN resumptions AS s ON s.ref_run_seq = o.ref_run_seq AND s.seq > o.seq AND s.from_update < o.step
    ) AS superseded
FROM recorded_batches AS b
