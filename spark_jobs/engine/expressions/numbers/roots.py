"""cbrt and hypot as Java's StrictMath, and so Spark, computes them: fdlibm 5.3, bit for bit.

Each step is one IEEE operation in fdlibm's order, as in `fdlibm`. Source: s_cbrt.c, e_hypot.c.
"""

from __future__ import annotations

import numpy as np

from spark_jobs.engine.expressions.numbers.words import Doubles, cut, high, with_high

__all__ = ["cbrt", "hypot"]

_B1, _B2 = 715094163, 696219795
_C, _D = 5.42857142857142815906e-01, -7.05306122448979611050e-01
_E, _F, _G = 1.41428571428571436819e00, 1.60714285714285720630e00, 3.57142857142857150787e-01


def cbrt(values: Doubles) -> Doubles:
    """Return the cube root of each value."""
    with np.errstate(all="ignore"):
        ordinary = np.isfinite(values) & (values != 0)
        x = np.where(ordinary, np.abs(values), 1.0)
        scaled = x * 2.0**54
        t = np.where(
            high(x) < 0x00100000,
            with_high(scaled, high(scaled) // 3 + _B2),
            with_high(np.zeros_like(x), high(x) // 3 + _B1),
        )
        r = t * t / x
        s = _C + r * t
        t = t * (_G + _F / (s + _E + _D / s))
        t = with_high(np.zeros_like(x), high(t) + 1)
        s = t * t
        r = x / s
        r = (r - t) / ((t + t) + r)
        return np.where(ordinary, np.copysign(t + t * r, values), values)


def hypot(x: Doubles, y: Doubles) -> Doubles:
    """Return the length of each hypotenuse; infinite if a side is infinite, even if the other side is NaN."""
    with np.errstate(all="ignore"):
        ordinary = np.isfinite(x) & np.isfinite(y)
        sides = np.where(ordinary, np.abs(x), 1.0), np.where(ordinary, np.abs(y), 1.0)
        swapped = high(sides[1]) > high(sides[0])
        a, b = np.where(swapped, sides[1], sides[0]), np.where(swapped, sides[0], sides[1])
        result = np.where(high(a) - high(b) > 0x3C00000, a + b, _hypot(a, b))
        infinite = np.isinf(x) | np.isinf(y)
        return np.where(infinite, np.inf, np.where(ordinary, result, np.nan))


def _hypot(a: Doubles, b: Doubles) -> Doubles:
    """Return the hypotenuse. The upper word of the first side must not be less than the second side's upper word."""
    ha = high(a)
    k = np.zeros_like(ha)
    large = ha > 0x5F300000
    a, b = np.where(large, a * 2.0**-600, a), np.where(large, b * 2.0**-600, b)
    ha, k = np.where(large, ha - 0x25800000, ha), np.where(large, 600, k)
    zero, subnormal = b == 0, high(b) <= 0x000FFFFF
    small = ~subnormal & (high(b) < 0x20B00000)
    factor = np.where(subnormal, 2.0**1022, np.where(small, 2.0**600, 1.0))
    alone = a
    a, b = a * factor, b * factor
    ha = np.where(small, ha + 0x25800000, ha)
    k = k - np.where(subnormal, 1022, np.where(small, 600, 0))
    w = a - b
    t1 = with_high(np.zeros_like(a), ha)  # if a side is subnormal, `ha` is from before the scaling, as in fdlibm
    apart = np.sqrt(t1 * t1 - (b * -b - (a - t1) * (a + t1)))
    double = a + a
    y1, t1 = cut(b), with_high(np.zeros_like(a), ha + 0x00100000)
    close = np.sqrt(t1 * y1 - (w * -w - (t1 * (b - y1) + (double - t1) * b)))
    result = np.ldexp(np.where(w > b, apart, close), k.astype(np.int32))
    return np.where(zero, np.ldexp(alone, np.where(large, 600, 0).astype(np.int32)), result)
