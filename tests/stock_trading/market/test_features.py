"""Indicators against TA-Lib, turbulence against a reference implementation, features, splits, synthetic markets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads.stock_trading.data import indicators, synthetic
from ranks.workloads.stock_trading.data.config import STOCK_FEATURES, FeatureConfig
from ranks.workloads.stock_trading.data.features import Scaler, features_of, history_days
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.data.split import Split, split_by_dates, walk_forward
from ranks.workloads.stock_trading.data.turbulence import turbulence

from ..fixtures import TEST_PERIOD, TRAIN_PERIOD, bars, of_closes, stocks

SHORT = FeatureConfig(
    trend_days=5, macd_fast=3, macd_slow=6, rsi_days=4, cci_days=5, adx_days=4, level_days=6, turbulence_days=20
)


def traded_stocks() -> Prices:
    """Days from 1995 on, when no price is constant for a month: TA-Lib's RSI is 0 there, and ours 50."""
    prices = stocks()
    return prices.take(prices.rows("1995-01-03", None))


@pytest.mark.parametrize("prices", [traded_stocks(), bars(600, 3, 0)], ids=["closes", "bars"])
@pytest.mark.parametrize("name", ["macd", "rsi 30", "rsi 14", "cci 30", "cci 20", "adx 30", "adx 14"])
def test_indicators_equal_talib(prices: Prices, name: str) -> None:
    """First days and values equal TA-Lib (a C library) to a relative 1e-6."""
    talib = pytest.importorskip("talib")
    close_DS = prices.close_DS
    high_DS = close_DS if prices.high_DS is None else prices.high_DS
    low_DS = close_DS if prices.low_DS is None else prices.low_DS
    kind, _, days = name.partition(" ")
    num = int(days or 0)
    ours: dict[str, Callable[[], np.ndarray]] = {
        "macd": lambda: indicators.macd(close_DS),
        "rsi": lambda: indicators.rsi(close_DS, num),
        "cci": lambda: indicators.cci(high_DS, low_DS, close_DS, num),
        "adx": lambda: indicators.adx(high_DS, low_DS, close_DS, num),
    }
    theirs: dict[str, Callable[..., np.ndarray]] = {
        "macd": lambda high, low, close: talib.MACD(close)[0],
        "rsi": lambda high, low, close: talib.RSI(close, num),
        "cci": lambda high, low, close: talib.CCI(high, low, close, num),
        "adx": lambda high, low, close: talib.ADX(high, low, close, num),
    }
    columns = [np.ascontiguousarray(array.T) for array in (high_DS, low_DS, close_DS)]
    expected_DS = np.stack([theirs[kind](*stock) for stock in zip(*columns, strict=True)], 1)
    ours_DS = ours[kind]()
    first = int(np.argmax(~np.isnan(expected_DS[:, 0])))
    if kind == "macd":  # TA-Lib waits for the signal line too
        assert not np.isnan(ours_DS[25:]).any()
        assert np.isnan(ours_DS[:25]).all()
        first = 33
    else:
        assert (np.isnan(ours_DS) == np.isnan(expected_DS)).all()
    np.testing.assert_allclose(ours_DS[first:], expected_DS[first:], rtol=1e-6, atol=1e-9)


