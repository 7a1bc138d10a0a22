"""LangChain (langchain-openai) against a live server: chat, streams, types, functions, errors."""

import openai
from common import BEND, COMPACT, DATES, KEY, PAINT, PROMPT, URL, Person, is_called, is_date, run
from langchain_openai import ChatOpenAI


def chat(**more):
    asked = {"model": "default", "base_url": URL, "api_key": KEY, "max_tokens": 400, "seed": 1, "temperature": 0}
    return ChatOpenAI(**{**asked, "max_retries": 0, **more})


def test_chat():
    answer = chat(extra_body=DATES).invoke(PROMPT)
    is_date(answer.content)
    assert answer.usage_metadata["output_tokens"] > 0, answer


def test_stream():
    dates = chat(extra_body=DATES)
    assert "".join(piece.content for piece in dates.stream(PROMPT)) == dates.invoke(PROMPT).content


def test_batch():
    for answer in chat(extra_body=DATES).batch([PROMPT, "A date: "]):
        is_date(answer.content)


def test_type():
    for method in ["json_schema", "function_calling"]:
        person = chat(extra_body=COMPACT).with_structured_output(Person, method=method).invoke(PROMPT)
        assert isinstance(person, Person), (method, person)


def test_functions():
    for choice, names in [("required", {"paint", "bend"}), ("bend", {"bend"})]:
        worker = chat(extra_body=COMPACT).bind_tools([PAINT, BEND], tool_choice=choice, parallel_tool_calls=False)
        [call] = worker.invoke(PROMPT).tool_calls
        assert call["name"] in names, call
        is_called(call["name"], call["args"])
        pieces = list(worker.stream(PROMPT))
        whole = pieces[0]
        for piece in pieces[1:]:
            whole += piece
        assert [(one["name"], one["args"]) for one in whole.tool_calls] == [(call["name"], call["args"])], whole


def test_errors():
    for wrong in [{"grammar": {"type": "regex", "value": "("}}, {"colour": 1}]:
        try:
            chat(extra_body=wrong).invoke(PROMPT)
        except openai.BadRequestError:
            continue
        raise AssertionError(f"{wrong} was not refused")


run("langchain-openai", globals())
