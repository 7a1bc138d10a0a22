"""The official client against a live server whose model has no spelling of calls: chat, streams, types, functions."""

import json

import openai
from common import BEND, COMPACT, DATES, KEY, MESSAGES, NAMED, PAINT, PROMPT, URL, Person, is_called, is_date, run

CLIENT = openai.OpenAI(base_url=URL, api_key=KEY, max_retries=0)
ASKED = {"model": "default", "messages": MESSAGES, "max_tokens": 400, "seed": 1, "temperature": 0}


def ask(**more):
    return CLIENT.chat.completions.create(**{**ASKED, **more})


def test_chat():
    answer = ask(extra_body=DATES)
    is_date(answer.choices[0].message.content)
    # An answer without text is sent back as it came.
    silent = {"role": "assistant", "content": None}
    ask(messages=[*MESSAGES, silent, *MESSAGES], max_tokens=4)


def test_stream():
    whole = ask(extra_body=DATES).choices[0].message.content
    events = ask(extra_body=DATES, stream=True)
    assert "".join(event.choices[0].delta.content or "" for event in events) == whole


def test_type():
    answer = CLIENT.chat.completions.parse(**ASKED, response_format=Person, extra_body=COMPACT)
    assert isinstance(answer.choices[0].message.parsed, Person), answer


def test_functions():
    for choice, names in [("required", {"paint", "bend"}), (NAMED, {"bend"})]:
        asked = {"tools": [PAINT, BEND], "tool_choice": choice, "parallel_tool_calls": False, "extra_body": COMPACT}
        answer = ask(**asked)
        [call] = answer.choices[0].message.tool_calls
        assert answer.choices[0].finish_reason == "tool_calls" and call.function.name in names, answer
        is_called(call.function.name, json.loads(call.function.arguments))
        # In a stream the same, piece by piece.
        pieces = [
            piece
            for event in ask(**asked, stream=True)
            for piece in event.choices[0].delta.tool_calls or []
        ]
        assert "".join(piece.function.arguments or "" for piece in pieces) == call.function.arguments, pieces
        assert [piece.function.name for piece in pieces if piece.function.name] == [call.function.name]
        # And back again, with the function's answer.
        said = answer.choices[0].message.model_dump()
        told = {"role": "tool", "tool_call_id": call.id, "content": "done"}
        ask(messages=[*MESSAGES, said, told], tools=[PAINT, BEND], max_tokens=4)


def test_model():
    for model in CLIENT.models.list():
        assert CLIENT.models.retrieve(model.id).id == model.id


def test_words_of_vllm():
    for body in [{"guided_regex": "[0-9]{4}-[0-9]{2}-[0-9]{2}"}, {"structured_outputs": {"regex": "[0-9]{4}-[0-9]{2}-[0-9]{2}"}}]:
        is_date(ask(extra_body=body).choices[0].message.content)
    assert ask(extra_body={"guided_choice": ["red", "green"]}).choices[0].message.content in ("red", "green")


def test_log_probabilities():
    prompt = "A person has a name."
    asked = {"model": "default", "prompt": prompt, "max_tokens": 0, "echo": True, "logprobs": 1}
    choice = CLIENT.completions.create(**asked).choices[0]
    first, *others = choice.logprobs.token_logprobs
    assert choice.text == prompt and first is None and all(one <= 0 for one in others), choice


def respond(**more):
    more = {**more, "extra_body": {**more.get("extra_body", {}), "seed": 1}}
    asked = {"model": "default", "input": PROMPT, "max_output_tokens": 400, "temperature": 0}
    return CLIENT.responses.create(**{**asked, **more})


def test_responses():
    answer = respond(extra_body=DATES)
    is_date(answer.output_text)
    assert answer.status == "completed" and answer.usage.total_tokens > 10, answer
    asked = {"model": "default", "input": PROMPT, "max_output_tokens": 400, "extra_body": {"seed": 1, **COMPACT}}
    parsed = CLIENT.responses.parse(**asked, text_format=Person)
    assert isinstance(parsed.output_parsed, Person), parsed
    with CLIENT.responses.stream(**asked, text_format=Person) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        last = stream.get_final_response()
    assert text == last.output_text and isinstance(last.output_parsed, Person), (text, last)


def test_responses_call():
    tool = {"type": "function", "strict": True, **PAINT["function"]}
    custom = {
        "type": "custom", "name": "run", "description": "Runs a line.",
        "format": {"type": "grammar", "syntax": "lark", "definition": 'start: ("ls" | "cd" " " /[a-z]{1,3}/) "\\n"'},
    }
    asked = {"tools": [tool, custom], "parallel_tool_calls": False, "extra_body": COMPACT}
    answer = respond(**asked, tool_choice={"type": "function", "name": "paint"})
    [call] = answer.output
    assert call.type == "function_call", answer
    is_called(call.name, json.loads(call.arguments))
    # And back again, with the function's answer.
    told = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    respond(input=[{"role": "user", "content": PROMPT}, call.model_dump(), told], tools=[tool], max_output_tokens=4)
    [call] = respond(**asked, tool_choice={"type": "custom", "name": "run"}).output
    assert call.type == "custom_tool_call" and call.input[:2] in ("ls", "cd") and call.input[-1] == "\n", call
    events = list(respond(**asked, tool_choice={"type": "custom", "name": "run"}, stream=True))
    inputs = [event.input for event in events if event.type == "response.custom_tool_call_input.done"]
    assert inputs == [call.input], events


run("openai", globals())
