"""Multi-objective arithmetic on arrays: dominance, hypervolume, Pareto fronts."""
