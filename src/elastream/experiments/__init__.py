"""The papers' evaluations, on the simulator: a function for each published table or figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastream.catalog import Catalog

if TYPE_CHECKING:
    from elastream.experiments.base import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS: Catalog[Experiment] = Catalog(
    "experiment",
    {
        "pa-sps-2": "elastream.experiments.pa_sps_models:table_2",
        "pa-sps-3": "elastream.experiments.pa_sps_systems:table_3",
        "pa-sps-4": "elastream.experiments.pa_sps_systems:table_4",
        "pa-sps-5": "elastream.experiments.pa_sps_systems:table_5",
        "pa-sps-6": "elastream.experiments.pa_sps_models:table_6",
        "pa-sps-7": "elastream.experiments.pa_sps_models:table_7",
        "pa-sps-8": "elastream.experiments.pa_sps_models:table_8",
        "presps-3": "elastream.experiments.pa_sps_systems:presps_table_3",
        "bgelasor-1": "elastream.experiments.bgelasor_1:experiment",
        "bgelasor-4-5": "elastream.experiments.bgelasor_4_5:experiment",
        "dabs-storm-12": "elastream.experiments.dabs_storm:figure_12",
        "dabs-storm-13": "elastream.experiments.dabs_storm:figure_13",
        "dabs-storm-14": "elastream.experiments.dabs_storm:figure_14",
        "dabs-storm-15": "elastream.experiments.dabs_storm:figure_15",
        "dabs-storm-16": "elastream.experiments.dabs_storm:figure_16",
        "dabs-storm-17": "elastream.experiments.dabs_storm:figure_17",
        "autoscale-plus-12": "elastream.experiments.autoscale_plus_equations:figure_12",
        "autoscale-plus-13": "elastream.experiments.autoscale_plus_equations:figure_13",
        "autoscale-plus-14": "elastream.experiments.autoscale_plus_equations:figure_14",
        "autoscale-plus-15": "elastream.experiments.autoscale_plus_equations:figure_15",
        "autoscale-plus-16": "elastream.experiments.autoscale_plus_equations:figure_16",
        "autoscale-plus-17": "elastream.experiments.autoscale_plus_equations:figure_17",
    },
)
