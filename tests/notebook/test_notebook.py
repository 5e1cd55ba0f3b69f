"""What a model shows of itself in a notebook: scikit-learn's diagram stays, and a fitted one adds a summary."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib import image as mpl_image
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, KMM, PPS, UKR, DensityRidge, GTMMixture, datasets
from prinfold.notebook import summary
from prinfold.notebook.small_map import png, small_map

pytestmark = pytest.mark.filterwarnings("ignore")

_PIPE = datasets.make_pipe_flow(120, rng=0).X
_CURVE = datasets.make_half_circle(80, rng=0).X
_FEW: dict[str, Any] = {"max_iter": 3, "tol": 0.0}

# What is drawn: the model, whether there is shading, and how many points.
MAPS: dict[str, tuple[Callable[[], Any], bool, int]] = {
    "grid": (lambda: GTM(nodes=8, basis=4, **_FEW).fit(_PIPE), True, 64),
    "gaps": (lambda: GTM(nodes=8, basis=4, **_FEW).fit(np.where(_PIPE > 1.9, np.nan, _PIPE)), True, 64),
    "line": (lambda: GTM(1, nodes=10, **_FEW).fit(_CURVE), True, 10),
    "circle": (lambda: GTM(latent="circle", nodes=10, **_FEW).fit(_CURVE), False, 10),
    "sphere": (lambda: GTM(latent="sphere", nodes=40, basis=12, **_FEW).fit(_PIPE[:, :3]), True, 40),
    "PPS": (lambda: PPS(nodes=6, basis=3, **_FEW).fit(_PIPE), True, 36),
    "UKR": (lambda: UKR(init="pca", **_FEW).fit(_PIPE[:60]), True, 60),
    "KMM": (lambda: KMM(**_FEW).fit(datasets.make_swiss_roll(60, rng=0).X), True, 60),
    "many rows": (lambda: UKR(1, init="pca", max_iter=1).fit(datasets.make_half_circle(700, rng=0).X), True, 600),
}
NO_MAP: dict[str, Callable[[], Any]] = {
    "space": lambda: GTM(3, nodes=4, basis=2, **_FEW).fit(_PIPE),
    "ridge": lambda: DensityRidge(bandwidth=0.3).fit(_CURVE),
    "mixture": lambda: GTMMixture(2).fit(_PIPE),
}


@pytest.mark.parametrize("name", MAPS)
def test_a_small_map_shows_rows_or_nodes_within_its_frame(name: str) -> None:
    make, shaded, most = MAPS[name]
    model = make()
    drawn = ET.fromstring(small_map(model))
    assert bool(drawn.findall("{*}image")) == shaded
    width, height = map(float, drawn.attrib["viewBox"].split()[2:])
    text = " ".join(path.attrib["d"] for path in drawn.iter("{http://www.w3.org/2000/svg}path"))
    points = np.array(re.findall(r"M(-?[\d.]+) (-?[\d.]+)h0", text), dtype=float)
    assert 0 < len(points) <= most
    assert ((points >= 0) & (points <= [width, height])).all()
    if hasattr(model, "embedding_"):
        assert len(points) == min(len(model.embedding_), 600)


def test_points_stand_where_the_map_has_them() -> None:
    model = GTM(nodes=4, basis=2, **_FEW).fit(_PIPE)
    model.node_mass_ = np.eye(16)[3] + 0.5 * np.eye(16)[12]  # corners: the last of one axis, then of the other
    drawn = ET.fromstring(small_map(model))
    sized = {
        float(path.attrib["stroke-width"]): path.attrib["d"] for path in drawn.iter("{http://www.w3.org/2000/svg}path")
    }
    places = {node: model.latent_.nodes[node] for node in (3, 12)}
    for node, size in ((3, max(sized)), (12, min(sized))):
        x, y = (206.0 if places[node][0] > 0 else 6.0), (6.0 if places[node][1] > 0 else 206.0)
        assert sized[size] == f"M{x:.1f} {y:.1f}h0"


@pytest.mark.parametrize("name", NO_MAP)
def test_models_without_one_plane_have_words_only(name: str) -> None:
    model = NO_MAP[name]()
    assert small_map(model) == ""
    if name != "mixture":
        assert str(model.stop_reason_) in summary(model)
    assert "prinfold-summary" in model._repr_html_()


def test_the_diagram_stays_and_the_summary_is_added() -> None:
    model = GTM(nodes=8, basis=4, **_FEW)
    before = model._repr_html_()
    assert "sk-container" in before
    assert "prinfold-summary" not in before
    model.fit(_PIPE)
    after = model._repr_html_()
    assert "sk-container" in after
    assert after.count("prinfold-summary") == 1
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    assert bundle["text/html"].count("prinfold-summary") == 1
    for words in (str(model.stop_reason_), f"{model.history_['objective'][-1]:.6g}", "8 × 8", "3 iterations"):
        assert words in after


def test_the_diagram_can_be_switched_off_as_ever() -> None:
    model = GTM(nodes=8, basis=4, **_FEW).fit(_PIPE)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_pipelines_show_themselves_as_ever() -> None:
    model = make_pipeline(StandardScaler(), GTM(nodes=8, basis=4, **_FEW)).fit(_PIPE)
    assert "StandardScaler" in model._repr_html_()


def test_a_model_that_is_still_gathering_rows_shows_no_summary() -> None:
    model = GTM(nodes=8, basis=4).partial_fit(_PIPE[:10])
    assert "prinfold-summary" not in model._repr_html_()


def test_it_needs_no_drawing_library() -> None:
    program = (
        "import sys, warnings; warnings.simplefilter('ignore'); from prinfold import GTM, datasets;"
        "m = GTM(nodes=4, basis=2, max_iter=1).fit(datasets.make_pipe_flow(60, rng=0).X);"
        "assert '<svg' in m._repr_html_(); sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (28, 28)])
def test_pictures_are_read_back_as_they_were(shape: tuple[int, int], rng: np.random.Generator) -> None:
    pixels = rng.integers(0, 256, (*shape, 4), dtype=np.uint8)
    read = mpl_image.imread(BytesIO(png(pixels)), format="png")
    np.testing.assert_array_equal(np.round(255 * read).astype(np.uint8), pixels)
