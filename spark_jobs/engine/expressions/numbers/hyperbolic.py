"""expm1, log1p, sinh, cosh and tanh as Java's StrictMath, and so Spark, computes them: fdlibm 5.3, bit for bit.

Each step is one IEEE operation in fdlibm's order, as in `fdlibm`. Source: s_expm1.c, s_log1p.c, e_sinh.c, e_cosh.c,
s_tanh.c.
"""

from __future__ import annotations

import numpy as np

from spark_jobs.engine.expressions.numbers.fdlibm import INVERSE_LN2, LN2_HIGH, LN2_LOW, LOG_TERMS, exp
from spark_jobs.engine.expressions.numbers.words import Doubles, high, shifted, with_high

__all__ = ["cosh", "expm1", "log1p", "sinh", "tanh"]

_Q = (
    -3.33333333333331316428e-02,
    1.58730158725481460165e-03,
    -7.93650757867487942473e-05,
    4.00821782732936239552e-06,
    -2.01099218183624371326e-07,
)
_MOST = 7.10475860073943863426e02
"""The largest size of a value for which cosh and sinh are finite."""


def expm1(values: Doubles) -> Doubles:
    """Return e to the power of each value, minus one; also exact near zero."""
    with np.errstate(all="ignore"):
        ordinary = (values < 7.09782712893383973096e02) & (values > -38.9)
        result = _expm1(np.where(ordinary, values, 0.0))
        result = np.where(values >= 7.09782712893383973096e02, exp(values), result)
        return np.where(np.isnan(values), np.nan, np.where(values <= -38.9, -1.0, result))


def _expm1(x: Doubles) -> Doubles:
    hx = high(x) & 0x7FFFFFFF
    negative = x < 0
    k = (INVERSE_LN2 * x + np.where(negative, -0.5, 0.5)).astype(np.int64)
    k = np.where(hx < 0x3FF0A2B2, np.where(negative, -1, 1), k)
    k = np.where(hx > 0x3FD62E42, k, 0)
    t = k.astype(np.float64)
    hi, lo = x - t * LN2_HIGH, t * LN2_LOW
    r = np.where(k == 0, x, hi - lo)
    c = np.where(k == 0, 0.0, (hi - r) - lo)
    half = 0.5 * r
    square = r * half
    r1 = 1.0 + square * (_Q[0] + square * (_Q[1] + square * (_Q[2] + square * (_Q[3] + square * _Q[4]))))
    t = 3.0 - r1 * half
    e = square * ((r1 - t) / (6.0 - r * t))
    unreduced = r - (r * e - square)
    e = (r * (e - c) - c) - square
    by_one = np.where(r < -0.25, -2.0 * (e - (r + 0.5)), 1.0 + 2.0 * (r - e))
    far = shifted(1.0 - (e - r), k) - 1.0
    near = np.clip(k, 0, 60)
    below_20 = shifted((1.0 - np.ldexp(1.0, -near)) - (e - r), k)
    above_20 = shifted((r - (e + np.ldexp(1.0, -near))) + 1.0, k)
    result = np.where((k <= -2) | (k > 56), far, np.where(k < 20, below_20, above_20))
    result = np.where(k == -1, 0.5 * (r - e) - 0.5, np.where(k == 1, by_one, result))
    return np.where(hx < 0x3C900000, x, np.where(k == 0, unreduced, result))


def log1p(values: Doubles) -> Doubles:
    """Return the natural logarithm of one plus each value, also exact near zero; NaN for values below minus one."""
    with np.errstate(all="ignore"):
        ordinary = (values > -1) & (values < np.inf)
        result = _log1p(np.where(ordinary, values, 0.0))
        result = np.where(values == np.inf, np.inf, np.where(values == -1, -np.inf, result))
        return np.where((values < -1) | np.isnan(values), np.nan, result)


