"""Networks of segments: exact distances, one coordinate for each place, and no lines where there is no segment."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold.datasets import line_network, polyline, simulate
from prinfold.exceptions import InvalidDataError, InvalidParameterError

CORNERS = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [-1.0, 3.0], [0.0, 5.0]])


def chain(corners: np.ndarray) -> np.ndarray:
    return np.stack([corners[:-1], corners[1:]], axis=1)


def test_a_chain_is_the_polyline_through_its_corners(rng: np.random.Generator) -> None:
    """Of joined segments every verb is that of the polyline, which looks at all of them."""
    network, curve = line_network("chain", chain(CORNERS)), polyline("chain", CORNERS)
    X = rng.uniform(-3.0, 6.0, (200, 2))
    np.testing.assert_allclose(network.distance(X), curve.distance(X), rtol=1e-12)
    np.testing.assert_allclose(network.locate(X), curve.locate(X), rtol=1e-12, atol=1e-12)
    U = rng.uniform(0.0, network.domain.high[0], (50, 1))
    np.testing.assert_array_equal(network.point(U), curve.point(U))
    np.testing.assert_array_equal(network.jacobian(U), curve.jacobian(U))


def test_the_order_of_segments_and_of_their_ends_does_not_matter(rng: np.random.Generator) -> None:
    segments = rng.normal(size=(40, 2, 3))
    X = rng.normal(size=(60, 3))
    there = line_network("soup", segments).project(X)
    back = line_network("soup", segments[rng.permutation(40), ::-1]).project(X)
    np.testing.assert_allclose(there, back, atol=1e-12)


def test_both_ends_of_every_segment_have_a_coordinate_of_their_own(rng: np.random.Generator) -> None:
    """Separate segments share a coordinate where they are laid end to end; the foot must not jump to the other."""
    segments = rng.uniform(0.0, 1000.0, (300, 2, 2)) + [480_000.0, 4_200_000.0]
    network = line_network("roads", segments)
    np.testing.assert_allclose(network.distance(segments.reshape(-1, 2)), 0.0, atol=1e-8)
    beyond = segments[:, 1] + 1e-3 * (segments[:, 1] - segments[:, 0])
    assert (network.distance(beyond) <= 1e-3 * network.lengths + 1e-8).all()


def test_the_mesh_draws_what_is_there_and_nothing_between() -> None:
    segments = np.array([[[0.0, 0.0], [1.0, 0.0]], [[5.0, 5.0], [5.0, 7.0]]])
    mesh = line_network("two", segments).mesh(100)
    np.testing.assert_array_equal(mesh.vertices[mesh.faces], segments)
    np.testing.assert_array_equal(mesh.latent[:, 0], [0.0, 1.0, 1.0, 3.0])


def test_rows_are_sampled_by_length(rng: np.random.Generator) -> None:
    segments = np.array([[[0.0, 0.0], [1.0, 0.0]], [[5.0, 5.0], [5.0, 8.0]]])
    data = simulate(line_network("two", segments), 4000, 0.1, "normal", rng)
    assert np.mean(data.clean[:, 0] == 5.0) == pytest.approx(0.75, abs=0.03)
    assert data.surface.distance(data.clean).max() < 1e-12


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        (np.zeros((3, 2)), r"roads needs finite segments of shape \(S, 2, D\); got shape \(3, 2\)"),
        (np.empty((0, 2, 2)), r"got shape \(0, 2, 2\)"),
        (np.array([[[0.0, np.nan], [1.0, 1.0]]]), "needs finite segments"),
        (np.array([[[0.0, 0.0], [1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]]]), "Segment 1 of the roads has no length"),
    ],
)
def test_broken_segments_are_named(segments: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        line_network("roads", segments)


def test_points_of_another_dimension_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="The chain lives in 2 dimensions"):
        line_network("chain", chain(CORNERS)).distance(np.zeros((4, 3)))
