"""asin, acos, atan and atan2 as Java's StrictMath, and so Spark, computes them: fdlibm 5.3, bit for bit.

Each step is one IEEE operation, in the order of the C library fdlibm, as in the module `fdlibm`. Source: e_asin.c,
e_acos.c, s_atan.c, e_atan2.c.
"""

from __future__ import annotations

import numpy as np

from spark_jobs.engine.expressions.numbers.words import Doubles, cut, high

__all__ = ["acos", "asin", "atan", "atan2"]

_PI, _PI_LOW = 3.14159265358979311600e00, 1.2246467991473531772e-16
_HALF_PI, _HALF_PI_LOW = 1.57079632679489655800e00, 6.12323399573676603587e-17
_QUARTER_PI = 7.85398163397448278999e-01
_PS = (
    1.66666666666666657415e-01,
    -3.25565818622400915405e-01,
    2.01212532134862925881e-01,
    -4.00555345006794114027e-02,
    7.91534994289814532176e-04,
    3.47933107596021167570e-05,
)
_QS = (-2.40339491173441421878e00, 2.02094576023350569471e00, -6.88283971605453293030e-01, 7.70381505559019352791e-02)
_ATAN_HIGH = np.array(
    (4.63647609000806093515e-01, 7.85398163397448278999e-01, 9.82793723247329054082e-01, 1.57079632679489655800e00)
)
_ATAN_LOW = np.array(
    (2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17, 6.12323399573676603587e-17)
)
_AT = (
    3.33333333333329318027e-01,
    -1.99999999998764832476e-01,
    1.42857142725034663711e-01,
    -1.11111104054623557880e-01,
    9.09088713343650656196e-02,
    -7.69187620504482999495e-02,
    6.66107313738753120669e-02,
    -5.83357013379057348645e-02,
    4.97687799461593236017e-02,
    -3.65315727442169155270e-02,
    1.62858201153657823623e-02,
)


def asin(x: Doubles) -> Doubles:
    """Return the angle of each sine, from -pi/2 to pi/2; NaN for a value above 1 or below -1."""
    with np.errstate(all="ignore"):
        ix = high(size := np.abs(x))
        small = np.where(ix < 0x3E400000, x, x + x * _quotient(x * x))
        t = (1.0 - size) * 0.5
        r, s = _quotient(t), np.sqrt(t)
        near_one = _HALF_PI - (2.0 * (s + s * r) - _HALF_PI_LOW)
        w = cut(s)
        p = 2.0 * s * r - (_HALF_PI_LOW - 2.0 * ((t - w * w) / (s + w)))
        between = _QUARTER_PI - (p - (_QUARTER_PI - 2.0 * w))
        large = np.copysign(np.where(ix >= 0x3FEF3333, near_one, between), x)
        result = np.where(ix < 0x3FE00000, small, large)
        return np.where(size == 1, x * _HALF_PI + x * _HALF_PI_LOW, np.where(size <= 1, result, np.nan))


def acos(x: Doubles) -> Doubles:
    """Return the angle of each cosine, from 0 to pi; NaN for a value above 1 or below -1."""
    with np.errstate(all="ignore"):
        ix = high(size := np.abs(x))
        small = _HALF_PI - (x - (_HALF_PI_LOW - x * _quotient(x * x)))
        small = np.where(ix <= 0x3C600000, _HALF_PI + _HALF_PI_LOW, small)
        z = (1.0 - size) * 0.5
        s, r = np.sqrt(z), _quotient(z)
        negative = _PI - 2.0 * (s + (r * s - _HALF_PI_LOW))
        df = cut(s)
        positive = 2.0 * (df + (r * s + (z - df * df) / (s + df)))
        result = np.where(ix < 0x3FE00000, small, np.where(x < 0, negative, positive))
        end = np.where(x > 0, 0.0, _PI + 2.0 * _HALF_PI_LOW)
        return np.where(size == 1, end, np.where(size <= 1, result, np.nan))


def _quotient(t: Doubles) -> Doubles:
    p = t * (_PS[0] + t * (_PS[1] + t * (_PS[2] + t * (_PS[3] + t * (_PS[4] + t * _PS[5])))))
    q = 1.0 + t * (_QS[0] + t * (_QS[1] + t * (_QS[2] + t * _QS[3])))
    return p / q


def atan(x: Doubles) -> Doubles:
    """Return the angle of each tangent, from -pi/2 to pi/2."""
    with np.errstate(all="ignore"):
        ix = high(size := np.abs(x))
        part = np.digitize(ix, (0x3FE60000, 0x3FF30000, 0x40038000))
        reduced = np.choose(
            part, ((2.0 * size - 1.0) / (2.0 + size), (size - 1.0) / (size + 1.0), (size - 1.5) / (1.0 + 1.5 * size),
                   -1.0 / size)
        )  # fmt: skip
        near_zero = ix < 0x3FDC0000
        t = np.where(near_zero, x, reduced)
        z = t * t
        w = z * z
        s1 = z * (_AT[0] + w * (_AT[2] + w * (_AT[4] + w * (_AT[6] + w * (_AT[8] + w * _AT[10])))))
        s2 = w * (_AT[1] + w * (_AT[3] + w * (_AT[5] + w * (_AT[7] + w * _AT[9]))))
        far = _ATAN_HIGH[part] - ((t * (s1 + s2) - _ATAN_LOW[part]) - t)
        far = np.copysign(np.where(ix >= 0x44100000, _HALF_PI + _HALF_PI_LOW, far), x)
        result = np.where(near_zero, t - t * (s1 + s2), far)
        return np.where(np.isnan(x), np.nan, np.where(ix < 0x3E200000, x, result))


def atan2(y: Doubles, x: Doubles) -> Doubles:
    """Return the angle of each point (x, y), from -pi to pi."""
    with np.errstate(all="ignore"):
        k = (high(np.abs(y)) - high(np.abs(x))) >> 20
        z = np.where(k > 60, _HALF_PI + 0.5 * _PI_LOW, np.where((x < 0) & (k < -60), 0.0, atan(np.abs(y / x))))
        left = np.signbit(x)
        result = np.where(left, _PI - (z - _PI_LOW), z)
        result = np.where(y == 0, np.where(left, _PI, 0.0), np.where(x == 0, _HALF_PI, result))
        both = np.where(left, 3.0 * _QUARTER_PI, _QUARTER_PI)
        result = np.where(np.isinf(x), np.where(np.isinf(y), both, np.where(left, _PI, 0.0)), result)
        result = np.where(np.isinf(y) & ~np.isinf(x), _HALF_PI, result)
        result = np.copysign(result, y)
        return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x == 1.0, atan(y), result))
