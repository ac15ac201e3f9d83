"""Whatever decides whether an outcome, a comparison or a promotion counts, pure and in one place."""
