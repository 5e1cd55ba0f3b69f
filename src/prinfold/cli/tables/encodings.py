"""The encoding of a text file: by its mark, by its bytes, or by its letters."""

from __future__ import annotations

import codecs
import gzip
import json
import re
from importlib import import_module
from pathlib import Path
from typing import IO, cast

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before the mark of UTF-16, with which this one begins
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_MOSTLY_NULL = 0.7
"""Share of null bytes in every second place of a file of western letters in UTF-16."""

_MOST_FOREIGN = 0.4
"""Share of letters that are not ASCII up to which a file is one in a western language."""

WESTERN = "cp1252"
_WESTERN_SIGNS = frozenset("°µ±²³¹·×÷§€£¥¢¼½¾«»‘’“”„–—…™©®ºª‰ ­¿¡")
"""Signs that tables in western languages have, besides letters."""

_PART, _ENOUGH = 2**16, 2**16
"""Bytes that are decoded at a time, and of lines by which an encoding is told."""

_SIGN_IN_WORD = re.compile(r"[^\W\d_][±²³¹¿¡§£€¥¢¼½¾«»„“”™©®‰…][^\W\d_]")
"""Signs that stand within no word, but where letters of another encoding are."""


_JSON = re.compile(rb'\s*(\[\s*[\[{]|\{\s*")')
_PAGE = "a web page, perhaps one that says why a download failed; open it in a browser, and save the table as CSV"
_KINDS = (
    (b"%PDF", "a PDF; export the table itself, as CSV or as a workbook"),
    (b"PK\3\4", "a workbook or an archive; let its name end in .xlsx or .ods, or unpack it"),
    (b"\xd0\xcf\x11\xe0", "an old workbook; let its name end in .xls"),
    (b"\x1f\x8b", "compressed by gzip; let its name end in .csv.gz"),
    (b"PAR1", "Parquet; let its name end in .parquet"),
    (b"ARROW1", "Arrow; let its name end in .arrow"),
    (b"\x93NUMPY", "an array of NumPy; let its name end in .npy"),
    (b"\x89HDF", "HDF5; if it holds single cells, let its name end in .h5ad"),
    (b"@relation", "ARFF; write its rows as CSV, with a line of names"),
    (b"<!doctype html", _PAGE),
    (b"<html", _PAGE),
)
"""How files begin that are no text of cells, in small letters where they are letters, and what to do with each."""

_MOST_CONTROL = 0.01
"""Share of control characters up to which they are slips in a text."""

_FEW_NULLS = 0.01
"""Share of null bytes up to which they are a slip in a text."""

_CONTROL = bytes({*range(32)} - {*b"\0\t\n\v\f\r\x1a\x1b"})


_MODEL = re.compile(rb'.{8}\{"__metadata__":\{"prinfold"', re.DOTALL)
"""How our model files begin: the length of their head, and the head."""


def other_kind(start: bytes) -> str | None:
    """The kind of a file that is no text of cells, and advice on it, by how it begins; None where nothing tells."""
    if _MODEL.match(start):
        return "a prinfold model; let its name end in .prinfold"
    if _is_json(start.removeprefix(codecs.BOM_UTF8)):
        return "JSON; write its rows as CSV or Parquet"
    small = start.lstrip()[:20].lower()
    return next((words for begin, words in _KINDS if start.startswith(begin) or small.startswith(begin)), None)


def _is_json(start: bytes) -> bool:
    """Whether a file begins as tables in JSON do, or is a list or an object as a whole."""
    if _JSON.match(start):
        return True
    try:
        return isinstance(json.loads(start), list | dict)
    except (ValueError, RecursionError):
        return False


def is_binary(start: bytes) -> bool:
    """Whether bytes in no wide encoding hold too many control characters, besides null, for a text."""
    return len(start) - len(start.translate(None, _CONTROL)) > _MOST_CONTROL * len(start)


def is_text_with_nulls(start: bytes) -> bool:
    """Whether bytes would be text but for one null byte or a few: a slip in a line, or many in a large file."""
    few = start.count(b"\0") <= max(1.0, _FEW_NULLS * len(start))
    return few and len(start.decode("utf-8", errors="ignore").encode()) >= (1.0 - _MOST_FOREIGN) * len(start)


def older_encoding_of(path: Path) -> str | None:
    """The likely encoding of a text file that is not UTF-8 throughout; None of one that is."""
    if _can_decode(path, "utf-8"):
        return None
    with open_bytes(path) as stream:
        likely = older_encoding(_odd_lines(stream))
    return likely if _can_decode(path, likely) else "latin-1"  # in which each byte stands for something


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of a file, which may be compressed by gzip."""
    return cast(IO[bytes], gzip.open(path) if path.suffix == ".gz" else path.open("rb"))


def _can_decode(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        with open_bytes(path) as stream:
            while part := stream.read(_PART):
                decoder.decode(part)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _odd_lines(stream: IO[bytes]) -> bytes:
    """Lines that are not ASCII alone, which alone tell how a file is encoded; not more of them than it takes."""
    found = b""
    for line in stream:
        if not line.isascii():
            found += line[:_PART]
            if len(found) > _ENOUGH:
                break
    return found


def encoding_of(start: bytes) -> str | None:
    """The encoding that the first bytes of a file tell; UTF-8 where nothing speaks against it, None of no text."""
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    if b"\0" not in start:
        return "utf-8"
    even, odd = start[0::2], start[1::2]
    for nulls, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if nulls.count(0) > _MOSTLY_NULL * len(nulls) and not others.count(0):
            return name
    return None


def may_be_utf32(start: bytes) -> bool:
    """Whether bytes look like western letters in UTF-32 without a mark: three of four bytes are null."""
    first, *rest = (start[i : len(start) // 4 * 4 : 4] for i in range(4))
    orders = ((first, rest), (rest[-1], [first, *rest[:-1]]))
    return any(
        not letters.count(0) and all(each.count(0) > _MOSTLY_NULL * len(each) for each in nulls)
        for letters, nulls in orders
    )


def older_encoding(start: bytes) -> str:
    """The likely encoding of text that is not UTF-8: that of western Windows, or what its letters look like.

    A few accents and signs are too little for a guess by letter frequencies, and western is then by far the likeliest.
    charset-normalizer is asked about the others, where it is installed; spreadsheets on Windows write one of its own.
    """
    if _looks_western(start):
        return WESTERN
    try:
        found = [str(each.encoding) for each in import_module("charset_normalizer").from_bytes(start)]
    except ImportError:
        return WESTERN
    found = [each for each in found if not each.startswith("utf")]  # few bytes may be letters of UTF-16 just as well
    return next((each for each in found if each.startswith("cp125")), found[0] if found else WESTERN)


def _looks_western(start: bytes) -> bool:
    text = start.decode(WESTERN, errors="replace")
    if _SIGN_IN_WORD.search(text):
        return False
    odd = [letter for letter in text if ord(letter) > 127]
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(ord(letter) > 127 for letter in letters)
    known = all(letter in _WESTERN_SIGNS or (letter.isalpha() and ord(letter) < 0x180) for letter in odd)
    return known and foreign <= _MOST_FOREIGN * max(len(letters), 1)
