"""Kernels, their parameters and the linear algebra of Gaussian processes: arrays in, arrays out."""

from scrimp.gp.memory import keep_freed_memory

keep_freed_memory()
