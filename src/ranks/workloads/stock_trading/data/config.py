"""Settings of the features. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from ranks.errors import UserError

STOCK_FEATURES = ("return", "trend", "macd", "rsi", "cci", "adx", "level")
"""log return of the day; close over its mean of `trend_days` - 1; MACD over close; the three indices as they are;
close over its mean of `level_days` - 1, which stands for the price."""


@dataclass(frozen=True)
class FeatureConfig:
    """What a policy is told of each stock and of the market, besides its own account."""

    names: tuple[str, ...] = STOCK_FEATURES
    """Any of return, trend, macd, rsi, cci, adx, level."""
    trend_days: int = 30
    macd_fast: int = 12
    macd_slow: int = 26
    rsi_days: int = 30
    cci_days: int = 30
    adx_days: int = 30
    level_days: int = 252
    turbulence: bool = True
    """Tell how turbulent the market is; needs two stocks."""
    turbulence_days: int = 252
    """Days before the present one that say what is usual."""
    clip: float = 5.0
    """Standard deviations beyond which a feature is cut off."""

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in STOCK_FEATURES:
                raise UserError(f"the feature '{name}'", "there is none", f"choose among {', '.join(STOCK_FEATURES)}")
        if not self.names or len(set(self.names)) < len(self.names):
            raise UserError(f"the features {self.names}", "none, or one of them twice", "name each once")
        days = {name: value for name, value in vars(self).items() if name.endswith("_days")}
        for name, value in days.items():
            if value < 2:
                raise UserError(f"--features.{name.replace('_', '-')} {value}", "no window", "give 2 days or more")
        if not 1 <= self.macd_fast < self.macd_slow:
            asked = f"--features.macd-fast {self.macd_fast} --features.macd-slow {self.macd_slow}"
            raise UserError(asked, "the fast mean is not the shorter one", "give 12 and 26, say")
        if not self.clip > 0:
            raise UserError(f"--features.clip {self.clip}", "nothing is left", "give a number above 0")
