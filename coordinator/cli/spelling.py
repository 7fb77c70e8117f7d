"""How a person spells this program: what was typed to start it, in every hint and usage line."""

import os
import shlex

VARIABLE = "STAGEWIRE_PROGRAM"
"""What `./run` sets to its own path as it was typed."""


def program() -> str:
    """Returns the words that start this program."""
    return shlex.quote(os.environ.get(VARIABLE) or "coordinator")


def spelled(text: str) -> str:
    """Returns a text whose commands in backticks begin as a person types them."""
    return text.replace("`coordinator ", f"`{program()} ")
