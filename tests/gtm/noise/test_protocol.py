"""The seam between a GTM and its noise: few verbs on any object, declared capabilities, and kinds made by users."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.house import PACKAGE, syntax_trees
from tools import house

from prinfold import GTM, LowRankNoise, StudentNoise, datasets
from prinfold.exceptions import InvalidParameterError
from prinfold.gtm.noise.per_cell import CellNoise
from prinfold.gtm.noise.protocol import AnyNoise, Capabilities, Parameters, Statistics, in_words
from prinfold.gtm.noise.recipes import NOISES, spread_of_model
from prinfold.gtm.sequence.estimator import GTMSequence

MOST_VERBS = 8
SEAM = ("gtm/noise/", "gtm/mixed/column_", "pps/oriented_", "pps/estimator.py")  # PPS has a noise of its own
GENERIC = ("gtm/", "pps/")
X = datasets.make_ridge(64, rng=0).X


# ------------------------------------------------------------------------------------------------------- the house


@pytest.fixture(scope="module")
def sources() -> list[house.Source]:
    return [house.Source(Path(name), "", tree) for name, tree in syntax_trees(PACKAGE).items()]


def verbs_of_protocols(sources: list[house.Source]) -> dict[str, set[str]]:
    """Public verbs of every protocol of the seam, with those that it inherits from another."""
    nodes = [node for source in sources if source.path.as_posix().startswith(SEAM) for node in ast.walk(source.tree)]
    protocols = {node.name: node for node in nodes if isinstance(node, ast.ClassDef) and house._is_protocol(node)}
    above = {name: house._base_names(node) & set(protocols) for name, node in protocols.items()}
    own = {name: set(house._verbs(node)) for name, node in protocols.items()}
    return {name: own[name].union(*(own[base] for base in above[name])) for name in protocols}


def questions_of(tree: ast.AST, kinds: set[str]) -> Iterator[str]:
    """Calls that ask a noise, or what belongs to it, for a name or for its kind."""
    for call in house._calls(tree, {"hasattr", "getattr", "isinstance", "type"}):
        asked, *others = (ast.unparse(each) for each in call.args)
        noun = asked.split(".")[-1]
        names_kind = bool(kinds & set("".join(others).replace("|", " ").replace(",", " ").strip("()").split()))
        by_name = noun in house.NOISE_NOUNS and any(isinstance(each, ast.Constant) for each in call.args[1:2])
        if names_kind or by_name or (noun == "noise" and not others):
            yield ast.unparse(call)


def kinds_of_noise(sources: list[house.Source]) -> set[str]:
    """Names of the concrete noises of the seam: classes with an M-step, or that load blocks of rows."""
    of_seam = [source for source in sources if source.path.as_posix().startswith(SEAM)]
    classes = (node for _, node in house._classes(of_seam) if not house._is_protocol(node))
    return {node.name for node in classes if {"m_step", "load"} & set(house._verbs(node))}


def test_no_object_of_the_seam_has_more_than_eight_verbs(sources):
    verbs = verbs_of_protocols(sources)
    assert {"Noise", "Nodes", "Sums", "CompiledSums", "Loading"} <= set(verbs)
    assert {name: found for name, found in verbs.items() if len(found) > MOST_VERBS} == {}
    data = {field.name for field in fields(Parameters)}
    of_parameters = {name for name in vars(Parameters) if not name.startswith("_")} - data
    assert len(of_parameters) <= MOST_VERBS


def test_a_ninth_verb_would_be_seen():
    text = "class Noise(Protocol):\n    floor: float\n" + "".join(f"    def verb{i}(self): ...\n" for i in range(8))
    verbs = verbs_of_protocols([house.Source(Path("gtm/noise/more.py"), text, ast.parse(text))])
    assert len(verbs["Noise"]) == MOST_VERBS + 1


def test_generic_code_asks_no_noise_of_what_kind_it_is(sources):
    kinds = kinds_of_noise(sources)
    assert {"IsotropicNoise", "CellNoise", "StudentCells", "FactorModel", "OrientedModel", "MixedNoise"} <= kinds
    generic = [
        source
        for source in sources
        if source.path.as_posix().startswith(GENERIC) and not source.path.as_posix().startswith(SEAM)
    ]
    assert len(generic) > 40
    asked = {source.path.as_posix(): list(questions_of(source.tree, kinds)) for source in generic}
    assert {path: found for path, found in asked.items() if found} == {}


@pytest.mark.parametrize(
    "question",
    [
        "hasattr(model.noise, 'bound')",
        "getattr(noise, 'scale', None)",
        "isinstance(self.noise, CellNoise)",
        "isinstance(whatever, FactorModel | CellNoise)",
        "type(model.noise) in (IsotropicNoise, CellNoise)",
        "getattr(statistics, 'masses', None)",
    ],
)
def test_a_question_about_the_kind_would_be_seen(sources, question):
    assert list(questions_of(ast.parse(question), kinds_of_noise(sources)))


# -------------------------------------------------------------------------------------------------- what kinds can do


ALL = NOISES | {"own tails": StudentNoise(columns="own"), "low rank": LowRankNoise(1)}


@pytest.mark.parametrize("name", ALL)
def test_a_noise_that_takes_gaps_can_impute(name):
    surface = GTM(1, nodes=6, basis=3, max_iter=1, tol=0.0).fit(X)._model.surface
    noise = ALL[name].make(surface, spread_of_model(0.1, X.shape[1]))
    gappy = noise.with_gaps()
    assert gappy.with_gaps() is gappy
    assert gappy.capabilities.impute is not None
    assert in_words(noise)


@pytest.mark.parametrize("name", ALL)
def test_parameters_come_back_from_their_arrays(name):
    """What ``to_arrays`` keeps beside the level restores the nodes to rounding."""
    model = GTM(1, nodes=6, basis=3, noise=ALL[name], max_iter=4, tol=0.0).fit(X)
    noise, surface, parameters = model._model.noise, model._model.surface, model._parameters()
    again = noise.restore(parameters.weights, 1.0 / parameters.level, parameters.to_arrays())
    block = X - model.offset_
    found = []
    for each in (parameters, again):
        nodes = noise.at_nodes(surface, each)
        work = np.empty((nodes.n_layers, len(X), len(nodes.centers)))
        own = nodes.log_density(noise.load(block), None, work)
        found.append(work[0] + own[:, None])
    assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_a_step_of_length_one_is_the_step_itself(name):
    model = GTM(1, nodes=6, basis=3, noise=ALL[name], max_iter=3, tol=0.0).fit(X)
    rows, old = model._rows(X), model._parameters()
    statistics = model._model.begin(rows, old).statistics
    new = model._model.noise.m_step(model._model.surface, statistics, model._model.penalty, old)
    once, none = old.extrapolate(new, 1.0), old.extrapolate(new, 0.0)
    for found, wanted in ((once, new), (none, old)):
        assert type(found) is type(wanted)
        assert_allclose(found.weights, wanted.weights, atol=1e-12)
        assert_allclose(found.precision, wanted.precision, rtol=1e-12)
    far = old.extrapolate(new, 50.0)
    assert np.all(np.asarray(far.precision) <= np.asarray(far.ceiling) * (1 + 1e-9))


# ------------------------------------------------------------------------------------------------ a kind made by users


@dataclass(frozen=True)
class ToyNoise:
    """A noise that can do what every noise must, and nothing else."""

    cells: CellNoise

    @property
    def floor(self) -> float:
        return self.cells.floor

    @property
    def capabilities(self) -> Capabilities[Any, Any, Any, Any]:
        return Capabilities(words="toy noise")

    def initial(self, weights, precision):
        return self.cells.initial(weights, precision)

    def restore(self, weights, variance, arrays):
        return self.cells.restore(weights, variance, arrays)

    def with_gaps(self):
        return self.cells

    def load(self, block, errors=None):
        return self.cells.load(block, errors)

    def at_nodes(self, surface, parameters, dtype=np.float64):
        return self.cells.at_nodes(surface, parameters, dtype)

    def m_step(self, surface, sums, penalty, parameters):
        return self.cells.m_step(surface, sums, penalty, parameters)


@dataclass(frozen=True)
class Toy:
    def make(self, surface, spread) -> AnyNoise:
        return ToyNoise(CellNoise(spread.floor))


def test_a_noise_of_eight_verbs_is_all_that_a_map_needs():
    """The same model as isotropic noise by other verbs, and so the same fits, places, likelihoods and imputed cells."""
    gaps = X.copy()
    gaps[::5, 1] = np.nan
    settings = {"nodes": 8, "basis": 4, "max_iter": 10, "tol": 0.0}
    toy, plain = GTM(1, noise=Toy(), **settings).fit(X), GTM(1, **settings).fit(X)
    assert_allclose(toy.history_["objective"], plain.history_["objective"], rtol=1e-9)
    assert_allclose(toy.transform(X), plain.transform(X), atol=1e-7)
    assert_allclose(toy.score_samples(X), plain.score_samples(X), rtol=1e-7)
    assert_allclose(toy.sample(5, random_state=0), plain.sample(5, random_state=0), atol=1e-7)
    assert_allclose(toy.impute(gaps), plain.impute(gaps), atol=1e-7)
    assert_allclose(
        GTM(1, noise=Toy(), **settings).fit(gaps).weights_, GTM(1, **settings).fit(gaps).weights_, atol=1e-7
    )
    assert len(GTMSequence(1, noise=Toy(), **settings | {"max_iter": 2}).fit(X).forecast(X, n_steps=2)) > 0


def test_a_noise_that_lacks_verbs_is_refused_by_their_names():
    class HalfNoise:
        floor = 1e-6

        def load(self, block, errors=None):
            return block

    class Half:
        def make(self, surface, spread):
            return HalfNoise()

    lacks = "initial, restore, with_gaps, at_nodes, m_step"
    with pytest.raises(InvalidParameterError, match=f"Half.make gave a HalfNoise without capabilities, {lacks}, but"):
        GTM(1, nodes=6, basis=3, noise=Half(), max_iter=1, tol=0.0).fit(X)


class Without:
    """An object with the attributes of another, but for some."""

    def __init__(self, whole, *lost):
        for name in {name for name in dir(whole) if not name.startswith("_")} - set(lost):
            setattr(self, name, getattr(whole, name))


@dataclass(frozen=True)
class LossyNoise(ToyNoise):
    """A toy whose parameters, nodes, sums or statistics lack something."""

    of: str
    lost: tuple[str, ...]

    def _lose(self, of, whole):
        return Without(whole, *self.lost) if of == self.of else whole

    def initial(self, weights, precision):
        return self._lose("parameters", self.cells.initial(weights, precision))

    def at_nodes(self, surface, parameters, dtype=np.float64):
        nodes = self.cells.at_nodes(surface, parameters, dtype)
        if self.of in ("sums", "statistics"):
            return LossyNodes(nodes, self)
        return self._lose("nodes", nodes)


class LossyNodes:
    def __init__(self, nodes, noise):
        self._nodes, self._noise = nodes, noise
        self.centers, self.n_layers, self.log_density = nodes.centers, nodes.n_layers, nodes.log_density

    def empty_sums(self):
        return self._noise._lose("sums", LossySums(self._nodes.empty_sums(), self._noise))


class LossySums:
    def __init__(self, sums, noise):
        self._sums, self._noise, self.add = sums, noise, sums.add

    def statistics(self):
        return self._noise._lose("statistics", self._sums.statistics())


@pytest.mark.parametrize(
    ("of", "lost", "words"),
    [
        ("nodes", ("log_density", "draw"), "Without lacks draw, log_density, but stands where Nodes of prinfold.gtm"),
        ("sums", ("add",), "Without lacks add, but stands where Sums of prinfold.gtm.noise.protocol is needed, which"),
        ("statistics", ("total",), "Without lacks total, but stands where AnyStatistics of prinfold.gtm.noise"),
        ("parameters", ("cost",), "Without lacks cost, which prinfold.gtm.model asks it for; write it, or derive"),
    ],
)
def test_parts_of_a_noise_that_lack_verbs_are_refused_by_their_names(of, lost, words):
    class Lossy:
        def make(self, surface, spread):
            return LossyNoise(CellNoise(spread.floor), of, lost)

    with pytest.raises(InvalidParameterError, match=words):
        GTM(1, nodes=6, basis=3, noise=Lossy(), max_iter=2, tol=0.0, init="pca").fit(X)


def test_a_mistake_within_a_noise_of_ones_own_is_pythons_to_tell():
    class Slip(ToyNoise):
        def load(self, block, errors=None):
            return self.cels.load(block, errors)

    class Recipe:
        def make(self, surface, spread):
            return Slip(CellNoise(spread.floor))

    with pytest.raises(AttributeError, match="has no attribute 'cels'") as caught:
        GTM(1, nodes=6, basis=3, noise=Recipe(), max_iter=2, tol=0.0, init="pca").fit(X)
    assert not isinstance(caught.value, InvalidParameterError)


def test_what_a_noise_cannot_do_is_refused_in_its_words(monkeypatch):
    toy = GTM(1, nodes=6, basis=3, noise=Toy(), max_iter=2, tol=0.0).fit(X)
    with pytest.raises(InvalidParameterError, match="not known for toy noise"):
        toy.surface_std(toy.latent_.nodes)
    with pytest.raises(InvalidParameterError, match="got toy noise"):
        toy.log_evidence(X)
    with pytest.raises(InvalidParameterError, match="no outlier weights"):
        toy.outlier_weights(X)
    monkeypatch.setattr(CellNoise, "capabilities", Capabilities(words="cells without company"))
    gaps = np.where(np.arange(3) == 1, np.nan, X)
    with pytest.raises(InvalidParameterError, match=r"cells without company cannot tell what is missing; use noise="):
        toy.impute(gaps)


def test_sums_are_added_in_the_memory_of_the_first():
    rng = np.random.default_rng(0)
    one, other = (Statistics(rng.random(4), rng.normal(size=(4, 3)), *rng.random(3)) for _ in range(2))
    wanted, mass, moment = one + other, one.mass, one.moment
    one += other
    for name, value in vars(wanted).items():
        np.testing.assert_array_equal(getattr(one, name), value)
    assert one.mass is mass
    assert one.moment is moment
