"""The engines of the comparison: how each is called, and what its output means."""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
TREES = {"lazy": "domino, lazy trees", "eager": "domino, eager trees", "explored": "domino, explored"}


class Engine:
    """One engine on one spelling of a grammar."""

    def __init__(self, name, command, spelling=None):
        self.name, self.command, self.spelling = name, command, spelling


def all_engines(args, cell):
    """Engines that can run on a cell (see `Cell`); missing ones are reported once."""
    own, shared = HERE / "grammars", cell.peers / "grammars"
    tidy, printed = shared / f"{cell.grammar}.gbnf", shared / f"{cell.grammar}_listing.gbnf"
    engines = [Engine(TREES[trees], domino(args, cell, tidy, trees)) for trees in TREES]
    if printed.exists():
        for trees in ("eager", "explored"):
            engines.append(Engine(f"{TREES[trees]}, as printed", domino(args, cell, printed, trees), "printed"))
    walker = lambda *program: lambda grammar: [*map(str, program), "VOCAB", str(grammar), "TRACES"]
    rust = pathlib.Path(args.rust)
    xgrammar = walker(sys.executable, HERE / "engine_xgrammar.py")
    others = [
        ("llguidance", walker(rust / "llguidance"), shared / f"{cell.grammar}.lark", None),
        ("XGrammar, spelt for it", xgrammar, own / f"{cell.grammar}.xgrammar.gbnf", None),
        ("XGrammar, as printed", xgrammar, printed if printed.exists() else tidy, "printed"),
        ("kbnf", walker(rust / "kbnf"), own / f"{cell.grammar}.kbnf", None),
        ("llama.cpp", walker(args.llamacpp), tidy, None),
    ]
    for name, command, grammar, spelling in others:
        program = pathlib.Path(command(grammar)[0])
        if program.exists():
            engines.append(Engine(name, walks(args, cell, command(grammar)), spelling))
        else:
            print(f"LEFT OUT: {name}: there is no {program}", file=sys.stderr)
    return [engine for engine in engines if not args.engine or any(part in engine.name for part in args.engine)]


def domino(args, cell, grammar, trees):
    def call(folder):
        out = folder / "cell.json"
        out.unlink(missing_ok=True)
        command = [args.domino, "trace", "--grammar", grammar, "--tokenizer", cell.tokenizer, cell.traces]
        command += ["--out", out, "--expected", cell.expected, "--passes", args.passes + 1, "--fresh", args.fresh]
        start(args, folder, [*command, "--trees", trees])
        if not out.exists():
            sys.exit(f"domino made no cell:\n{(folder / 'err').read_text()}")
        return from_cell(json.loads(out.read_text()))

    return call


def walks(args, cell, command):
    def call(folder):
        places = {"VOCAB": folder / "vocabulary", "TRACES": folder / "traces"}
        command_ = [places.get(part, part) for part in command]
        start(args, folder, [*command_, args.passes, args.fresh, args.seconds])
        lines = [json.loads(line) for line in (folder / "out").read_text().splitlines()]
        if not any(line["kind"] == "warm" for line in lines):
            sys.exit(f"{command_} walked nothing:\n{(folder / 'err').read_text()}")
        return lines

    return call


def start(args, folder, command):
    """To the end; output goes to files, since nobody reads it where `--under` stops all other processes."""
    with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
        subprocess.run([*args.under.split(), *map(str, command)], stdout=out, stderr=err)


def from_cell(cell):
    """The walks of a `peers-cell-1`, whose times are medians."""
    extra, number = cell["extra"], len(cell["traces"])
    yield {"kind": "setup", "version": cell["engine_version"], "vocab": cell["vocab_ms"] * 1e6}
    for text, row in enumerate(cell["traces"]):
        common = {"text": text, "rejected": row["rejected_at"]}
        digests = [list(digest) for digest in zip(row["pop"], row["hash"], row["eos"])]
        first = {"start": row["start_first_ns"], "masks": row["mask_first_ns"], "commits": row["commit_first_ns"]}
        yield common | first | {"kind": "look", "digests": digests}
        for compiled in extra["compile_ns"][text::number]:
            yield common | first | {"kind": "fresh", "compile": compiled}
        later = {"start": row["start_ns"], "masks": row["mask_ns"], "commits": row["commit_ns"]}
        yield common | later | {"kind": "warm"}
