"""Forecasting models: one file per family, one contract in `base`."""
