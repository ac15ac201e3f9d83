-- Every setting of a plan.
-- units: each value in its setting's own unit; see docs/reference/settings.md
-- parameter plan (plan.prepared): the plan
SELECT name, p.settings ->> name AS value
FROM plans AS p, unnest(json_keys(p.settings)) AS names (name)
WHERE p.id = $plan
ORDER BY name;
