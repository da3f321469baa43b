"""A kernel that is a function of one distance."""

from scrimp.extend import Stationary


class RationalQuadratic(Stationary):
    """k = 1 / (1 + r^2 / 2): smooth at every distance, with long tails."""

    def profile_and_slope(self, r2):
        profile = 1.0 / (1.0 + 0.5 * r2)
        return profile, -0.5 * profile**2
