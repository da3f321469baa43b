"""Runners of trials: this process, worker processes, scripts, Ray, a simulated clock."""
