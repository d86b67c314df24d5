"""The variants of a link: which one a visitor gets."""

from itertools import accumulate

from linkmgr.db.statements import Row


def chosen(variants: list[Row], visitor: str) -> Row:
    """Return the variant of a visitor, by the first half of the digest, which is a random number of 64 bits."""
    sums = list(accumulate(variant["weight"] for variant in variants))
    position = int(visitor[:16], 16) * sums[-1] >> 64
    return next(variant for variant, upper in zip(variants, sums, strict=True) if position < upper)
