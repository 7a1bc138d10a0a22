"""The official client against a live server: chat, completions, streams, named grammars, schemas, errors.

OPENAI_BASE_URL, OPENAI_API_KEY and DOMINO (the program, for its verdict on texts) come from the environment.
"""

import json
import os
import subprocess
import tempfile
from typing import Literal

import openai
import pydantic

client = openai.OpenAI(max_retries=0, timeout=120)
PERSON = [{"role": "user", "content": "A JSON file describing a person: "}]


def in_language(text, flags, whole):
    """True, by the program, for a text of the language or a prefix of one."""
    command = [os.environ["DOMINO"], "check", *flags, *([] if whole else ["--prefix"]), "-"]
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    assert done.returncode == 0, (text, done.stdout, done.stderr)


def refused(kind, code, call):
    """The call fails with this error; returns its body."""
    try:
        call()
    except kind as error:
        assert error.code == code, (error.code, error)
        return error.body
    raise AssertionError(f"{code} was not refused")


def chat(**more):
    return client.chat.completions.create(**{"model": "default", "messages": PERSON, "max_tokens": 120, **more})


def test_models():
    assert "default" in [model.id for model in client.models.list()]


def test_chat():
    for name in ["json", "rfc8259", "c", "rpg"]:
        answer = chat(seed=3, extra_body={"grammar": {"type": "named", "value": name}})
        choice = answer.choices[0]
        in_language(choice.message.content, ["-g", name], choice.finish_reason == "stop")
        assert choice.message.role == "assistant"
        assert answer.usage.completion_tokens <= 120
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
        assert answer.usage.completion_tokens_details.accepted_prediction_tokens is not None
        assert answer.usage.model_extra["domino"]["passes"] >= 1


def test_json_object():
    answer = chat(temperature=0, max_tokens=400, response_format={"type": "json_object"})
    if answer.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(answer.choices[0].message.content), dict)
    in_language(answer.choices[0].message.content, ["-g", "rfc8259"], answer.choices[0].finish_reason == "stop")


PET = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "legs": {"enum": [2, 4, 8]}},
    "required": ["name", "legs"],
    "additionalProperties": False,
}


