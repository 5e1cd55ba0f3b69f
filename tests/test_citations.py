"""What to cite follows from the model, its settings and its parts, and is what the documentation lists."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, PPS, UKR, GTMClassifier, Incremental, NearestSurfaceClassifier, StudentNoise, cite
from prinfold.citations import OTHERS, REFERENCES, SETTINGS, Citations
from prinfold.exceptions import InvalidParameterError
from prinfold.methods import METHODS
from tests.house import ROOT, public_estimators


def keys(model: Any) -> list[str]:
    return [each.key for each in cite(model).references]


@pytest.mark.parametrize("name", sorted(public_estimators()))
def test_every_estimator_rests_on_something(name: str) -> None:
    assert len(keys(public_estimators()[name])) >= 2


def test_the_documentation_lists_every_reference_as_it_is_printed() -> None:
    page = (ROOT / "docs/citing.md").read_text(encoding="utf-8").replace("*", "")
    assert [each.text for each in REFERENCES.values() if f"- {each.text}\n" not in page] == []


def test_every_reference_is_used_and_every_use_is_known() -> None:
    used = {key for each in METHODS.values() for key in each.cites}
    used |= {key for row in (*OTHERS.values(), *SETTINGS.values()) for key in row}
    assert used == set(REFERENCES)


def test_no_model_is_the_library_alone() -> None:
    assert keys(None) == ["prinfold"]


@pytest.mark.parametrize(
    ("model", "extra"),
    [
        (GTM(latent="circle", init="cycles"), "desilva2011"),
        (GTM(noise="student"), "vellido2006"),
        (GTM(noise=StudentNoise()), "vellido2006"),
        (GTM(prior_precision="evidence"), "mackay1992"),
        (GTM(trainer=Incremental()), "bishop1998developments"),
    ],
)
def test_settings_add_what_they_rest_on(model: GTM, extra: str) -> None:
    assert keys(model) == [*keys(GTM()), extra]


def test_a_child_has_the_references_of_its_nearest_parent() -> None:
    class Mine(UKR):
        pass

    assert keys(Mine()) == keys(UKR)


def test_parts_are_looked_at_and_nothing_is_said_twice() -> None:
    assert keys(make_pipeline(StandardScaler(), UKR())) == keys(UKR)
    assert keys(GTMClassifier(PPS())) == ["prinfold", "bishop1998gtm", "svensen1998", "gaspar2013", "chang2001"]
    assert keys(NearestSurfaceClassifier(UKR())) == ["prinfold", "chang2001", "meinicke2005"]


def test_parts_found_by_a_fit_count_too(rng: Any) -> None:
    X = rng.normal(size=(40, 3))
    model = NearestSurfaceClassifier().fit(X, X[:, 0] > 0)
    assert "bishop1998gtm" in keys(model)
    assert len(set(keys(model))) == len(keys(model))


def test_the_verb_is_the_function() -> None:
    assert PPS().cite() == cite(PPS())


@pytest.mark.parametrize("reference", cite().references + tuple(REFERENCES.values()), ids=lambda each: each.key)
def test_an_entry_is_balanced_and_has_what_its_text_has(reference: Any) -> None:
    entry = reference.bibtex
    assert entry.count("{") == entry.count("}")
    assert re.match(rf"@{reference.kind}{{{reference.key},\n  author = ", entry)
    assert reference.fields["title"] in reference.text
    assert reference.fields.get("pages", "").replace("--", "–") in reference.text


def test_it_prints_as_a_list_and_shows_as_one() -> None:
    found = cite(UKR())
    assert isinstance(found, Citations)
    assert str(found).splitlines()[1] == (
        "- P. Meinicke, S. Klanke, R. Memisevic and H. Ritter (2005). Principal surfaces from unsupervised kernel "
        "regression. IEEE Transactions on Pattern Analysis and Machine Intelligence 27(9), 1379–1391."
    )
    assert found._repr_html_().count("<li>") == 2


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"got 'GTM'; pass prinfold\.GTM, without quotes"):
        cite("GTM")
    with pytest.raises(InvalidParameterError, match="got 3; pass the model itself"):
        cite(3)
