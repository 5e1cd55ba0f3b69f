"""What an elastic net is worth and what it costs, beside maps of basis functions and Gaussian processes.

    python -m benchmarks.gtm.elastic_net [--full] [--only 1,2,3,4]

1. New rows and the true surface: log-likelihood of fresh rows, and mean squared distance from the fitted surface to
   the true one at the places to which fresh rows project, relative to the GTM's. Every contestant sees the same rows.
2. Tours of random cities by a closed net under tension that is slackened step by step, beside the best of all tours
   that go to the nearest city left, and beside two-opt from both: lengths, relative to the shortest that any found.
3. What a step costs: seconds of an EM step by the number of nodes, beside nine basis functions on an axis.
4. How stiff a net should be when nobody says: what each λ, and the evidence, loses to the best of them per new row, and
   how many times as far from the truth it is as the nearest of them, of both orders.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from benchmarks.gtm.process import SHAPES
from benchmarks.timing import print_table

from prinfold import GTM, ElasticNetBasis, GaussianProcess, datasets
from prinfold._typing import FloatArray, IntArray

Contestants = dict[str, dict[str, Any]]
Marks = dict[str, list[float]]

CONTESTANTS: Contestants = {
    "GTM": {},
    "process": {"basis": GaussianProcess()},
    "net": {"basis": ElasticNetBasis()},
    "net, evidence": {"basis": ElasticNetBasis(), "prior_precision": "evidence"},
    "net under tension, evidence": {"basis": ElasticNetBasis(1), "prior_precision": "evidence"},
}

STRENGTHS: Contestants = {f"λ = {each:g}": {"regularization": each} for each in (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)} | {
    "evidence": {"prior_precision": "evidence"}
}


def judged(contestants: Contestants, seeds: int, make: Any, n: int, noise: Any, settings: Any) -> tuple[Marks, Marks]:
    """Nats per fresh row and squared distance to the truth, of each contestant on each table."""
    score: Marks = {each: [] for each in contestants}
    distance: Marks = {each: [] for each in contestants}
    for seed in range(seeds):
        seen, fresh = make(n, **noise, rng=seed), make(1000, **noise, rng=1000 + seed)
        for each, options in contestants.items():
            model = GTM(max_iter=500, random_state=0, **settings, **options).fit(seen.X)
            score[each].append(model.score(fresh.X))
            if fresh.surface is not None:
                distance[each].append(float(np.mean(fresh.surface.distance(model.project(fresh.X)) ** 2)))
    return score, distance


def lattices() -> dict[str, tuple[Any, int, Any, Any]]:
    """The shapes but those on a sphere, which is no lattice."""
    return {name: each for name, each in SHAPES.items() if each[3].get("latent") != "sphere"}


def worth(seeds: int) -> None:
    rows = []
    for name, given in lattices().items():
        score, distance = judged(CONTESTANTS, seeds, *given)
        line = [name, f"{np.mean(score['GTM']):.3f}"]
        for each in list(CONTESTANTS)[1:]:
            gain = np.subtract(score[each], score["GTM"])
            ratio = np.divide(distance[each], distance["GTM"])
            near = f"{np.exp(np.mean(np.log(ratio))):.2f}" if len(ratio) else "—"
            line += [f"{gain.mean():+.3f}", near]
        rows.append(line)
    header = ["shape", "GTM, nats a row"]
    for each in list(CONTESTANTS)[1:]:
        header += [each, "distance"]
    print_table("what it is worth", header, rows)


def stiffness(seeds: int) -> None:
    for order in (2, 1):
        rows, most = [], dict.fromkeys(STRENGTHS, 0.0)
        for name, given in lattices().items():
            score, distance = judged(
                {each: {"basis": ElasticNetBasis(order), **options} for each, options in STRENGTHS.items()},
                seeds,
                *given,
            )
            nats = {each: float(np.mean(marks)) for each, marks in score.items()}
            lost = {each: max(nats.values()) - nats[each] for each in STRENGTHS}
            most = {each: max(most[each], lost[each]) for each in STRENGTHS}
            far = {each: float(np.mean(np.log(marks))) for each, marks in distance.items() if marks}
            near = {each: f"{np.exp(far[each] - min(far.values())):.1f}" for each in far}
            rows.append([name, *(f"{lost[each]:.2f} ({near.get(each, '—')})" for each in STRENGTHS)])
        rows.append(["most", *(f"{most[each]:.2f}" for each in STRENGTHS)])
        print_table(f"nats lost a row (and times as far), differences of order {order}", ["shape", *STRENGTHS], rows)


# ------------------------------------------------------------------------------------------------------------- tours


def tour_length(cities: FloatArray, order: IntArray) -> float:
    """Length of the closed tour."""
    return float(np.linalg.norm(cities[order] - cities[np.roll(order, -1)], axis=1).sum())


def elastic_tour(cities: FloatArray, n_tensions: int) -> IntArray:
    """Order in which a closed net passes cities when its tension is slackened from 3 to 0.001."""
    about = cities - cities.mean(axis=0)
    angle = np.arctan2(about[:, 1], about[:, 0])[:, None]
    for tension in np.geomspace(3.0, 1e-3, n_tensions):
        net = GTM(1, nodes=int(2.5 * len(cities)), latent="circle", basis=ElasticNetBasis(1), init=angle)
        net.set_params(regularization=tension, max_iter=30, tol=1e-6, noise_floor=1e-5)
        angle = net.fit(cities).transform(cities)
    return np.argsort(angle[:, 0])


def nearest_tour(cities: FloatArray) -> IntArray:
    """The shortest of the tours that go on to the nearest city left, over all cities to begin with."""
    between = np.linalg.norm(cities[:, None] - cities, axis=2)
    tours = []
    for first in range(len(cities)):
        order, left = [first], np.ones(len(cities), dtype=bool)
        left[first] = False
        while left.any():
            order.append(int(np.argmin(np.where(left, between[order[-1]], np.inf))))
            left[order[-1]] = False
        tours.append(np.array(order))
    return min(tours, key=lambda order: tour_length(cities, order))


def two_opt(cities: FloatArray, order: IntArray) -> IntArray:
    """Stretches of the tour turned round for as long as that makes it shorter."""
    length, shorter = tour_length(cities, order), True
    while shorter:
        shorter = False
        for i in range(1, len(order) - 1):
            for j in range(i + 1, len(order)):
                turned = np.concatenate([order[:i], order[i : j + 1][::-1], order[j + 1 :]])
                new = tour_length(cities, turned)
                if new < length - 1e-12:
                    order, length, shorter = turned, new, True
    return order


def tours(seeds: int) -> None:
    found: dict[str, list[float]] = {name: [] for name in ("net", "net, two-opt", "nearest city", "nearest, two-opt")}
    for seed in range(seeds):
        cities = np.random.default_rng(seed).uniform(size=(40, 2))
        net, nearest = elastic_tour(cities, 30), nearest_tour(cities)
        orders = (net, two_opt(cities, net), nearest, two_opt(cities, nearest))
        lengths = [tour_length(cities, order) for order in orders]
        for name, length in zip(found, lengths, strict=True):
            found[name].append(length / min(lengths))
    rows = [[name, f"{np.mean(each):.3f}", f"{np.max(each):.3f}"] for name, each in found.items()]
    print_table("tours of 40 cities, relative to the shortest", ["tour", "length", "worst"], rows)


def cost() -> None:
    """Seconds of the processor, so that other work on the machine does not count."""
    data, rows = datasets.make_pipe_flow(1000, rng=0), []
    for n in (10, 20, 30):
        line = [f"{n * n}"]
        for basis in (9, ElasticNetBasis()):
            spent = []
            for steps in (2, 32):
                begin = time.process_time()
                model = GTM(nodes=n, basis=basis, max_iter=steps, tol=0, relaxation=1.0).fit(data.X)
                spent.append(time.process_time() - begin)
            line.append(f"{1e3 * (spent[1] - spent[0]) / 30:.1f}")
        begin = time.process_time()
        ElasticNetBasis().bind(model.latent_).node_features  # noqa: B018
        rows.append([*line, f"{time.process_time() - begin:.2f}"])
    print_table("cost", ["nodes", "81 functions, ms a step", "net, ms a step", "factors of the net, s, once"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="more seeds")
    parser.add_argument("--only", default="1,2,3,4", help="which parts, such as 1,3")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = 5 if options.full else 2
    parts = {
        "1": lambda: worth(seeds),
        "2": lambda: tours(20 if options.full else 5),
        "3": cost,
        "4": lambda: stiffness(seeds),
    }
    for part in options.only.split(","):
        parts[part]()
        print()


if __name__ == "__main__":
    main()