def in_schema(text, schema, flags=()):
    """True for an instance of the schema."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(schema, file)
        file.flush()
        in_language(text, ["-g", file.name, *flags], True)


def test_json_schema():
    for strict in [True, False, None]:
        asked = {"type": "json_schema", "json_schema": {"name": "pet", "schema": PET, "strict": strict}}
        choice = chat(seed=2, max_tokens=200, response_format=asked).choices[0]
        assert choice.finish_reason == "stop", choice
        pet = json.loads(choice.message.content)
        assert list(pet) == ["name", "legs"] and pet["legs"] in (2, 4, 8), pet
        in_schema(choice.message.content, PET)


def test_grammar_of_a_schema():
    for value in [PET, json.dumps(PET)]:
        grammar = {"type": "json_schema", "value": value, "whitespace": "compact", "escapes": "minimal"}
        choice = chat(seed=2, max_tokens=200, extra_body={"grammar": grammar}).choices[0]
        text = choice.message.content
        assert choice.finish_reason == "stop" and text.startswith('{"name":"'), choice
        in_schema(text, PET, ["--whitespace", "compact"])


class Name(pydantic.BaseModel):
    first: Literal["Ada", "Alan", "Grace"]
    last: str = pydantic.Field(max_length=8)


class Person(pydantic.BaseModel):
    names: list[Name] = pydantic.Field(min_length=1, max_length=2)
    age: int | None


def test_parse():
    """The client makes the schema of a model of pydantic, and reads the answer as one."""
    for temperature in [0, 1]:
        parsed = client.chat.completions.parse(
            model="default",
            messages=PERSON,
            max_tokens=1500,
            seed=1,
            temperature=temperature,
            response_format=Person,
        )
        person = parsed.choices[0].message.parsed
        assert isinstance(person, Person) and 1 <= len(person.names) <= 2, parsed


def test_relaxed():
    items = {"type": "string", "maxLength": 5}
    schema = {"type": "array", "uniqueItems": True, "maxItems": 3, "items": items}
    schema |= {"contains": {"const": "a"}, "maxContains": 1}
    asked = dict(seed=1, extra_body={"grammar": {"type": "json_schema", "value": schema, "lenient": True}})
    relaxed = chat(**asked).model_extra["relaxed"]
    assert [entry["keyword"] for entry in relaxed] == ["uniqueItems"], relaxed
    events = list(chat(stream=True, **asked))
    told = [(event.model_extra or {}).get("relaxed") for event in events]
    assert told == [relaxed] + [None] * (len(events) - 1), told


def test_thoughts():
    schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
    asked = {
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}},
        "extra_body": {"reasoning": "required", "reasoning_tokens": 30, "finish": True},
    }
    # The shipped model was not trained to think, and may write nothing but line feeds.
    for asked["seed"] in range(3, 20):
        answer = chat(**asked)
        message = answer.choices[0].message
        assert json.loads(message.content)["n"] in (1, 2)
        assert answer.usage.completion_tokens_details.reasoning_tokens > 2
        if getattr(message, "reasoning_content", None):
            break
    deltas = [chunk.choices[0].delta for chunk in chat(**asked, stream=True) if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == message.content and message.reasoning_content
    thought = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert thought == message.reasoning_content
    again = PERSON + [message.to_dict(), PERSON[0]]
    assert chat(messages=again, max_tokens=2).choices[0].finish_reason == "length"


def test_streams():
    asked = dict(seed=4, temperature=1, extra_body={"grammar": {"type": "regex", "value": r"\{\"age\": [0-9]{1,3}\}"}})
    whole = chat(**asked).choices[0]
    text, finish, usage = "", None, None
    for event in chat(stream=True, stream_options={"include_usage": True}, **asked):
        usage = event.usage or usage
        for choice in event.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    assert (text, finish) == (whole.message.content, whole.finish_reason), (text, whole)
    assert usage.completion_tokens > 0
    in_language(text, ["-r", r"\{\"age\": [0-9]{1,3}\}"], True)


def test_several_texts():
    answer = chat(n=4, seed=1, extra_body={"grammar": {"type": "named", "value": "json"}})
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert len({choice.message.content for choice in answer.choices}) > 1
    for choice in answer.choices:
        in_language(choice.message.content, ["-g", "json"], choice.finish_reason == "stop")


def test_completions():
    grammar = {"type": "gbnf", "value": 'root ::= "yes" | "no"'}
    for prompt in ["Is it? ", ["Is it? "]]:
        answer = client.completions.create(model="default", prompt=prompt, extra_body={"grammar": grammar})
        assert answer.choices[0].text in ("yes", "no"), answer
    pieces = client.completions.create(model="default", prompt="Is it? ", stream=True, extra_body={"grammar": grammar})
    assert "".join(choice.text for piece in pieces for choice in piece.choices) in ("yes", "no")


def test_plain():
    answer = chat(max_tokens=10, temperature=0)
    streamed = "".join(c.delta.content or "" for e in chat(max_tokens=10, temperature=0, stream=True) for c in e.choices)
    assert streamed == answer.choices[0].message.content, (streamed, answer)


def test_fields():
    plain = chat(max_tokens=5, temperature=0).choices[0].message
    harmless = dict(user="u", metadata={"a": "b"}, store=True, service_tier="auto", verbosity="low")
    again = chat(max_tokens=5, temperature=0, **harmless).choices[0].message
    assert again.content == plain.content, (again, plain)
    # An answer can be sent back as it was got.
    chat(max_tokens=5, messages=[*PERSON, again, *PERSON])
    bad = openai.BadRequestError
    assert refused(bad, "unsupported", lambda: chat(web_search_options={}))["param"] == "web_search_options"
    assert refused(bad, "unknown_parameter", lambda: chat(extra_body={"colour": 1}))["param"] == "colour"


def test_errors():
    bad = openai.BadRequestError
    body = refused(bad, "invalid_grammar", lambda: chat(extra_body={"grammar": {"type": "gbnf", "value": "root ::= (\n"}}))
    assert body["line"] >= 1 and body["column"] >= 1, body
    wrong = [({"type": "object"}, True, "#"), ({"anyOf": [{"type": "text"}]}, False, "#/anyOf/0")]
    for schema, strict, pointer in wrong:
        asked = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema, "strict": strict}}
        body = refused(bad, "invalid_json_schema", lambda: chat(response_format=asked))
        assert body["param"] == "response_format" and f" {pointer}: " in body["message"], body
        assert body["pointer"] == pointer, body
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    both = dict(tools=tools, extra_body={"grammar": {"type": "named", "value": "json"}})
    assert refused(bad, "unsupported", lambda: chat(**both))["param"] == "tools"
    refused(bad, "invalid_value", lambda: chat(n=0))
    missing = {"grammar": {"type": "named", "value": "klingon"}}
    refused(openai.NotFoundError, "grammar_not_found", lambda: chat(extra_body=missing))
    refused(openai.NotFoundError, "model_not_found", lambda: chat(model="gpt-9"))
    stranger = client.with_options(api_key="wrong")
    refused(openai.AuthenticationError, "invalid_api_key", lambda: stranger.models.list())
    # In a stream too, before it begins.
    refused(bad, "invalid_grammar", lambda: chat(stream=True, extra_body={"grammar": {"type": "regex", "value": "("}}))
    test_models()


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print(f"openai {openai.__version__}: {name} ok")
