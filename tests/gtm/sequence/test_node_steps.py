"""Short steps between nodes, on every kind of latent space."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prinfold.exceptions import InvalidParameterError
from prinfold.gtm.sequence import node_steps as steps
from prinfold.gtm.sequence.node_steps import default_reach, moves_on
from prinfold.latent import Points, Sphere, circle, cylinder, grid, line, torus

SPACES = {
    "line": line(7),
    "circle": circle(8),
    "small circle": circle(3),
    "two nodes": circle(2),
    "one node": line(1),
    "grid": grid(5, 4),
    "cylinder": cylinder(6, 3),
    "torus": torus(4, 5),
    "cube": grid(3, 3, 3),
    "sphere": Sphere(30),
    "points": Points(np.random.default_rng(0).uniform(-1, 1, (25, 2))),
    "points in 4-D": Points(np.random.default_rng(0).uniform(-1, 1, (25, 4))),
}
each = pytest.mark.parametrize("latent", SPACES.values(), ids=SPACES.keys())


@each
@pytest.mark.parametrize("reach", [0, 1, 2])
def test_steps_go_both_ways_and_none_is_named_twice(latent, reach: int):
    moves = moves_on(latent, reach)
    pairs = set(zip(moves.source.tolist(), moves.node.tolist(), strict=True))
    assert len(pairs) == len(moves.node)
    assert {(b, a) for a, b in pairs} == pairs
    assert {(k, k) for k in range(latent.n_nodes)} <= pairs
    assert len(moves.cuts) == latent.n_nodes + 1
    if reach == 0:
        assert len(pairs) == latent.n_nodes
    edges = set(map(tuple, latent.edges.tolist()))
    assert reach != 1 or {(a, b) for a, b in pairs if a < b} == edges  # one step is an edge, everywhere


@each
def test_a_kind_of_step_leads_to_the_place_it_says(latent):
    moves = moves_on(latent, 2)
    if not hasattr(latent, "shape"):
        hops = np.full((latent.n_nodes,) * 2, np.inf)
        np.fill_diagonal(hops, 0)
        for a, b in latent.edges:
            hops[a, b] = hops[b, a] = 1
        for k in range(latent.n_nodes):
            hops = np.minimum(hops, hops[:, k, None] + hops[k])
        assert_array_equal(hops[moves.source, moves.node], moves.kinds[moves.kind, 0])
        assert len(moves.node) == (hops <= 2).sum()
        return
    places = np.stack(np.unravel_index(np.arange(latent.n_nodes), latent.shape), axis=1)
    step = places[moves.source] + moves.kinds[moves.kind] - places[moves.node]
    step = np.where(latent.periodic, step % np.asarray(latent.shape), step)
    assert not step.any()
    assert (np.square(moves.kinds).sum(axis=1) <= 4).all()


def test_closed_spaces_have_the_same_steps_everywhere():
    for latent in (circle(9), torus(5, 6)):
        moves = moves_on(latent, 2)
        assert (np.diff(moves.cuts) == len(moves.kinds)).all()


def test_many_dimensions_reach_the_neighbours_only():
    latent = grid(*(2,) * 8)
    assert default_reach(latent) == 1
    assert len(moves_on(latent, 1).kinds) == 17


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InvalidParameterError, match="give a smaller reach or fewer nodes"):
        moves_on(grid(400, 400), 12)
    monkeypatch.setattr(steps, "_MOST_PAIRS", 100)
    with pytest.raises(InvalidParameterError, match="more than the 100 allowed"):
        moves_on(Sphere(30), 2)
