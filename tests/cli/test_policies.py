from typer.testing import CliRunner

from elastream.cli import app
from elastream.policies import POLICIES


def test_every_policy_is_listed_with_its_paper_and_defaults():
    rows, note = CliRunner().invoke(app, ["policies"]).stdout.split("\n\n")
    lines = rows.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(POLICIES)
    shown = dict(zip(POLICIES, lines, strict=True))
    assert "DABS-Storm, section 4" in shown["autoscale+"]
    assert "weight=0.3, beta=0.8, combine=max" in shown["autoscale+"]
    assert "startup=5000.0" in shown["cba"]
    assert "use slo unless you say otherwise" in note
