"""The models of BGElasor table 1 on one task: each learns once, and then forecasts all along."""
