"""The encoding of a text file: by its mark, by its bytes, or by its letters."""

from __future__ import annotations

import codecs
from importlib import import_module

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
    charset-normalizer is asked about the others, where it is installed.
    """
    if _looks_western(start):
        return WESTERN
    try:
        found = import_module("charset_normalizer").from_bytes(start).best()
    except ImportError:
        return WESTERN
    return WESTERN if found is None else str(found.encoding)


def _looks_western(start: bytes) -> bool:
    text = start.decode(WESTERN, errors="replace")
    odd = [letter for letter in text if ord(letter) > 127]
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(ord(letter) > 127 for letter in letters)
    known = all(letter in _WESTERN_SIGNS or (letter.isalpha() and ord(letter) < 0x180) for letter in odd)
    return known and foreign <= _MOST_FOREIGN * max(len(letters), 1)
