"""The gallery: the order of its examples, and the style that their own figures share with those of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ORDER = (
    *("plot_digits", "plot_gtm", "plot_gtm_figures", "plot_missing", "plot_outliers", "plot_uncertainty"),
    *("plot_choosing", "plot_mixed_gtm", "plot_noise_models", "plot_topologies", "plot_gtm_sequence"),
    *("plot_gtm_mixture", "plot_streams", "plot_elastic_net", "plot_process"),
    *("plot_principal_curve", "plot_probabilistic_curve", "plot_polygonal_curve", "plot_oriented_points"),
    "plot_principal_tree",
    *("plot_density_ridge", "plot_mode_clustering", "plot_bandwidths", "plot_kernel_density", "plot_ridge_graph"),
    *("plot_ridge_surface", "plot_signals"),
    *("plot_ukr", "plot_kmm"),
    "plot_pps",
    "plot_som",
    *("plot_principal_surface", "plot_regularized_manifold"),
    *("plot_landscapes", "plot_monitoring", "plot_nearest"),
    *("plot_command_line", "plot_explorer", "plot_report", "plot_pictures", "plot_datasets", "plot_comparing"),
)
"""Examples of each part from simple to special."""


class FromSimpleToSpecial:
    """Sort the examples of a part as they stand in ``ORDER``."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> int:
        return ORDER.index(Path(filename).stem)


def house_style(gallery_conf: Any, fname: str) -> None:
    """Give the figures that an example draws itself the look of ``prinfold.plot``."""
    import matplotlib as mpl
    from cycler import cycler

    from prinfold.plot import style

    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=style.PALETTE),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": style.PALE,
            "axes.labelcolor": style.INK,
            "axes.labelsize": 9.5,
            "axes.titlelocation": "left",
            "axes.titlesize": 10.5,
            "axes.titlecolor": style.INK,
            "axes3d.xaxis.panecolor": "white",
            "axes3d.yaxis.panecolor": "white",
            "axes3d.zaxis.panecolor": "white",
            "grid.color": "#eceff2",
            "legend.frameon": False,
            "legend.fontsize": 9,
            "xtick.color": style.PALE,
            "ytick.color": style.PALE,
            "xtick.labelcolor": style.SOFT,
            "ytick.labelcolor": style.SOFT,
            "xtick.labelsize": 8.5,
            "ytick.labelsize": 8.5,
        }
    )
