"""Makes the lists of functions and the questions here, of the Berkeley Function Calling Leaderboard.

    python experiments/real/calls/make.py

The data (live, multiple) are those in the wheel of the package `bfcl-eval` 2026.3.23, Apache-2.0, which is
known by its sum; nothing of it is installed or run. Four lists of functions are taken, with ten questions each
that are measured and three that drafts learn from, the first ones that have one turn and one right call.
Types of Python become those of JSON Schema, dots in names underscores, and objects have no other members
than those that are named.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "bfcl-eval==2026.3.23"
SHA256 = "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"
QUESTIONS = "bfcl_eval/data/BFCL_v4_live_multiple.json"
ANSWERS = "bfcl_eval/data/possible_answer/BFCL_v4_live_multiple.json"
# What the definitions call a list of functions, and the number that BFCL has for it.
LISTS = {"assistant": 4, "media": 161, "homes": 175, "payments": 185}
MEASURED = 10
LEARNT = 3
TYPES = {"dict": "object", "float": "number", "tuple": "array", "list": "array", "bool": "boolean", "any": None}
PLAIN = str.maketrans(".", "_")


def schema(value):
    """A schema of BFCL as JSON Schema: with its names of types, and objects closed."""
    if isinstance(value, list):
        return [schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {name: schema(member) for name, member in value.items()}
    if isinstance(value.get("type"), str):
        made["type"] = TYPES.get(value["type"], value["type"])
        if made["type"] is None:
            del made["type"]
        elif made["type"] == "object" and "properties" in made:
            made["additionalProperties"] = False
    return made


def tool(function):
    parameters = schema(function["parameters"])
    function = {**function, "name": function["name"].translate(PLAIN), "parameters": parameters}
    return {"type": "function", "function": function}


def questions(archive):
    """The questions of one turn, one message and one call, with that call, by the number of their list."""
    def rows(name):
        return [json.loads(line) for line in archive.read(name).decode().splitlines() if line.strip()]

    right = {row["id"]: row["ground_truth"] for row in rows(ANSWERS)}
    found = {}
    for row in rows(QUESTIONS):
        number = int(row["id"].rsplit("_", 1)[1].split("-")[1])
        if len(row["question"]) == 1 and len(row["question"][0]) == 1 and len(right[row["id"]]) == 1:
            found.setdefault(number, []).append((row, right[row["id"]]))
    return found


def write(archive, folder):
    found = questions(archive)
    measured, learnt = [], []
    for name, number in LISTS.items():
        rows = found[number]
        tools = [tool(function) for function in rows[0][0]["function"]]
        (folder / f"{name}.json").write_text(json.dumps(tools, indent=1) + "\n", encoding="utf-8")
        for at, (row, calls) in enumerate(rows[:MEASURED + LEARNT]):
            calls = [{function.translate(PLAIN): given for function, given in call.items()} for call in calls]
            question = row["question"][0][0]["content"]
            line = {"task": name, "prompt": question, "answer": calls, "id": row["id"]}
            (measured if at < MEASURED else learnt).append(json.dumps(line))
    for name, lines in (("learnt.jsonl", learnt), ("measured.jsonl", measured)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    with tempfile.TemporaryDirectory() as wheels:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--only-binary=:all:", "--dest", wheels, PACKAGE]
        subprocess.run(command, check=True)
        [wheel] = Path(wheels).glob("*.whl")
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != SHA256:
            sys.exit(f"error: {wheel.name} has the sum {found}, and not {SHA256}")
        with zipfile.ZipFile(wheel) as archive:
            write(archive, Path(__file__).resolve().parent)


main()
