"""`elastream simulate`: try a policy on a trace in less than a second."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elastream.cli.options import (
    LOOPBACK,
    PORT,
    AsJson,
    Drawn,
    FillGaps,
    Host,
    Interval,
    LookBack,
    Objective,
    PolicyName,
    Port,
    PredictorName,
    Quantile,
    Replicas,
    Sample,
    Serve,
    Table,
    TraceName,
    Trained,
)
from elastream.cli.render.logs import LogFormat, LogFormatOption, for_programs, set_up_logs
from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.control.run import Result, Run
    from elastream.workloads.applications import Application
    from elastream.workloads.traces import Trace


def simulate(
    app: Annotated[str, typer.Option(help="The application, such as twitter.")] = "twitter",
    trace: TraceName = "spiky",
    policy: PolicyName = "slo",
    predictor: PredictorName = "auto",
    objective_ms: Objective = None,
    quantile: Quantile = None,
    td: Interval = None,
    et_ms: Annotated[
        float | None,
        typer.Option(help="Execution time per event, in ms; by default the application's."),
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(help="Replicas in the pool of each operator; by default as declared."),
    ] = None,
    replicas: Replicas = None,
    table: Table = None,
    sample: Sample = 1.0,
    history: LookBack = 100,
    queue: Annotated[float, typer.Option(help="How many events may wait for an operator.")] = 1e5,
    drop: Annotated[bool, typer.Option("--drop", help="Full queues drop events.")] = False,
    time_out: Annotated[
        float | None, typer.Option(help="Drop events that wait longer, in seconds.")
    ] = None,
    activation_delay: Annotated[
        float, typer.Option(help="How long until an activated replica works, in seconds.")
    ] = 0.0,
    downtime: Annotated[
        float | None,
        typer.Option(
            help="Every change restarts the pipeline for this long, in seconds, as in Storm."
        ),
    ] = None,
    trained: Trained = None,
    fill_gaps: FillGaps = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 0,
    as_json: AsJson = False,
    out: Drawn = None,
    serve: Serve = False,
    host: Host = LOOPBACK,
    port: Port = PORT,
    speed: Annotated[
        float, typer.Option(help="With --serve: simulated seconds per second.")
    ] = 60.0,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run an application under a policy in the simulator, and measure how well it does."""
    from elastream.cli.choices import chosen_model, chosen_policy, td_of
    from elastream.cli.render.results import show
    from elastream.control.run import Run, step_for
    from elastream.engines.simulation import SimulationSettings, WhenFull
    from elastream.workloads.choice import chosen_trace

    set_up_logs(log_format)
    rates = chosen_trace(trace, seed, fill_gaps)
    length = td_of(policy, td)
    _check(length, history, rates)
    application = _application(app, et_ms, pool)
    chosen = chosen_policy(policy, rates, length, replicas, table, objective_ms, quantile)
    model = chosen_model(predictor, trained or (), seed)
    settings = SimulationSettings(
        step=step_for(length),
        sample=sample,
        queue_bound=queue,
        when_full=WhenFull.DROP if drop else WhenFull.BLOCK,
        time_out=time_out,
        activation_delay=activation_delay,
        restart_downtime=downtime,
        initial=_initial(application, replicas),
        seed=seed,
    )
    run = Run(application, rates, chosen, model, length, history, settings=settings)
    picture = out / "simulation.png" if out else None
    if not serve:
        show(_simulated(run), as_json, picture)
        return
    from elastream.cli.choices import trained_files
    from elastream.cli.served_simulation import simulate_served
    from elastream.running.service import RunService

    _check_speed(speed)
    simulate_served(
        run,
        speed,
        RunService.at(host, port),
        trained_files(trained or ()),
        lambda result: show(result, as_json, picture),
        out,
    )


def _simulated(run: Run) -> Result:
    if for_programs():
        return run.simulate()
    with typer.progressbar(length=run.intervals, label="simulate", file=sys.stderr) as bar:
        return run.simulate(after_each=lambda cycle: bar.update(1))


def _check_speed(speed: float) -> None:
    if not 0 < speed < float("inf"):
        raise InvalidInputError(f"--speed {speed:g}: it must be above 0")


def _check(td: float, history: int, rates: Trace) -> None:
    from elastream.control.run import SHORTEST_TD

    if not SHORTEST_TD <= td <= rates.duration:
        raise InvalidInputError(
            f"--td {td:g}: an interval lasts from {SHORTEST_TD:g} s to {rates.duration:g} s, all "
            "of the trace"
        )
    if history < 2:
        raise InvalidInputError(f"--history {history}: a forecast needs at least 2 samples")


def _application(name: str, et_ms: float | None, pool: int | None) -> Application:
    from elastream.workloads import APPLICATIONS

    if et_ms is not None and not 0 < et_ms < float("inf"):
        raise InvalidInputError(f"--et-ms {et_ms:g}: an execution time must be above 0 ms")
    if pool is not None and pool < 1:
        raise InvalidInputError(f"--pool {pool}: a pool has at least 1 replica")
    given: dict[str, Any] = {}
    if et_ms is not None:
        given["execution_time"] = et_ms / 1000
    if pool is not None:
        given["pool"] = pool
    return APPLICATIONS[name](**given)


def _initial(application: Application, replicas: int | None) -> dict[str, int]:
    """A fixed number is fixed from the start."""
    if replicas is None:
        return {}
    for operator in application.topology.operators:
        if replicas > operator.pool:
            raise InvalidInputError(
                f"--replicas {replicas}: the pool of {operator.name!r} holds {operator.pool}; "
                "give a larger --pool"
            )
    return dict.fromkeys(application.topology.by_name, replicas)
