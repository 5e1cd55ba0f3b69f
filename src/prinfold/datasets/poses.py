"""Small pictures of a body in all its poses: data whose latent space is the sphere.

A camera that flies round a body has to hold its picture upright somehow, and there is no smooth way to do so
over the whole sphere of views: a choice of "up" is a tangent field, and one on the sphere vanishes somewhere.
Pictures of just any body therefore tear along a seam, or turn about a pole. Here the camera stands still and
the body is one of revolution. Turning it about its own axis changes nothing, so that its pose *is* the
direction of its axis, a unit vector, and the picture a smooth function of it without seam or pole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.datasets.arguments import check_kinds
from prinfold.datasets.dataset import Dataset, Rng, simulate
from prinfold.datasets.surface import TrueSurface, option
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import UnitSphere
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.parameter_docs import fill_parameter_docs


class Blob(NamedTuple):
    """A Gaussian blob on the axis of a body: where on it, standard deviations along and across it, and its light."""

    place: float
    along: float
    across: float
    light: float


#: Bodies of revolution, as blobs from the end that points along the axis to the other. One end outshines the other:
#: where both are alike, opposite poses nearly are as well, and the surface comes close to itself.
BODIES = {
    "bottle": (Blob(0.45, 0.3, 0.2, 0.4), Blob(-0.4, 0.4, 0.38, 1.0)),  # a thin neck, a round belly
    "mushroom": (Blob(0.4, 0.25, 0.5, 1.0), Blob(-0.4, 0.35, 0.22, 0.5)),  # a flat cap, a stem
    "shuttlecock": (Blob(0.5, 0.3, 0.3, 1.0), Blob(-0.3, 0.25, 0.5, 0.3)),  # a round cork, a wide skirt
}

_HALF_WIDTH = 1.2
"""Half the width of a picture: at its edge less than a quarter of a body's greatest brightness is left, and a pixel
of the default size is as wide as the narrowest blob's standard deviation."""


@check_kinds
@fill_parameter_docs
def make_poses(
    n_samples: int = 500,
    noise: float = 0.1,
    noise_kind: str = "isotropic",
    rng: Rng = None,
    *,
    body: str | Sequence[str] = "mushroom",
    n_pixels: int = 12,
    fog: float = 1.5,
    sampling: str = "parameter",
) -> Dataset:
    """Pictures of a body of revolution whose axis points in all directions.

    The camera looks down the third axis in parallel rays. A body is a pair of Gaussian blobs on its axis u, the
    k-th at tₖu with covariance Σₖ = aₖ²(I − uuᵀ) + lₖ²uuᵀ. With P the first two rows of the identity, the pixel at
    x in [−1.2, 1.2]² has the brightness

    Σₖ cₖ exp(f tₖu₃) exp(−½ (x − tₖPu)ᵀ (PΣₖPᵀ)⁻¹ (x − tₖPu)).

    Parameters
    ----------
    {n_samples, default=500}
    noise : float, default=0.1
        Standard deviation of the noise; the brighter blob of a body has brightness 1 at its centre, fog aside.
    noise_kind : {"normal", "isotropic"}, default="isotropic"
        Noise along the normals only, or the same in every pixel.
    {rng}
    body : {"bottle", "mushroom", "shuttlecock"} or a sequence of these, default="mushroom"
        What is seen; several bodies come in equal numbers.
    n_pixels : int, default=12
        Pixels along each side. ``X.reshape(-1, n_pixels, n_pixels)`` are the pictures, their first row on top.
    fog : float, default=1.5
        How fast light fades with distance: f above. Without fog the poses (u₁, u₂, u₃) and (u₁, u₂, −u₃) have the
        same picture; with 1.5 a pose that turns to the camera changes it about as much as one that turns aside.
    sampling : {"parameter", "area", "grid"}, default="parameter"
        Uniform over directions, uniform by area of the surface, or directions spread evenly without chance.

    Returns
    -------
    Dataset
        ``latent`` is the direction u of the axis. One body comes with its surface. Of several, ``labels`` says which
        is seen, and there is no single surface; ``make_poses(body=name).surface`` is that of each.

    Notes
    -----
    A pose has three degrees of freedom in general: two for the direction of view, one for the turn of the picture
    about it. The third cannot be fixed smoothly for all directions at once, since a tangent field on the sphere
    has zeros. A body of revolution does not have it, and its pictures form a sphere without seam or pole.
    """
    check_draws(n_samples, float(n_pixels) ** 2, "n_samples")
    names = [body] if isinstance(body, str) else list(body)
    if n_samples < len(names) or len(set(names)) < max(len(names), 1):
        raise InvalidParameterError(
            f"body must name different bodies, one or more, and n_samples be at least their number; "
            f"got body={body!r} and n_samples={n_samples}."
        )
    generator = np.random.default_rng(rng)
    draw = partial(simulate, noise=noise, noise_kind=noise_kind, rng=generator, sampling=sampling)
    surfaces = [_surface(name, n_pixels, fog) for name in names]
    if isinstance(body, str):
        return draw(surfaces[0], n_samples, description=f"poses of a {body}")
    labels = generator.permutation(np.arange(n_samples) % len(names))
    parts = [draw(surface, int((labels == k).sum())) for k, surface in enumerate(surfaces)]
    X, latent, clean = (
        _rows_by_label(labels, [getattr(part, what) for part in parts]) for what in ("X", "latent", "clean")
    )
    return Dataset(
        X,
        latent,
        clean,
        labels=labels,
        feature_names=parts[0].feature_names,
        class_names=tuple(names),
        description=f"poses of a {', a '.join(names)}",
    )


