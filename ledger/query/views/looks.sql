-- Each time a model answered held-out cases: which protocol's, in which role, who answered, under whose review.
SELECT
    a.seq, a.id, a.time, a.actor, p.role, p.name AS protocol_name, p.id AS protocol, p.ref_split AS split,
    p.ref_dataset AS dataset, p.identity AS cases_identity, a.cases, a.ref_model AS model,
    a.ref_checkpoint AS checkpoint, a.ref_review AS review
FROM arms AS a
JOIN protocols AS p ON p.id = a.ref_protocol
