"""Learning: what a learner state is, from its bytes."""
