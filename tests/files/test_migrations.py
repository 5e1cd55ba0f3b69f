"""Model files of former versions: they load, under the names of now, and their models answer as they did then."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from safetensors import safe_open
from safetensors.numpy import save as pack

from prinfold import GTM, files, load, save
from prinfold.exceptions import CorruptModelFileError, NewerModelFileError
from prinfold.files import migrations
from prinfold.files.migrations import Renames, migrate, rename

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

FIXTURES = Path(__file__).parents[1] / "fixtures"
STORED = sorted(FIXTURES.glob("format_*/*.prinfold"))
ANSWERS = json.loads((FIXTURES / "format_1" / "answers.json").read_text(encoding="utf-8"))
"""What models said when their files were written; those of GTMs are of a finer quadrature since."""
SETTINGS: dict[str, dict[str, Any]] = {
    "gtm": {"penalize_bias": True},
    "gtm_circle": {"basis": {"penalize_bias": True}},
    "gtm_basis": {"basis": {"penalize_bias": True}},
    "gtm_sequence": {"penalize_bias": True},
    "mixed_gtm": {"penalize_bias": True},
    "gtm_mixture": {"partition": "centers", "gtm__penalize_bias": True},
    "pps": {"penalize_bias": True},
    "som": {"neighborhood": "bubble"},
    "principal_curve": {"root": [-0.997, -0.045]},
    "probabilistic_curve": {"root": [-0.997, -0.045]},
    "polygonal_curve": {"root": (-0.997, -0.045)},
    "oriented_points_curve": {"root": [-0.997, -0.045]},
}
"""Settings of stored models, as they are called now."""

stored = pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}/{path.stem}")


def answers(model: Any, X: Any) -> dict[str, Any]:
    verbs = ("transform", "predict", "project", "score_samples")
    return {verb: np.asarray(getattr(model, verb)(X)) for verb in verbs if hasattr(model, verb)}


def body_of(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="numpy") as stream:
        return dict(json.loads(stream.metadata()["prinfold"]))


@stored
def test_models_of_former_versions_answer_as_they_did(path: Path, tmp_path: Path) -> None:
    told, model = ANSWERS[path.stem], load(path)
    said = answers(model, np.array(told["X"]))
    assert said.keys() | {"X"} == told.keys()
    for verb, values in said.items():
        assert_allclose(values, told[verb], rtol=1e-9, atol=1e-9, err_msg=verb)  # another machine, other last bits
    save(model, tmp_path / "again.prinfold")
    assert body_of(tmp_path / "again.prinfold")["format"] == files.FORMAT
    again = answers(load(tmp_path / "again.prinfold"), np.array(told["X"]))
    for verb, values in said.items():
        assert_array_equal(again[verb], values, err_msg=verb)


@stored
def test_their_settings_have_the_names_of_now(path: Path) -> None:
    model = load(path)
    found = (model[-1] if hasattr(model, "steps") else model).get_params()
    for name, value in SETTINGS.get(path.stem, {}).items():
        if isinstance(value, dict):
            assert {each: getattr(found[name], each) for each in value} == value
        else:
            assert_array_equal(found[name], value)


def test_every_version_has_stored_files_and_every_former_one_a_migration() -> None:
    versions = range(1, files.FORMAT + 1)
    assert {path.parent.name for path in STORED} == {f"format_{version}" for version in versions}
    assert set(migrations.MIGRATIONS) == set(versions[:-1])
    for path in STORED:
        assert body_of(path)["format"] == int(path.parent.name.removeprefix("format_"))
        assert path.stat().st_size < 10_000


def test_every_class_whose_names_have_changed_has_a_stored_file() -> None:
    text = "".join(json.dumps(body_of(path)) for path in FIXTURES.glob("format_1/*.prinfold"))
    for renames in (value for value in vars(migrations).values() if isinstance(value, Renames)):
        for owner, names in renames.fields.items():
            assert f'"{owner}"' in text, owner
            assert all(f'"{name}"' in text for name in names)


# -------------------------------------------------------------------------------------------- the hook itself


def test_an_old_file_walks_through_the_migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = GTM(nodes=4, basis=2, max_iter=2, tol=0).fit(X)
    model.save(tmp_path / "old.prinfold")
    steps: list[int] = []
    now = files.FORMAT

    def migration(version: int) -> Any:
        return lambda body: steps.append(version) or body

    for module in (files, migrations):
        monkeypatch.setattr(module, "FORMAT", now + 2)
    monkeypatch.setattr(migrations, "MIGRATIONS", {each: migration(each) for each in (now, now + 1)})
    assert_array_equal(load(tmp_path / "old.prinfold").transform(X), model.transform(X))
    assert steps == [now, now + 1]
    assert migrate({"format": now}, now) == {"format": now + 2}


RENAMES = Renames({"GTM": {"width": "breadth"}, "Cloud": {"weight": "mass"}}, {"GTM": {"init": {"pca": "plane"}}})
BEFORE = {
    "$object": "GTM",
    "init": {"$dict": {"width": 1.0, "init": "pca", "latent": {"$object": "Cloud", "init": {"$dict": {"weight": 2}}}}},
    "fitted": {"$dict": {"width": "pca", "maps_": [{"$recipe": "GTM", "init": {"$dict": {"width": 3}}}]}},
}
AFTER = {
    "$object": "GTM",
    "init": {
        "$dict": {"breadth": 1.0, "init": "plane", "latent": {"$object": "Cloud", "init": {"$dict": {"mass": 2}}}}
    },
    "fitted": {"$dict": {"breadth": "pca", "maps_": [{"$recipe": "GTM", "init": {"$dict": {"breadth": 3}}}]}},
}


def test_names_change_wherever_their_class_stands_and_nowhere_else() -> None:
    before = copy.deepcopy(BEFORE)
    assert rename(before, RENAMES) == AFTER
    assert before == BEFORE, "a migration leaves what it is given as it is"
    other = {"$object": "SOM", "init": {"$dict": {"width": 1.0, "init": "pca"}}}
    assert rename(other, RENAMES) == other
    assert rename(AFTER, RENAMES) == AFTER


@pytest.mark.parametrize("odd", [{"$object": 3, "init": 1}, {"$object": "GTM"}, {"$object": "GTM", "init": []}, 3, "a"])
def test_what_is_no_model_is_left_for_the_reader_to_refuse(odd: Any) -> None:
    assert rename(odd, RENAMES) == odd


def forge(path: Path, source: Path, version: Any) -> Path:
    with safe_open(source, framework="numpy") as stream:
        arrays = {name: stream.get_tensor(name) for name in list(stream.keys())}
    body = {key: value for key, value in body_of(source).items() if key != "digest"} | {"format": version}
    body["digest"] = files._digest(body, arrays)
    path.write_bytes(pack(arrays, metadata={"prinfold": json.dumps(body)}))
    return path


def test_files_of_a_future_version_are_refused(tmp_path: Path) -> None:
    future = forge(tmp_path / "future.prinfold", FIXTURES / "format_1" / "gtm.prinfold", files.FORMAT + 1)
    with pytest.raises(NewerModelFileError, match=rf"has format {files.FORMAT + 1}, .* up to {files.FORMAT}; upgrade"):
        load(future)


@pytest.mark.parametrize("version", [0, -1, None, "1", 1.0, True])
def test_versions_that_never_were_are_refused(version: Any, tmp_path: Path) -> None:
    odd = forge(tmp_path / "odd.prinfold", FIXTURES / "format_1" / "gtm.prinfold", version)
    with pytest.raises(CorruptModelFileError, match="no valid format version"):
        load(odd)