def _log1p(x: Doubles) -> Doubles:
    hx = high(x)
    ax = hx & 0x7FFFFFFF
    whole = np.where(x > 0, ax < 0x3FDA827A, ax <= 0x3FD2BEC3)
    beyond = ax >= 0x43400000
    u = np.where(beyond, x, 1.0 + x)
    hu = high(u)
    k = (hu >> 20) - 1023
    c = np.where(k > 0, 1.0 - (u - x), x - (u - 1.0))
    c = np.where(beyond, 0.0, c / u)
    hu = hu & 0xFFFFF
    lower = hu < 0x6A09E
    u = with_high(u, np.where(lower, hu | 0x3FF00000, hu | 0x3FE00000))
    k = np.where(lower, k, k + 1)
    hu = np.where(lower, hu, (0x00100000 - hu) >> 2)
    f, k = np.where(whole, x, u - 1.0), np.where(whole, 0, k)
    c, hu = np.where(whole, 0.0, c), np.where(whole, 1, hu)
    dk = k.astype(np.float64)
    half = 0.5 * f * f
    close = half * (1.0 - 0.66666666666666666 * f)
    by_close = np.where(k == 0, f - close, dk * LN2_HIGH - ((close - (dk * LN2_LOW + c)) - f))
    by_close = np.where(f == 0, np.where(k == 0, 0.0, dk * LN2_HIGH + (c + dk * LN2_LOW)), by_close)
    s = f / (2.0 + f)
    z = s * s
    r = z * (
        LOG_TERMS[0]
        + z
        * (
            LOG_TERMS[1]
            + z * (LOG_TERMS[2] + z * (LOG_TERMS[3] + z * (LOG_TERMS[4] + z * (LOG_TERMS[5] + z * LOG_TERMS[6]))))
        )
    )
    plain = np.where(
        k == 0, f - (half - s * (half + r)), dk * LN2_HIGH - ((half - (s * (half + r) + (dk * LN2_LOW + c))) - f)
    )
    result = np.where(hu == 0, by_close, plain)
    return np.where(ax < 0x3C900000, x, np.where(ax < 0x3E200000, x - x * x * 0.5, result))


def sinh(x: Doubles) -> Doubles:
    """Return the hyperbolic sine of each value."""
    with np.errstate(all="ignore"):
        ix = high(size := np.abs(x))
        half = np.copysign(0.5, x)
        t = expm1(size)
        small = np.where(ix < 0x3FF00000, half * (2.0 * t - t * t / (t + 1.0)), half * (t + t / (t + 1.0)))
        result = np.where(ix < 0x40360000, np.where(ix < 0x3E300000, x, small), _far(half, size))
        return np.where(np.isfinite(x), result, x)


def cosh(x: Doubles) -> Doubles:
    """Return the hyperbolic cosine of each value."""
    with np.errstate(all="ignore"):
        ix = high(size := np.abs(x))
        t = expm1(size)
        w = 1.0 + t
        near = np.where(ix < 0x3C800000, w, 1.0 + (t * t) / (w + w))
        t = exp(size)
        result = np.where(ix < 0x40360000, 0.5 * t + 0.5 / t, _far(np.full_like(x, 0.5), size))
        return np.where(np.isfinite(x), np.where(ix < 0x3FD62E43, near, result), size)


def _far(half: Doubles, size: Doubles) -> Doubles:
    """Return `half` times e to the power of `size`, which is at least 22."""
    root = exp(0.5 * size)
    result = np.where(high(size) < 0x40862E42, half * exp(size), (half * root) * root)
    return np.where(size > _MOST, half * np.inf, result)


def tanh(x: Doubles) -> Doubles:
    """Return the hyperbolic tangent of each value."""
    with np.errstate(all="ignore"):
        ix = high(size := np.abs(x))
        wide, narrow = expm1(2.0 * size), expm1(-2.0 * size)
        result = np.where(ix >= 0x3FF00000, 1.0 - 2.0 / (wide + 2.0), -narrow / (narrow + 2.0))
        result = np.copysign(np.where(ix < 0x40360000, result, 1.0), x)
        result = np.where(ix < 0x3C800000, x * (1.0 + x), result)
        return np.where(np.isnan(x), np.nan, result)
