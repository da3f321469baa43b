"""Schedulers: how much budget a trial gets (successive halving, Hyperband, median rule)."""
