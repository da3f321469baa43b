"""Selection of the best training checkpoint over many benchmarks, from few evaluations."""
