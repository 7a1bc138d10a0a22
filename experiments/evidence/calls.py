"""Questions of BFCL, and calls of functions judged by its own checker. `bfcl` and `think` ask by these."""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import types
import zipfile

import judging

CACHES = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
FOLDER = CACHES / "domino-evidence" / "bfcl-eval"
PACKAGE = "bfcl-eval==2026.3.23"
CATEGORIES = (
    "simple_python simple_java simple_javascript multiple parallel parallel_multiple irrelevance live_simple "
    "live_multiple live_parallel live_parallel_multiple live_irrelevance live_relevance"
).split()
# Types of BFCL's schemas by those of JSON Schema; those of Java and JavaScript are written as text.
TYPES = {"float": "number", "dict": "object", "tuple": "array", "any": "string", "": "string"}
CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
IN_WORDS = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> \
XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""


def fetch(folder):
    """BFCL's package, unpacked; pip fetches it without what it depends on."""
    if not (folder / "bfcl_eval").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            str(folder),
            PACKAGE,
        ]
        if not list(folder.glob("*.whl")):
            subprocess.run(command, check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            wheel.extractall(folder)
    return folder / "bfcl_eval"


def checker(folder):
    """BFCL's checker of calls. Of its list of models, which needs their packages, it asks one flag."""
    settings = types.ModuleType("bfcl_eval.constants.model_config")
    settings.MODEL_CONFIG_MAPPING = {"domino": types.SimpleNamespace(underscore_to_dot=False)}
    sys.modules[settings.__name__] = settings
    sys.path.insert(0, str(folder.parent))
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def is_right(question, calls):
        language = {"simple_java": Language.JAVA, "simple_javascript": Language.JAVASCRIPT}
        language = language.get(question["category"], Language.PYTHON)
        given = [{call["name"]: call["arguments"]} for call in calls]
        try:
            said = ast_checker(
                question["function"], given, question["answer"], language, question["category"], "domino"
            )
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            return False  # What it does with values that no schema allows.
        return bool(said["valid"])

    return is_right


def questions(folder, count, categories=CATEGORIES, seed=2026):
    """So many questions, as many of each category as of any other that has them; all for 0."""
    whole = {}
    for category in categories:
        name = f"BFCL_v4_{category}.json"
        answers = folder / "data" / "possible_answer" / name
        known = {row["id"]: row["ground_truth"] for row in judging.lines(answers)}
        rows = judging.lines(folder / "data" / name)
        whole[category] = [{**row, "category": category, "answer": known.get(row["id"])} for row in rows]
    left, taken = count, []
    for done, category in enumerate(sorted(whole, key=lambda name: len(whole[name]))):
        rows = whole[category]
        most = min(len(rows), left // (len(whole) - done)) if count else len(rows)
        draw = random.Random(f"{seed} {category}")
        taken += [rows[at] for at in sorted(draw.sample(range(len(rows)), most))]
        left -= most
    return taken


def schema_of(value, language):
    """A schema of BFCL's as JSON Schema."""
    if isinstance(value, list):
        return [schema_of(item, language) for item in value]
    if not isinstance(value, dict):
        return value
    schema = {key: schema_of(item, language) for key, item in value.items()}
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = TYPES.get(kind, kind)
    return schema


def tool_of(function, category):
    """A function as OpenAI's API has it."""
    parameters = schema_of(function["parameters"], category)
    if category in ("simple_java", "simple_javascript"):
        language = "Java" if category == "simple_java" else "JavaScript"
        for name, given in function["parameters"]["properties"].items():
            about = f"{given.get('description', '')} As text, of {language}'s type {given['type']}."
            parameters["properties"][name] = {"type": "string", "description": about.strip()}
    told = {
        "name": function["name"],
        "description": function.get("description", ""),
        "parameters": parameters,
    }
    return {"type": "function", "function": told}


def tools_of(question):
    return [tool_of(function, question["category"]) for function in question["function"]]


def in_words(question):
    """The conversation with the functions in what the system says, as Qwen's template has them."""
    tools = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools_of(question))
    first, *rest = question["question"][0]
    said = first["content"] if first["role"] == "system" else ""
    messages = rest if first["role"] == "system" else [first, *rest]
    words = IN_WORDS.format(tools)
    return [{"role": "system", "content": f"{said}\n\n{words}"}, *messages]


def as_call(value):
    """A call, if the value is one."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    arguments = value.get("arguments", value.get("parameters"))
    return {"name": value["name"], "arguments": arguments} if isinstance(arguments, dict) else None


def strictly(text):
    """The calls of a text in the model's own spelling; None if one of them, or a mark, is wrong."""
    found = [judging.strict_json(inner) for inner in CALL.findall(text)]
    outside = CALL.sub("", text)
    plain = "<tool_call>" not in outside and "</tool_call>" not in outside
    whole = all(set(value) == {"name", "arguments"} for value in found if isinstance(value, dict))
    calls = [as_call(value) for value in found]
    return calls if plain and whole and all(calls) else None


def leniently(text):
    """The calls of a text, whatever stands around them: objects with a name and arguments, in order."""
    values = [
        item for value in judging.values_in(text) for item in (value if isinstance(value, list) else [value])
    ]
    return [call for call in map(as_call, values) if call]


def is_right(check, question, calls):
    """By BFCL's rules. Where no function fits, any call is wrong; in `live_relevance` any is right."""
    if "irrelevance" in question["category"]:
        return not calls
    if calls is None:
        return False
    return bool(calls) if "relevance" in question["category"] else check(question, calls)
