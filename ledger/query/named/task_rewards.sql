-- Reward of each task while its run went on: by the step of the policy that sampled.
-- units: rewards in the reward's own scale; policy_step in optimizer steps; samples in rollouts
WITH steps AS (
    SELECT seq, step FROM recorded_updates
    UNION ALL
    SELECT seq, step FROM recorded_checkpoints
),
by_task AS (
    SELECT
        g.ref_run_seq AS run_seq, coalesce(s.step, 0) AS policy_step, g.task, count(*) AS groups,
        sum(g.members)::BIGINT AS samples, avg(list_avg(g.rewards)) AS mean_reward,
        min(list_min(g.rewards)) AS least, max(list_max(g.rewards)) AS most
    FROM groups AS g
    LEFT JOIN steps AS s ON s.seq = g.ref_policy_seq
    GROUP BY ALL
)
SELECT r.id AS run, t.policy_step, t.task, t.groups, t.samples, t.mean_reward, t.least, t.most
FROM by_task AS t
JOIN runs AS r ON r.seq = t.run_seq
ORDER BY r.seq, t.policy_step, t.task;
