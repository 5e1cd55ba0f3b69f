"""Principal trees by soft assignments and minimum spanning trees."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from prinfold._typing import FloatArray, Mesh, RandomState
from prinfold.base.callbacks import fit_method
from prinfold.base.file_requirements import TRAINING, require_parts
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.roots import ROOT
from prinfold.base.trajectories import TrajectoryVerbs
from prinfold.base.unique_rows import Centered, centered_rows
from prinfold.density.ridges.graph import GraphLocation, RidgeGraph
from prinfold.exceptions import (
    DegenerateWarning,
    StructureWarning,
    in_sentences,
    warn_caller,
)
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number, numbers, part, text
from prinfold.geometry.column_span import ColumnSpan
from prinfold.geometry.projection import Projection
from prinfold.latent import Branches
from prinfold.latent.arc_length_curves import BranchCurves
from prinfold.latent.branch_graph import BranchGraph
from prinfold.loops import Listeners, Outcome, run_fixed_point
from prinfold.trees.diagnosis import FittedTree, doubt
from prinfold.trees.held_out import RowsOfTree, ScoredTree, held_out_log_density, simplest_of
from prinfold.trees.noise import FirstTree, RowsInFrame, first_tree, keep_all, keep_components
from prinfold.trees.shapes import (
    NO_FORKS,
    TOPOLOGIES,
    TreeShape,
    branches_with_loop,
    find_shape,
    net_of,
    shape_of_graph,
    without_ends,
)
from prinfold.trees.soft_tree import TreeProblem, TreeState, log_mixture
from prinfold.trees.support import RedrawnTrees, branch_support, common_tree, ends_and_forks, weak_tips
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import (
    Constraint,
    as_generator,
    check_parameters,
    flag,
    integer,
    nothing,
    one_of,
    random_state,
    real,
)
from prinfold.validation.tables import check_weight, forget

_MORE_COMPONENTS = 2
"""Components beyond those that stand out of the noise in which trees are tried."""

_FEWEST_TO_HOLD_OUT, _MOST_TO_HOLD_OUT = 50, 1000
"""Rows from which on and up to which they are: few cannot be held out, and branches of many stand out."""


class GrownTree(NamedTuple):
    """A tree and what it was grown from: rows in their components, the problem, and its last state."""

    inside: RowsInFrame
    problem: TreeProblem
    state: TreeState


@fill_parameter_docs
@storable
class PrincipalTree(TrajectoryVerbs, PrincipalManifold):
    """A tree through the middle of rows, in few columns or in hundreds; or a path, a ring, a graph, a forest.

    Rows are softly assigned to centres, and centres are held together by their minimum spanning tree, in turn
    (SimplePPT). Branches that do not stand out of the noise are left out. The coordinate of a row is the arc length of
    its nearest point, with the branches laid end to end; :meth:`locate` tells branch and place on it.

    Parameters
    ----------
    topology : {"tree", "path", "ring", "graph", "forest"}, default="tree"
        What the rows lie along: a tree; one path; one closed ring; a tree in which ends that meet again close loops;
        several trees apart from each other.
    nodes : int, default=60
        Centres, and no more than a third of the different rows.
    bandwidth : "auto" or float, default="auto"
        Width of the kernel that assigns rows to centres, in units of the data. ``"auto"`` takes a little more than the
        noise in one column, which is measured about the tree.
    stiffness : float, default=1.0
        Pull between neighbouring centres, in units of that of the rows on a centre.
    min_length : float, default=1.0
        Length in bandwidths up to which a branch that leads nowhere is left out, and two forks are one.
    min_support : float, default=0.3
        Share of trees of rows drawn anew, with replacement, in which a short branch that ends freely must be found
        again to be kept; see :meth:`support`. Short is less than 2 bandwidths: longer ones are not grown by noise.
        The shape that half of these trees have is taken where it has ends that the first fit lacks. It costs five fits
        where no branch is short and the trees agree, else up to 40. Trees in one and two components more are tried
        first (of 50 to 1000 rows), and the likelihood of rows held out says which to take. 0 does nothing of this.
    trim : float, default=None
        Distance from every centre, in units of the data, beyond which a row is background and pulls at none. None has
        every row count.
    {root.graph}
    max_iter : int, default=200
        Most steps.
    tol : float, default=1e-6
        Steps end when the objective, a share of the spread of the rows, changes by less; 0 never stops early.
    random_state : int, RandomState or Generator, default=0
        Seed of ``min_support``.
    verbose : int, default=0
        1 shows a progress bar on a terminal or in a notebook, 2 a line for each step.

    Attributes
    ----------
    graph_ : RidgeGraph
        Branches, ends and forks, as of a :class:`~prinfold.DensityRidge`; ``log_density`` is that of Gaussians about
        the centres.
    bandwidth_ : float
        Width of the kernel.
    noise_ : float
        Standard deviation of rows about the tree in each direction across it.
    components_ : ndarray of shape (q, D)
        Principal components that stand out of the noise, in which the tree lies about ``offset_``.
    offset_ : ndarray of shape (D,)
        Mean of the rows.
    root_ : ndarray of shape (C,)
        Coordinate at which time begins in each component; empty where no root was given.
    doubt_ : str
        What speaks against such a tree through these rows, in words; empty where nothing does.
    latent_ : Branches
        The coordinate: arc length on branches.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether the objective settled.
    stop_reason_ : StopReason
        Why training ended; its value is a sentence.
    history_ : dict of list
        ``objective`` (minus that of SimplePPT over the spread of the rows, never falling) and ``seconds``, the first
        entry being the start.
    n_features_in_ : int
        Columns of the training table.
    feature_names_in_ : ndarray of str
        Names of those columns, where they had names.

    References
    ----------
    Mao, Yang, Wang, Goodison & Sun (2015), SimplePPT: A simple principal tree algorithm, SIAM International Conference
    on Data Mining.
    Mao, Wang, Tsang & Sun (2017), Principal graph and structure learning based on reversed graph embedding, IEEE
    Transactions on Pattern Analysis and Machine Intelligence 39.

    Examples
    --------
    >>> from prinfold import PrincipalTree, datasets
    >>> data = datasets.make_tree(500, topology="y", rng=0)
    >>> model = PrincipalTree().fit(data.X)
    >>> model.graph_.latent.n_branches
    3
    """

    _stored: ClassVar[Kinds] = {
        "graph_": part("RidgeGraph"),
        "bandwidth_": number,
        "noise_": number,
        "components_": numbers("q", "n_features_in_"),
        "offset_": numbers("n_features_in_"),
        "root_": numbers("C"),
        "doubt_": text,
        **TRAINING,
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        "topology": one_of(tuple(TOPOLOGIES)),
        "nodes": integer(2),
        "bandwidth": one_of(("auto",)) | real(0, above=True),
        "stiffness": real(0, above=True),
        "min_length": real(0),
        "min_support": Constraint(lambda v: real(0).test(v) and v <= 1, "a share between 0 and 1"),
        "trim": nothing | real(0, above=True),
        "max_iter": integer(0),
        "tol": real(0),
        "root": ROOT,
        "random_state": random_state,
        "verbose": integer(0) | flag,
    }
    _added: ClassVar[dict[str, Any]] = {"root_": np.empty(0)}
    _dimension: ClassVar[int | None] = 1
    graph_: RidgeGraph
    bandwidth_: float
    noise_: float
    components_: FloatArray
    offset_: FloatArray
    doubt_: str

    def __init__(
        self,
        topology: str = "tree",
        *,
        nodes: int = 60,
        bandwidth: Any = "auto",
        stiffness: float = 1.0,
        min_length: float = 1.0,
        min_support: float = 0.3,
        trim: float | None = None,
        root: Any = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.topology = topology
        self.nodes = nodes
        self.bandwidth = bandwidth
        self.stiffness = stiffness
        self.min_length = min_length
        self.min_support = min_support
        self.trim = trim
        self.root = root
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    # ---------------------------------------------------------------------------------------- fitting

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the tree.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows of numbers.
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows; a weight of 2 is the same as the row given twice.

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        forget(self)
        centered = centered_rows(self, X, sample_weight)
        grown = self._grow(centered)
        if self.min_support > 0 and self.topology not in NO_FORKS:
            grown = self._choose_components(centered, grown)
            rows = centered.unique
            redrawn = RedrawnTrees(self, rows.rows, rows.weight, as_generator(self.random_state))
            self._drop_weak_branches(redrawn, grown)
            self._take_common_tree(redrawn, grown)
        inside, problem, state = grown
        astray = self._place_root(centered.table)
        doubted = self._shape_warnings(inside, problem, state)
        self.doubt_ = " ".join(in_sentences(words) for words, _ in doubted)
        for words, category in [*self._stopping_warnings(), *astray, *doubted]:
            warn_caller(words, category)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Arc length of the nearest point of the tree, with its branches laid end to end.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, 1)
        """
        return self._latent_of(self._table(X))

    def locate(self, X: Any) -> GraphLocation:
        """Branch that each row is nearest to, how far along it and how far off.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        GraphLocation
            ``branch`` (n,), ``arc_length`` (n,) from the beginning of that branch, and ``distance`` (n,); in two
            columns it is positive to the left of the branch and negative to the right.
        """
        table = np.asarray(self._table(X), dtype=np.float64)
        return self.graph_.located(self._nearest(table), table)

    def support(
        self, X: Any, sample_weight: Any = None, n_samples: int = 50, *, random_state: RandomState = None
    ) -> FloatArray:
        """Share of trees of rows drawn anew, with replacement (bootstrap), in which each branch is found again.

        These trees lie in the components of this one and have its bandwidth.
        A branch is found again where another tree has, nearer than half its length or a bandwidth to either of its
        ends, an end of the same kind: free, or a fork. A closed one is found again where another tree has any that is
        closed.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows that the tree was fitted to.
        sample_weight : array-like of shape (n,), default=None
            Their weights.
        n_samples : int, default=50
            How many times rows are drawn. Each costs a fit.
        random_state : int, RandomState or Generator, default=None
            Seed.

        Returns
        -------
        ndarray of shape (B,)
            Share of the draws for each branch.
        """
        table = self._table(X)
        weight = check_weight(sample_weight, table)
        own = np.ones(len(table)) if weight is None else weight
        return branch_support(self, table, own, n_samples, as_generator(random_state))

    @property
    def latent_(self) -> Branches:  # type: ignore[override]
        """The coordinate: arc length on branches laid end to end."""
        return self.graph_.latent  # an AttributeError before the fit, as it has to be

    # --------------------------------------------------------------------------------------- plumbing

    def _network(self) -> BranchGraph:
        return self.graph_.network

    def _node_columns(self) -> dict[str, FloatArray]:
        return {"log_density": self.graph_.log_density}

    def _fit_again(self, table: FloatArray, weight: FloatArray) -> Self:
        """The tree of rows with other weights, in the components and with the bandwidth of this one.

        Rows that are repeated would pass for less noise than there is, and their own noise for a direction.
        """
        held = {"bandwidth": self.bandwidth_, "min_support": 0.0, "root": None, "verbose": 0}
        rows = self._span.from_coordinates(self._span.inside(np.asarray(table, dtype=np.float64)))
        again: Self = clone(self).set_params(**held)
        again.set_callbacks()  # a checkpoint and a log are of the first fit alone
        again._grow(centered_rows(again, rows, weight))  # what speaks against it, half of a fit, is not asked
        return again

    def _noise_across(self, found: Projection, table: FloatArray) -> float:
        return self.noise_

    def _grow(self, centered: Centered, n_components: int | None = None) -> GrownTree:
        """Train, and set the fitted attributes of what comes of it."""
        weight, offset, rows = centered.unique.weight, centered.offset, centered.rows
        # Background has no flat spectrum that components could stand out of.
        kept = self.trim is None
        inside = keep_components(rows, weight, offset, n_components) if kept else keep_all(rows, offset)
        first = self._first_tree(inside, weight, len(offset))
        problem = self._problem(inside, weight, first)
        attributes = partial(self._attributes, inside, first, problem)
        outcome = self._train_with_callbacks(centered.table, attributes, partial(_train, problem, first.centers))
        return GrownTree(inside, problem, outcome.state)

    def _first_tree(self, inside: RowsInFrame, weight: FloatArray, n_columns: int) -> FirstTree:
        if len(inside.rows) == 1:
            return FirstTree(inside.rows, 1.0, 0.0)
        bandwidth = None if isinstance(self.bandwidth, str) else float(self.bandwidth)
        in_pieces = self.topology == "forest"
        return first_tree(inside, weight, n_columns, self.nodes, bandwidth, self.stiffness, self._trim, in_pieces)

    def _problem(self, inside: RowsInFrame, weight: FloatArray, first: FirstTree) -> TreeProblem:
        pull = self.stiffness * float(weight.sum()) / len(first.centers)
        return TreeProblem(inside.rows, weight, first.bandwidth, pull, self._trim, reach=first.reach)

    @property
    def _trim(self) -> float:
        return np.inf if self.trim is None else float(self.trim)

    def _attributes(
        self, inside: RowsInFrame, first: FirstTree, problem: TreeProblem, state: TreeState
    ) -> dict[str, Any]:
        """Fitted attributes as of centres on their way."""
        shape = find_shape(self.topology, problem, state, self.min_length)
        graph = _graph_of(shape, inside.span, problem)
        return {
            "graph_": graph,
            "bandwidth_": problem.bandwidth,
            "noise_": first.noise,
            "components_": np.ascontiguousarray(np.asarray(inside.span.frame).T),
            "offset_": np.asarray(inside.span.origin),
            "n_features_in_": graph.points.shape[1],
        }

    def _choose_components(self, centered: Centered, grown: GrownTree) -> GrownTree:
        """Take the tree in a component or two more where rows held out are likelier about it."""
        q, (n, D), unique = len(self.components_), centered.rows.shape, centered.unique
        if q == D or not _FEWEST_TO_HOLD_OUT <= n <= _MOST_TO_HOLD_OUT or self.graph_.latent.lengths.sum() == 0:
            return grown
        tried = [(self, grown)]
        for count in range(q + 1, min(q + _MORE_COMPONENTS, D) + 1):
            other = clone(self).set_params(bandwidth=self.bandwidth_, root=None, verbose=0)
            other.set_callbacks()  # as for trees of rows drawn anew
            tried.append((other, other._grow(centered, count)))
        data = RowsOfTree(unique.rows, unique.weight, self.noise_)
        scored = [
            ScoredTree(
                ends_and_forks(tree.graph_)[0],
                held_out_log_density(data, tree.graph_, len(tree.components_), own.problem),
            )
            for tree, own in tried
        ]
        chosen, grown = tried[simplest_of(scored, unique.weight)]
        self.graph_, self.noise_, self.components_ = chosen.graph_, chosen.noise_, chosen.components_
        return grown

    def _drop_weak_branches(self, redrawn: RedrawnTrees, grown: GrownTree) -> None:
        """Leave out short branches that trees of rows drawn anew do not have."""
        (_, _, span), problem, state = grown
        tips = weak_tips(self, redrawn, self.min_support)
        if len(tips):
            shape = find_shape(self.topology, problem, state, self.min_length)
            self.graph_ = _graph_of(without_ends(problem, shape, span.inside(tips)), span, problem)

    def _take_common_tree(self, redrawn: RedrawnTrees, grown: GrownTree) -> None:
        """Take the shape that half of the trees of rows drawn anew have, where it has ends that this one lacks."""
        span, problem = grown.inside.span, grown.problem
        common = common_tree(self, redrawn)
        if common is not None:
            graph = _graph_of(shape_of_graph(problem, common, span, self.min_length), span, problem)
            if ends_and_forks(graph) == ends_and_forks(common):
                self.graph_ = graph

    def _shape_warnings(
        self, inside: RowsInFrame, problem: TreeProblem, state: TreeState
    ) -> list[tuple[str, type[Warning]]]:
        """Warnings about rows that do not lie along such a tree: message and category."""
        if float(self.graph_.latent.lengths.sum()) == 0:
            why = "all rows are equal" if len(inside.rows) == 1 else "no branch stands out from the noise"
            return [(f"{why}, so that the tree has no length", DegenerateWarning)]
        loop = branches_with_loop(problem, state, self.min_length)
        fit = FittedTree(self.graph_, self._inside, inside, problem.weight, self.noise_, self.bandwidth_, loop)
        words = doubt(self.topology, fit)
        return [(words, StructureWarning)] if words else []

    @property
    def _span(self) -> ColumnSpan:
        return ColumnSpan(self.components_.T, self.offset_)

    @property
    def _inside(self) -> BranchCurves:
        """The branches in the coordinates of the components that they lie in."""
        frame = self.components_.T
        return BranchCurves(self.graph_.latent, self._span.inside(self.graph_.points), self.graph_.tangents @ frame)

    def _latent_of(self, table: FloatArray) -> FloatArray:
        return self._nearest(table).latent.astype(table.dtype, copy=False)

    def _nearest(self, table: FloatArray) -> Projection:
        rows = np.asarray(table, dtype=np.float64)
        found = self._inside.nearest(self._span.inside(rows))
        squared = found.squared_distance + self._span.outside(rows)
        latent = self.graph_.network.name_forks(found.latent)
        return found._replace(latent=latent, points=self._span.from_coordinates(found.points), squared_distance=squared)

    def _point(self, Z: FloatArray) -> FloatArray:
        return self.graph_.point(Z)

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return self.graph_.jacobian(Z)

    def _mesh(self, resolution: int | None = None) -> Mesh:
        return self.graph_.mesh(resolution)

    def _restore(self) -> None:
        """Refuse parts of a file that do not fit together."""
        check_parameters(self, self._constraints)
        graph = self.graph_
        fits = graph.points.shape[1] == self.n_features_in_ and graph.globe is None
        require_parts({f"a graph_ in {self.n_features_in_} columns": fits})
        about, frame = graph.points - self.offset_, self.components_
        within = np.allclose(about @ frame.T @ frame, about, atol=1e-6 * np.abs(about).max(initial=1e-300))
        require_parts({"components_ in which the graph_ lies": bool(within)})
        _ = self.rooted_  # refuses roots that do not fit the graph

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "graph_")


def _train(
    problem: TreeProblem, centers: FloatArray, max_iter: int, tol: float, listeners: Listeners
) -> Outcome[TreeState]:
    """Steps of the centres and their tree until the objective has settled."""
    spread = float(problem.weight @ np.square(problem.rows).sum(axis=1)) or 1.0
    return run_fixed_point(
        lambda: problem.begin(centers),
        problem.step,
        lambda state: {"objective": -state.objective / spread},
        max_iter=max_iter,
        tol=tol,
        listeners=listeners,
    )


def _graph_of(shape: TreeShape, span: ColumnSpan, problem: TreeProblem) -> RidgeGraph:
    """The branches in the columns of the data."""
    centers, mass = shape.centers, problem.begin(shape.centers).assigned.mass

    def log_density(points: FloatArray) -> FloatArray:
        return log_mixture(span.inside(points), centers, mass, problem.bandwidth, len(np.asarray(span.origin)))

    points = span.from_coordinates(centers)
    return RidgeGraph.along(net_of(points, log_density(points), problem.bandwidth), shape.paths, log_density)
