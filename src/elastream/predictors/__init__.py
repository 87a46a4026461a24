"""Forecasting models: one file per family, one contract in `base`, every name in `PREDICTORS`.

>>> PREDICTORS["lr"]().predict([10, 20, 30], horizon=2).values
array([40., 50.])
"""

from __future__ import annotations

from elastream.catalog import Catalog
from elastream.predictors.base import Forecast, Predictor

__all__ = ["PREDICTORS", "Forecast", "Predictor"]

PREDICTORS: Catalog[Predictor] = Catalog(
    "predictor",
    {
        "auto": "elastream.predictors.auto:Auto",
        "basic": "elastream.predictors.basic:Basic",
        "lr": "elastream.predictors.linear:Lr",
        "fft": "elastream.predictors.fourier:Fft",
        "ann": "elastream.predictors.learned:Ann",
        "rf": "elastream.predictors.learned:Rf",
        "regression": "elastream.predictors.regression:Regression",
        "arima": "elastream.predictors.arima:Arima",
        "svr": "elastream.predictors.svr:Svr",
        "lstm": "elastream.predictors.recurrent:Lstm",
        "gru": "elastream.predictors.recurrent:Gru",
        "bilstm": "elastream.predictors.recurrent:BiLstm",
        "bigru": "elastream.predictors.recurrent:BiGru",
    },
)
