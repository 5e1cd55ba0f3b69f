"""Texts about parameters and attributes that several docstrings share, each written once.

In a docstring a line in braces stands where the parameter stands, and :func:`fill_parameter_docs` puts its text there
on import::

Parameters
----------
    {n_components}
    {tol, default=1e-5}
    {random_state.starts}

Text behind a comma goes to the end of the first line, for defaults that differ. A suffix behind a dot distinguishes
texts about parameters of the same name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])

_ROWS = """
X : array-like of shape (n, D)
    Rows of numbers.
X.gaps : array-like of shape (n, D)
    Rows whose missing cells are NaN.
X.fitted : array-like of shape (n, D)
    The rows that the model was fitted to.
X.sequences : array-like of shape (n, D), list of such, or array of shape (S, T, D)
    Rows, one sequence after another; or a table for each sequence.
Z : array-like of shape (n, Q)
    Latent coordinates.
y.class : array-like of shape (n,)
    The class of each row.
sample_weight : array-like of shape (n,), default=None
    Weights of the rows; a weight of 2 is the same as the row given twice, and 0 as the row left out.
sample_weight.of_fit : array-like of shape (n,), default=None
    Weights of the rows in the fit.
errors : array-like of shape (n, D) or (n,), default=None
    Standard deviations of the cells, or of all cells of a row, where they are known.
errors.added : array-like of shape (n, D) or (n,), default=None
    Standard deviations with which the cells, or all cells of a row, are known to have been measured; the noise of the
    model comes on top.
lengths : array-like of int, default=None
    Rows of each sequence; None takes each row for a sequence of one.
groups : array-like of shape (n,) or str, default=None
    In place of lengths, the names of the sequences that rows belong to, or the column of X that has them.
extrapolate : bool, default=False
    Whether coordinates outside the latent domain are allowed.
extrapolate.refused : bool, default=False
    Whether coordinates outside the latent domain are allowed; without it they raise
    :class:`~prinfold.exceptions.OutOfDomainError`.
return_std : bool, default=False
    Whether to return the spread of what was filled in as well.
n : int, default=1
    How many.
"""

_SETTINGS = """
random_state : int, RandomState or Generator, default=None
    Seed.
random_state.starts : int, RandomState or Generator, default=None
    Seed of random starts and of the rows that a spectral start sees.
random_state.bandwidth : int, RandomState or Generator, default=None
    Seed of rules for the bandwidth that draw.
verbose : int, default=0
    1 shows a progress bar on a terminal or in a notebook, 2 a line for each iteration; 0 only how long it has been
    going on, after two seconds, in a line that vanishes at the end.
max_iter : int
    Most iterations.
tol : float
    Training stops when the objective per row changes by less; 0 never stops early.
relaxation : float, default=1.8
    How far an EM step may be stretched while the objective keeps rising; 1 is plain EM, and from 2 on what EM settles
    at once may swing back and forth.
n_components : int, default=2
    Dimension of the surface, where the latent space leaves it open: a grid or a torus. The others, and nodes given as
    an array, have a dimension of their own.
latent : str or latent space, default=None
    ``"grid"``, ``"line"``, ``"circle"``, ``"cylinder"``, ``"torus"`` or ``"sphere"``; None is a grid.
nodes : int, tuple of int, array of shape (K, Q) or latent space, default=None
    Latent nodes along each axis, or the nodes themselves; None chooses from the number of rows.
nodes.doubled : int, tuple of int, array of shape (K, Q) or latent space, default=None
    Latent nodes along each axis, or the nodes themselves; None chooses from the number of rows, and doubles them in
    training along axes of a lattice where they lie more than two noise deviations apart.
basis : int, tuple of int, or basis object, default=None
    Basis functions along each axis, or a :class:`~prinfold.GaussianBasis`, :class:`~prinfold.HarmonicBasis`,
    :class:`~prinfold.GaussianProcess` or :class:`~prinfold.ElasticNetBasis`; None takes a third as many as nodes, at
    most 9.
width : float, default=1.0
    Standard deviation of a basis function in units of their spacing; larger is stiffer. Not used with a basis object.
regularization : float, default=None
    Constant weight penalty λ; larger is smoother. None is 0.1, or 0.3 for a net (:class:`~prinfold.ElasticNetBasis`),
    unless ``prior_precision`` is given.
prior_precision : float, default=None
    Precision α of a Gaussian prior on the weights, so that λ = α/β follows the noise; it has the units of the data to
    the power −2.
penalize_bias : bool, default=False
    Whether the penalty holds down the bias too. Not used with a basis object.
noise_floor : float, default=1e-6
    Smallest noise variance, relative to the mean variance of a column.
init.maps : str or array of shape (n, Q), default="auto"
    ``"pca"``, ``"random"``, ``"semi-random"``, ``"isomap"``, ``"lle"``, ``"laplacian"``, for spaces with angles
    ``"cycles"``, which follows the loops of the data, or latent coordinates of the rows. ``"auto"`` is whichever comes
    furthest in a short trial, as for the :class:`~prinfold.GTM`.
closed : bool or "auto", default=False
    Whether the curve returns to its beginning; ``"auto"`` compares open and closed ones as it does starts.
root : int or array, default=None
    Where arc length is to begin, such as at a root cell: near a row, given by its number in the training table or by
    its values (D,), near the middle of several rows (m, D) or of those that a mask (n,) marks; or a score (n,), such as
    the day of a sample, which is to grow along the curve. The curve begins at the end that is nearer to it along the
    curve, a closed one at the last vertex before it. None begins in the half that more rows lie in.
root.graph : int or array, default=None
    Where :meth:`pseudotime` begins, such as at a root cell: near a row, given by its number in the training table or by
    its values (D,), near the middle of several rows (m, D) or of those that a mask (n,) marks; or a score (n,), such as
    the day of a sample, which is to grow with time. In the last third of a branch the root is the end of it. None
    begins at the denser end of the longest way.
