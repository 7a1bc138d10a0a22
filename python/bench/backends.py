"""Grammar back ends in vLLM's own manager of structured outputs: Domino, XGrammar and llguidance by one way.

    python backends.py [--schemas 40] [--tools 10] [--rounds 2] [--batches 1,32,256] [--json]

Needs torch, numpy, transformers, xgrammar, llguidance and pydantic, the files of vLLM (DOMINO_HOSTS, see
`.ci/hosts`) and the shared data (DOMINO_SHARED). Nothing else may run on the machine. Most of the time goes
into XGrammar's compiling, which every batch size needs anew: `--rounds 1 --tools 4` is shorter.

Each engine is a process of its own; they take turns. First every engine compiles all grammars, and says which
of the instances it accepts: JSON Schemas of `maskbench_sample.jsonl`, and lists of ten functions each made of
its schemas, as structural tags. What all engines accept is measured, by new back ends that have seen nothing:

* compile: `compile_grammar`; first mask: that and `fill_bitmask`. For each grammar.
* a step: `grammar_bitmask` for the batch and `accept_tokens` for each of its requests, which are at places of
  their own in texts of their own; divided by the requests. `first`: of texts that no request has written
  before; `again`: the same texts once more.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = ("domino", "xgrammar", "guidance")
TOOLS_OF_A_LIST = 10
# Seconds that a back end has for what it does once, on threads of its own too.
SETTLING = 2


def at(values, share):
    """The value at a share of sorted ones."""
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def grammars(shared, schemas, tools):
    """Grammars with an instance each: name, kind, text of the grammar, text of the instance."""
    path = shared / "data" / "jsonschema" / "maskbench_sample.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    usable = []
    for row in rows:
        instances = [test["data"] for test in row["tests"] if test["valid"]]
        if instances:
            usable.append((row["id"], row["schema"], json.dumps(instances[0], ensure_ascii=False)))
    for name, schema, instance in usable[:: max(1, len(usable) // schemas)][:schemas]:
        yield name, "json", json.dumps(schema), instance
    functions = [one for one in usable if one[0].startswith("BFCL") and one[1].get("type") == "object"]
    for number in range(min(tools, len(functions) // TOOLS_OF_A_LIST)):
        part = functions[number * TOOLS_OF_A_LIST : (number + 1) * TOOLS_OF_A_LIST]
        structures = [
            {"begin": f"<function={index}>", "schema": schema, "end": "</function>"}
            for index, (_, schema, _) in enumerate(part)
        ]
        tag = {"type": "structural_tag", "structures": structures, "triggers": ["<function="]}
        calls = [f"<function={index}>{text}</function>\n" for index, (_, _, text) in enumerate(part)]
        yield f"tools {number}", "structural_tag", json.dumps(tag), "I call. " + "".join(calls)


class Engine:
    """A back end in vLLM's manager."""

    def __init__(self, name, shared):
        sys.path.insert(0, str(HERE.parent / "tests"))
        from servers import vllm_host

        vllm_host.stand_ins(real=True)
        import transformers
        from vllm.v1.structured_output import StructuredOutputManager
        from vllm.v1.structured_output.backend_types import StructuredOutputOptions

        import domino_decoding.integrations.vllm as domino

        domino.install()
        file = shared / "data" / "tokenizers" / "tekken-131k" / "tokenizer.json"
        self.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file), eos_token="</s>")
        self.size, self.end = len(self.tokenizer), self.tokenizer.eos_token_id
        self.name, self.domino, self.manager_class = name, domino, StructuredOutputManager
        self.kinds = {
            "json": StructuredOutputOptions.JSON,
            "structural_tag": StructuredOutputOptions.STRUCTURAL_TAG,
        }

    def encode(self, text):
        """The tokens of a text, and end of text."""
        return [*self.tokenizer.encode(text, add_special_tokens=False), self.end]

    def backend(self):
        """A back end that has seen nothing, made as vLLM's manager makes it."""
        from vllm.v1.structured_output.backend_guidance import GuidanceBackend
        from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

        kinds = {"xgrammar": XgrammarBackend, "guidance": GuidanceBackend}
        kind = kinds.get(self.name, self.domino.DominoBackend)
        made = kind(self.settings(1), tokenizer=self.tokenizer, vocab_size=self.size)
        time.sleep(SETTLING)
        return made

    def settings(self, requests):
        """What vLLM calls its configuration."""
        model = types.SimpleNamespace(
            skip_tokenizer_init=False,
            tokenizer=self.tokenizer,
            is_diffusion=False,
            get_vocab_size=lambda: self.size,
            hf_config=types.SimpleNamespace(model_type="mistral"),
        )
        structured = types.SimpleNamespace(
            backend=self.name,
            reasoning_parser="",
            reasoning_parser_plugin="",
            enable_in_reasoning=False,
            disable_any_whitespace=False,
            disable_additional_properties=False,
        )
        return types.SimpleNamespace(
            model_config=model,
            parallel_config=types.SimpleNamespace(distributed_executor_backend=None),
            scheduler_config=types.SimpleNamespace(max_num_seqs=requests),
            structured_outputs_config=structured,
            num_speculative_tokens=0,
            speculative_config=None,
        )

    def accepted(self, every):
        """The grammars whose instance is accepted, by name."""
        backend, found = self.backend(), []
        for name, kind, text, instance in every:
            try:
                grammar = backend.compile_grammar(self.kinds[kind], text, {self.end})
                right = all(grammar.accept_tokens("", [token]) for token in self.encode(instance))
                if right and grammar.is_terminated():
                    found.append(name)
            except Exception as error:  # Each engine has errors of its own.
                print(f"{self.name}: {name}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
        return found

    def compiled(self, every):
        """Times in ms to compile each grammar, and to its first mask; and the back end."""
        backend, compiling, first = self.backend(), [], []
        mask = backend.allocate_token_bitmask(1)
        for _, kind, text, _ in every:
            begun = time.perf_counter()
            grammar = backend.compile_grammar(self.kinds[kind], text, {self.end})
            compiling.append((time.perf_counter() - begun) * 1e3)
            grammar.fill_bitmask(mask, 0)
            first.append((time.perf_counter() - begun) * 1e3)
        return backend, compiling, first

    def steps(self, every, size):
        """Times in us of a request's step, in batches of a size: of first texts, and of the same again."""
        backend, _, _ = self.compiled([])
        manager = self.manager_class(self.settings(size))
        manager.backend, manager.backend_name = backend, self.name
        texts = [(kind, text, self.encode(instance)) for _, kind, text, instance in every]
        return [self.written(manager, texts, size) for _ in range(2)]

    def written(self, manager, texts, size):
        """Writes every text once, or as many as a batch has, all at once. Returns times of steps."""
        waiting = [texts[number % len(texts)] for number in range(max(size, len(texts)))]
        waiting, running, taken = list(enumerate(waiting)), {}, []
        while waiting or running:
            while waiting and len(running) < size:
                number, (kind, text, tokens) = waiting.pop()
                grammar = manager.backend.compile_grammar(self.kinds[kind], text, {self.end})
                running[str(number)] = (request(number, grammar), iter(tokens))
            asked = {name: one for name, (one, _) in running.items()}
            names = list(asked)
            tokens = {name: [next(rest)] for name, (_, rest) in running.items()}
            begun = time.perf_counter()
            manager.grammar_bitmask(asked, names, {})
            for name in names:
                manager.accept_tokens(asked[name], tokens[name])
            taken.append((time.perf_counter() - begun) * 1e6 / len(names))
            for name in names:
                if asked[name].structured_output_request.grammar.is_terminated():
                    del running[name]
        return taken


def request(number, grammar):
    """A request as far as the manager looks at it."""
    return types.SimpleNamespace(
        request_id=str(number),
        use_structured_output=True,
        structured_output_request=types.SimpleNamespace(grammar=grammar, reasoning_ended=True, reasoner=None),
    )


def child(options):
    """Does what the parent asks for by lines of JSON, and answers by lines."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Engines may print.
    engine = Engine(options.engine, options.shared)
    every = list(grammars(options.shared, options.schemas, options.tools))
    for line in sys.stdin:
        asked = json.loads(line)
        if "names" in asked:
            every = [one for one in every if one[0] in asked["names"]]
        if asked["do"] == "accept":
            said = engine.accepted(every)
        elif asked["do"] == "compile":
            said = engine.compiled(every)[1:]
        else:
            said = engine.steps(every, asked["size"])
        print(json.dumps(said), file=answers, flush=True)


class Child:
    """An engine in a process of its own."""

    def __init__(self, name, options):
        command = [sys.executable, __file__, "--engine", name, "--shared", str(options.shared)]
        command += ["--schemas", str(options.schemas), "--tools", str(options.tools)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **asked):
        """Asks for something, and waits for the answer."""
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("an engine has ended: see what it wrote")
        return json.loads(line)


def measured(options):
    """All measures, by engine."""
    children = {name: Child(name, options) for name in options.engines}
    accepted = {name: one.ask(do="accept") for name, one in children.items()}
    shared = sorted(set.intersection(*map(set, accepted.values())))
    if not shared:
        raise SystemExit("there is no grammar that all engines take")
    found = {name: {"accepted": len(accepted[name]), "compile": [], "first mask": []} for name in children}
    for round in range(options.rounds):
        for name, one in children.items():
            compiling, first = one.ask(do="compile", names=shared)
            found[name]["compile"] += compiling
            found[name]["first mask"] += first
            for size in options.batches:
                for kind, times in zip(("first", "again"), one.ask(do="steps", size=size)):
                    found[name].setdefault(f"{kind} {size}", []).extend(times)
            print(f"round {round + 1}: {name}", file=sys.stderr)
    for one in children.values():
        one.process.stdin.close()
        one.process.wait()
    return shared, found


def table(shared, found, options):
    """The measures as tables in Markdown."""
    tools = sum(name.startswith("tools") for name in shared)
    yield f"{len(shared) - tools} schemas and {tools} lists of tools that all take; {options.rounds} rounds."
    yield ""
    yield "| engine | takes | compile, ms: mean | p50 | max | first mask, ms: mean | p50 | max |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, one in found.items():
        cells = [f"{one['accepted']}"]
        for kind in ("compile", "first mask"):
            values = one[kind]
            cells += [f"{value:.2f}" for value in (statistics.fmean(values), at(values, 0.5), max(values))]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""
    yield "| a request's step, us: mean (p99) | " + " | ".join(
        f"batch {size}, {kind}" for size in options.batches for kind in ("first", "again")
    ) + " |"
    yield "|---" * (1 + 2 * len(options.batches)) + "|"
    for name, one in found.items():
        cells = []
        for size in options.batches:
            for kind in ("first", "again"):
                values = one[f"{kind} {size}"]
                cells.append(f"{statistics.fmean(values):.1f} ({at(values, 0.99):.1f})")
        yield f"| {name} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    default = os.environ.get("DOMINO_SHARED", str(HERE.parents[2] / "shared"))
    parser.add_argument("--shared", type=pathlib.Path, default=default, help="the folder of shared data")
    parser.add_argument("--schemas", type=int, default=40, help="JSON Schemas that are tried")
    parser.add_argument("--tools", type=int, default=10, help="lists of ten functions that are tried")
    parser.add_argument("--rounds", type=int, default=2, help="times that each engine is measured")
    sizes = lambda text: [int(one) for one in text.split(",")]  # noqa: E731
    parser.add_argument("--batches", type=sizes, default="1,32,256", help="requests that run at a time")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=",".join(ENGINES))
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="all times, as JSON")
    options = parser.parse_args()
    if options.engine:
        return child(options)
    if not (pathlib.Path(os.environ.get("DOMINO_HOSTS", "")) / "vllm" / "v1").is_dir():
        parser.error("DOMINO_HOSTS names no folder with the files of vLLM; `.ci/hosts` makes one")
    if not (options.shared / "data").is_dir():
        parser.error("there is no shared data: name its folder by --shared or DOMINO_SHARED")
    shared, found = measured(options)
    whole = json.dumps({"grammars": shared, **found})
    print(whole if options.json else "\n".join(table(shared, found, options)))


if __name__ == "__main__":
    main()
