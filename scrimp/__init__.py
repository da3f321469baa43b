"""scrimp: find the best model on the fewest evaluations."""
