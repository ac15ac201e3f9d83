"""Training: plan, supervise, train, acknowledge."""