def test_indicators_by_hand() -> None:
    close_DS = np.array([[1.0], [2.0], [4.0], [3.0], [3.5]])
    assert indicators.log_return(close_DS)[1:, 0].tolist() == pytest.approx(np.log([2, 2, 0.75, 3.5 / 3]))
    assert indicators.trend(close_DS, 2)[1:, 0].tolist() == pytest.approx([1 / 3, 1 / 3, -1 / 7, 1 / 13])
    # mean gain and loss of 2 days: (1.5, 0), (0.75, 0.5), (0.625, 0.25)
    assert indicators.rsi(close_DS, 2)[2:, 0].tolist() == pytest.approx([100, 60, 100 * 0.625 / 0.875])
    # closes alone, window 2: one deviation from the mean, either way
    assert indicators.cci(close_DS, close_DS, close_DS, 2)[1:, 0].tolist() == pytest.approx(
        [1 / 0.015, 1 / 0.015, -1 / 0.015, 1 / 0.015]
    )
    # upward sums 1, 2.5, 1.25, 1.125; downward 0, 0, 1, 0.5; DX from day 2; their mean from day 3, then Wilder's
    dx = [100, 100 * 0.25 / 2.25, 100 * 0.625 / 1.625]
    adx = [(dx[0] + dx[1]) / 2, ((dx[0] + dx[1]) / 2 + dx[2]) / 2]
    assert indicators.adx(close_DS, close_DS, close_DS, 2)[3:, 0].tolist() == pytest.approx(adx)


def test_indicators_of_a_constant_price_are_neutral() -> None:
    flat_DS = np.full((100, 1), 3.322)
    assert (indicators.rsi(flat_DS)[30:] == 50).all()
    assert (indicators.cci(flat_DS, flat_DS, flat_DS)[29:] == 0).all()
    assert (indicators.adx(flat_DS, flat_DS, flat_DS)[59:] == 0).all()


def test_turbulence_equals_the_formula_day_by_day() -> None:
    close_DS = traded_stocks().close_DS[:700, :5]
    fast_D, return_DS = turbulence(close_DS, 60), close_DS[1:] / close_DS[:-1] - 1
    for day in (61, 62, 300, 699):
        past_NS, now_S = return_DS[day - 61 : day - 1], return_DS[day - 1]
        deviation_S = now_S - past_NS.mean(0)
        reference = deviation_S @ np.linalg.solve(np.cov(past_NS.T), deviation_S)
        assert fast_D[day] == pytest.approx(reference, rel=1e-9)
    assert np.isnan(fast_D[:61]).all()
    assert not np.isnan(fast_D[61:]).any()


def test_turbulence_quantiles_match_reference_values() -> None:
    """Quantiles of 2009 to 2015, and the number of days of 2016 to 2020 above them."""
    prices = stocks()
    train, test = prices.rows(*TRAIN_PERIOD), prices.rows(*TEST_PERIOD)
    turbulence_D = turbulence(prices.close_DS)
    known_D, later_D = turbulence_D[train.start : train.stop], turbulence_D[test.start : test.stop]
    assert len(later_D) == 1095
    for quantile, threshold, above in [(0.9, 42.18, 153), (0.99, 91.70, 41), (1.0, 267.57, 5)]:
        found = np.quantile(known_D, quantile)
        assert round(float(found), 2) == threshold
        assert int((later_D > found).sum()) == above


def test_turbulence_of_identical_stocks_is_finite() -> None:
    close_DS = bars(100, 2, 0).close_DS
    doubled_DS = np.concatenate([close_DS, close_DS], 1)
    np.testing.assert_allclose(turbulence(doubled_DS, 30)[31:], turbulence(close_DS, 30)[31:], rtol=1e-6)


def test_turbulence_needs_two_stocks() -> None:
    with pytest.raises(UserError, match="1 stock"):
        turbulence(np.ones((300, 1)))


def test_features_and_their_first_day() -> None:
    prices = bars(120, 3, 1)
    features = features_of(prices, SHORT)
    assert features.first_day == 21
    assert features.stock_DSF.shape == (120, 3, 7)
    assert features.names == STOCK_FEATURES
    assert features.turbulence_D is not None
    np.testing.assert_array_equal(features.market_DM[21:, 0], np.log1p(features.turbulence_D[21:]))
    high_DS, low_DS, close_DS = prices.high_DS, prices.low_DS, prices.close_DS
    assert high_DS is not None
    assert low_DS is not None
    np.testing.assert_array_equal(features.stock_DSF[..., 4], indicators.cci(high_DS, low_DS, close_DS, 5))
    np.testing.assert_array_equal(features.stock_DSF[..., 2], indicators.macd(close_DS, 3, 6) / close_DS)
    mean_S = close_DS[45:51].mean(0)
    np.testing.assert_allclose(features.stock_DSF[50, :, 6], close_DS[50] / mean_S - 1)
    few = features_of(prices, replace(SHORT, names=("return",), turbulence=False))
    assert few.first_day == 1
    assert few.market_DM.shape == (120, 0)
    assert features_of(prices, replace(SHORT, turbulence=False)).first_day == 7


