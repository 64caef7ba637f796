"""The bootstrap: how often each unit is drawn in a replicate, and what the drawn units add up to."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel
from fastbcubed.kernels.partition import mix

#: Chances that a Poisson variable of mean 1 is at most 0, 1, …, in units of 2**-63.
STEPS = 19
CHANCES = np.empty(STEPS, np.int64)
_chance, _sum = np.exp(-1.0), 0.0
for _k in range(STEPS):
    _sum += _chance
    CHANCES[_k] = int(min(_sum, 1.0 - 2.0**-53) * 2.0**63)
    _chance /= _k + 1


@kernel
def draw(seed, replicate, unit):
    """Return how often a unit is drawn in a replicate: Poisson with mean 1, from a hash of the three alone."""
    number = mix(mix(seed ^ mix(replicate)) ^ unit) & 0x7FFFFFFFFFFFFFFF
    drawn = 0
    while drawn < STEPS and number >= CHANCES[drawn]:
        drawn += 1
    return drawn


#: Units whose values are added up for all replicates before the next ones are read: they stay in a core's cache.
UNITS_AT_ONCE = 1 << 12


@kernel
def resample(seed, first, last, units, values, totals):
    """Add up the values of the units that replicates draw, each as often as it is drawn.

    Shapes: (n_units,), (n_units, n_values), (last - first, n_values).
    """
    for begin in range(0, units.size, UNITS_AT_ONCE):
        end = min(begin + UNITS_AT_ONCE, units.size)
        for replicate in range(first, last):
            own = totals[replicate - first]
            for u in range(begin, end):
                drawn = draw(seed, replicate, units[u])
                if drawn:
                    for k in range(values.shape[1]):
                        own[k] += drawn * values[u, k]
