"""`elastream policies`: the policies."""

from __future__ import annotations

import typer

NOTE = """
'run' and 'simulate' use slo unless you say otherwise, 'attach' uses deadline.
reactive and slots are for 'attach', and oracle is for 'simulate'."""


def policies() -> None:
    """List the policies, the paper of each, and its parameters with their defaults."""
    from dataclasses import fields

    from elastream.cli.render.table import table
    from elastream.policies import POLICIES

    rows = []
    for name, factory in POLICIES.items():
        policy = factory(future=(0.0,)) if name == "oracle" else factory()
        parameters = [
            f"{field.name}={getattr(policy, field.name)}"
            for field in fields(policy)
            if field.name not in ("future", "table")
        ]
        rows.append([name, policy.paper, ", ".join(parameters) or "-"])
    typer.echo(table(["name", "paper", "parameters"], rows))
    typer.echo(NOTE)