def test_windows_longer_than_the_history_are_rejected() -> None:
    for config in (SHORT, replace(SHORT, turbulence=False, trend_days=21)):
        with pytest.raises(UserError, match=r"20 days|19 days"):
            features_of(bars(20, 3, 1), config)


@pytest.mark.parametrize(
    "wrong", [{"names": ("beta",)}, {"names": ()}, {"rsi_days": 1}, {"macd_fast": 26}, {"clip": 0.0}]
)
def test_invalid_feature_configs_are_rejected(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError):
        replace(FeatureConfig(), **wrong)


def test_scaler_uses_only_training_days() -> None:
    features = features_of(bars(200, 3, 2), SHORT)
    train = range(30, 120)
    scaler = Scaler.fit(features, train, clip=2.0)
    table_DK = scaler.table_DK(features)
    assert table_DK.dtype == np.float32
    assert table_DK.shape == (200, 3 * 7 + 1)
    of_stocks = features.stock_DSF[30:120].reshape(-1, 7)
    np.testing.assert_allclose(
        scaler.mean_K, [*np.tile(of_stocks.mean(0), 3), *features.market_DM[30:120].mean(0)], 1e-6
    )
    np.testing.assert_allclose(scaler.std_K, [*np.tile(of_stocks.std(0), 3), *features.market_DM[30:120].std(0)], 1e-6)
    expected = (features.stock_DSF[150, 2, 3] - scaler.mean_K[3]) / scaler.std_K[3]
    assert table_DK[150, 2 * 7 + 3] == pytest.approx(np.clip(expected, -2, 2), rel=1e-6)
    assert np.nanmax(np.abs(table_DK)) == 2
    with pytest.raises(UserError, match="from day 21 on"):
        Scaler.fit(features, range(20, 120), 2.0)


@pytest.mark.parametrize("name", [*STOCK_FEATURES, "turbulence"])
def test_first_day_of_a_feature_is_its_lookback(name: str) -> None:
    """The first day depends only on the chosen features."""
    is_market = name == "turbulence"
    config = replace(SHORT, names=("return",) if is_market else (name,), turbulence=is_market)
    assert features_of(bars(200, 3, 2), config).first_day in (history_days(config) - 1, history_days(config))


def test_turbulence_of_many_stocks_needs_a_long_window() -> None:
    """With as many stocks as days in the window, the distance would be arbitrary noise."""
    close_DS = bars(400, 14, 3).close_DS
    with pytest.raises(UserError, match="14 stocks, too many for covariances from 40 days"):
        turbulence(close_DS, 40)
    assert np.nanmedian(turbulence(close_DS, 42)) < 14 * 3


def test_constant_features_scale_to_zero() -> None:
    flat = of_closes(*[[5.0, 6.0]] * 40)
    features = features_of(flat, replace(SHORT, turbulence=False))
    table_DK = Scaler.fit(features, range(10, 30), 5.0).table_DK(features)
    assert (table_DK[10:] == 0).all()


def test_periods_must_be_in_order_with_an_embargo() -> None:
    prices = stocks()

    def split(train_to: str, test_from: str, embargo: int = 30, window: int = 30) -> Split:
        return split_by_dates(
            prices, ("2009-01-02", train_to), (test_from, "2020-05-08"), embargo=embargo, window=window
        )

    good = split("2015-10-01", "2016-01-04")
    assert len(good.test) == 1095
    assert good.test.start - good.train.stop == 63
    for wrong, found in [
        (("2016-06-01", "2016-01-04"), "begins within or before the training"),
        (("2015-12-31", "2016-01-04"), "0 trading days lie between"),
        (("2015-10-01", "2016-01-04", 64), "63 trading days lie between"),
        (("2015-10-01", "2016-01-04", 20), "windows of 30 days"),
    ]:
        with pytest.raises(UserError, match=found):
            split(*wrong)
    with pytest.raises(UserError, match="the test period begins within or before the validation"):
        split_by_dates(
            prices, ("2009-01-02", "2012-01-03"), (None, "2014-01-02"), ("2013-01-02", None), embargo=30, window=30
        )


