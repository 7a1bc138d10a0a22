"""Domino from Python as an engine of a comparison of JSON Schema engines, one schema after the other.

python schema_engine.py [--order any|schema]

Reads a line {"tokenizer": tokenizer.json, "eos": token}, answers {"ready": true, "call_us": an empty call},
and then for each line {"id", "schema", "tests": [{"tokens", "valid"}]} times the first mask and each mask with
its step, into an array of numpy, and says which tests were decided wrongly. The clocks stand where those of
the other Python engines of the comparison stand. Needs numpy.
"""

import argparse
import json
import statistics
import sys
import time

import numpy

from domino_decoding import Compiler, Grammar, Vocabulary
from domino_decoding.errors import DominoError

CALLS = 2000


def say(answer):
    print(json.dumps(answer), flush=True)


def decided(constraint, mask, tokens, found):
    """Is the text accepted? Its times go into `found`."""
    clock, words = time.perf_counter_ns, mask[0]
    for token in tokens:
        begun = clock()
        constraint.fill(mask)
        filled = clock()
        allowed = bool(int(words[token >> 5]) >> (token & 31) & 1)
        looked = clock()
        if allowed:
            constraint.advance(token)
        done = clock()
        found["masks_us"].append((filled - begun) / 1e3)
        found["steps_us"].append((filled - begun + done - looked) / 1e3)
        if not allowed:
            return False
    return constraint.is_complete()


def answer(compiler, mask, job, options):
    found = {"id": job["id"], "engine": "domino", "status": "ok", "steps_us": [], "masks_us": [], "tests": 0}
    found["wrong"] = []
    begun = time.perf_counter_ns()
    try:
        compiled = compiler.compile(Grammar.json_schema(job["schema"], **options))
        compiled.constraint().fill(mask)
    except DominoError as error:
        return found | {"status": "refused", "error": str(error)[:300]}
    found["ttfm_us"] = (time.perf_counter_ns() - begun) / 1e3
    for number, test in enumerate(job["tests"]):
        accepted = decided(compiled.constraint(), mask, test["tokens"], found)
        found["tests"] += 1
        if accepted != test["valid"]:
            found["status"] = "wrong"
            found["wrong"].append([number, "valid refused" if test["valid"] else "invalid accepted"])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--order", choices=("any", "schema"), default="any", help="of members")
    # Texts are others', with numbers and escapes in all spellings.
    order = parser.parse_args().order
    options = {"order": order, "numbers": "any", "escapes": "all", "format": "assert"}
    head = json.loads(sys.stdin.readline())
    vocabulary = Vocabulary.from_file(head["tokenizer"])
    compiler = Compiler(vocabulary)
    compiler.prepare(**options)
    mask = numpy.zeros((1, vocabulary.words), numpy.int32)
    constraint = compiler.compile(Grammar.json_schema({"type": "integer"})).constraint()
    clock, calls = time.perf_counter_ns, []
    for _ in range(CALLS):
        begun = clock()
        constraint.is_complete()
        calls.append(clock() - begun)
    say({"ready": True, "call_us": statistics.median(calls) / 1e3})
    for line in sys.stdin:
        say(answer(compiler, mask, json.loads(line), options))


if __name__ == "__main__":
    main()
