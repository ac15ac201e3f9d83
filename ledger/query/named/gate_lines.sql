-- Every line of every gate: its number, what was demanded, and whether it passed.
-- units: value and threshold as text, each in the line's own unit
SELECT
    g.id AS gate, line ->> 'name' AS name, line ->> 'value' AS value, line ->> 'threshold' AS threshold,
    (line ->> 'passed')::BOOLEAN AS passed, line ->> 'code' AS code, g.time
FROM gates AS g, unnest(CAST(g.gates AS JSON[])) AS lines (line)
ORDER BY g.seq, name;
