"""Cells as numbers, however they are written: with symbols of percent or money, marks of thousands, decimal commas.

What can be read in one way is read, with a note. What could be read in two ways is not: ``1,234`` alone is a thousand
and more in one country, and little more than one in another. ``--decimal`` tells which.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray

MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "n.a", "nan", "null", "none", "nil", "nd", "n.d.", "missing", "<na>", "?", ".", "*"}
    | {"-", "--", "---", "–", "—", "#n/a", "#na", "#null!", "#div/0!", "#value!", "#ref!", "#num!", "#name?"}
    | {"(null)", "<null>", "\\n", "(na)", "(n/a)", "(blank)", "(leer)"}  # of databases and pivot tables
    # German words, and spreadsheets set to German, French, Italian, Spanish and Portuguese.
    | {"k.a.", "k. a.", "n.v.", "n. v.", "n.b.", "n. b."}
    | {"#nv", "#wert!", "#bezug!", "#zahl!", "#n/d", "#nd", "#valeur!", "#nombre!"}
)
"""Cells that stand for nothing, in small letters."""

POINT, COMMA = ".", ","
_MINUS = "−"
"""The minus sign that typesetters and some spreadsheets write, U+2212."""

_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+|\d+)([eE][+-]?\d+)?")
_MONEY = "$€£¥₹"
_FIRST_CELLS = 50
"""Cells that are looked at before all of them are: most columns of text are text from the start."""

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_GROUPS = {
    POINT: re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?"),
    COMMA: re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d*)?"),
}
_SPACED = re.compile(r"[+-]?[1-9]\d{0,2}([ \u00a0\u2009\u202f'’])\d{3}(\1\d{3})*([.,]\d*)?")
"""Thousands with blanks, narrow ones among them, or apostrophes between: these can be nothing else."""
_DECIMAL = {POINT: _PLAIN, COMMA: re.compile(r"[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)}
_FORTRAN = re.compile(r"([+-]?(?:\d+\.\d*|\.\d+))[dD]([+-]?\d{1,3})")
"""A number in double precision as Fortran writes it, with D before the exponent; it always has a point."""
_IN_BRACKETS = re.compile(rf"([{_MONEY}]?)\s*\(\s*([^()+-]*\d[^()+-]*)\s*\)(%?)")
"""A number below nought as accountants write it, with its symbol inside or outside."""

_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
_BRACKETS_NOTE = "numbers in brackets were read as negative"
_FORTRAN_NOTE = "exponents after a D, as Fortran writes them, were read as powers of ten"

_WITH_UNIT = re.compile(r"[^\w\s]{0,3}\s?[+-]?\d[\d.,' ]*\s?[^\d\s][^\d]{0,5}|[^\w\s]{1,3}\s?\d[\d.,' ]*")
"""A number with a unit or a symbol beside it."""


def all_missing(words: Sequence[str]) -> frozenset[str]:
    """Words for missing cells, those of the user among them, in small letters; numbers with any decimals of nothing."""
    given = {each.strip().lower() for each in words}
    zeros = ("", ".0", ".00", ".000", ".0000", ".00000", ".000000")
    return MISSING | given | {each + end for each in given if re.fullmatch(r"[+-]?\d+", each) for end in zeros}


def number_of(cell: str, missing: frozenset[str] = MISSING) -> float | None:
    """The number in a cell, NaN where there is nothing, None where there is something else."""
    word = cell.strip()
    if word.lower() in missing:
        return np.nan
    word = word.replace(_MINUS, "-")
    if "_" in word:  # Python reads 1_000 as a thousand; in a table it is a name
        return None
    if "," in word and _DECIMAL_COMMA.fullmatch(word):
        word = word.replace(",", ".")
    try:
        return float(word)
    except ValueError:
        return _fortran_number(word)


def reads_as_number(cell: str, missing: frozenset[str]) -> bool:
    """Whether a cell is a number however it is written, or stands for nothing."""
    if number_of(cell, missing) is not None:
        return True
    bare = _bare(cell.strip(), _symbol_of(cell))
    return any(_reads(bare, point) for point in (POINT, COMMA))


def _fortran_number(word: str) -> float | None:
    found = _FORTRAN.fullmatch(word)
    return None if found is None else float(found.expand(r"\1e\2"))


def plain_numbers(cells: Sequence[str], missing: frozenset[str]) -> FloatArray | None:
    """(n,) cells as numbers where all are written as usual; None where any is not."""
    if any("_" in cell for cell in cells):
        return None
    try:
        return np.array([float(cell) if cell not in missing else np.nan for cell in cells])
    except ValueError:
        return _lenient_numbers(cells, missing)


def _lenient_numbers(cells: Sequence[str], missing: frozenset[str]) -> FloatArray | None:
    """(n,) cells as numbers where words for missing cells and minus signs are written freely; None for text."""
    try:
        return np.array(
            [np.nan if cell.strip().lower() in missing else float(cell.replace(_MINUS, "-")) for cell in cells]
        )
    except ValueError:
        return None


def numbers_with_commas(cells: Sequence[str], missing: frozenset[str]) -> FloatArray | None:
    """(n,) cells as numbers where some have decimal commas; None where any is something else."""
    found = []
    for cell in cells:
        number = number_of(cell, missing)
        if number is None or _FORTRAN.fullmatch(cell.strip()):  # of which a note is to tell
            return None
        found.append(number)
    return np.array(found)


# -------------------------------------------------------------------------------------- numbers with symbols and marks


class FormattedNumbers(NamedTuple):
    """Numbers (n,) of a column of text, what was done to read them, and whether commas are decimal points.

    ``notes`` are on how the numbers of any column may be written, to be made once for all of them.
    """

    numbers: FloatArray
    words: str
    commas: bool = False
    notes: tuple[str, ...] = ()


@dataclass
class NumberMarks:
    """Commas and points that numbers of a column had.

    ``decimal`` tells of a comma that can only be one before decimals, ``fraction`` the same of a point.
    """

    comma: str = ""
    point: str = ""
    decimal: bool = False
    fraction: bool = False

    def look(self, cells: Sequence[str]) -> None:
        """Look at some more cells, of which all are numbers."""
        # Words for nothing may have points too, such as n.a., but no digit.
        points = (cell for cell in cells if POINT in cell and any(map(str.isdigit, cell)))
        if not self.fraction:
            seen = next(points, "")
            self.point = self.point or seen
            self.fraction = bool(seen) and not all(map(is_ambiguous, chain([seen], points)))
        commas = [cell for cell in cells if COMMA in cell]
        self.comma = self.comma or next(iter(commas), "")
        self.decimal = self.decimal or not all(map(is_ambiguous, commas))


def doubtful(columns: Sequence[NumberMarks]) -> set[int]:
    """Columns whose marks may be others than they seem.

    Commas may be no decimal points where there are points too, or nothing tells what commas are; points may be marks of
    thousands where commas of another column stand before decimals.
    """
    known = any(each.decimal for each in columns)
    return {
        j
        for j, each in enumerate(columns)
        if (each.comma and (each.point or not known)) or (known and each.point and not each.fraction)
    }


class AmbiguousError(ValueError):
    """A cell that may be one number or another."""


def is_ambiguous(word: str) -> bool:
    """Whether a cell is a thousand and more, or a number with three decimals, as one likes."""
    return _AMBIGUOUS.fullmatch(word.strip()) is not None


def is_formatted(word: str) -> bool:
    """Whether a cell has a symbol of percent or money, or a comma, in it."""
    return any(each in word for each in f"{COMMA}%{_MONEY}")


def has_unit(word: str) -> bool:
    """Whether a cell looks like a number with something beside it, such as 1.2 kg."""
    return _WITH_UNIT.fullmatch(word.strip()) is not None


def formatted_numbers(
    cells: Sequence[Any], missing: frozenset[str], decimal: str | None = None, *, doubted: bool = False
) -> FormattedNumbers | None:
    """Numbers of a column of text; None where it is text, or where its cells are written in several ways.

    Parameters
    ----------
    cells : sequence of str or None
        The column.
    missing : frozenset of str
        Words for missing cells, in small letters.
    decimal : {".", ","}, default=None
        What stands before decimals, where that was said.
    doubted : bool, default=False
        Whether points may be marks of thousands, as far as other columns tell; those of sums of money always may.

    Returns
    -------
    FormattedNumbers or None

    Raises
    ------
    AmbiguousError
        Where all cells can be read in two ways.
    """
    words = ["" if cell is None else cell.strip() for cell in cells]
    there = [word for word in words if word.lower() not in missing]
    found = (
        there
        and _common_format(there[:_FIRST_CELLS], decimal, "")
        and _common_format(there, decimal, COMMA + POINT if doubted else COMMA)
    )
    in_brackets = [_IN_BRACKETS.fullmatch(word) is not None for word in there]
    if not found or all(in_brackets):  # numbers of references or of items, not sums below nought
        return None
    symbol, point, said = found
    numbers = [np.nan if word.lower() in missing else _number(_bare(word, symbol), point) for word in words]
    commas = point == COMMA and any(COMMA in word for word in there)
    exponents = any(_FORTRAN.fullmatch(word) for word in there)
    notes = (*([_BRACKETS_NOTE] if any(in_brackets) else []), *([_FORTRAN_NOTE] if exponents else []))
    return FormattedNumbers(np.array(numbers), said, commas, notes)


def _common_format(words: list[str], decimal: str | None, unclear: str) -> tuple[str, str, str] | None:
    """The symbol and the decimal point that all cells of a column share, and both in words.

    Where both points fit it must not matter: ``unclear`` are those that may stand for something else.
    """
    symbol = _symbol_of(words[0])
    bare = [_bare(word, symbol) for word in words]
    if "" in bare:
        return None
    fitting = [
        point for point in ([decimal] if decimal else [POINT, COMMA]) if all(_reads(word, point) for word in bare)
    ]
    if not fitting:
        return None
    unclear += POINT if unclear and symbol in _MONEY and symbol else ""
    marked = [word for word in words if any(mark in word for mark in unclear)]
    if len(fitting) == 2 and marked:  # groups of three digits, or three decimals
        raise AmbiguousError(marked[0])
    grouped = any(_GROUPS[fitting[0]].fullmatch(word) for word in bare)
    said = [f"the symbol {symbol} was left out"] if symbol else []
    spaced = any(_SPACED.fullmatch(_strip_symbol(word, symbol)) for word in words)
    said += ["blanks or apostrophes were taken as marks of thousands"] if spaced else []
    said += [f"{'commas' if fitting[0] == POINT else 'points'} were taken as marks of thousands"] if grouped else []
    return symbol, fitting[0], ", ".join(said)


def _reads(word: str, point: str) -> bool:
    return bool(_DECIMAL[point].fullmatch(word) or _GROUPS[point].fullmatch(word))


def _symbol_of(word: str) -> str:
    """The symbol of percent or money that a cell has."""
    return next((symbol for symbol in f"%{_MONEY}" if symbol in word), "")


def _bare(word: str, symbol: str) -> str:
    """A cell without its symbol, and without blanks or apostrophes between thousands, in the usual writing."""
    bare = _strip_symbol(_IN_BRACKETS.sub(r"-\1\2\3", word.replace(_MINUS, "-")), symbol)
    bare = _FORTRAN.sub(r"\1e\2", bare)
    spaced = _SPACED.fullmatch(bare)
    return bare.replace(spaced.group(1), "") if spaced else bare


def _strip_symbol(word: str, symbol: str) -> str:
    """A cell without its symbol, which stands before or behind; nothing where it is not there, or in the middle."""
    if not symbol:
        return word
    minus = "-" if word.startswith("-") else ""
    rest = word.removeprefix("-").strip()
    if rest.count(symbol) != 1 or (symbol == "%" and rest.startswith(symbol)):
        return ""
    bare = rest.removeprefix(symbol) if rest.startswith(symbol) else rest.removesuffix(symbol)
    return minus + bare.strip()


def _number(word: str, point: str) -> float:
    other = COMMA if point == POINT else POINT
    return float(word.replace(other, "").replace(COMMA, POINT))
