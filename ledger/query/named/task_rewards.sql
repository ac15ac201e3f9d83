-- Reward of each task while its run went on: by the step of the policy that sampled.
-- units: rewards in the reward's own scale; policy_step in optimizer steps; samples in rollouts
SELECT
    g.ref_run AS run, coalesce(u.step, c.step, 0) AS policy_step, g.task, count(*) AS groups,
    sum(g.members)::BIGINT AS samples, avg(list_avg(g.rewards)) AS mean_reward, min(list_min(g.rewards)) AS least,
    max(list_max(g.rewards)) AS most
FROM groups AS g
LEFT JOIN updates AS u ON u.id = g.ref_policy
LEFT JOIN checkpoints AS c ON c.id = g.ref_policy
GROUP BY ALL
ORDER BY run, policy_step, g.task;
