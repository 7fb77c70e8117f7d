"""Names of distributions in their normalized form."""

import re


def normalized(name: str) -> str:
    """Returns a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
