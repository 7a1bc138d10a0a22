"""LiteLLM against a live server: chat, streams, types, functions, errors."""

import asyncio
import json
import os

# Prices of models are not asked for in the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402
from common import (  # noqa: E402
    BEND, COMPACT, DATES, KEY, MESSAGES, NAMED, PAINT, URL, Person, is_called, is_date, run,
)

litellm.telemetry = False
litellm.suppress_debug_info = True
ASKED = {
    "model": "openai/default", "api_base": URL, "api_key": KEY, "messages": MESSAGES, "max_tokens": 400, "seed": 1,
    "temperature": 0, "max_retries": 0,
}


def ask(**more):
    return litellm.completion(**{**ASKED, **more})


def test_chat():
    answer = ask(extra_body=DATES)
    is_date(answer.choices[0].message.content)
    assert answer.choices[0].finish_reason == "stop" and answer.usage.completion_tokens > 0, answer


def test_stream():
    whole = ask(extra_body=DATES).choices[0].message.content
    events = ask(extra_body=DATES, stream=True)
    assert "".join(event.choices[0].delta.content or "" for event in events) == whole


def test_async():
    async def both():
        return await asyncio.gather(*(litellm.acompletion(**{**ASKED, "extra_body": DATES}) for _ in range(2)))

    for answer in asyncio.run(both()):
        is_date(answer.choices[0].message.content)


def test_type():
    answer = ask(response_format=Person, extra_body=COMPACT)
    Person.model_validate_json(answer.choices[0].message.content)


def test_functions():
    for choice, names in [("required", {"paint", "bend"}), (NAMED, {"bend"})]:
        asked = {"tools": [PAINT, BEND], "tool_choice": choice, "parallel_tool_calls": False, "extra_body": COMPACT}
        [call] = ask(**asked).choices[0].message.tool_calls
        assert call.function.name in names, call
        is_called(call.function.name, json.loads(call.function.arguments))
        pieces = [piece for event in ask(**asked, stream=True) for piece in event.choices[0].delta.tool_calls or []]
        assert "".join(piece.function.arguments or "" for piece in pieces) == call.function.arguments, pieces


def test_errors():
    for wrong in [{"extra_body": {"grammar": {"type": "regex", "value": "("}}}, {"extra_body": {"colour": 1}}]:
        try:
            ask(**wrong)
        except litellm.BadRequestError:
            continue
        raise AssertionError(f"{wrong} was not refused")
    try:
        ask(api_key="wrong")
    except litellm.AuthenticationError:
        return
    raise AssertionError("a wrong key was not refused")


run("litellm", globals())
