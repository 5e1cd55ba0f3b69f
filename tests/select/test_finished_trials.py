"""Comparisons that died are taken up again: candidates that were fitted are not fitted again."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold import GTM, choose, compare, datasets
from prinfold.exceptions import CheckpointError

X = datasets.make_half_circle(60, rng=0).X
GRID = {"width": (0.7, 1.0, 1.4), "nodes": (8,)}
METHODS = {"narrow": GTM(1, nodes=10, width=0.7), "wide": GTM(1, nodes=10, width=2.0)}

pytestmark = pytest.mark.filterwarnings("ignore")


class Death(BaseException):
    """The end of a process."""


@pytest.fixture
def count(monkeypatch):
    """Counts fits, and dies before the one with the number in ``count.last``."""
    fit, count = GTM.fit, type("Count", (), {"n": 0, "last": 10**9})()

    def counted(self, *args, **options):
        count.n += 1
        if count.n >= count.last:
            raise Death
        return fit(self, *args, **options)

    monkeypatch.setattr(GTM, "fit", counted)
    return count


def run_choose(path=None, **options):
    return choose(X, GRID, model=GTM(1, max_iter=5), by="held-out", folds=3, checkpoint=path, **options)


def run_compare(path=None, **options):
    return compare(X, METHODS, n_components=1, folds=3, checkpoint=path, **options)


@pytest.mark.parametrize(("run", "n_trials"), [(run_choose, 9), (run_compare, 6)])
def test_what_was_fitted_is_not_fitted_again(run, n_trials, count, tmp_path):
    plain, path = run(), tmp_path / "trials"
    n_fits = count.n
    count.n, count.last = 0, 5
    with pytest.raises(Death):
        run(path)
    count.n, count.last = 0, 10**9
    again = run(path)
    assert count.n == n_fits - 4
    for name in plain.table:
        if name not in ("seconds", "memory"):
            np.testing.assert_array_equal(again.table[name], plain.table[name], err_msg=name)
    assert again.chosen == plain.chosen
    count.n = 0
    run(path)
    assert count.n == n_fits - n_trials


def test_the_file_of_another_comparison_is_refused(tmp_path):
    path = tmp_path / "trials"
    run_choose(path)
    with pytest.raises(CheckpointError, match="checkpoint of a choose, and this is a compare"):
        run_compare(path)
    with pytest.raises(CheckpointError, match="random_state="):
        run_choose(path, rng=1)
    with pytest.raises(CheckpointError, match="max_iter=5, and this one has max_iter=6"):
        choose(X, GRID, model=GTM(1, max_iter=6), by="held-out", folds=3, checkpoint=path)
    with pytest.raises(CheckpointError, match="other rows"):
        choose(X + 1, GRID, model=GTM(1, max_iter=5), by="held-out", folds=3, checkpoint=path)
