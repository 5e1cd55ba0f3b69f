"""The self-organising map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.base.block_surveys import survey_table
from prinfold.base.callbacks import fit_method
from prinfold.base.file_requirements import require_parts
from prinfold.base.starting_points import column_variances, observed_mean, weighted_mean
from prinfold.basis_maps.default_sizes import GRIDS, LATENTS, make_map_latent
from prinfold.devices import current_device, find_device
from prinfold.exceptions import (
    Advice,
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    Message,
    UnsupportedInputError,
    warn_caller,
)
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, positive
from prinfold.latent import LatentSpace
from prinfold.loops import Scheduled, run_fixed_point
from prinfold.rows.blocks import Blocks
from prinfold.rows.rows import FEWEST_BLOCK_ROWS, Rows, as_rows, fill_gaps
from prinfold.rows.streams import stream_of
from prinfold.som import model
from prinfold.som.neighborhoods import NEIGHBORHOODS, Neighborhood
from prinfold.som.node_surface import NARROWEST, NodeMap, NodeWins
from prinfold.som.schedules import Schedule, as_schedule
from prinfold.som.verbs import SOMVerbs
from prinfold.validation.memory_limits import require_memory
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import column_names, refuse_empty_columns
from prinfold.validation.settings import (
    Constraint,
    as_generator,
    axis_counts,
    check_parameters,
    device_name,
    flag,
    instance_of,
    integer,
    nothing,
    one_of,
    random_state,
    real,
)
from prinfold.validation.tables import as_numbers, check_table, check_weight, forget, has_gaps, rows_with_weight

_FEWEST_ROWS = 2
_DEFAULT_EPOCHS = 30
"""Epochs in which the neighbourhood shrinks."""

_DEFAULT_RATES = 0.5, 0.01
"""Rates of online steps, the first and the last."""

_SCHEDULE = instance_of(Schedule, words="a Schedule")


class MakeRows(NamedTuple):
    """Rows to be trained on: their whole weight, those at hand, and all of them cut for so many numbers of each."""

    total: float
    table: FloatArray
    make: Callable[[int], Rows]


@fill_parameter_docs
@storable
class SOM(SOMVerbs):
    """Self-organising map: a grid of nodes in data space that neighbours on the grid hold together.

    Every row is won by the node nearest to it, and nodes move to the mean of what their neighbourhood on the grid has
    won, while that neighbourhood shrinks. The map of a node's place to its vector is a kernel regression of the rows
    on the grid, defined between nodes as well; that surface is what the verbs of a principal manifold speak of.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the grid, where the latent space leaves it open.
    nodes : int, tuple of int or latent space, default=None
        Nodes along each axis, or nodes and topology together; None takes about 5√n in all.
    grid : {"rectangular", "hexagonal"}, default="rectangular"
        How nodes lie: with four neighbours or, on two axes, with six.
    {latent}
    neighborhood : str or neighbourhood, default="gaussian"
        How much a node learns of rows that another has won, by the distance between the two in units of the width:
        ``"gaussian"``, exp(−s²/2); ``"bubble"``, 1 up to one width; ``"epanechnikov"``, 1 − s² up to one width.
    width : float or Schedule, default=None
        Width of the neighbourhood in node spacings, which falls with the epochs; see :class:`~prinfold.Schedule`.
        What is left open begins with a standard deviation of a quarter of the grid and ends with one of half a
        spacing.
    rate : float or Schedule, default=None
        How far an online step goes; from 0.5 to 0.01 where it is left open. Not with ``trainer="batch"``.
    trainer : {"batch", "online"}, default="batch"
        Whether nodes move after all rows, or after each. ``"online"`` holds the rows in memory once more.
    init : str or array of shape (K, D), default="pca"
        ``"pca"`` (the principal plane), ``"random"`` (rows drawn by chance) or the vectors of the nodes.
    max_iter : int, default=200
        Most epochs.
    tol : float, default=1e-5
        After the schedule, batch training ends when the share of the variance that winners leave changes by
        less in an epoch, or has not fallen by it in ten, and online training at once; 0 never stops early.
    random_state : int, RandomState or Generator, default=None
        Seed of a random start and of the order of rows.
    device : str, default=None
        Where epochs of batch training are computed, by the name that torch has for it, such as ``"cuda"``; None is
        the processor, which also takes small tables, missing cells and online training. It needs the extra ``gpu``,
        and is not kept in files.
    {verbose}

    Attributes
    ----------
    {latent_}
    codebook_ : ndarray of shape (K, D)
        Vectors of the nodes, as training left them.
    width_ : float
        Width of the neighbourhood in the last epoch, in node spacings.
    cell_means_ : ndarray of shape (K, D)
        Mean of the rows that each node had won when the surface was made of them, the offset where there were none.
    cell_mass_ : ndarray of shape (K, 1) or (K, D)
        Weight of those rows; for each column where cells were missing.
    node_mass_ : ndarray of shape (K,)
        Weight of the rows that each node wins in the end.
    {offset_}
    n_iter_ : int
        Epochs done.
    converged_ : bool
        Whether training came to its end.
    {stop_reason_}
    history_ : dict of list
        ``objective`` (minus the share of the variance that winners leave), ``error`` (mean squared distance of rows
        from their winners; of online training when they were visited), ``width`` and ``seconds``, the first entry being
        the start.
    {n_features_in_}
    {feature_names_in_}

    Notes
    -----
    On closed axes nodes stand on a circle whose circumference is their number, and distances are chords of it: near
    nodes are as far apart as round the circle, and the surface has no kink opposite to any of them.

    With a Gaussian neighbourhood and batch training the surface at the nodes is the codebook. A bubble has jumps and
    Epanechnikov's function kinks, so that their surface is made with the Gaussian of the same standard deviation; that
    of online training is what a batch step would make of the rows that the codebook wins.

    References
    ----------
    Kohonen (1982), Self-organized formation of topologically correct feature maps, Biological Cybernetics 43.
    Mulier & Cherkassky (1995), Self-organization as an iterative kernel smoothing process, Neural Computation 7.
    Svensén (1998), GTM: the generative topographic mapping, PhD thesis, Aston University, sections 3.4.1 and 4.4.

    Examples
    --------
    >>> from prinfold import SOM, datasets
    >>> data = datasets.make_ridge(196, rng=0)
    >>> model = SOM(nodes=10).fit(data.X)
    >>> model.winners(data.X).shape
    (196,)
    """

    _stored: ClassVar[Kinds] = {
        **SOMVerbs._stored,
        "codebook_": numbers("latent_.n_nodes", "n_features_in_"),
        "width_": positive,
        "cell_means_": numbers("latent_.n_nodes", "n_features_in_"),
        "cell_mass_": numbers("latent_.n_nodes", 1, least=0) | numbers("latent_.n_nodes", "n_features_in_", least=0),
        "node_mass_": numbers("latent_.n_nodes", least=0),
        "offset_": numbers("n_features_in_"),
    }
    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_components": integer(1, 32),
        "nodes": nothing | axis_counts | instance_of(LatentSpace, words="a latent space"),
        "grid": one_of(GRIDS),
        "latent": nothing | one_of(LATENTS) | instance_of(LatentSpace, words="a latent space"),
        "neighborhood": one_of(NEIGHBORHOODS)
        | Constraint(lambda v: all(hasattr(v, verb) for verb in ("value", "relative", "spread")), "a neighbourhood"),
        "width": nothing | real(0, above=True) | _SCHEDULE,
        "rate": nothing | real(0, above=True) | _SCHEDULE,
        "trainer": one_of(model.TRAINERS),
        "init": one_of(model.STARTS) | instance_of(np.ndarray, words="an array with a row for each node"),
        "max_iter": integer(0),
        "tol": real(0),
        "random_state": random_state,
        "device": device_name,
        "verbose": integer(0) | flag,
    }
    _accept_sparse: ClassVar[bool] = True
    _accept_missing: ClassVar[bool] = True
    _uses_devices: ClassVar[bool] = True
    width_: float
    cell_means_: FloatArray
    cell_mass_: FloatArray
    node_mass_: FloatArray

    def __init__(
        self,
        n_components: int = 2,
        *,
        nodes: Any = None,
        grid: str = "rectangular",
        latent: Any = None,
        neighborhood: Any = "gaussian",
        width: Any = None,
        rate: Any = None,
        trainer: str = "batch",
        init: Any = "pca",
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: RandomState = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.nodes = nodes
        self.grid = grid
        self.latent = latent
        self.neighborhood = neighborhood
        self.width = width
        self.rate = rate
        self.trainer = trainer
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # ---------------------------------------------------------------------------------------- fitting

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train the map.

        Parameters
        ----------
        X : array-like of shape (n, D) or Blocks
            Rows of numbers; a frame, array, memory map or, for batch training, a sparse matrix, which is filled in
            block by block only. Cells that are missing are NaN: winners are found by the others, and nodes learn from
            the others alone. :class:`~prinfold.Blocks` are read once for each epoch of batch training, and never held.
        y : ignored
        {sample_weight}

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        if self.rate is not None and self._takes_blocks:
            raise InvalidParameterError(
                Message(
                    f"rate={self.rate!r} is the step size of online training, and batch training has none",
                    Advice("trainer", "online"),
                    "leave rate at None",
                )
            )
        forget(self)
        rows = self._survey(X, sample_weight) if isinstance(X, Blocks) else self._check_rows(X, sample_weight)
        self._train(rows)
        for words, category in self._fit_warnings():
            warn_caller(words, category)
        return self

    def _survey(self, blocks: Blocks, sample_weight: Any) -> MakeRows:
        """Rows that are read once for each epoch, after a first look at them."""
        if not self._takes_blocks:
            words = "online training visits rows one by one, in random order, which those of Blocks cannot be"
            raise UnsupportedInputError(Message(words, Advice("trainer", "batch", "use {}")))
        found = survey_table(self, blocks, sample_weight, _FEWEST_ROWS)
        return MakeRows(found.found.total, found.sample.table, partial(stream_of, found))

    def _check_rows(self, X: Any, sample_weight: Any) -> MakeRows:
        """Rows of a table at hand, those that count."""
        table = check_table(
            self, X, reset=True, min_rows=_FEWEST_ROWS, accept_sparse=self._accept_sparse, accept_missing=True
        )
        if not self._takes_blocks and not isinstance(table, np.ndarray):
            raise UnsupportedInputError(
                Message(
                    "online training takes no sparse table", Advice("trainer", "batch", "use {}"), "pass X.toarray()"
                )
            )
        weight = check_weight(sample_weight, table)
        kept = self._training_rows(table, weight)
        if kept is not None:
            table, weight = table[kept], None if weight is None else weight[kept]
        gaps = has_gaps(table)
        if gaps:
            refuse_empty_columns(table, column_names(self))
        total = table.shape[0] if weight is None else float(weight.sum())
        middle = (observed_mean if gaps else weighted_mean)(table, weight)
        return MakeRows(total, table, lambda width: as_rows(table, middle, weight, width=width, gaps=gaps))

    def _training_rows(self, table: FloatArray, weight: FloatArray | None) -> IntArray | None:
        """Indices of the rows with a weight above 0 and at least one value; None for all rows."""
        weighty = rows_with_weight(weight, min_rows=_FEWEST_ROWS)
        if not has_gaps(table):
            return weighty
        seen = ~np.isnan(table).all(axis=1)
        if not seen.all():
            words = f"{(~seen).sum()} row(s) have no value in any column, the first being row {seen.argmin()}"
            warn_caller(f"{words}. They are left out of training", DegenerateWarning)
        seen &= True if weight is None else weight > 0
        kept = np.flatnonzero(seen)
        if len(kept) < _FEWEST_ROWS:
            raise InvalidDataError(
                f"only {len(kept)} row(s) have a value and a weight above 0, but a map needs at least {_FEWEST_ROWS}"
            )
        return None if seen.all() else kept

    @property
    def _takes_blocks(self) -> bool:  # type: ignore[override]
        """Batch training walks over rows in any form; online training visits them one by one, with a step size."""
        return self.trainer == "batch"

    def _train(self, rows: MakeRows) -> None:
        problem, rng = self._problem(rows), as_generator(self.random_state)
        trainer = model.TRAINERS[self.trainer]
        _warn_about_device(problem.rows, trainer)
        codebook = self._start(problem, rng)
        epochs = problem.width.epochs if trainer.settles else max(problem.width.epochs, problem.rate.epochs)
        loop = partial(
            run_fixed_point,
            lambda: model.initial_state(problem, codebook),
            trainer.epoch(problem, rng),
            partial(model.measure, problem),
            rule=Scheduled(epochs, trainer.settles, self.tol),
        )
        self._train_with_callbacks(rows.table, partial(self._attributes, problem), loop)

    def _problem(self, given: MakeRows) -> model.SOMProblem:
        latent = make_map_latent(self.grid, self.latent, self.nodes, self.n_components, given.total)
        _require_room(latent.n_nodes, given.table)
        rows = replace(given.make(latent.n_nodes), device=find_device(self.device) or current_device())
        neighborhood = self._neighborhood()
        width = model.default_width(as_schedule(self.width, _DEFAULT_EPOCHS), latent, neighborhood)
        rate = as_schedule(self.rate, width.epochs).resolved(*_DEFAULT_RATES)
        if max(rate.at(0), rate.at(rate.epochs)) > 1:
            raise InvalidParameterError(
                f"rate must be at most 1, got {self.rate!r}. A rate of 1 moves a node all the way to the row"
            )
        return model.SOMProblem(rows, latent, neighborhood, width, rate, float(column_variances(rows).sum()))

    def _neighborhood(self) -> Neighborhood:
        found: Neighborhood = (
            NEIGHBORHOODS[self.neighborhood] if isinstance(self.neighborhood, str) else self.neighborhood
        )
        return found

    def _start(self, problem: model.SOMProblem, rng: np.random.Generator) -> FloatArray:
        """(K, D) initial codebook vectors, about the offset."""
        if isinstance(self.init, str):
            return model.STARTS[self.init](fill_gaps(problem.rows.sample), problem.latent, rng)
        shape = problem.latent.n_nodes, problem.rows.n_columns
        given = as_numbers("init", self.init)
        if given.shape != shape or not np.isfinite(given).all():
            raise InvalidParameterError(
                f"init must hold finite vectors of shape {shape}, one row for each node, got shape {given.shape}"
            )
        return given - problem.rows.offset

    def _attributes(self, problem: model.SOMProblem, state: model.SOMState) -> dict[str, Any]:
        """Fitted attributes from the state that is kept."""
        offset, (made, won) = problem.rows.offset, model.final_wins(problem, state)
        found = {
            "latent_": problem.latent,
            "codebook_": state.codebook + offset,
            "width_": state.width,
            "cell_means_": made.means + offset,
            "cell_mass_": made.mass,
            "node_mass_": won.mass.mean(axis=1),
            "offset_": offset,
            "n_features_in_": problem.rows.n_columns,
        }
        return found | {"_model": self._make_map(found)}

    def _make_map(self, found: dict[str, Any]) -> NodeMap:
        """The surface through the nodes, from the fitted attributes."""
        latent, mass = found["latent_"], found["cell_mass_"]
        width = found["width_"] * self._neighborhood().spread(latent.dimension)
        return NodeMap(latent, NodeWins(mass, mass * (found["cell_means_"] - found["offset_"])), max(width, NARROWEST))

    def _fit_warnings(self) -> list[tuple[str, type[Warning]]]:
        """Warnings to give after a fit, each with its category."""
        found = self._stopping_warnings()
        if self.n_features_in_ < self.latent_.dimension:
            words = f"a map of {self.latent_.dimension} dimensions in {self.n_features_in_} column(s) is not determined"
            found.append((Message(words, Advice("n_components", self.n_features_in_)), DegenerateWarning))
        if self.latent_.n_nodes == 1:
            words = "the map has a single node, so that its surface is the mean of the rows"
            found.append((Message(words, Advice("nodes", words="raise {}")), DegenerateWarning))
        elif (
            np.ptp(self.cell_means_[self.cell_mass_.any(axis=1)], axis=0).max() == 0 and self.history_["error"][-1] == 0
        ):
            words = "all rows are equal, so that the surface is a single point. Give rows that differ"
            found.append((words, DegenerateWarning))
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_blocks
        return tags

    def _restore(self) -> None:
        """Rebuild the surface, which files do not hold, and refuse parts that do not fit together."""
        check_parameters(self, self._constraints)
        require_parts({"a cell_mass_ above zero in each column": bool((self.cell_mass_ > 0).any(axis=0).all())})
        self._model = self._make_map(dict(vars(self)))


def _warn_about_device(rows: Rows, trainer: model.SOMTrainer) -> None:
    """Say that a fit cannot use the device that it was given."""
    if rows.device is None or (trainer.in_passes and not rows.gaps):
        return
    here = f"the processor does this fit, and not {rows.device.name}"
    if rows.gaps:
        words = Message(f"{here}: no device has the passes of rows with missing cells", "fill in the cells")
    else:
        batch = Advice("trainer", words="set {} to 'batch'")
        words = Message(f"{here}: online training moves a node after every row, which no device would gain by", batch)
    warn_caller(words, DegenerateWarning)


_MOST_NODES = 2**20
"""Every epoch compares each row with each node; with more nodes than this a map of a hundred rows takes minutes."""

_ARRAYS_OF_A_NODE = 6
"""Vectors of each node, as long as a row: the codebook before and after, what nodes have won, and the start."""


def _require_room(n_nodes: int, table: FloatArray) -> None:
    """Refuse more nodes than there is time or memory for."""
    fewer = Advice("nodes", words="use fewer {}")
    if n_nodes > _MOST_NODES:
        words = f"a map of {n_nodes} nodes would be compared with each of {table.shape[0]} rows in every epoch"
        raise InvalidParameterError(Message(f"{words}; at most {_MOST_NODES} nodes are allowed", fewer))
    numbers_per_node = _ARRAYS_OF_A_NODE * table.shape[1] + 2 * min(table.shape[0], FEWEST_BLOCK_ROWS)
    require_memory(f"a map of {n_nodes} nodes", float(n_nodes) * numbers_per_node, fewer)
