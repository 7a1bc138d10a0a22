"""Pydantic AI against a live server: types by schemas and by functions, streams, errors."""

import asyncio
from typing import Literal

from common import COMPACT, DATES, KEY, PROMPT, URL, Person, is_date, run
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.exceptions import ModelHTTPError, UsageLimitExceeded
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

MODEL = OpenAIChatModel("default", provider=OpenAIProvider(base_url=URL, api_key=KEY))


def settings(body):
    return {"max_tokens": 400, "seed": 1, "temperature": 0.0, "parallel_tool_calls": False, "extra_body": body}


def test_chat():
    is_date(Agent(MODEL).run_sync(PROMPT, model_settings=settings(DATES)).output)


def test_stream():
    async def streamed():
        async with Agent(MODEL).run_stream(PROMPT, model_settings=settings(DATES)) as result:
            return [piece async for piece in result.stream_text()]

    is_date(asyncio.run(streamed())[-1])


def test_types():
    for output in [NativeOutput(Person), ToolOutput(Person)]:
        person = Agent(MODEL, output_type=output, retries=0).run_sync(PROMPT, model_settings=settings(COMPACT)).output
        assert isinstance(person, Person), (output, person)


def test_types_in_streams():
    async def streamed(output):
        async with Agent(MODEL, output_type=output, retries=0).run_stream(
            PROMPT, model_settings=settings(COMPACT)
        ) as result:
            return await result.get_output()

    for output in [NativeOutput(Person), ToolOutput(Person)]:
        assert isinstance(asyncio.run(streamed(output)), Person), output


def test_functions():
    """A function is called first, and its answer is sent back: the model may choose it or the output."""
    called = []
    agent = Agent(MODEL, output_type=ToolOutput(Person), retries=0)

    @agent.tool_plain
    def bend(angle: Literal[30, 60]) -> str:
        """Bends it."""
        called.append(angle)
        return "done"

    limits = UsageLimits(request_limit=3)
    try:
        person = agent.run_sync(PROMPT, model_settings=settings(COMPACT), usage_limits=limits).output
        assert isinstance(person, Person), person
    except UsageLimitExceeded:
        # A small model may bend it again and again, and each call is one that the function takes.
        assert len(called) == 3, called
    assert all(angle in (30, 60) for angle in called), called


def test_errors():
    try:
        Agent(MODEL).run_sync(PROMPT, model_settings=settings({"colour": 1}))
    except ModelHTTPError as error:
        assert error.status_code == 400, error
        return
    raise AssertionError("an unknown field was not refused")


run("pydantic-ai", globals())
