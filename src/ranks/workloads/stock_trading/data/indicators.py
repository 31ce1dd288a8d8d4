"""Technical indicators of a day from that day and the days before it; NaN until there are enough days.

Values and first days equal those of TA-Lib. For close-only prices high = low = close: the typical price is the close,
and the true range is the absolute change of the close.

Legend: D days, S stocks, N days of a window. Prices are float64[D, S].
"""

from __future__ import annotations

import numpy as np

from ranks.errors import UserError
from ranks.workloads.stock_trading.data.prices import Floats

CCI_SCALE = 0.015
"""Lambert's constant, which puts most values between -100 and 100."""
FLAT = 1e-12
"""A deviation below this fraction of the mean is rounding of a constant price."""


def windows(values_DS: Floats, days: int) -> Floats:
    """[D - N + 1, S, N]: a view of the last N values of each day from day N - 1 on. Raises UserError if D < N."""
    if len(values_DS) < days:
        found = f"a history of {len(values_DS)} days"
        raise UserError(f"a window of {days} days", found, "use a shorter window or a longer history")
    return np.lib.stride_tricks.sliding_window_view(values_DS, days, axis=0)


def log_return(close_DS: Floats) -> Floats:
    """log(close_t / close_{t-1}), from day 1."""
    return _pad_start(np.log(close_DS[1:] / close_DS[:-1]), 1)


def trend(close_DS: Floats, days: int = 30) -> Floats:
    """Close over its simple moving average of `days` days, less 1; from day `days` - 1."""
    return _pad_start(close_DS[days - 1 :] / windows(close_DS, days).mean(-1) - 1, days - 1)


def macd(close_DS: Floats, fast: int = 12, slow: int = 26) -> Floats:
    """Moving average convergence divergence (Appel 1979): the exponential moving average (EMA) over `fast` days minus
    the EMA over `slow` days, in units of price; the MACD line, not the signal line. Both EMAs start on day `slow` - 1
    with simple averages."""
    _require_days(close_DS, slow)
    return _ema(close_DS, fast, slow - 1) - _ema(close_DS, slow, slow - 1)


def rsi(close_DS: Floats, days: int = 30) -> Floats:
    """Relative strength index (Wilder 1978): 100 * G / (G + L) with Wilder's averages G of gains and L of losses, from
    day `days`. 50 where the price did not change."""
    _require_days(close_DS, days + 1)
    change_DS = _pad_start(np.diff(close_DS, axis=0), 1)
    gain_DS = _wilder_average(np.maximum(change_DS, 0), days, days)
    loss_DS = _wilder_average(np.maximum(-change_DS, 0), days, days)
    return 100 * _ratio(gain_DS, gain_DS + loss_DS, 0.5)


def cci(high_DS: Floats, low_DS: Floats, close_DS: Floats, days: int = 30) -> Floats:
    """Commodity channel index (Lambert 1980): the distance of the typical price (high + low + close) / 3 from its mean,
    in units of 0.015 mean absolute deviations, over `days` days; from day `days` - 1. 0 where the price is constant."""
    typical_DS = (high_DS + low_DS + close_DS) / 3
    past_DSN = windows(typical_DS, days)
    mean_DS = past_DSN.mean(-1)
    deviation_DS = np.abs(past_DSN - mean_DS[..., None]).mean(-1)
    deviation_DS[deviation_DS <= FLAT * mean_DS] = 0.0
    return _pad_start(_ratio(typical_DS[days - 1 :] - mean_DS, CCI_SCALE * deviation_DS, 0.0), days - 1)


def adx(high_DS: Floats, low_DS: Floats, close_DS: Floats, days: int = 30) -> Floats:
    """Average directional index (Wilder 1978), 0 to 100: Wilder's average over `days` days of
    DX = 100 * |P - M| / (P + M), where P and M are the smoothed upward and downward movements; from day
    2 * `days` - 1. Wilder divides both by the true range, which cancels here. DX is 0 where the price is constant."""
    _require_days(close_DS, 2 * days)
    up_DS, down_DS = _pad_start(np.diff(high_DS, axis=0), 1), _pad_start(-np.diff(low_DS, axis=0), 1)
    plus_DS = np.where((up_DS > down_DS) & (up_DS > 0), up_DS, 0.0)
    minus_DS = np.where((down_DS > up_DS) & (down_DS > 0), down_DS, 0.0)
    # Wilder's sums start with days - 1 movements and decay from day `days` on; the scale of an average cancels
    plus_DS, minus_DS = _wilder_sum(plus_DS, days), _wilder_sum(minus_DS, days)
    dx_DS = 100 * _ratio(np.abs(plus_DS - minus_DS), plus_DS + minus_DS, 0.0)
    return _wilder_average(dx_DS, days, 2 * days - 1)


def _require_days(values_DS: Floats, days: int) -> None:
    windows(values_DS, days)


def _pad_start(values: Floats, first: int) -> Floats:
    """`values` from day `first` on, NaN before."""
    return np.concatenate([np.full((first, *values.shape[1:]), np.nan), values])


def _ratio(part: Floats, whole: Floats, undefined: float) -> Floats:
    """part / whole; `undefined` where the whole is 0."""
    is_zero = whole == 0
    return np.where(is_zero, undefined, part / np.where(is_zero, 1.0, whole))


def _smoothed(values_DS: Floats, first: int, start_S: Floats, keep: float, take: float) -> Floats:
    """y_first = start; y_t = keep * y_{t-1} + take * x_t."""
    out_DS = np.full_like(values_DS, np.nan)
    out_DS[first] = start_S
    for day in range(first + 1, len(values_DS)):
        out_DS[day] = keep * out_DS[day - 1] + take * values_DS[day]
    return out_DS


def _ema(values_DS: Floats, days: int, first: int) -> Floats:
    """EMA with weight 2 / (days + 1), started on day `first` with the simple average of the last `days` days."""
    alpha = 2 / (days + 1)
    return _smoothed(values_DS, first, values_DS[first - days + 1 : first + 1].mean(0), 1 - alpha, alpha)


def _wilder_average(values_DS: Floats, days: int, first: int) -> Floats:
    """EMA with weight 1 / days, started on day `first` with the simple average of the last `days` days."""
    return _smoothed(values_DS, first, values_DS[first - days + 1 : first + 1].mean(0), 1 - 1 / days, 1 / days)


def _wilder_sum(values_DS: Floats, days: int) -> Floats:
    """The sum of days 1 to `days` - 1, then y_t = (1 - 1 / days) * y_{t-1} + x_t; returned from day `days` on."""
    out_DS = _smoothed(values_DS, days - 1, values_DS[1:days].sum(0), 1 - 1 / days, 1.0)
    out_DS[:days] = np.nan
    return out_DS
