"""One of the networks: a window of samples in, the whole horizon out."""

from __future__ import annotations

from dataclasses import dataclass

from elastream.experiments.forecasting.task import Forecasts, Task
from elastream.experiments.work import Advance
from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.model import Origin
from elastream.predictors.recurrent.split import Split


@dataclass(frozen=True)
class Network:
    """Half a day of samples of 5 minutes in."""

    name: str
    """`lstm`, `gru`, `bilstm` or `bigru`."""
    seed: int = 0
    epochs: int = 40
    window: int = 144
    hidden: int = 64

    def steps(self, task: Task) -> int:
        """The epochs that it takes at most."""
        return self.epochs

    def forecasts(self, task: Task, advance: Advance) -> Forecasts:
        """Learn, and forecast the test part."""
        from elastream.predictors.recurrent.measuring import forecasts_after
        from elastream.predictors.recurrent.network import network_with
        from elastream.predictors.recurrent.training import train

        architecture = Architecture(
            self.name, window=self.window, horizon=task.horizon, hidden=self.hidden
        )
        samples, done = len(task.series), 0

        def after_epoch(epoch: object) -> bool:
            nonlocal done
            done += 1
            advance(1)
            return True

        model = train(
            task.series,
            architecture,
            Origin("the series", 300.0),
            split=Split(task.trained / samples, (task.validated - task.trained) / samples),
            epochs=self.epochs,
            seed=self.seed,
            after_epoch=after_epoch,
        )
        advance(self.epochs - done)
        network = network_with(architecture, model.weights)
        windows = task.windows(self.window, task.test)
        found = forecasts_after(network, model.range, windows)
        return Forecasts(found, f"best after epoch {model.training.epochs}")
