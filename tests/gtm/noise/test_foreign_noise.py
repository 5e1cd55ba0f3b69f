"""A noise written outside the package, with statistics of its own: fitted, saved, loaded, and told what it lacks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import prinfold
from prinfold import GTM, datasets, files
from prinfold.exceptions import InvalidDataError, InvalidParameterError, NotStorableError
from prinfold.files import storable
from prinfold.gtm.noise.protocol import Capabilities, Parameters, RowStatistics

X = datasets.make_ridge(64, rng=0).X
SETTINGS: dict[str, Any] = {"nodes": 8, "basis": 4, "max_iter": 5, "tol": 0.0}


@dataclass(frozen=True)
class RoundStatistics(RowStatistics):
    """Sums of round noise: masses of the nodes, sums of rows, Σ w‖t‖², Σ w log p(t) and Σ w."""

    mass: Any
    moment: Any
    square: float
    log_likelihood: float
    total: float
    masses = None


@dataclass(frozen=True)
class KeptStatistics(RoundStatistics):
    """The same, for files too."""


@dataclass
class RoundSums:
    """Sums of rows so far, in statistics of the kind that is wanted."""

    found: RoundStatistics

    def add(self, loaded, weight, posterior, near) -> None:
        weight = np.ones(len(loaded)) if weight is None else weight
        every = np.zeros((len(loaded), len(self.found.mass)))
        every[:, slice(None) if near is None else near] = posterior.relative * (weight / posterior.total)[:, None]
        square = weight @ np.square(loaded).sum(axis=1)
        scores = (float(square), float(weight @ posterior.log_likelihood), float(weight.sum()))
        self.found = self.found + type(self.found)(every.sum(axis=0), every.T @ loaded, *scores)

    def statistics(self) -> RoundStatistics:
        return self.found


@dataclass(frozen=True)
class RoundNodes:
    """Nodes with the same precision in every direction."""

    centers: Any
    precision: float
    kind: type[RoundStatistics]
    n_layers = 1

    def log_density(self, loaded, near, work):
        centers = self.centers if near is None else self.centers[near]
        work[0] = -0.5 * self.precision * np.square(loaded[:, None] - centers).sum(axis=2)
        return np.full(len(loaded), 0.5 * loaded.shape[1] * np.log(self.precision / (2 * np.pi)))

    def empty_sums(self) -> RoundSums:
        return RoundSums(self.kind(np.zeros(len(self.centers)), np.zeros(self.centers.shape), 0.0, 0.0, 0.0))

    def draw(self, node, rng):
        return self.centers[node] + rng.normal(size=(len(node), self.centers.shape[1])) / np.sqrt(self.precision)

    def covariance(self, axes):
        return np.broadcast_to(axes.T @ axes / self.precision, (len(self.centers), axes.shape[1], axes.shape[1]))


@dataclass(frozen=True)
class RoundNoise:
    """The isotropic noise of the GTM, written plainly; it takes no gaps."""

    floor: float
    kind: type[RoundStatistics]

    @property
    def capabilities(self) -> Capabilities[Any, Any, Any, Any]:
        return Capabilities(words="round noise")

    def initial(self, weights, precision):
        return Parameters(weights, float(precision), ceiling=1.0 / self.floor)

    def restore(self, weights, variance, arrays):
        return self.initial(weights, 1.0 / variance)

    def with_gaps(self) -> None:
        return None

    def load(self, block, errors=None):
        return np.array(block, dtype=float)

    def at_nodes(self, surface, parameters, dtype=np.float64):
        return RoundNodes(surface.nodes(parameters.weights), float(parameters.precision), self.kind)

    def m_step(self, surface, sums, penalty, parameters):
        strength = penalty.strength(float(parameters.precision))
        weights = surface.solve(sums.mass, sums.moment, strength, parameters.weights)
        centers = surface.nodes(weights)
        error = sums.mass @ np.square(centers).sum(axis=1) - 2 * (centers * sums.moment).sum() + sums.square
        precision = penalty.precision(sums.total * centers.shape[1], max(error, 0.0), surface.roughness(weights))
        return replace(parameters, weights=weights, precision=min(precision, 1.0 / self.floor))


@dataclass(frozen=True)
class Unkept:
    """Round noise that no file can hold."""

    def make(self, surface, spread) -> Any:
        return RoundNoise(spread.floor, RoundStatistics)


@dataclass(frozen=True)
class Kept:
    """Round noise for files."""

    def make(self, surface, spread) -> Any:
        return RoundNoise(spread.floor, KeptStatistics)


@dataclass(frozen=True)
class HalfKept:
    """Round noise whose recipe, but not its statistics, may be held by files."""

    def make(self, surface, spread) -> Any:
        return RoundNoise(spread.floor, RoundStatistics)


@pytest.fixture(autouse=True)
def _storable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marked as a user's module marks them, but taken off the register again: other tests read all of it."""
    monkeypatch.setattr(files, "_classes", dict(files._classes))
    for cls in (KeptStatistics, Kept, HalfKept):
        storable(cls)


def test_it_is_the_isotropic_noise_by_other_sums() -> None:
    found, plain = GTM(1, noise=Kept(), **SETTINGS).fit(X), GTM(1, **SETTINGS).fit(X)
    assert_allclose(found.history_["objective"], plain.history_["objective"], rtol=1e-9)
    assert_allclose(found.transform(X), plain.transform(X), atol=1e-7)


def test_it_is_saved_loaded_and_gone_on_with(tmp_path) -> None:
    model = GTM(1, noise=Kept(), **SETTINGS).fit(X)
    prinfold.save(model, tmp_path / "model.prinfold")
    again = prinfold.load(tmp_path / "model.prinfold")
    assert again.noise == Kept()
    assert type(again.memory_.statistics) is KeptStatistics
    assert_array_equal(again.transform(X), model.transform(X))
    assert_array_equal(again.partial_fit(X).weights_, model.partial_fit(X).weights_)


@pytest.mark.parametrize(("noise", "place"), [(Unkept(), "noise"), (HalfKept(), r"memory_\.statistics")])
def test_what_no_file_can_hold_is_said_by_its_place_with_the_way_out(noise, place: str, tmp_path) -> None:
    model = GTM(1, noise=noise, **SETTINGS).fit(X)
    with pytest.raises(NotStorableError, match=rf"GTM\.{place} is an object of type .*; mark its class @storable"):
        prinfold.save(model, tmp_path / "model.prinfold")


@pytest.mark.parametrize("verb", ["fit", "partial_fit", "transform", "score_samples"])
def test_a_noise_without_gaps_is_refused_by_name(verb: str) -> None:
    model = GTM(1, noise=Kept(), **SETTINGS)
    if verb != "fit":
        model.fit(X)
    gaps = X.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(InvalidDataError, match="round noise takes no missing cells"):
        getattr(model, verb)(gaps)


def test_a_class_in_place_of_a_noise_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"noise.*an object, not its class"):
        GTM(1, noise=Kept, **SETTINGS).fit(X)
