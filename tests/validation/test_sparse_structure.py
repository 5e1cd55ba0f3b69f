"""Sparse matrices whose indices lead out of them are refused before compiled code follows them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from tests.properties.cases import cloud

from prinfold import GTM, SOM, Blocks, MixedGTM
from prinfold.cli.tables.reading import read_table
from prinfold.exceptions import InvalidDataError, NotEnoughMemoryError
from prinfold.expression.gene_tests import _check_counts
from prinfold.validation import memory_limits
from prinfold.validation.sparse_structure import refuse_broken_structure

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

FORMATS = ("csr", "csc", "bsr", "coo", "lil", "dok", "dia")


def matrix(format_of="csr"):
    return scipy.sparse.csr_matrix(cloud(20)).asformat(format_of)


def past_the_end(X):
    X.indices[3] = 10**6


def negative(X):
    X.indices[3] = -1


def backwards(X):
    X.indptr = X.indptr[::-1].copy()


def down_and_up(X):
    X.indptr[2] = X.indptr[1] - 1


def too_far(X):
    X.indptr[-1] += 5


def too_few(X):
    X.indptr = X.indptr[:-1]


def values_lost(X):
    X.data = X.data[:-1]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (past_the_end, "the index 1000000, where there are"),
        (negative, "the index -1, where there are"),
        (backwards, "pointers do not begin at 0"),
        (down_and_up, "pointers do not begin at 0"),
        (too_far, "pointers end at"),
        (too_few, "pointers do not begin at 0"),
        (values_lost, "but it holds"),
    ],
)
@pytest.mark.parametrize("format_of", ["csr", "csc", "bsr"])
def test_compressed_matrices_that_lead_out_of_themselves_are_refused(format_of, damage, words):
    damage(X := matrix(format_of))
    with pytest.raises(InvalidDataError, match=f"a sparse {format_of} matrix that is damaged: .*{words}"):
        refuse_broken_structure(X)


def test_places_outside_are_refused_in_other_formats():
    coo, lil = matrix("coo"), matrix("lil")
    coo.row[0] = 20
    with pytest.raises(InvalidDataError, match=r"coo matrix that is damaged: .*index 20, where there are 20 places"):
        refuse_broken_structure(coo)
    lil.rows[4] = [99]
    lil.data[4] = [1.0]
    with pytest.raises(InvalidDataError, match="lil matrix that is damaged"):
        refuse_broken_structure(lil)


@pytest.mark.parametrize("format_of", FORMATS)
def test_sound_matrices_pass_and_stay_as_they_are(format_of):
    X, expected = matrix(format_of), matrix(format_of).toarray()
    refuse_broken_structure(X)
    np.testing.assert_array_equal(X.toarray(), expected)
    refuse_broken_structure(scipy.sparse.csr_matrix((0, 3)).asformat(format_of))


@pytest.mark.parametrize("model", [GTM(1, nodes=8, basis=4), MixedGTM(1, nodes=8, basis=4), SOM(nodes=(3, 3))], ids=str)
def test_verbs_refuse_them(model):
    past_the_end(X := matrix())
    with pytest.raises(InvalidDataError, match="damaged"):
        model.fit(X)
    if type(model) is GTM:
        model.set_params(max_iter=1, tol=0.0).fit(cloud(20))
        with pytest.raises(InvalidDataError, match="damaged"):
            model.transform(X)


def test_columns_of_more_rows_than_fit_in_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory_limits, "available_memory", lambda: 2.0**30)
    with pytest.raises(NotEnoughMemoryError, match=r"a column of 1000000000 rows would take about .*; give fewer rows"):
        MixedGTM().fit(scipy.sparse.csr_matrix((10**9, 2)))


def test_blocks_counts_and_files_refuse_them(tmp_path):
    past_the_end(X := matrix())
    for source in (X, [matrix(), X]):
        with pytest.raises(InvalidDataError, match="damaged"):
            GTM(1, nodes=8, basis=4).fit(Blocks(source, rows=10))
    with pytest.raises(InvalidDataError, match="damaged"):
        _check_counts(X)
    scipy.sparse.save_npz(path := tmp_path / "damaged.npz", X)
    with pytest.raises(InvalidDataError, match="damaged"):
        read_table(path)
