"""What the tests of the back ends for servers share."""

import json

from domino_decoding.integrations.library import Library
from domino_decoding.integrations.options import Options

from . import walks


def options(**given):
    """Options as servers read them."""
    return Options.from_environment({"DOMINO_OPTIONS": json.dumps(given)})


def library(**given):
    """A library for the small vocabulary."""
    return Library(walks.vocabulary(), options(**given))
