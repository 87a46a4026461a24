"""Running a pipeline from Python: `elastream.run`, `elastream.simulate`, and the handle of a run.

This is the only place that puts an engine, a policy, a predictor, the history and the service
together; the command line uses it, too.
"""

from elastream.running.call import run, session
from elastream.running.handle import PipelineRun
from elastream.running.simulation import simulate
from elastream.running.status import Status

__all__ = ["PipelineRun", "Status", "run", "session", "simulate"]
