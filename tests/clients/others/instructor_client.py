"""Instructor against a live server: types by functions, by schemas, and in a stream."""

import instructor
import openai
from common import COMPACT, DATES, KEY, MESSAGES, URL, Person, is_date, run

ASKED = {"model": "default", "messages": MESSAGES, "max_tokens": 400, "seed": 1, "temperature": 0}


def client(mode):
    return instructor.from_openai(openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0), mode=mode)


# After one call a small model would go on until its tokens are used up.
ONE = {"parallel_tool_calls": False}


def test_chat():
    answer = client(instructor.Mode.TOOLS).chat.completions.create(response_model=None, extra_body=DATES, **ASKED)
    is_date(answer.choices[0].message.content)


def test_types():
    for mode, more in [(instructor.Mode.TOOLS, ONE), (instructor.Mode.JSON_SCHEMA, {})]:
        create = client(mode).chat.completions.create
        person = create(response_model=Person, max_retries=0, extra_body=COMPACT, **ASKED, **more)
        assert isinstance(person, Person), (mode, person)


def test_partial():
    for mode, more in [(instructor.Mode.TOOLS, ONE), (instructor.Mode.JSON_SCHEMA, {})]:
        create = client(mode).chat.completions.create_partial
        people = list(create(response_model=Person, max_retries=0, extra_body=COMPACT, **ASKED, **more))
        assert len(people) > 1 and Person.model_validate(people[-1].model_dump()), (mode, people)


run("instructor", globals())