def _rows_by_label(labels: IntArray, parts: Sequence[FloatArray]) -> FloatArray:
    """The rows of each part, where the labels say that they belong."""
    whole = np.concatenate(parts)
    whole[np.argsort(labels, kind="stable")] = whole.copy()
    return whole


def _surface(body: str, n_pixels: int, fog: float) -> TrueSurface:
    blobs = option(BODIES, "body", body)
    if n_pixels < 2 or not 0.0 <= fog < np.inf:
        raise InvalidParameterError(
            f"n_pixels must be at least 2, and fog finite and at least 0; got {n_pixels} and {fog}."
        )
    centers = _HALF_WIDTH * ((2.0 * np.arange(n_pixels) + 1.0) / n_pixels - 1.0)
    pixels = np.stack(np.meshgrid(centers, centers[::-1]), axis=-1).reshape(-1, 2)

    def point(U: FloatArray) -> FloatArray:
        return np.asarray(sum(_light(blob, pixels, fog, U).light for blob in blobs))

    def jacobian(U: FloatArray) -> FloatArray:
        return np.asarray(sum(_slope(blob, pixels, fog, U) for blob in blobs))

    return TrueSurface(f"sphere of poses of a {body}", point, jacobian, UnitSphere(), resolution=32)


class _SeenBlob(NamedTuple):
    """A blob in n pictures: its light (n, D) and the derivatives of its exponent by Pu·x and by ‖Pu‖²."""

    light: FloatArray
    by_shift: FloatArray
    by_slant: FloatArray


def _light(blob: Blob, pixels: FloatArray, fog: float, U: FloatArray) -> _SeenBlob:
    """Light c exp(f t u₃ − ½ q) of a blob, q being the quadratic form of :func:`make_poses`.

    PΣPᵀ = a²I + b PuuᵀPᵀ with b = l² − a², so that by Sherman and Morrison, with e = Pu·x, ρ = ‖Pu‖² and w = e − tρ,
    a² q = ‖x‖² − 2te + t²ρ − b w²/(a² + bρ): a function of e and ρ alone.
    """
    t, a2, b = blob.place, blob.across**2, blob.along**2 - blob.across**2
    e, rho = U[:, :2] @ pixels.T, (U[:, :2] ** 2).sum(axis=1)[:, None]
    w = e - t * rho
    pull = b * w / (a2 + b * rho)
    q = ((pixels**2).sum(axis=1) - 2.0 * t * e + t**2 * rho - pull * w) / a2
    light = blob.light * np.exp(fog * t * U[:, 2:] - 0.5 * q)
    return _SeenBlob(light, (t + pull) / a2, -0.5 * (t + pull) ** 2 / a2)


def _slope(blob: Blob, pixels: FloatArray, fog: float, U: FloatArray) -> FloatArray:
    """(n, D, 3) derivatives of a blob's light by u."""
    light, by_shift, by_slant = _light(blob, pixels, fog, U)
    across = by_shift[:, :, None] * pixels + 2.0 * by_slant[:, :, None] * U[:, None, :2]
    ahead = np.full((*light.shape, 1), fog * blob.place)
    return np.asarray(light[:, :, None] * np.concatenate([across, ahead], axis=2))
