"""A fitted model as a notebook shows it: a sentence, a small map and its settings, below scikit-learn's own diagram."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from prinfold.notebook.settings import settings_of
from prinfold.notebook.small_map import small_map

__all__ = ["summary"]

_CELL = 'style="padding:1px 10px 1px 0;text-align:left;border:0;background:none"'


def summary(model: Any) -> str:
    """HTML with the end of training, settings that the fit chose and a small map, in the colours of the notebook."""
    rows = "".join(
        f"<tr><td {_CELL}>{escape(name)}</td><td {_CELL}>{escape(value)}</td></tr>" for name, value in _lines(model)
    )
    words = f"<p style='margin:0 0 6px;max-width:34em'>{escape(_sentence(model))}</p>"
    table = f'<table style="border-collapse:collapse;font-size:0.9em;margin:0">{rows}</table>'
    beside = f'<div style="flex:1 1 260px;min-width:0">{words}{table}</div>'
    return (
        '<div class="prinfold-summary" style="display:flex;flex-wrap:wrap;gap:18px;align-items:flex-start;'
        f'margin-top:8px;font-family:system-ui,sans-serif">{small_map(model)}{beside}</div>'
    )


def _sentence(model: Any) -> str:
    latent = model.latent_
    kind = {1: "A curve", 2: "A surface"}.get(latent.dimension, f"A surface of {latent.dimension} dimensions")
    if latent.charts:
        kind = f"{len(latent.charts)} map{'s' * (len(latent.charts) > 1)} of {latent.dimension} dimension(s)"
    columns = f"{model.n_features_in_} column{'' if model.n_features_in_ == 1 else 's'}"
    iterations = f"{model.n_iter_} iteration{'' if model.n_iter_ == 1 else 's'}"
    return f"{kind} in {columns}, fitted in {iterations}. {model.stop_reason_}"


def _lines(model: Any) -> list[tuple[str, str]]:
    """The last of the history, and what became of settings that were left to the fit."""
    history = getattr(model, "history_", {})
    known = [name for name in ("objective", "log_likelihood") if history.get(name)]
    found = [(name.replace("_", "-"), f"{history[name][-1]:.6g}") for name in known]
    if history.get("noise"):
        found.append(("noise, standard deviation", f"{np.sqrt(history['noise'][-1]):.4g}"))
    support = getattr(model, "branch_support_", None)
    if support is not None:
        kept = f"{len(support)} of {model.n_branches_found_}, support {support.min():.2f} to {support.max():.2f}"
        found.append(("branches kept", kept))
        found.append(("of them persistent", str(int(model.persistent_branches_.sum()))))
    return found + [(each.name, each.became) for each in settings_of(model) if each.became]
