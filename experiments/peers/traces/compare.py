#!/usr/bin/env python3
"""Domino and the other engines on the shared traces, in one run: each in a process of its own, in turns.

    python experiments/peers/traces/compare.py --rounds 3 --json cells.json

Every mask is held against the exact one; what differs is counted. Exit code 1: a mask of Domino is wrong. What is
measured, and what has to be built before, is in `experiments/programs/engine/README.md`.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import table
from engines import HERE, all_engines
from walks import medians, token_bytes, write_traces, write_vocabulary

GRAMMARS = ["json_basic", "gsm8k", "xml_person", "rpg_template", "c_simple"]
VOCABULARIES = {"mistral32k": "mistral-v1-32k", "tekken131k": "tekken-131k"}


class Cell:
    """A grammar and a vocabulary, and where their files are."""

    def __init__(self, shared, grammar, vocab):
        self.grammar, self.vocab, self.peers = grammar, vocab, shared / "peers"
        self.tokenizer = shared / "data/tokenizers" / VOCABULARIES[vocab] / "tokenizer.json"
        self.traces = self.peers / f"traces/{grammar}.{vocab}.traces.json"
        self.expected = self.peers / f"expected/{grammar}.{vocab}.json"


def compare(args, cell, folder):
    """Results of all engines on a cell, after all rounds."""
    traces = json.loads(cell.traces.read_text())
    expected = json.loads(cell.expected.read_text())["traces"]
    write_vocabulary(folder / "vocabulary", token_bytes(json.loads(cell.tokenizer.read_text())), traces["eos"])
    write_traces(folder / "traces", traces["traces"])
    engines = all_engines(args, cell)
    walked = {engine.name: [] for engine in engines}
    for round_ in range(args.rounds):
        turn = round_ % len(engines)
        for engine in engines[turn:] + engines[:turn]:
            print(f"{cell.vocab} {cell.grammar} round {round_ + 1}: {engine.name}", file=sys.stderr, flush=True)
            walked[engine.name] += engine.command(folder)
    return [
        result(cell, engine.name, engine.spelling, walked[engine.name], expected, len(traces["traces"]), args)
        for engine in engines
    ]


def result(cell, name, spelling, lines, expected, texts, args):
    """A `peers-cell-1` of the medians over all rounds."""
    of = lambda kind, text: [line for line in lines if line["kind"] == kind and line["text"] == text]
    setups = [line for line in lines if line["kind"] == "setup"]
    rows, wrong, unlike = [], 0, None
    for text in range(texts):
        looks, fresh, warm = (of(kind, text) for kind in ("look", "fresh", "warm"))
        if not (looks and fresh and warm):
            continue
        exact = [list(digest) for digest in zip(expected[text]["pop"], expected[text]["hash"], expected[text]["eos"])]
        found = looks[0]["digests"]
        if any(look["digests"] != found for look in looks):
            unlike = unlike or f"text {text}: masks differ from round to round"
        for step, (one, other) in enumerate(zip(found, exact)):
            if one != other:
                wrong += 1
                unlike = unlike or f"text {text}, step {step}: {one}, not {other}"
        if looks[0]["rejected"] is not None:
            unlike = unlike or f"text {text}: its token {looks[0]['rejected']} is refused"
        column = lambda walks, key: medians([walk[key] for walk in walks])
        rows.append({
            "text": text, "tokens": len(expected[text]["pop"]) - 1, "rejected_at": looks[0]["rejected"],
            "start_first_ns": int(statistics.median(walk["start"] for walk in fresh)),
            "start_ns": int(statistics.median(walk["start"] for walk in warm)),
            "mask_first_ns": column(fresh, "masks"), "commit_first_ns": column(fresh, "commits"),
            "mask_ns": column(warm, "masks"), "commit_ns": column(warm, "commits"),
            "pop": [digest[0] for digest in found], "hash": [digest[1] for digest in found],
            "eos": [digest[2] for digest in found],
        })
    fresh = [line for line in lines if line["kind"] == "fresh"]
    overhead = {
        call: statistics.median(setup["overhead"][call] for setup in setups) if "overhead" in setups[0] else 0
        for call in ("mask", "commit")
    }
    return {
        "format": "peers-cell-1", "engine": name, "engine_version": setups[0]["version"], "grammar": cell.grammar,
        "vocab": cell.vocab, "passes": args.passes + 1,
        "vocab_ms": statistics.median(setup["vocab"] for setup in setups) / 1e6,
        "compile_ms": statistics.median(walk["compile"] for walk in fresh) / 1e6,
        "extra": {
            "spelling": spelling, "rounds": args.rounds, "fresh": args.fresh, "texts": texts, "wrong_masks": wrong,
            "first_wrong": unlike, "empty_call_ns": overhead,
            "text_to_mask_ms": statistics.median(w["compile"] + w["start"] + w["masks"][0] for w in fresh) / 1e6,
        },
        "traces": rows,
    }


def main():
    root = HERE.parents[2]
    shared = os.environ.get("DOMINO_SHARED", root.parent / "shared")
    built = HERE / "build"
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--vocab", choices=VOCABULARIES, action="append", help="default: both")
    flags.add_argument("--grammar", choices=GRAMMARS, action="append", help="default: all")
    flags.add_argument("--engine", action="append", help="only engines whose name contains this; may be repeated")
    flags.add_argument("--rounds", type=int, default=3, help="turns of each engine")
    flags.add_argument("--passes", type=int, default=5, help="warm passes a turn")
    flags.add_argument("--fresh", type=int, default=3, help="first visits of each text a turn")
    flags.add_argument("--seconds", type=float, default=5, help="of a turn of the others, which then ends with fewer texts")
    flags.add_argument("--under", default="", metavar="CMD", help="a command to run every engine under, such as 'taskset -c 1'")
    flags.add_argument("--domino", default=root / "target/release/domino", metavar="FILE")
    flags.add_argument("--rust", default=built / "rust/release", metavar="DIR", help="where kbnf and llguidance were built")
    flags.add_argument("--llamacpp", default=built / "llamacpp", metavar="FILE")
    flags.add_argument("--shared", type=pathlib.Path, default=pathlib.Path(shared), help="the shared data")
    flags.add_argument("--json", type=pathlib.Path, metavar="FILE", help="gets all cells; other grammars' are kept")
    args = flags.parse_args()
    results = json.loads(args.json.read_text()) if args.json and args.json.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        for vocab in args.vocab or VOCABULARIES:
            for grammar in args.grammar or GRAMMARS:
                cell = Cell(args.shared, grammar, vocab)
                new = compare(args, cell, pathlib.Path(folder))
                results = [old for old in results if (old["vocab"], old["grammar"]) != (vocab, grammar)] + new
                if args.json:
                    args.json.write_text(json.dumps(results) + "\n")
    print(table.markdown(results))
    wrong = [cell for cell in results if cell["engine"].startswith("domino") and cell["extra"]["first_wrong"]]
    sys.exit(f"wrong: {wrong[0]['extra']['first_wrong']}" if wrong else 0)


if __name__ == "__main__":
    main()
