"""The benchmark: a frozen test set, every method on it, the paper's tables, figures and a report."""
