"""Claims and their comparisons, found by their names."""


def by_name(claims) -> dict:
    """Claims by the last part of their ids."""
    return {claim.id.rpartition("/")[2]: claim for claim in claims}


def part(claim, *words):
    """The only comparison of a claim whose label has these words."""
    (found,) = (part for part in claim.parts if all(word in part.label for word in words))
    return found
