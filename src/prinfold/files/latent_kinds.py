"""Kinds of the fields of latent spaces and kernels, which know nothing of files."""

from __future__ import annotations

from prinfold.files.kinds import (
    Kinds,
    any_float,
    flags,
    number,
    numbers,
    part,
    positive,
    sequence_of,
    text,
    whole_numbers,
)
from prinfold.latent import LatentSpace
from prinfold.validation.settings import flag, instance_of, integer

LATENT_SPACE = instance_of(LatentSpace, words="a latent space")
_LATTICE = {"shape": sequence_of(integer(1), "axes"), "periodic": sequence_of(flag, "axes")}

LATENT_KINDS: dict[str, Kinds] = {
    "Atlas": {"charts": sequence_of(LATENT_SPACE)},
    "Branches": {
        "lengths": numbers("branches", least=0),
        "closed": flags("branches"),
        "counts": whole_numbers("branches", least=1),
        "gap": positive,
    },
    "Cloud": {
        "centers": numbers("m", "q"),
        "weight": numbers("m", above=0),
        "profile": part("Gaussian", "Power"),
        "threshold": number,
        "bandwidth": positive,
    },
    "Gaussian": {"name": text, "reach": any_float},
    "Hexagons": _LATTICE,
    "Lattice": _LATTICE,
    "Points": {"coordinates": numbers("K", "q")},
    "Power": {"power": integer(1), "name": text, "reach": positive},
    "Sphere": {"n": integer(4)},
}
"""Class → the kinds of its fields."""
