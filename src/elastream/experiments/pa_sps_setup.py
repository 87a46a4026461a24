"""What the experiments of PA-SPS and PRESPS have in common: its parameters, and its systems.

td = 30 s, queues of 100,000 events (section 4.1.4); the published code takes samples of 5 s and
forecasts from the last 12 of them. The paper names a time-out of 30 s. It is off but for one row of
table 3: with it, a fixed replica that falls behind could not show the latency that the table gives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from elastream.control.run import Result, Run
from elastream.engines.simulation import SimulationSettings
from elastream.experiments.base import Inputs, Row
from elastream.experiments.runs import PipelineRuns
from elastream.policies.autoscale_plus import AutoscalePlus
from elastream.policies.base import Policy
from elastream.policies.pa_sps import PaSps, Presps
from elastream.policies.static import Static
from elastream.predictors import PREDICTORS
from elastream.workloads.applications import Application

SAMPLE, LOOK_BACK, TIME_OUT = 5.0, 12, 30.0
CORES = 56
"""Of the seven supervisors of both papers, eight each: more than there are replicas."""
LONGEST = 1301.0
"""As long as the composed Twitter trace, in seconds. A longer one is cut off: `ann` and `rf` are
refitted at every decision, and a day has 2,880 of them."""
DOWNTIME = 5.0
"""How long a restart of Storm takes, in seconds. The papers do not say; this is a mild guess."""

PREDICTOR_MEASURES = (
    "saved_resources",
    "throughput_degradation",
    "processed_ratio",
    "latency_ms",
    "input_error",
    "replica_error",
)
SYSTEM_MEASURES = PREDICTOR_MEASURES[:4]

STORM_OVERHEAD = """\
The simulator knows queues and execution times, not what Storm itself adds to every event: some \
150 ms, going by the published latency of eight fixed replicas, where nothing waits."""

SPEED = 4.0
"""How many times as fast the traces are played on Spark: 1,301 s in 5 minutes and a half."""

Published = tuple[float, ...]


def predictor_rows(
    application: Callable[[], Application], trace: str, published: dict[str, Published]
) -> tuple[Row, ...]:
    """PA-SPS with one predictor after the other."""

    def row(name: str, values: Published) -> Row:
        return Row(
            name.upper() if name != "basic" else "Basic",
            lambda inputs: _runs(inputs, application(), trace, PaSps(), name),
            dict(zip(PREDICTOR_MEASURES, values, strict=True)),
        )

    return tuple(row(name, values) for name, values in published.items())


def pa_sps_row(application: Callable[[], Application], trace: str, published: Published) -> Row:
    """PA-SPS as its authors compare it with others: with `ann`."""
    return Row(
        "PA-SPS",
        lambda inputs: _runs(inputs, application(), trace, PaSps(), "ann"),
        dict(zip((*SYSTEM_MEASURES, "cpu_percent"), published, strict=False)),
    )


def fixed_row(
    application: Callable[[], Application],
    trace: str,
    replicas: int,
    published: Published,
    calibrated: frozenset[str] = frozenset(),
    time_out: float | None = None,
) -> Row:
    """Storm with a fixed number of replicas per operator."""

    def work(inputs: Inputs) -> PipelineRuns:
        made = application()
        initial = dict.fromkeys(made.topology.by_name, replicas)
        return _runs(
            inputs, made, trace, Static(replicas), "basic", initial=initial, time_out=time_out
        )

    label = f"r = {replicas}" if time_out is None else f"r = {replicas}, time-out {time_out:g} s"
    values = dict(zip((*SYSTEM_MEASURES, "cpu_percent"), published, strict=False))
    return Row(label, work, values, calibrated, simulator_only=time_out is not None)


def presps_row(
    label: str, application: Callable[[], Application], trace: str, published: Published
) -> Row:
    """PRESPS, which PA-SPS calls PSPS: the last input again, and the own queue."""
    return Row(
        label,
        lambda inputs: _runs(inputs, application(), trace, Presps(), "basic"),
        dict(zip(SYSTEM_MEASURES, published, strict=True)),
    )


def dabs_row(application: Callable[[], Application], trace: str, published: Published) -> Row:
    """DABS-Storm: AUTOSCALE+, and a restart for every change."""
    return Row(
        "DABS",
        lambda inputs: _runs(
            inputs,
            application(),
            trace,
            AutoscalePlus(),
            "regression",
            downtime=DOWNTIME,
            cores=CORES,
        ),
        dict(zip(SYSTEM_MEASURES, published, strict=True)),
    )


def _runs(
    inputs: Inputs,
    application: Application,
    trace: str,
    policy: Policy,
    predictor: str,
    initial: dict[str, int] | None = None,
    downtime: float | None = None,
    time_out: float | None = None,
    cores: int | None = None,
) -> PipelineRuns:
    rates = inputs.trace(trace).first(LONGEST)
    made = inputs.application(application)

    def run(seed: int) -> Run:
        settings = SimulationSettings(
            sample=SAMPLE,
            initial=initial or {},
            restart_downtime=downtime,
            time_out=time_out,
            own_queues=True,
            cores=cores,
            seed=seed,
        )
        seeded = {"seed": seed} if predictor in ("ann", "rf") else {}
        model = PREDICTORS[predictor](**seeded)
        return inputs.paced(Run(made, rates, policy, model, look_back=LOOK_BACK, settings=settings))

    return replace(PipelineRuns.of(run, inputs.seeds()), also=_processors)


def _processors(result: Result) -> dict[str, float]:
    """The part of the papers' cores that events kept busy."""
    most = CORES * result.run.trace.duration
    return {"cpu_percent": 100 * result.metrics.cpu_seconds / most}