def test_walk_forward_splits() -> None:
    splits = walk_forward(range(300, 2300), 5, embargo=30, window=30)
    assert [split.test for split in splits] == [range(1300 + 200 * fold, 1500 + 200 * fold) for fold in range(5)]
    for split in splits:
        assert split.train.start == 300
        assert split.test.start - split.train.stop == 30
    uneven = walk_forward(range(10, 111), 3, embargo=5, window=5)
    assert [len(split.test) for split in uneven] == [16, 17, 17]
    assert uneven[-1].test.stop == 111
    for rows, folds in [(range(100), 0), (range(4), 5), (range(60), 2)]:
        with pytest.raises(UserError):
            walk_forward(rows, folds, embargo=30, window=30)


def test_martingale_has_no_drift() -> None:
    close_DS = synthetic.martingale(2000, 200, 0, volatility=0.02).close_DS
    return_DS = close_DS[1:] / close_DS[:-1] - 1
    error = 0.02 / np.sqrt(return_DS.size)
    assert abs(return_DS.mean()) < 4 * error
    assert return_DS.std() == pytest.approx(0.02, rel=0.01)
    past, now = return_DS[:-1].ravel(), return_DS[1:].ravel()
    assert abs(np.corrcoef(past, now)[0, 1]) < 4 / np.sqrt(len(now))


def test_mean_reverting_prices_return_by_half_in_a_half_life() -> None:
    log_DS = np.log(synthetic.mean_reverting(4000, 40, 0, volatility=0.02, half_life=10).close_DS / 100)
    slope = (log_DS[:-10] * log_DS[10:]).mean() / (log_DS**2).mean()
    assert slope == pytest.approx(0.5, abs=0.02)
    assert log_DS.std() == pytest.approx(0.02 / np.sqrt(1 - 2**-0.2), rel=0.05)
    assert log_DS[0].std() == pytest.approx(log_DS.std(), rel=0.4)


def test_regimes_are_visible_over_a_month_but_not_over_a_day() -> None:
    close_DS = synthetic.two_regimes(4000, 40, 0).close_DS
    direction_DS = synthetic.directions_DS(4000, 40, 0)
    return_DS = close_DS[1:] / close_DS[:-1] - 1
    assert return_DS[direction_DS[1:] == 1].mean() == pytest.approx(0.003, abs=2e-4)
    assert return_DS[direction_DS[1:] == -1].mean() == pytest.approx(-0.003, abs=2e-4)
    assert (np.diff(direction_DS, axis=0) != 0).mean() == pytest.approx(1 / 60, rel=0.1)
    next_DS = direction_DS[31:]
    of_a_day = np.mean(np.sign(return_DS[29:-1]) == next_DS)
    of_a_month = np.mean(np.sign(np.log(close_DS[30:-1] / close_DS[:-31])) == next_DS)
    assert of_a_day < 0.65
    assert of_a_month > of_a_day + 0.1


def test_synthetic_stocks_do_not_depend_on_the_number_of_stocks() -> None:
    for make in (synthetic.martingale, synthetic.mean_reverting, synthetic.two_regimes):
        one, three = make(50, 1, 7), make(50, 3, 7)
        np.testing.assert_array_equal(one.close_DS[:, 0], three.close_DS[:, 0])
        assert not np.array_equal(three.close_DS[:, 0], three.close_DS[:, 1])
        assert make(50, 1, 8).sha256 != one.sha256
