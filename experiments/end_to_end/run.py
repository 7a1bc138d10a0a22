"""Tokens a second of one GGUF file in llama.cpp and in Domino, by turns; writes a line of JSON for each text.

    python run.py --llama-cpp ./llama_cpp --domino target/release/domino --model small-q8_0.gguf \\
        --lark FOLDER --runs 10 --out texts.jsonl
    python run.py --table texts.jsonl

Texts of up to 128 tokens at temperature 1, after the prompts that the shipped model knows. Seconds are from
the prompt's pass on; loading the model and reading the grammar are left out.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The grammars of the paper, with the names of their Lark forms.
GRAMMARS = {"json": "json_basic", "gsm8k": "gsm8k", "xml_person": "xml_person", "rpg": "rpg_template",
            "c": "c_simple"}
METHODS = ["llama.cpp", "llama.cpp, GBNF", "llama.cpp, llguidance", "Domino, free", "Domino, masks",
           "Domino, drafts"]
KEPT = ("tokens", "seconds", "redrawn", "passes", "error")


def prompts(task):
    lines = (ROOT / "experiments/train/prompts.jsonl").read_text().splitlines()
    return [entry["prompt"] for entry in map(json.loads, lines) if entry["task"] == task]


def answer(command):
    """The JSON that a program prints. `domino generate` ends with 3 where the limit of tokens cut a text."""
    done = subprocess.run([str(part) for part in command], capture_output=True, check=False)
    if done.returncode not in (0, 3):
        return {"error": done.stderr.decode(errors="replace").strip().splitlines()[-1:]}
    return json.loads(done.stdout)


def for_llama_cpp(text):
    """A grammar with dashes in the names of its rules and a line for each: llama.cpp reads no others."""
    parts = re.finditer(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|#.*|[^"\[#]+', text)
    dashed = (part[0] if part[0][0] in '"[#' else part[0].replace("_", "-") for part in parts)
    return re.sub(r"\n[ \t]+", " ", "".join(dashed))


def llama_cpp(args, method, grammar, lark, prompt_file, seed):
    with tempfile.NamedTemporaryFile("w", suffix=".gbnf") as gbnf:
        gbnf.write(for_llama_cpp((ROOT / f"grammars/{grammar}.gbnf").read_text()))
        gbnf.flush()
        rules = lark if method == "llguidance" else gbnf.name
        return answer([args.llama_cpp, "text", args.model, args.threads, method, rules, prompt_file,
                       args.tokens, seed])


def domino(args, method, grammar, prompt_file, seed):
    flags = {
        "free": [],
        "masks": ["-g", grammar, "--speculate", "off"],
        "drafts": ["-g", grammar, "--speculate", "auto", "--prior",
                   ROOT / f"models/domino-small/priors/{grammar}.prior"],
    }[method]
    return answer([args.domino, "generate", "--json", "-m", args.model, "--threads", args.threads,
                   "-n", args.tokens, "--prompt-file", prompt_file, "--temperature", 1, "--seed", seed,
                   *flags])


def measure(args):
    with open(args.out, "a") as out, tempfile.NamedTemporaryFile("w+", suffix=".txt") as file:
        for grammar in args.grammars or GRAMMARS:
            lark = pathlib.Path(args.lark) / f"{GRAMMARS[grammar]}.lark"
            texts = prompts(grammar)
            for run in range(args.runs + 1):
                file.seek(0)
                file.truncate()
                file.write(texts[run % len(texts)])
                file.flush()
                for turn in range(len(METHODS)):
                    method = METHODS[(run + turn) % len(METHODS)]
                    if method.startswith("llama.cpp"):
                        kind = {"": "free", "GBNF": "gbnf"}.get(method[len("llama.cpp, "):], "llguidance")
                        row = llama_cpp(args, kind, grammar, lark, file.name, run)
                    else:
                        row = domino(args, method.removeprefix("Domino, "), grammar, file.name, run)
                    # The first round warms up.
                    if run > 0:
                        kept = {key: row.get(key) for key in KEPT}
                        row = {"grammar": grammar, "method": method, "run": run, **kept}
                        print(json.dumps(row), file=out, flush=True)


def rate(rows):
    return sum(row["tokens"] for row in rows) / sum(row["seconds"] for row in rows)


def table(path):
    rows = [json.loads(line) for line in open(path)]
    print("| grammar | " + " | ".join(METHODS) + " |\n|" + "---|" * (len(METHODS) + 1))
    for grammar in dict.fromkeys(row["grammar"] for row in rows):
        cells = []
        for method in METHODS:
            own = [row for row in rows if (row["grammar"], row["method"]) == (grammar, method)]
            good = [row for row in own if row["error"] is None and row["tokens"]]
            if len(good) < 2:
                cells.append("refused")
                continue
            low, _, high = statistics.quantiles([row["tokens"] / row["seconds"] for row in good], n=4)
            cells.append(f"{rate(good):.0f} ({low:.0f} to {high:.0f})")
            if len(good) < len(own):
                cells[-1] += f", {len(own) - len(good)} failed"
        print(f"| {grammar} | " + " | ".join(cells) + " |")


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--llama-cpp", default="./llama_cpp")
    parser.add_argument("--domino", default="domino")
    parser.add_argument("--model")
    parser.add_argument("--lark", default=".", help="folder of the grammars in llguidance's notation")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", default="texts.jsonl")
    parser.add_argument("--table", help="print the table of this file and measure nothing")
    parser.add_argument("grammars", nargs="*", help="grammars of the paper; default: all five")
    args = parser.parse_args()
    if args.table:
        table(args.table)
    else:
        measure(args)


if __name__ == "__main__":
    main()
