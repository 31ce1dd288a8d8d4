"""Prices from CSV files: accepted layouts, rejected files with the place of the error, and the shipped files."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from ranks.errors import UserError
from ranks.workloads.stock_trading.data import sp500
from ranks.workloads.stock_trading.data.prices import Prices
from ranks.workloads.stock_trading.data.read_csv import read_csv

from ..fixtures import index, of_closes, stocks

WIDE = "date,KO,PG\n2020-01-02,50,100\n2020-01-03,51,101\n2020-01-06,52,99.5\n"
LONG = """date,tic,open,high,low,close,volume
2020-01-02,KO,49,51,48,50,1000
2020-01-02,PG,99,101,98,100,2000
2020-01-03,KO,50,52,49,51,1100
2020-01-03,PG,100,102,99,101,
2020-01-06,KO,51,53,50,52,1200
2020-01-06,PG,100,102,99,99.5,2200
"""
BY_STOCK = "\n".join([LONG.splitlines()[0], *sorted(LONG.splitlines()[1:], key=lambda line: line.split(",")[1])])

GOOD = {
    "wide": WIDE,
    "long": LONG,
    "long, stock by stock": BY_STOCK,
    "column names in capitals, symbol for tic": LONG.replace("date,tic,open", "Date, Symbol ,OPEN"),
    "byte order mark, CRLF": "\ufeff" + WIDE.replace("\n", "\r\n"),
    "semicolons": WIDE.replace(",", ";"),
    "tabs": LONG.replace(",", "\t"),
    "index column without a name, times of midnight": re.sub("(2020-01-0.)", r"\1 00:00:00", WIDE).replace("date", ""),
    "slashes and a blank line": re.sub("(2020)-(01)-", r"\1/\2/", WIDE) + "\n",
    "no dashes": re.sub("(2020)-(01)-", r"\1\2", WIDE),
    "quotes": WIDE.replace("KO", '"KO"'),
}

BAD = {
    "unsorted": (WIDE + "2020-01-03,1,1\n", "line 5: 2020-01-03 after 2020-01-06"),
    "a day twice": (WIDE + "2020-01-06,1,1\n", "line 5: 2020-01-06 a second time"),
    "a stock's day twice": (LONG + "2020-01-06,PG,1,1,1,1,1\n", "line 8: PG on 2020-01-06 a second time"),
    "a stock's days unsorted": (LONG + "2020-01-03,PG,1,1,1,1,1\n", "line 8: PG on 2020-01-03 after 2020-01-06"),
    "a missing day": (LONG.replace("2020-01-03,KO,50,52,49,51,1100\n", ""), "KO has no price on 2020-01-03"),
    "an empty cell": (WIDE.replace("2020-01-03,51", "2020-01-03,"), "KO has no price on 2020-01-03"),
    "NaN": (WIDE.replace("101", "NaN"), "PG has no price on 2020-01-03"),
    "infinite": (WIDE.replace("101", "inf"), "PG on 2020-01-03: close inf"),
    "zero": (WIDE.replace("101", "0"), "PG on 2020-01-03: close 0"),
    "negative": (LONG.replace("101,98,100", "101,98,-100"), "PG on 2020-01-02: close -100"),
    "high below low": (LONG.replace("53,50", "50,53"), "KO on 2020-01-06: high 50 below low 53"),
    "close outside": (LONG.replace("49,51,1100", "49,53,1100"), "KO on 2020-01-03: close 53 outside 49..52"),
    "open outside": (LONG.replace("KO,50,52", "KO,48,52"), "KO on 2020-01-03: open 48 outside 49..52"),
    "a time zone": (WIDE.replace("01-03", "01-03 00:00:00-05:00"), "line 3: a time zone in the date"),
    "the time zone Z": (WIDE.replace("01-03", "01-03T00:00:00Z"), "line 3: a time zone in the date"),
    "a time of day": (WIDE.replace("01-03", "01-03 09:30"), "line 3: a time of day in the date"),
    "days first": (WIDE.replace("2020-01-03", "03.01.2020"), "line 3: '03.01.2020' is not a date"),
    "no such day": (WIDE.replace("2020-01-03", "2020-02-30"), "line 3: '2020-02-30' is not a date"),
    "decimal commas": (WIDE.replace(",", ";").replace("99.5", "99,5"), "line 4: '99,5' is not a number"),
    "a word": (WIDE.replace("101", "high"), "line 3: 'high' is not a number"),
    "a short line": (WIDE.replace("2020-01-03,51", "2020-01-03"), "line 3: 2 columns, where the header has 3"),
    "one stock without a ticker": ("date,open,close\n2020-01-02,1,1\n", "prices of one stock, and no ticker column"),
    "bars of one stock": ("Date,Price,Open,High\n2020-01-02,1,1,1\n", "columns Date, Price, Open, High: prices of one"),
    "an adjusted bar": ("Date,Open,High,Low,Adj Close\n2020-01-02,1,1,1,1\n", "prices of one stock"),
    "an adjusted close twice": (
        "date,tic,adj close,adj_close\n2020-01-02,A,1,2\n",
        "line 1: two columns with the same name",
    ),
    "a line without a ticker": ("date,tic,close\n2020-01-02,A,1\n2020-01-02,,1\n", "line 3: a line without a ticker"),
    "a column without a ticker": ("date,A,\n2020-01-02,1,1\n", "line 1: a column without a name"),
    "a thousands separator": (WIDE.replace("101", "1_010"), "line 3: '1_010' is not a number"),
    "a very long header": ("date," + "x" * 200_000, "line 1: field larger than field limit"),
    "no close": ("date,tic,open\n2020-01-02,A,1\n", "line 1: no column 'close'"),
    "no date": ("KO,PG\n1,2\n", "line 1: the header 'KO,PG'"),
    "a name twice": (WIDE.replace("PG", "KO"), "line 1: two columns with the same name"),
    "a very long cell": (WIDE + '2020-01-07,"' + "1" * 200_000, "line 5: field larger than field limit"),
    "empty": ("", "line 1: the header ''"),
    "only a header": ("date,KO\n", "0 days of 1 stocks"),
}


def read(tmp_path: Path, text: str, **options: str) -> Prices:
    path = tmp_path / "prices.csv"
    path.write_bytes(text.encode())
    return read_csv(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_accepted_layouts(tmp_path: Path, text: str) -> None:
    prices = read(tmp_path, text)
    assert prices.tickers == ("KO", "PG")
    assert [str(day) for day in prices.dates_D] == ["2020-01-02", "2020-01-03", "2020-01-06"]
    assert prices.close_DS.tolist() == [[50, 100], [51, 101], [52, 99.5]]


@pytest.mark.parametrize(("text", "found"), BAD.values(), ids=BAD)
def test_rejected_files_name_the_place(tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(UserError) as error:
        read(tmp_path, text)
    assert "prices.csv" in error.value.asked
    assert found in error.value.found
    assert error.value.do


def test_tickers_may_equal_column_names_or_differ_by_a_dot(tmp_path: Path) -> None:
    assert read(tmp_path, "date,LOW,BF.B,BFB,^\n2020-01-02,1,2,3,4\n").tickers == ("LOW", "BF.B", "BFB", "^")


def test_open_high_low_and_volume(tmp_path: Path) -> None:
    prices = read(tmp_path, LONG)
    assert prices.open_DS is not None
    assert prices.volume_DS is not None
    assert prices.open_DS.tolist() == [[49, 99], [50, 100], [51, 100]]
    assert prices.volume_DS[:, 0].tolist() == [1000, 1100, 1200]
    assert np.isnan(prices.volume_DS[1, 1])
    assert prices.fill_DS()[:-1].tolist() == [[50, 100], [51, 100]]
    assert np.isnan(prices.fill_DS()[-1]).all()


def test_close_only_prices_fill_at_the_next_close(tmp_path: Path) -> None:
    assert read(tmp_path, WIDE).fill_DS()[:-1].tolist() == [[51, 101], [52, 99.5]]


def test_adjusted_close_scales_the_bar_with_a_warning(tmp_path: Path) -> None:
    text = "Date,Ticker,Open,High,Low,Close,Adj Close\n2020-01-02,KO,49,51,48,50,25\n2020-01-03,KO,50,52,49,51,51\n"
    prices = read(tmp_path, text)
    bar = [values[0, 0] for values in prices.fields().values()]
    assert bar == [24.5, 25.5, 24, 25]
    adjusted, split = prices.notes
    assert adjusted.endswith(
        "prices.csv: the adjusted close replaces the close, and open, high and low are scaled with it"
    )
    assert "KO +104% on 2020-01-03" in split


def test_gaps_are_dropped_on_request_and_never_filled(tmp_path: Path) -> None:
    text = WIDE.replace("2020-01-03,51", "2020-01-03,")
    drop_stocks, drop_days = read(tmp_path, text, missing="drop-stocks"), read(tmp_path, text, missing="drop-days")
    assert drop_stocks.tickers == ("PG",)
    assert drop_stocks.close_DS.tolist() == [[100], [101], [99.5]]
    assert drop_days.close_DS.tolist() == [[50, 100], [52, 99.5]]
    assert drop_stocks.notes[0].endswith("prices.csv: stocks dropped: KO")
    assert drop_days.notes[0].endswith("prices.csv: days dropped: 1, the first on 2020-01-03")
    with pytest.raises(UserError, match="nothing is left"):
        read(tmp_path, "date,KO\n2020-01-02,\n", missing="drop-days")


def test_unadjusted_splits_give_a_warning(tmp_path: Path) -> None:
    (note,) = read(tmp_path, WIDE.replace("99.5", "49.5")).notes
    assert re.search(r"prices.csv: changes of more than 40%.*PG -51% on 2020-01-06", note)
    assert read(tmp_path, WIDE.replace("99.5", "61")).notes == ()


def test_missing_weeks_give_a_warning(tmp_path: Path) -> None:
    (note,) = read(tmp_path, WIDE.replace("2020-01-06", "2020-02-06")).notes
    assert "no day from 2020-01-03 to 2020-02-06" in note


@pytest.mark.parametrize(("step_days", "a_year"), [(7, 53), (1, 371)])
def test_prices_that_are_not_daily_are_rejected(tmp_path: Path, step_days: int, a_year: int) -> None:
    """Metrics assume 252 days a year; weekly returns would count as daily ones."""
    days = [np.datetime64("2020-01-02") + np.timedelta64(step_days * number, "D") for number in range(70)]
    with pytest.raises(UserError, match=f"{a_year} days a year"):
        read(tmp_path, "date,KO\n" + "".join(f"{day},5\n" for day in days))


def test_carriage_returns_as_line_ends(tmp_path: Path) -> None:
    assert read(tmp_path, WIDE.replace("\n", "\r")).num_days == 3


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"\xff\xfed\x00a\x00", "not UTF-8 text"),
        (gzip.compress(WIDE.encode(), mtime=0)[:-9], "a damaged gzip file"),
        (None, "No such file"),
    ],
)
def test_unreadable_files_are_rejected(tmp_path: Path, data: bytes | None, found: str) -> None:
    path = tmp_path / "prices.csv"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UserError, match=found):
        read_csv(path)


def test_sha256_does_not_depend_on_compression_or_case(tmp_path: Path) -> None:
    path = tmp_path / "packed.csv.gz"
    path.write_bytes(gzip.compress(WIDE.encode()))
    wide, reference = read_csv(path), read(tmp_path, WIDE.replace("date", "DATE"))
    assert wide.sha256 == reference.sha256
    assert wide.sha256 != read(tmp_path, WIDE.replace("99.5", "99.6")).sha256
    assert wide.sha256 != read(tmp_path, LONG).sha256


def test_prices_from_arrays_are_validated() -> None:
    good = of_closes([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(UserError, match="B on 2020-01-02: close nan"):
        of_closes([1.0, 2.0], [3.0, np.nan])
    with pytest.raises(UserError, match="2020-01-01 after 2020-01-02"):
        Prices(good.dates_D[::-1], good.tickers, good.close_DS)
    with pytest.raises(UserError, match="the ticker A twice"):
        Prices(good.dates_D, ("A", "A"), good.close_DS)
    with pytest.raises(UserError, match=r"close of shape \(1, 2\)"):
        Prices(good.dates_D, good.tickers, good.close_DS[:1])


def test_periods_by_dates() -> None:
    prices = stocks()
    rows = prices.rows("2016-01-01", "2020-05-10")
    assert (str(prices.dates_D[rows.start]), str(prices.dates_D[rows.stop - 1])) == ("2016-01-04", "2020-05-08")
    assert prices.rows() == range(prices.num_days)
    cut = prices.take(rows).only(("XOM", "AAPL"))
    assert cut.close_DS[0].tolist() == [prices.close_DS[rows.start, 19], prices.close_DS[rows.start, 0]]
    for first, last, found in [
        ("1980-01-01", None, "its days are 1990-01-02 to 2022-12-28"),
        (None, "2030-01-01", "its days are 1990-01-02 to 2022-12-28"),
        ("2016-01-02", "2016-01-03", "no trading day"),
        ("2017-01-02", "2016-01-03", "no trading day"),
        ("in May", None, "not a calendar day"),
    ]:
        with pytest.raises(UserError, match=found):
            prices.rows(first, last)
    with pytest.raises(UserError, match="AAPL, AMD"):
        prices.only(("TSLA",))


def test_shipped_files_match_their_notice() -> None:
    notice = (sp500.SHIPPED / "README.md").read_text()
    for name in ("sp500_dataset.csv.gz", "sp500_index.csv.gz"):
        assert hashlib.sha256((sp500.SHIPPED / name).read_bytes()).hexdigest() in notice
    assert "BSD 3-Clause" in (sp500.SHIPPED / "LICENSE").read_text()
    assert stocks().close_DS.shape == (8313, 20)
    assert (stocks().dates_D == index().dates_D).all()
    assert index().close_DS[0, 0] == 359.69
    moves = {(move.ticker, str(move.date)) for move in stocks().large_moves()}
    assert {("AAPL", "2000-09-29"), ("AMD", "2016-04-22")} < moves
