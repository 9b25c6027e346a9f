"""exp, log, log10 and pow as Java's StrictMath, and so Spark, computes them: fdlibm 5.3, bit for bit.

The system's C library has another last digit than fdlibm for about one value in a few dozen. Each step below is one
IEEE operation in fdlibm's order. Variables have fdlibm's names, so that this code can be compared with fdlibm's.
Source: e_exp.c, e_log.c, e_log10.c, e_pow.c.
"""

from __future__ import annotations

import numpy as np

from spark_jobs.engine.expressions.numbers.words import Doubles, Longs, cut, high, shifted, with_high

__all__ = ["INVERSE_LN2", "LN2_HIGH", "LN2_LOW", "LOG_TERMS", "exp", "log", "log10", "power"]

LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
INVERSE_LN2 = 1.44269504088896338700e00
_P = (
    1.66666666666666019037e-01,
    -2.77777777770155933842e-03,
    6.61375632143793436117e-05,
    -1.65339022054652515390e-06,
    4.13813679705723846039e-08,
)
LOG_TERMS = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
_L = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)


def exp(values: Doubles) -> Doubles:
    """Return e to the power of each value."""
    with np.errstate(all="ignore"):
        finite = np.clip(np.where(np.isnan(values), 0.0, values), -745.2, 709.8)
        result = _exp(finite)
        result = np.where(values > 7.09782712893383973096e02, np.inf, result)
        result = np.where(values < -7.45133219101941108420e02, 0.0, result)
        return np.where(np.isnan(values), np.nan, result)


def _exp(x: Doubles) -> Doubles:
    hx = high(x) & 0x7FFFFFFF
    negative = x < 0
    reduced = hx > 0x3FD62E42
    near = hx < 0x3FF0A2B2
    k = (INVERSE_LN2 * x + np.where(negative, -0.5, 0.5)).astype(np.int64)
    k = np.where(near, np.where(negative, -1, 1), k)
    t = k.astype(np.float64)
    hi, lo = x - t * LN2_HIGH, t * LN2_LOW
    k = np.where(reduced, k, 0)
    r = np.where(reduced, hi - lo, x)
    t = r * r
    c = r - t * (_P[0] + t * (_P[1] + t * (_P[2] + t * (_P[3] + t * _P[4]))))
    small = 1.0 - ((r * c) / (c - 2.0) - r)
    y = 1.0 - ((lo - (r * c) / (2.0 - c)) - hi)
    scaled = np.where(k >= -1021, shifted(y, k), shifted(y, k + 1000) * 2.0**-1000)
    return np.where(hx < 0x3E300000, 1.0 + x, np.where(k == 0, small, scaled))


def log(values: Doubles) -> Doubles:
    """Return the natural logarithm of each value; NaN below zero."""
    with np.errstate(all="ignore"):
        ordinary = (values > 0) & (values < np.inf)
        result = _log(np.where(ordinary, values, 1.0))
        result = np.where(values == np.inf, np.inf, np.where(values == 0, -np.inf, result))
        return np.where((values < 0) | np.isnan(values), np.nan, result)


def _log(x: Doubles) -> Doubles:
    x, k = _normal(x, 2.0**54, 54)
    hx = high(x)
    k = k + (hx >> 20) - 1023
    hx = hx & 0xFFFFF
    i = (hx + 0x95F64) & 0x100000
    x = with_high(x, hx | (i ^ 0x3FF00000))
    k = k + (i >> 20)
    f, dk = x - 1.0, k.astype(np.float64)
    close = f * f * (0.5 - 0.33333333333333333 * f)
    by_close = np.where(k == 0, f - close, dk * LN2_HIGH - ((close - dk * LN2_LOW) - f))
    by_close = np.where(f == 0, np.where(k == 0, 0.0, dk * LN2_HIGH + dk * LN2_LOW), by_close)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    t1 = w * (LOG_TERMS[1] + w * (LOG_TERMS[3] + w * LOG_TERMS[5]))
    t2 = z * (LOG_TERMS[0] + w * (LOG_TERMS[2] + w * (LOG_TERMS[4] + w * LOG_TERMS[6])))
    r = t2 + t1
    half = 0.5 * f * f
    by_half = np.where(
        k == 0,
        f - (half - s * (half + r)),
        dk * LN2_HIGH - ((half - (s * (half + r) + dk * LN2_LOW)) - f),
    )
    plain = np.where(k == 0, f - s * (f - r), dk * LN2_HIGH - ((s * (f - r) - dk * LN2_LOW) - f))
    ordinary = np.where(((hx - 0x6147A) | (0x6B851 - hx)) > 0, by_half, plain)
    return np.where((0xFFFFF & (2 + hx)) < 3, by_close, ordinary)


