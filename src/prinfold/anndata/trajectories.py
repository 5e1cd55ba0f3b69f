"""Trajectories of cells: a tree with a root, the times and lineages of cells, and what else could explain them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.anndata.cells import NAME, check_cells_table, rows_of
from prinfold.base.trajectories import Trajectory, place_posterior
from prinfold.exceptions import InvalidDataError, InvalidParameterError, import_optional
from prinfold.latent.branch_graph import RootedGraph
from prinfold.metrics import confounding
from prinfold.notebook.settings import short_value
from prinfold.plot.data.dendrograms import place_rows, refuse_other_models
from prinfold.plot.inputs import numbers_of
from prinfold.trees.estimator import PrincipalTree
from prinfold.validation.settings import check_call, check_setting, flag, instance_of, several

_DEFAULT_KEY = "prinfold"

_GRAPH_NODES = 60
"""About as many nodes has the graph that is handed on."""


@check_call(use_rep=NAME, key_added=NAME, copy=flag)
def trajectory(
    adata: Any,
    model: Any = None,
    *,
    root: Any = None,
    use_rep: str = "X_pca",
    key_added: str = _DEFAULT_KEY,
    n_bootstrap: int = 0,
    random_state: RandomState = None,
    copy: bool = False,
) -> Any:
    """Fit a tree with a root to the cells of an ``AnnData`` object, and keep times, branches and lineages in it.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells.
    model : estimator, default=None
        What to fit, which is fitted itself; None is ``PrincipalTree()``. A curve or a ``DensityRidge`` may stand here.
    root : int, str or array, default=None
        Where time begins: the number or the name of a cell; the name of a column of ``adata.obs`` that marks cells, or
        holds a score that grows with time; a mask or a score itself. None takes the root of ``model``, then
        ``adata.uns["iroot"]`` where there is one.
    use_rep : str, default="X_pca"
        The columns to fit to: a key of ``adata.obsm``, such as ``"X_scVI"`` or ``"X_pca_harmony"``, or ``"X"``. They
        are never rescaled.
    key_added : str, default="prinfold"
        Name under which results are kept; another one stands before the names in ``adata.obs`` too.
    n_bootstrap : int, default=0
        Fits of cells drawn anew, for the standard deviation of times and the support of forks.
    random_state : int, RandomState or Generator, default=None
        Seed of these.
    copy : bool, default=False
        Whether a copy is changed and returned, rather than ``adata`` itself.

    Returns
    -------
    anndata.AnnData or None
        The copy, if one was asked for. ``obs`` holds ``pseudotime``, ``pseudotime_sd``, ``branch`` and ``milestone``;
        ``obsm["X_<key>"]`` two columns that ``scanpy.pl.embedding`` draws, time and lane;
        ``obsm["<key>_lineages"]`` the weight of each lineage; ``uns["<key>"]`` the settings, milestones, forks and
        ``root_cell``, the number of the cell of the earliest time; ``uns["graph"]``, ``uns["pseudotime_list"]``,
        ``obs["t"]``, ``obs["seg"]``, ``obs["edge"]``, ``obs["milestones"]`` and ``obsm["X_R"]`` what scFates reads.

    Notes
    -----
    ``uns["iroot"]``, which scanpy reads, becomes the root cell only where a root was given and the object has none yet.
    A root that is there is never changed, and one that nobody gave is not written there.

    scFates reads fixed names, so that these hold the last trajectory: a second call replaces them, whatever its
    ``key_added``. All that has the key in its name stays.
    """
    rows = numbers_of(rows_of(adata, use_rep))
    model = PrincipalTree() if model is None else model
    refuse_other_models_by_class(model)
    told = root_of(adata, root) if root is not None else adata.uns.get("iroot") if model.root is None else model.root
    model.set_params(root=told).fit(rows)
    found = model.trajectory(rows, n_bootstrap=n_bootstrap, random_state=random_state)
    layout = place_rows(model, rows)[1]
    graph = graph_for_scfates(model, rows, found, use_rep)
    about = _summary(model, found, use_rep)
    target = adata.copy() if copy else adata
    _store(target, found, layout, graph, about, key_added)
    if told is not None:
        target.uns.setdefault("iroot", about["root_cell"])
    return target if copy else None


_COLUMN = instance_of(str, words="the name of a column")
_COLUMNS = _COLUMN | several(_COLUMN, "such names")


def confounders(adata: Any, columns: Sequence[str] | str, *, key_added: str = _DEFAULT_KEY) -> Any:
    """Shares of a trajectory that columns such as a batch, a cell-cycle score or the depth of cells explain.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells with a :func:`trajectory`.
    columns : str or sequence of str
        Columns of ``adata.obs``: numbers or groups.
    key_added : str, default="prinfold"
        Name of the trajectory.

    Returns
    -------
    pandas.DataFrame
        A row for each column: ``pseudotime``, the share of the variance of times that it explains, and ``branch``, the
        share of the variance between branches; 0 is none and 1 is all, corrected for chance.
    """
    pandas = import_optional("pandas", "data", "a table of confounders")
    check_cells_table(adata)
    check_setting("columns", columns, _COLUMNS)
    check_setting("key_added", key_added, _COLUMN)
    names = [columns] if isinstance(columns, str) else list(columns)
    time, branch = (f"{_prefix(key_added)}{name}" for name in ("pseudotime", "branch"))
    for name in (time, branch, *names):
        if name not in adata.obs:
            hint = "; run prinfold.anndata.trajectory first" if name in (time, branch) else ""
            raise InvalidParameterError(f"adata.obs has no column {name!r}{hint}")
    t, b = np.asarray(adata.obs[time], dtype=float), np.asarray(adata.obs[branch].astype(str))
    found = [confounding(t, b, _plain(adata.obs[name])) for name in names]
    return pandas.DataFrame(found, index=names, columns=["pseudotime", "branch"])


def root_of(adata: Any, root: Any) -> Any:
    """A root as estimators take it, from the name of a cell or of a column."""
    if not isinstance(root, str):
        values = getattr(root, "to_numpy", None)
        return root if values is None else values()
    if root in adata.obs:
        column = _plain(adata.obs[root])
        if column.dtype.kind not in "bfiu":
            raise InvalidDataError(
                f"adata.obs[{root!r}] holds words. A root is a column of marks or of a score; for cells of one kind "
                f"pass adata.obs[{root!r}] == 'the kind'"
            )
        return column if column.dtype == bool else column.astype(float)
    at = np.flatnonzero(np.asarray(adata.obs_names) == root)
    if not len(at):
        raise InvalidParameterError(f"root={root!r} is neither a column of adata.obs nor the name of a cell")
    return int(at[0])


def refuse_other_models_by_class(model: Any) -> None:
    """Refuse models that have no time, before they are fitted."""
    if not hasattr(type(model), "trajectory"):
        refuse_other_models(model)


def _plain(column: Any) -> Any:
    """A column as an array: numbers and marks as they are, categories as words."""
    values = np.asarray(column.astype(object) if str(column.dtype) == "category" else column)
    return values if values.dtype.kind in "bfiu" else values.astype(str)


def _prefix(key: str) -> str:
    return "" if key == _DEFAULT_KEY else f"{key}_"


def _store(
    target: Any, found: Trajectory, layout: FloatArray, graph: ScFatesGraph, about: dict[str, Any], key: str
) -> None:
    """Write everything, all of which is computed before."""
    pandas = import_optional("pandas", "data", "a table of cells")
    prefix, names = _prefix(key), np.asarray(found.milestones.names)
    obs = target.obs
    obs[f"{prefix}pseudotime"], obs[f"{prefix}pseudotime_sd"] = found.pseudotime, found.pseudotime_sd
    obs[f"{prefix}branch"] = pandas.Categorical([f"branch {b}" for b in found.branch])
    obs[f"{prefix}milestone"] = pandas.Categorical(names[found.milestone], categories=names)
    weights = pandas.DataFrame(found.lineage_weights, index=target.obs_names, columns=list(found.lineages))
    target.obsm[f"X_{key}"], target.obsm[f"{key}_lineages"] = layout, weights
    target.uns[key] = about
    obs["t"], obs["seg"] = found.pseudotime, pandas.Categorical(graph.seg)
    obs["edge"], obs["milestones"] = pandas.Categorical(graph.edge), obs[f"{prefix}milestone"]
    target.obsm["X_R"], target.uns["graph"] = graph.assignments, graph.uns
    cells = pandas.DataFrame({"t": obs["t"], "seg": obs["seg"], "edge": obs["edge"]}, index=target.obs_names)
    target.uns["pseudotime_list"] = {"0": cells}


def _summary(model: Any, found: Trajectory, use_rep: str) -> dict[str, Any]:
    """Settings, milestones and forks, in words and numbers that files of cells can hold."""
    settings = {name: short_value(value) for name, value in model.get_params(deep=False).items()}
    about = {
        "model": type(model).__name__,
        "params": settings | {"use_rep": use_rep},
        "root_cell": int(found.pseudotime.argmin()),
        "milestones": np.asarray(found.milestones.names, dtype=str),
        "milestone_times": found.milestones.times,
        "lineages": np.asarray(found.lineages, dtype=str),
        "doubt": str(getattr(model, "doubt_", "")),
        "version": version("prinfold"),
    }
    if found.bootstrap is not None:
        about["fork_support"] = found.bootstrap.fork_support
    return about


# ------------------------------------------------------------------------------------------------------ for scFates


class ScFatesGraph(NamedTuple):
    """A graph as scFates keeps it: ``uns``, soft ``assignments`` (n, K) to nodes, and ``seg`` and ``edge`` of cells.

    Nodes are places along the branches, those at ends and forks first, then a root within a branch.
    """

    uns: dict[str, Any]
    assignments: FloatArray
    seg: list[str]
    edge: list[str]


def graph_for_scfates(model: Any, rows: FloatArray, found: Trajectory, use_rep: str) -> ScFatesGraph:
    """The graph in the layout of scFates 1: matrices B and F, tips, forks, root, and tables of nodes and segments."""
    pandas = import_optional("pandas", "data", "a table of nodes")
    rooted = found.rooted
    Z, edges = _nodes_and_edges(rooted)
    times, points = rooted.times(Z), np.asarray(model.inverse_transform(Z), dtype=float)
    links = np.zeros((len(Z), len(Z)))
    links[edges[:, 0], edges[:, 1]] = links[edges[:, 1], edges[:, 0]] = 1.0
    degree = links.sum(axis=0)
    root = int(rooted.graph.distances(rooted.roots[:1], Z)[0].argmin())
    segments, seg_of_edge = _segments(edges, degree, times, root)
    noise = float(np.sqrt(np.mean(np.square(rows - np.asarray(model.project(rows))))) or 1.0)
    assignments = place_posterior(rows, points, np.zeros(len(Z)), noise)
    place = np.asarray(model.transform(rows), dtype=float)
    edge = _edge_of(rooted, Z, edges, place)
    names = [str(s + 1) for s in range(len(segments))]
    node_seg = np.ones(len(Z), dtype=int)
    node_seg[edges.ravel()] = np.repeat(seg_of_edge + 1, 2)
    steps = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    span = np.bincount(seg_of_edge, steps, minlength=len(segments))
    uns = {
        "B": links,
        "F": points.T,
        "tips": np.flatnonzero(degree == 1),
        "forks": np.flatnonzero(degree > 2),
        "root": root,
        "metrics": "euclidean",
        "method": "ppt",
        "use_rep": use_rep,
        "pp_info": pandas.DataFrame({"PP": np.arange(len(Z)), "time": times, "seg": node_seg.astype(str)}),
        "pp_seg": pandas.DataFrame(
            {"n": names, "from": [a for a, _ in segments], "to": [b for _, b in segments], "d": span},
            index=np.arange(1, len(segments) + 1),  # scFates looks segments up by number
        ),
        "milestones": {
            name: int(rooted.graph.distances(z[None], Z)[0].argmin())
            for name, z in zip(found.milestones.names, found.milestones.Z, strict=True)
        },
    }
    seg = [names[s] for s in seg_of_edge[edge]]
    return ScFatesGraph(uns, assignments, seg, [f"{a}|{b}" for a, b in edges[edge].tolist()])


def _nodes_and_edges(rooted: RootedGraph) -> tuple[FloatArray, IntArray]:
    """Coordinates (K, 1) of nodes, each place and root once, and edges (E, 2) along the branches."""
    graph = rooted.graph
    known = [float(z) for z in graph.places[:, 0]]
    edges: list[tuple[int, int]] = []
    for b, latent_nodes in enumerate(_coordinates_on_branches(rooted)):
        first, last = graph.ends[b]
        inner = list(range(len(known), len(known) + len(latent_nodes)))
        known += latent_nodes
        way = [int(first), *inner, int(last)] if first >= 0 else [*inner, inner[0]]
        edges += pairwise(way)
    return np.array(known)[:, None], np.array(edges, dtype=np.int64)


def _coordinates_on_branches(rooted: RootedGraph) -> list[list[float]]:
    """Coordinates within each branch, a root among them where it lies there."""
    graph, fine = rooted.graph, rooted.graph.latent.refined(_GRAPH_NODES)
    branch, found = graph.latent.domain.piece(fine.nodes), []
    for b, closed in enumerate(graph.latent.closed.tolist()):
        z = fine.nodes[branch == b, 0]
        inside = z if closed else z[1:-1]
        low, high = graph.latent.domain.low[b], graph.latent.domain.high[b]
        slack = 1e-9 * (high - low)
        roots = rooted.roots[(rooted.roots > low + slack) & (rooted.roots < high - slack)]
        found.append(np.unique(np.concatenate([inside, roots])).tolist())
    return found


def _segments(
    edges: IntArray, degree: FloatArray, times: FloatArray, root: int
) -> tuple[list[tuple[int, int]], IntArray]:
    """Ways between nodes that are ends, forks or the root, earlier node first, and the way of each edge."""
    stops, of_edge = set(np.flatnonzero(degree != 2).tolist()) | {root}, np.full(len(edges), -1)
    segments: list[tuple[int, int]] = []
    beside: dict[int, list[tuple[int, int]]] = {}
    for e, (a, b) in enumerate(edges.tolist()):
        beside.setdefault(a, []).append((e, b))
        beside.setdefault(b, []).append((e, a))
    for start in [*sorted(stops), *range(len(times))]:  # a ring in another component has no stop
        for edge, _ in beside.get(start, []):
            if of_edge[edge] >= 0:
                continue
            here, way = start, edge
            while True:
                of_edge[way] = len(segments)
                here = next(b for e, b in beside[here] if e == way)
                onward = [e for e, _ in beside[here] if of_edge[e] < 0]
                if here in stops or not onward:
                    break
                way = onward[0]
            segments.append((start, here) if times[start] <= times[here] else (here, start))
    return segments, of_edge


def _edge_of(rooted: RootedGraph, Z: FloatArray, edges: IntArray, place: FloatArray) -> IntArray:
    """(n,) the edge that coordinates (n, 1) lie on: that whose two nodes are nearest along the graph."""
    to = rooted.graph.distances(place, Z)
    return np.asarray((to[:, edges[:, 0]] + to[:, edges[:, 1]]).argmin(axis=1))
