"""The seams: few verbs on any one object, and variants that declare what they can do instead of being asked by name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from prinfold.base.principal_manifold import PrincipalManifold
from tests.house import PACKAGE, syntax_trees

MOST_VERBS = 8

# Files that define a seam, whose verbs say what they take and give; those that cannot, with the reason for each.
TYPED = {
    *("gtm/noise/protocol.py", "gtm/trainers/trainers.py", "gtm/model.py", "basis_maps/bases.py", "latent/base.py"),
    *("latent/drawing.py", "gtm/noise/factor_loadings.py"),
    *("geometry/domain.py", "density/densities.py", "numerics/radial_kernels.py", "loops/stopping_rules.py"),
}
UNTYPED = {
    ("Noise", "restore"): "a file holds whatever it holds, which is checked here",
    ("Loading", "restore"): "a file holds whatever it holds, which is checked here",
    ("Noise", "with_gaps"): "a noise of rows with gaps has blocks, nodes and sums of kinds of its own",
    ("Trainer", "training"): "each way to train has states of a kind of its own, which only its own steps look into",
}

# Words that stand for one variant of a seam, or several, as the last part of what is asked.
NOUNS = {
    *("basis", "bound", "latent", "domain", "space", "density", "profile", "kernel", "feature"),
    *("target", "rule", "schedule", "smoother", "neighborhood", "coordinates", "embedding", "descent", "trainer"),
    *("noise", "penalty", "recipe", "surface", "node", "sum", "statistic", "parameter"),
}

# The only looks at a variant by name, (file, name) with the reason for each.
BY_NAME = {
    ("basis_maps/default_sizes.py", "bind"): "the parameter basis takes any object that binds, or numbers",
    ("basis_maps/basis_map.py", "capabilities"): "a bound basis of the user's own need not declare any",
    ("basis_maps/bases.py", "default_regularization"): "a basis of the user's own need not declare one",
    ("basis_maps/bases.py", "carries_prior"): "a basis of the user's own need not declare it",
    ("gtm/noise/recipes.py", "needs"): "a noise of the user's own may leave them out",
    ("applications/nearest_surface.py", "score_samples"): "the recipe is any estimator, and some have no density",
    ("notebook/settings.py", "shape"): "a basis of the user's own need not have one",
}

# The only questions which variant is held outside its own file, (file, variant) with the reason for each.
BY_TYPE = {
    ("latent/cloud.py", "Gaussian"): "a file may hold a Gaussian that is cut off anywhere",
    ("gtm/partial_fit.py", "Online"): "the step rule of a stream is that of the trainer, where it has one",
    ("gtm/trainers/stream_memory.py", "Statistics"): "sums of isotropic noise alone lack what rows with gaps need",
    ("pps/estimator.py", "OrientedNoise"): "a clamping of 1 is the GTM, with its own noise",
    ("datasets/surface.py", "UnitSphere"): "true surfaces are sampled on a box or on the sphere",
}


@dataclass(frozen=True)
class Class:
    """A class of the package: where it stands, what it extends, and its public verbs and fields."""

    file: str
    node: ast.ClassDef

    @property
    def bases(self) -> list[str]:
        bare = (base.value if isinstance(base, ast.Subscript) else base for base in self.node.bases)
        return [ast.unparse(base).split(".")[-1] for base in bare]

    @property
    def verbs(self) -> set[str]:
        found = {each.name for each in self.node.body if isinstance(each, ast.FunctionDef)}
        found |= {ast.unparse(each.target) for each in self.node.body if isinstance(each, ast.AnnAssign)}
        found |= {ast.unparse(name) for each in self.node.body if isinstance(each, ast.Assign) for name in each.targets}
        return {name for name in found if not name.startswith("_")}

    @property
    def abstract(self) -> set[str]:
        methods = (each for each in self.node.body if isinstance(each, ast.FunctionDef))
        return {each.name for each in methods if any("abstractmethod" in ast.unparse(d) for d in each.decorator_list)}


@dataclass(frozen=True)
class House:
    """All classes of a package by name, and the syntax trees of its files."""

    classes: dict[str, Class]
    trees: dict[str, ast.Module]

    @classmethod
    def of(cls, package: Path) -> House:
        trees = syntax_trees(package)
        nodes = ((file, node) for file, tree in trees.items() for node in ast.walk(tree))
        return cls({node.name: Class(file, node) for file, node in nodes if isinstance(node, ast.ClassDef)}, trees)

    def ancestors(self, name: str) -> Iterator[Class]:
        """A class and those of the package that it extends."""
        if name in self.classes:
            yield self.classes[name]
            for base in self.classes[name].bases:
                yield from self.ancestors(base)

    def verbs(self, name: str) -> set[str]:
        return set[str]().union(*(each.verbs for each in self.ancestors(name)))

    @cached_property
    def protocols(self) -> dict[str, set[str]]:
        """Verbs of every protocol, and those that a class with abstract methods leaves to its kinds."""
        found = {name: self.verbs(name) for name, each in self.classes.items() if "Protocol" in each.bases}
        return found | {name: each.abstract for name, each in self.classes.items() if each.abstract}

    @cached_property
    def variants(self) -> set[str]:
        """Classes that have all verbs of some protocol, with two or more of them."""
        seams = {name: verbs for name, verbs in self.protocols.items() if len(verbs) > 1}
        return {
            name for name in self.classes if name not in seams and any(v <= self.verbs(name) for v in seams.values())
        }

    def crowded(self) -> dict[str, int]:
        held = self.protocols
        return {name: len(verbs) for name, verbs in held.items() if len(verbs) > MOST_VERBS}

    def untyped(self, files: set[str]) -> set[tuple[str, str]]:
        """Verbs of the protocols of some files that take or give ``Any``, by that name or another."""
        of_any = {"Any"} | {
            ast.unparse(node.target)
            for tree in self.trees.values()
            for node in tree.body
            if isinstance(node, ast.AnnAssign) and node.value and self._is_seam_of_any(node.value)
        }
        verbs = ((name, each) for name in self.protocols for each in self.classes[name].node.body)
        return {
            (name, ast.unparse(each.target) if isinstance(each, ast.AnnAssign) else each.name)
            for name, each in verbs
            if self.classes[name].file in files and of_any & _names_in_types(each)
        }

    def _is_seam_of_any(self, value: ast.expr) -> bool:
        """Whether a type is a protocol of objects of any type."""
        parts = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
        return isinstance(value, ast.Subscript) and ast.unparse(value.value) in self.protocols and "Any" in parts

    def asked_by_name(self) -> set[tuple[str, str]]:
        """Literal names that ``hasattr`` and ``getattr`` look for on a variant."""
        return {
            (file, call.args[1].value)
            for file, call in self._calls({"hasattr", "getattr"})
            if isinstance(call.args[1], ast.Constant) and _noun(call.args[0]) in NOUNS
        }

    def asked_by_type(self) -> set[tuple[str, str]]:
        """Variants asked for by ``isinstance``, ``type`` and the like, and by ``__name__``, outside their own file."""
        variants = self.variants
        asked = [
            (file, node) for file, call in self._calls({"isinstance", "issubclass"}) for node in ast.walk(call.args[1])
        ]
        asked += [(file, node) for file, compared in self._compared_with(_is_type) for node in ast.walk(compared)]
        asked += [(file, node.cls) for file, node in self._nodes(ast.MatchClass)]
        constants = {file: _tuples(tree) for file, tree in self.trees.items()}
        asked += [
            (file, part)
            for file, node in asked
            if isinstance(node, ast.Name) and node.id in constants[file]
            for part in ast.walk(constants[file][node.id])
        ]
        # The last part of a dotted name, whatever the module is called here.
        named = [(file, node) for file, node in asked if isinstance(node, ast.Name | ast.Attribute)]
        names = ((file, ast.unparse(node).split(".")[-1]) for file, node in named)
        found = {(file, name) for file, name in names if name in variants}
        words = (
            (file, node) for file, compared in self._compared_with(_is_name_of_type) for node in ast.walk(compared)
        )
        found |= {(file, node.value) for file, node in words if isinstance(node, ast.Constant)}
        return {(file, name) for file, name in found if name in self.classes and self.classes[name].file != file}

    def _compared_with(self, asked: Callable[[ast.expr], bool]) -> Iterator[tuple[str, ast.expr]]:
        """Expressions that stand in one comparison with a type, ``type(…)`` or its ``….__name__``, on either side."""
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
                if any(asked(side) for side in sides):
                    yield from ((file, side) for side in sides if not asked(side))

    def _nodes(self, kind: type[ast.MatchClass]) -> Iterator[tuple[str, ast.MatchClass]]:
        for file, tree in self.trees.items():
            yield from ((file, node) for node in ast.walk(tree) if isinstance(node, kind))

    def _calls(self, names: set[str]) -> Iterator[tuple[str, ast.Call]]:
        for file, tree in self.trees.items():
            calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
            found = [call for call in calls if call.func.id in names and len(call.args) > 1]
            yield from ((file, call) for call in found)


def _tuples(tree: ast.Module) -> dict[str, ast.expr]:
    """Tuples and unions of classes that a file gives a name."""
    found = (node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None)
    held = [(node.targets if isinstance(node, ast.Assign) else [node.target], node.value) for node in found]
    kept = ((names, value) for names, value in held if isinstance(value, ast.Tuple | ast.BinOp) and value is not None)
    return {ast.unparse(name): value for names, value in kept for name in names}


def _names_in_types(node: ast.stmt) -> set[str]:
    """Names in the types of a field, or in those that a method takes and gives."""
    types = [node.annotation] if isinstance(node, ast.AnnAssign) else []
    if isinstance(node, ast.FunctionDef):
        types = [node.returns, *(each.annotation for each in ast.walk(node.args) if isinstance(each, ast.arg))]
    return {part.id for each in types if each for part in ast.walk(each) if isinstance(part, ast.Name)}


def _noun(asked: ast.expr) -> str:
    """The word for what is asked: without its owner, index, underscores at the ends, and the s of several."""
    while isinstance(asked, ast.Subscript) or _is_type(asked):
        asked = asked.value if isinstance(asked, ast.Subscript | ast.Attribute) else asked.args[0]
    word = ast.unparse(asked).split(".")[-1].strip("_")
    return word if word in NOUNS else word.removesuffix("s")


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "__class__"
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "type"


def _is_name_of_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in {"__name__", "__qualname__"}


@pytest.fixture(scope="module")
def house() -> House:
    return House.of(PACKAGE)


def test_no_protocol_has_more_than_eight_verbs(house: House) -> None:
    assert house.crowded() == {}


def test_the_protocols_of_the_seams_are_seen(house: House) -> None:
    assert house.protocols.keys() >= {"Domain", "Density", "Profile", "BoundBasis", "LatentSpace", "Target", "RowSpace"}
    assert house.protocols.keys() >= {"Drawing", "LatentLayout"}
    assert house.variants >= {"Box", "Sphere", "KernelDensity", "Gaussian", "BoundProcess", "GramTarget", "Globe"}
    assert house.variants >= {"Plane", "FlatDrawing", "BranchDrawing", "SphereDrawing"}


def test_verbs_of_the_seams_are_typed(house: House) -> None:
    assert {each.file for each in house.classes.values()} >= TYPED
    assert house.untyped(TYPED) == set(UNTYPED)


def test_variants_are_asked_by_name_where_that_is_listed_only(house: House) -> None:
    assert house.asked_by_name() == set(BY_NAME)


def test_variants_are_asked_by_type_where_that_is_listed_only(house: House) -> None:
    assert house.asked_by_type() == set(BY_TYPE)


# The tester, tested on a small made-up house.

SEAM = """
class Animal(Protocol):
    name: str
    def walk(self): ...
    def _breathe(self): ...