def log10(values: Doubles) -> Doubles:
    """Return the decimal logarithm of each value; NaN below zero."""
    with np.errstate(all="ignore"):
        ordinary = (values > 0) & (values < np.inf)
        x, k = _normal(np.where(ordinary, values, 1.0), 2.0**54, 54)
        hx = high(x)
        k = k + (hx >> 20) - 1023
        i = (k < 0).astype(np.int64)
        x = with_high(x, (hx & 0xFFFFF) | ((0x3FF - i) << 20))
        y = (k + i).astype(np.float64)
        z = y * 3.69423907715893078616e-13 + 4.34294481903251816668e-01 * _log(x)
        result = z + y * 3.01029995663611771306e-01
        result = np.where(values == np.inf, np.inf, np.where(values == 0, -np.inf, result))
        return np.where((values < 0) | np.isnan(values), np.nan, result)


def power(x: Doubles, y: Doubles) -> Doubles:
    """Return each x to the power of its y, as `StrictMath.pow` defines the special cases."""
    with np.errstate(all="ignore"):
        whole = np.isinf(y) | (np.floor(y) == y)
        odd = whole & (np.abs(y) < 2.0**53) & (np.fmod(y, 2.0) != 0)
        size = np.abs(x)
        ordinary = np.isfinite(x) & np.isfinite(y) & (size > 0) & (size != 1.0)
        result = _power(np.where(ordinary, size, 2.0), np.where(ordinary, y, 1.0))
        special = np.where(y < 0, 1.0 / size, size)  # the powers of zero, one and infinity
        result = np.where((size == 0) | (size == 1) | (size == np.inf), special, result)
        result = np.where((x < 0) | (np.signbit(x) & (x == 0)), np.where(odd, -result, result), result)
        result = np.where((x < 0) & ~whole & (size != np.inf), np.nan, result)
        unbounded = np.where(size == 1, np.nan, np.where((size > 1) == (y > 0), np.inf, 0.0))
        result = np.where(np.isinf(y), unbounded, result)
        result = np.where((y == 0.5) & (x >= -np.finfo(np.float64).max), np.sqrt(x + 0.0), result)
        result = np.where(y == 2.0, x * x, result)
        result = np.where(np.abs(y) == 1.0, np.where(y < 0, 1.0 / x, x), result)
        result = np.where(np.isnan(x) | np.isnan(y), np.nan, result)
        return np.where(y == 0, 1.0, result)


def _power(ax: Doubles, y: Doubles) -> Doubles:
    """Raise each number to its power. The numbers are positive, finite and not 1; the powers are finite."""
    far = np.abs(y) > 2.0**31
    t1, t2 = _log2_parts(ax)
    near_t1, near_t2 = _log2_near_one(ax)
    t1, t2 = np.where(far, near_t1, t1), np.where(far, near_t2, t2)
    y1 = cut(y)
    p_l, p_h = (y - y1) * t1 + y * t2, y1 * t1
    z = p_l + p_h
    result = _exp2_parts(np.where(np.abs(z) < 1100, p_h, 0.0), np.where(np.abs(z) < 1100, p_l, 0.0))
    overflow = (z > 1024) | ((z == 1024) & (p_l + 8.0085662595372944372e-17 > z - p_h))
    underflow = (z < -1075) | ((z == -1075) & (p_l <= z - p_h))
    result = np.where(overflow, np.inf, np.where(underflow, 0.0, result))
    ix = high(ax)
    beyond = far & ((ix < 0x3FEFFFFF) | (ix > 0x3FF00000) | (np.abs(y) >= 2.0**64))
    return np.where(beyond, np.where((ax > 1) == (y > 0), np.inf, 0.0), result)


