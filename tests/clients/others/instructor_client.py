"""Instructor against a live server: types by functions, by schemas, and in a stream."""

import instructor
import openai
from common import COMPACT, KEY, MESSAGES, URL, Person, run

ASKED = {"model": "default", "messages": MESSAGES, "max_tokens": 400, "seed": 1, "temperature": 0}


def client(mode):
    return instructor.from_openai(openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0), mode=mode)


def test_types():
    # After one call a small model would go on until its tokens are used up.
    for mode, more in [(instructor.Mode.TOOLS, {"parallel_tool_calls": False}), (instructor.Mode.JSON_SCHEMA, {})]:
        create = client(mode).chat.completions.create
        person = create(response_model=Person, max_retries=0, extra_body=COMPACT, **ASKED, **more)
        assert isinstance(person, Person), (mode, person)


def test_partial():
    create = client(instructor.Mode.JSON_SCHEMA).chat.completions.create_partial
    people = list(create(response_model=Person, max_retries=0, extra_body=COMPACT, **ASKED))
    assert len(people) > 1 and Person.model_validate(people[-1].model_dump()), people


run("instructor", globals())
