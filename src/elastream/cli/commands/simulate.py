"""`elastream simulate`: try a policy on a trace in seconds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from elastream.cli.options import (
    LOOPBACK,
    MACHINES,
    ON_FULL,
    PAGE,
    PORT,
    QUEUE_SIZE,
    QUEUES,
    App,
    AsJson,
    Drawn,
    Duration,
    FillGaps,
    Guards,
    Host,
    Initial,
    Interval,
    LookBack,
    Objective,
    OnFull,
    OwnPipelineName,
    PolicyName,
    Pool,
    Port,
    PredictorName,
    Quantile,
    QueueSize,
    Replicas,
    Sample,
    Scale,
    Serve,
    ServiceMs,
    Speed,
    Table,
    TraceName,
    Trained,
    refuse_without,
)
from elastream.cli.render.logs import LogFormat, LogFormatOption, for_programs, set_up_logs
from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.control.run import Result, Run


def simulate(
    context: typer.Context,
    pipeline: OwnPipelineName = None,
    app: App = "twitter",
    trace: TraceName = "spiky",
    policy: PolicyName = "slo",
    predictor: PredictorName = "auto",
    objective_ms: Objective = None,
    quantile: Quantile = None,
    td: Interval = None,
    duration: Duration = None,
    speed: Speed = 1.0,
    scale: Scale = 1.0,
    pool: Pool = None,
    replicas: Replicas = None,
    table: Table = None,
    sample: Sample = 1.0,
    look_back: LookBack = 100,
    initial: Initial = None,
    service_ms: ServiceMs = 0.0,
    guards: Guards = None,
    queue_size: QueueSize = QUEUE_SIZE,
    on_full: OnFull = ON_FULL,
    time_out: Annotated[
        float | None,
        typer.Option(help="Drop events that wait longer, in seconds.", rich_help_panel=QUEUES),
    ] = None,
    activation_delay: Annotated[
        float,
        typer.Option(
            help="How long until an activated replica works, in seconds.", rich_help_panel=MACHINES
        ),
    ] = 0.0,
    executors: Annotated[
        str | None,
        typer.Option(
            help="The minimum and maximum of executors to run replicas on, as 1:8.",
            rich_help_panel=MACHINES,
        ),
    ] = None,
    executor_slots: Annotated[
        int,
        typer.Option(
            min=1, help="How many replicas an executor has room for.", rich_help_panel=MACHINES
        ),
    ] = 4,
    executor_lead: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="How long an executor takes to come, in seconds.",
            rich_help_panel=MACHINES,
        ),
    ] = 10.0,
    downtime: Annotated[
        float | None,
        typer.Option(
            help="Every change restarts the pipeline for this long, in seconds, as in Storm.",
            rich_help_panel=MACHINES,
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
    pace: Annotated[
        float, typer.Option(help="Simulated seconds per second.", rich_help_panel=PAGE)
    ] = 60.0,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run a pipeline under a policy in the simulator, and measure how well it does.

    Where your own pipeline does not declare an execution_time, it is measured
    first, with events of its sources.
    """
    from elastream.cli.choices import (
        check_loop,
        check_replicas,
        chosen_model,
        chosen_policy,
        executors_from,
        guard_from,
        td_of,
    )
    from elastream.cli.own_pipeline import initial_from
    from elastream.cli.render.results import show
    from elastream.cli.simulated import simulated_application
    from elastream.control.run import Run, step_for
    from elastream.engines.base import WhenFull, one_of
    from elastream.engines.simulation import SimulationSettings
    from elastream.engines.simulation.executors import ExecutorSettings
    from elastream.running.traces import trace as chosen_trace

    set_up_logs(log_format)
    refuse_without(context, "serve", "host", "port", "pace")
    refuse_without(context, "executors", "executor_slots", "executor_lead")
    rates = chosen_trace(
        trace, speed=speed, scale=scale, duration=duration, seed=seed, fill_gaps=fill_gaps
    )
    length = td_of(policy, td)
    check_loop(length, look_back, rates.duration, ", the length of the trace")
    chosen = chosen_policy(policy, rates, length, replicas, table, objective_ms, quantile)
    model = chosen_model(predictor, trained or (), seed)
    limits = tuple(map(guard_from, guards or ()))
    application = simulated_application(pipeline, app, pool, service_ms)
    check_replicas(application.topology, replicas)
    settings = SimulationSettings(
        step=step_for(length),
        sample=sample,
        queue_bound=queue_size,
        when_full=one_of(WhenFull, on_full, "on_full"),
        time_out=time_out,
        activation_delay=activation_delay,
        executors=None
        if executors is None
        else ExecutorSettings(
            slots=executor_slots, lead=executor_lead, limits=executors_from(executors)
        ),
        restart_downtime=downtime,
        initial=initial_from(initial or (), application.topology),
        seed=seed,
    )
    run = Run(
        application, rates, chosen, model, length, look_back, settings=settings, guards=limits
    ).ready()
    picture = out / "simulation.png" if out else None
    if not serve:
        show(_simulated(run), as_json, picture)
        return
    from elastream.cli.choices import trained_files
    from elastream.cli.served_simulation import simulate_served
    from elastream.running.service import RunService

    _check_pace(pace)
    simulate_served(
        run,
        pace,
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


def _check_pace(pace: float) -> None:
    if not 0 < pace < float("inf"):
        raise InvalidInputError(f"--pace {pace:g}: it must be above 0")
