"""The search space: parameters, conditions, validation, initial designs."""
