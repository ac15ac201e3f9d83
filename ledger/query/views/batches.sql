-- Each batch, and whether it is superseded: its run went back before the step that it was built for.
SELECT
    b.*,
    EXISTS (
        SELECT 1 FROM resumptions AS s
        WHERE s.ref_run = b.ref_run AND s.seq > b.seq AND s.from_update < b.step
    ) AS superseded
FROM recorded_batches AS b
