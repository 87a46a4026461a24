"""How services are fuzzed: the same requests on every run, and no examples of earlier ones."""

from hypothesis import HealthCheck, Phase, settings

FUZZ = settings(
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