def _log2_near_one(ax: Doubles) -> tuple[Doubles, Doubles]:
    t = ax - 1.0
    w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
    u = 1.44269502162933349609e00 * t
    v = t * 1.92596299112661746887e-08 - w * INVERSE_LN2
    t1 = cut(u + v)
    return t1, v - (t1 - u)


def _log2_parts(ax: Doubles) -> tuple[Doubles, Doubles]:
    ax, n = _normal(ax, 2.0**53, 53)
    ix = high(ax)
    n = n + (ix >> 20) - 0x3FF
    j = ix & 0xFFFFF
    ix = j | 0x3FF00000
    k = ((j > 0x3988E) & (j < 0xBB67A)).astype(np.int64)
    top = j >= 0xBB67A
    n, ix = n + top, np.where(top, ix - 0x100000, ix)
    ax = with_high(ax, ix)
    bp = np.where(k == 1, 1.5, 1.0)
    dp_h, dp_l = np.where(k == 1, 5.84962487220764160156e-01, 0.0), np.where(k == 1, 1.35003920212974897128e-08, 0.0)
    u, v = ax - bp, 1.0 / (ax + bp)
    ss = u * v
    s_h = cut(ss)
    t_h = (((((ix >> 1) | 0x20000000) + 0x00080000 + (k << 18)) << 32).view(np.float64)).copy()
    t_l = ax - (t_h - bp)
    s_l = v * ((u - s_h * t_h) - s_h * t_l)
    s2 = ss * ss
    r = s2 * s2 * (_L[0] + s2 * (_L[1] + s2 * (_L[2] + s2 * (_L[3] + s2 * (_L[4] + s2 * _L[5])))))
    r = r + s_l * (s_h + ss)
    s2 = s_h * s_h
    t_h = cut(3.0 + s2 + r)
    t_l = r - ((t_h - 3.0) - s2)
    u, v = s_h * t_h, s_l * t_h + t_l * ss
    p_h = cut(u + v)
    p_l = v - (p_h - u)
    z_h = 9.61796700954437255859e-01 * p_h
    z_l = -7.02846165095275826516e-09 * p_h + p_l * 9.61796693925975554329e-01 + dp_l
    t = n.astype(np.float64)
    t1 = cut(((z_h + z_l) + dp_h) + t)
    return t1, z_l - (((t1 - t) - dp_h) - z_h)


def _exp2_parts(p_h: Doubles, p_l: Doubles) -> Doubles:
    """Return 2 to the power of a sum whose size is below 1100."""
    j = high(p_l + p_h)
    j = np.where(j >= 2**31, j - 2**32, j)
    i = j & 0x7FFFFFFF
    k = np.maximum((i >> 20) - 0x3FF, -1)
    n = j + (0x00100000 >> (k + 1))
    k = np.clip(((n & 0x7FFFFFFF) >> 20) - 0x3FF, 0, 20)
    t = (((n & 0xFFFFFFFF) & ~(0x000FFFFF >> k)) << 32).astype(np.int64).view(np.float64)
    whole = ((n & 0x000FFFFF) | 0x00100000) >> (20 - k)
    whole = np.where(j < 0, -whole, whole)
    large = i > 0x3FE00000
    n, p_h = np.where(large, whole, 0), np.where(large, p_h - t, p_h)
    t = cut(p_l + p_h)
    u = t * 6.93147182464599609375e-01
    v = (p_l - (t - p_h)) * 6.93147180559945286227e-01 + t * -1.90465429995776804525e-09
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * (_P[0] + t * (_P[1] + t * (_P[2] + t * (_P[3] + t * _P[4]))))
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    z = 1.0 - (r - z)
    return np.ldexp(z, n.astype(np.int32))


def _normal(x: Doubles, factor: float, exponent: int) -> tuple[Doubles, Longs]:
    """Multiply subnormal values by `factor`; return all values, and for each the exponent that undoes the factor."""
    small = x < 2.0**-1022
    return np.where(small, x * factor, x), np.where(small, -exponent, 0).astype(np.int64)
