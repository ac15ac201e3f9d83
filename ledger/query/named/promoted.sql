-- Each promotion: its checkpoint, its scope, who approved it, and whether it was withdrawn.
-- units: step in optimizer steps; times in UTC
SELECT
    p.id AS promotion, p.ref_checkpoint AS checkpoint, c.step, p.scope, p.tree,
    string_agg(DISTINCT k.owner, ', ' ORDER BY k.owner) AS reviewers, p.time, any_value(w.time) AS withdrawn,
    any_value(w.why) AS why_withdrawn
FROM promotions AS p
LEFT JOIN checkpoints AS c ON c.id = p.ref_checkpoint
LEFT JOIN approvals AS a ON list_contains(p.ref_approval, a.id)
LEFT JOIN keys AS k ON k.key = a.reviewer
LEFT JOIN withdrawals AS w ON w.ref_promotion = p.id
GROUP BY p.id, p.ref_checkpoint, c.step, p.scope, p.tree, p.time, p.seq
ORDER BY p.seq;