bandwidth.kernels : str, float or array, default="auto"
    Of the Gaussian kernels on the rows: a number in units of the data, one for each column, a matrix, or a rule: see
    the guide on bandwidths.
density : Density or mixture, default=None
    Another density than kernels on the rows: anything with the verbs of :class:`~prinfold.Density`, or a recipe such as
    scikit-learn's ``GaussianMixture(5)``, which is fitted to the rows. ``bandwidth`` has no say then. On a sphere it is
    one of places (n, 3) in space, at a distance of 180/π from 0.
min_mass : float, default=0.1
    Rows' worth of posterior below which a node counts as empty: ``landscape_`` has NaN there, and pictures leave it
    blank. Predictions do not depend on it.
"""

_FITTED = """
n_features_in_ : int
    Columns of the training table.
feature_names_in_ : ndarray of str
    Names of those columns, where they had names.
n_iter_ : int
    Iterations done.
converged_ : bool
    Whether training ended because there was no more to do.
converged_.objective : bool
    Whether the objective settled.
stop_reason_ : StopReason
    Why training ended; its value is a sentence.
history_ : dict of list
    ``objective`` (penalised log-likelihood per row), ``log_likelihood`` (per row), ``noise`` and ``seconds``, the first
    entry being the start.
latent_ : latent space
    Nodes, topology and chart.
basis_ : basis object
    The basis functions in use.
weights_ : ndarray of shape (M, D)
    Weights of the basis functions, about ``offset_``.
offset_ : ndarray of shape (D,)
    Mean of the training rows.
offset_.median : ndarray of shape (D,)
    Mean of the training rows; with Student noise their spatial median.
node_mass_ : ndarray of shape (K,) or (K, D)
    Rows that each node stands for: the sums of the responsibilities of the training rows; for each column, where cells
    were missing or known with an error.
folds_ : Folds
    Fold and warp diagnostics at the nodes.
curve_ : ArcCurve
    The curve, about ``offset_``.
vertices_ : ndarray of shape (m, D)
    Points along the curve, in order.
length_ : float
    Its length.
closed_ : bool
    Whether it returns to its beginning.
doubt_ : str
    What speaks against a single curve through these rows, in words; empty where nothing does.
classes_ : ndarray of shape (C,)
    The classes, sorted.
surface_ : estimator
    The fitted map.
"""

_DATA = """
n_samples : int
    Rows.
noise : float
    Standard deviation of the noise.
noise_kind : {"normal", "isotropic"}
    Noise along the normals only, or the same in every column.
sampling.curve : {"parameter", "area", "grid"}
    Uniform in the parameter, uniform by length, or a regular grid of the parameter.
sampling.surface : {"parameter", "area", "grid"}
    Uniform in the parameter, uniform by area, or a regular grid of the parameter.
n_features : int, optional
    Columns, if more than the surface needs by itself.
rng : int or numpy.random.Generator, optional
    Seed.
X.data : array of shape (n, D)
    Data.
sample_weight.metric : array of shape (n,), optional
    Non-negative weights, all 1 by default.
"""

_PICTURES = """
model : fitted estimator or pipeline
    The model.
X.shown : array-like of shape (n, D), default=None
    Rows to show.
labels : array-like of shape (n,), default=None
    Class of each row.
labels.legend : array-like of shape (n,), default=None
    Class of each row, of any type; each gets a colour, a marker and a line in the legend.
values : array-like of shape (n,), default=None
    A number for each row, shown by colour.
value_name : str, default="value"
    What the colour scale of ``values`` is called.
resolution.shading : int, default=200
    Cells of the shading along each axis.
series : bool or array-like of shape (D,), default=None
    Whether the columns of X are a curve, or at which positions; None offers a curve where the names of the columns are
    numbers that go one way.
ax : matplotlib.axes.Axes, default=None
    Where to draw; None makes a figure.
"""


def _read(text: str) -> dict[str, tuple[str, str]]:
    """``{key: (first line, further lines)}`` of the entries of a text, without what tells equal names apart."""
    found = {}
    for entry in re.split(r"\n(?=\S)", text.strip()):
        head, _, body = entry.partition("\n")
        key, _, kind = head.partition(" : ")
        found[key] = (f"{key.partition('.')[0]} : {kind}", body)
    return found


PARAMETER_DOCS = {
    key: text for each in (_ROWS, _SETTINGS, _FITTED, _DATA, _PICTURES) for key, text in _read(each).items()
}
"""``{key: (first line, further lines)}``: what a line ``{key}`` of a docstring stands for."""

_PLACE = re.compile(r"^([ \t]*)\{(\w[\w.]*)(, default=[^}]*)?\}$", re.MULTILINE)


def fill_parameter_docs(thing: T) -> T:
    """Put shared texts in the docstring of a function, or of a class and the methods that it defines itself."""
    own = [each for each in vars(thing).values() if inspect.isfunction(each)] if inspect.isclass(thing) else []
    for each in (thing, *own):
        if each.__doc__ is not None and "{" in each.__doc__:  # none under python -OO
            each.__doc__ = fill(each.__doc__)
    return thing


def fill(doc: str) -> str:
    """A docstring with the shared texts in place of the lines in braces."""
    return _PLACE.sub(_text, doc)


def _text(place: re.Match[str]) -> str:
    indent, key, default = place.groups(default="")
    if key not in PARAMETER_DOCS:
        raise KeyError(f"a docstring asks for the text {key!r}, which validation/parameter_docs.py does not have")
    head, body = PARAMETER_DOCS[key]
    return "\n".join(indent + line for line in (head + default, *body.split("\n")))
