"""`lstm`, `gru`, `bilstm` and `bigru`: networks that are trained on history (BGElasor section 3.2).

The classes can be imported without JAX; making one, or training one, needs the extra `train`.
"""

from __future__ import annotations

from elastream.predictors.recurrent.predictor import BiGru, BiLstm, Gru, Lstm, Recurrent

__all__ = ["BiGru", "BiLstm", "Gru", "Lstm", "Recurrent"]
