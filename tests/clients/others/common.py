"""The common part of the scripts beside this one: an answer with a type, a function to call, and how tests run.

OPENAI_BASE_URL and OPENAI_API_KEY come from the environment.
"""

import os
import re
from typing import Literal

import pydantic

URL = os.environ["OPENAI_BASE_URL"]
KEY = os.environ["OPENAI_API_KEY"]

PROMPT = "A JSON file describing a person: "
MESSAGES = [{"role": "user", "content": PROMPT}]

# A small model left alone with white space gets stuck in it.
COMPACT = {"grammar_options": {"whitespace": "compact"}}

DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
DATES = {"grammar": {"type": "regex", "value": DATE}}


# An open object may have any keys besides, and a small model goes on writing some.
CLOSED = pydantic.ConfigDict(extra="forbid")


class Name(pydantic.BaseModel):
    """The name of a person."""

    model_config = CLOSED
    first: Literal["Ada", "Alan", "Grace"]
    last: str = pydantic.Field(max_length=8)


class Person(pydantic.BaseModel):
    """A person."""

    model_config = CLOSED
    names: list[Name] = pydantic.Field(min_length=1, max_length=2)
    age: Literal[7, 30, 99]


def function(name, key, values):
    """A function with one argument, in the form of OpenAI's API."""
    parameters = {
        "type": "object",
        "properties": {key: {"enum": values}},
        "required": [key],
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "function": {"name": name, "description": f"Do {name} it.", "parameters": parameters},
    }


PAINT = function("paint", "color", ["red", "green"])
BEND = function("bend", "angle", [30, 60])
NAMED = {"type": "function", "function": {"name": "bend"}}


def is_date(text):
    """Fails for a text that is not of the grammar."""
    assert re.fullmatch(DATE, text), text


def is_called(name, arguments):
    """Fails for a call of a function that is not there, or with arguments that it does not take."""
    taken = {"paint": [{"color": "red"}, {"color": "green"}], "bend": [{"angle": 30}, {"angle": 60}]}
    assert arguments in taken[name], (name, arguments)


def run(package, tests):
    """Runs the functions named `test_*` in their order."""
    for name, test in list(tests.items()):
        if name.startswith("test_"):
            test()
            print(f"{package}: {name} ok")
