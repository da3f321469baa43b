"""Several objectives as arrays: domination, hypervolumes, boxes."""