"""
KINDS = """
class Legs:
    def walk(self): ...
class Cow(Legs):
    name: str
    def is_same(self, other):
        return isinstance(other, Cow)
"""


def build(root: Path, **files: str) -> House:
    for folder, text in ({"seam": SEAM, "kinds": KINDS} | files).items():
        (root / folder).mkdir()
        (root / folder / "module.py").write_text(text)
    return House.of(root)


def test_a_made_up_house(tmp_path: Path) -> None:
    house = build(
        tmp_path,
        sound='getattr(model, "walk", None)\nhasattr(latent, name)\nisinstance(animal, Legs | str)\n'
        'type(animal) is type(other)\ntype(animal) is str\n__name__ == "__main__"\nkind.__name__ == "PCA"\n',
    )
    assert house.protocols == {"Animal": {"name", "walk"}}
    assert house.variants == {"Cow"}
    assert not house.asked_by_name() | house.asked_by_type()
    assert house.crowded() == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('hasattr(model.latent_, "milk")', ("other/module.py", "milk")),
        ('getattr(basis, "milk", None)', ("other/module.py", "milk")),
        ("isinstance(animal, Cow)", ("other/module.py", "Cow")),
        ("isinstance(animal, str | Cow)", ("other/module.py", "Cow")),
        ("isinstance(animal, (str, Cow))", ("other/module.py", "Cow")),
        ("isinstance(animal, kinds.Cow)", ("other/module.py", "Cow")),
        ("ALL = (str, kinds.Cow)\nisinstance(animal, ALL)", ("other/module.py", "Cow")),
        ("match animal:\n    case kinds.Cow():\n        pass", ("other/module.py", "Cow")),
        ("type(animal) is Cow", ("other/module.py", "Cow")),
        ("Cow is not type(animal)", ("other/module.py", "Cow")),
        ("type(animal) in {str, Cow}", ("other/module.py", "Cow")),
        ('type(animal).__name__ == "Cow"', ("other/module.py", "Cow")),
        ('kind.__name__ in {"Legs"}', ("other/module.py", "Legs")),
        ('getattr(model.noise, "milk", None)', ("other/module.py", "milk")),
        ('hasattr(self._noise, "milk")', ("other/module.py", "milk")),
        ('hasattr(surface, "milk")', ("other/module.py", "milk")),
        ('hasattr(nodes, "milk")', ("other/module.py", "milk")),
        ('hasattr(type(noise), "milk")', ("other/module.py", "milk")),
        ('hasattr(noise.__class__, "milk")', ("other/module.py", "milk")),
        ('hasattr(noises[0], "milk")', ("other/module.py", "milk")),
        ("issubclass(kind, Cow)", ("other/module.py", "Cow")),
        ("animal.__class__ is Cow", ("other/module.py", "Cow")),
    ],
)
def test_a_question_is_seen(tmp_path: Path, text: str, found: tuple[str, str]) -> None:
    house = build(tmp_path, other=text)
    assert house.asked_by_name() | house.asked_by_type() == {found}


def test_a_verb_of_any_type_is_seen(tmp_path: Path) -> None:
    verbs = ("age: Any", "name: str", "def walk(self, to: list[Any]): ...", "def eat(self) -> Any: ...")
    house = build(tmp_path, other="\n    ".join(("class Ox(Protocol):", *verbs)))
    assert house.untyped({"other/module.py"}) == {("Ox", "age"), ("Ox", "walk"), ("Ox", "eat")}
    assert house.untyped({"seam/module.py"}) == set()


def test_a_type_that_hides_any_is_seen(tmp_path: Path) -> None:
    text = "Some: TypeAlias = Animal[Any]\nNamed: TypeAlias = Animal[str]\nclass Ox(Protocol):\n"
    house = build(tmp_path, other=text + "    def meet(self, other: Some): ...\n    def see(self, other: Named): ...\n")
    assert house.untyped({"other/module.py"}) == {("Ox", "meet")}


@pytest.mark.parametrize("folder", ["gtm", "other"])
def test_verbs_are_counted_with_those_that_are_inherited(tmp_path: Path, folder: str) -> None:
    more = "".join(f"    def verb_{i}(self): ...\n" for i in range(7))
    house = build(tmp_path, **{folder: f"class Ox(Animal, Protocol):\n{more}"})
    assert house.crowded() == {"Ox": 9}


def test_abstract_methods_are_verbs_too(tmp_path: Path) -> None:
    more = "".join(f"    @abstractmethod\n    def verb_{i}(self): ...\n" for i in range(9))
    assert build(tmp_path, other=f"class Ox(ABC):\n{more}    def walk(self): ...\n").crowded() == {"Ox": 9}


def test_what_warnings_read_of_a_method_is_declared_by_the_base() -> None:
    tree = syntax_trees(PACKAGE)["validation/table_warnings.py"]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr"]
    read = {call.args[1].value for call in calls if isinstance(call.args[1], ast.Constant)}
    own = {name for name in read if str(name).startswith("_") and not str(name).startswith("__")}
    assert own == {"_follows_far_rows", "_scales_columns"}
    assert own <= vars(PrincipalManifold).keys()
