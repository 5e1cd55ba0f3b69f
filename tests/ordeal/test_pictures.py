"""Every picture is asked of a model of every method, and drawn or refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib import pyplot as plt

from prinfold.methods import METHODS
from tests.ordeal.functions import call, functions, parameters_of, plain_call
from tests.ordeal.tables import PLAIN, build
from tests.ordeal.trial import NAMED, _argument, _class, _model

PICTURES = [name for name in functions() if name.startswith("plot.") and "model" in parameters_of(name)]


def _wrong_ends(model: Any) -> list[str]:
    """Pictures that end in a raw error, with the rows and without them."""
    found = []
    for name in PICTURES:
        plain = {key: _argument(each) for key, each in plain_call(name)["arguments"].items()}
        more = [{}, {"X": build(PLAIN).X}] if "X" in parameters_of(name) else [{}]
        for rows in more:
            try:
                call(name, plain | rows | {"model": model})
            except NAMED:
                pass
            except Exception as error:
                found.append(f"{name}: {type(error).__name__}: {error}")
            plt.close("all")
    return found


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_every_picture_takes_or_refuses_a_model_of_every_method(name: str) -> None:
    assert len(PICTURES) > 20
    assert _wrong_ends(_model(_class(name, METHODS[name].module))) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["GTMClassifier", "GTMHierarchy", "ModeClustering", "SurfaceMonitor"])
@pytest.mark.parametrize("picture", ["plot.learning_curve", "plot.latent_map"])
def test_pictures_of_one_surface_refuse_models_of_none(name: str, picture: str) -> None:
    model = _model(_class(name, METHODS[name].module))
    with pytest.raises(NAMED, match=rf"{name} has no (history_ of its own|latent space to draw)"):
        call(picture, {"model": model})
