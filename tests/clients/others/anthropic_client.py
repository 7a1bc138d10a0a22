"""Anthropic's official client: messages, streams, types, tools, and the count of tokens."""

from typing import Literal

import anthropic
import pydantic
from common import COMPACT, KEY, MESSAGES, URL, is_called, run

CLIENT = anthropic.Anthropic(base_url=URL.removesuffix("/v1"), api_key=KEY, max_retries=0)
ASKED = {"model": "default", "messages": MESSAGES, "max_tokens": 400, "extra_body": {"seed": 1, "temperature": 0, **COMPACT}}
PAINT = {
    "name": "paint",
    "description": "Paints something.",
    "input_schema": {
        "type": "object", "properties": {"color": {"enum": ["red", "green"]}}, "required": ["color"],
        "additionalProperties": False,
    },
}


class Tip(pydantic.BaseModel):
    """The tip of a brush."""

    width: Literal[1, 2]


class Brush(pydantic.BaseModel):
    """Something whose text ends by itself: the client takes bounds of lists and strings out of schemas."""

    color: Literal["red", "green"]
    wet: bool
    tip: Tip


def test_type():
    answer = CLIENT.messages.parse(**ASKED, output_format=Brush)
    assert isinstance(answer.parsed_output, Brush), answer
    assert answer.stop_reason == "end_turn" and answer.usage.output_tokens > 1, answer


def test_schema():
    schema = {"type": "json_schema", "schema": PAINT["input_schema"]}
    asked = {**ASKED, "output_config": {"format": schema}}
    answer = CLIENT.messages.create(**asked)
    with CLIENT.messages.stream(**asked) as stream:
        text = "".join(stream.text_stream)
        last = stream.get_final_message()
    assert text == answer.content[0].text == last.content[0].text, (text, answer)


def test_tools():
    one = {"type": "tool", "name": "paint", "disable_parallel_tool_use": True}
    asked = {**ASKED, "tools": [PAINT], "tool_choice": one}
    answer = CLIENT.messages.create(**asked)
    [call] = answer.content
    assert answer.stop_reason == "tool_use" and call.type == "tool_use", answer
    is_called(call.name, call.input)
    with CLIENT.messages.stream(**asked) as stream:
        [streamed] = stream.get_final_message().content
    assert streamed.input == call.input
    # And back again, with what the tool answers.
    told = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "done"}]}
    said = {"role": "assistant", "content": answer.content}
    CLIENT.messages.create(**{**ASKED, "messages": [*MESSAGES, said, told], "tools": [PAINT], "max_tokens": 4})


def test_count():
    counted = CLIENT.messages.count_tokens(model="default", messages=MESSAGES)
    answer = CLIENT.messages.create(model="default", messages=MESSAGES, max_tokens=1)
    assert counted.input_tokens == answer.usage.input_tokens + answer.usage.cache_read_input_tokens


def test_refusal():
    try:
        CLIENT.messages.create(model="default", messages=MESSAGES, max_tokens=0)
    except anthropic.BadRequestError as error:
        assert error.body["error"]["type"] == "invalid_request_error", error.body
    else:
        raise AssertionError("no tokens were not refused")


run("anthropic", globals())
