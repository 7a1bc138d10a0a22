#!/usr/bin/env python3
"""Masks of JSON Schema engines held against an independent judge.

Two faults are counted, each with the schema and the shortest text that shows it:

- too narrow: a token is refused on the way of a text that the judge calls valid;
- too wide: a text finished through an engine's masks is not JSON, or the judge calls it invalid.

The texts of the first are the instances of the suite, as Python writes them; those of the second are random
walks through the masks, with the same tokens to choose from and the same random numbers for every engine. The
judge is the crate `jsonschema`. It decides twice, with formats asserted and as annotations: `too wide` leaves
formats out, and `formats` counts the schemas whose texts are invalid only by a format.

    python differential.py --engine NAME... [--sample N] [--walks N] [--out FILE.md] [--rows FILE.jsonl]

NAME: `llguidance`, `xgrammar`, `glrmask`, or `command:PROGRAM...` for a program that speaks the protocol of
`schema_masks`. Needs the folder of schemas and tokenizers that DOMINO_SHARED names, and the Python packages
jsonschema-rs, tokenizers, numpy and those of the engines. `command:` engines
also tell how long masks take by how full they are, how many tokens need the parser, and a schema's memory.
"""
import argparse, json, os, random, subprocess, sys, tempfile, time

import jsonschema_rs
import tokenizers

import peers

# A walk's tokens. After PATIENCE of them, tokens that close what is open are preferred.
PATIENCE, MOST = 40, 400
# What a walk can always choose: every letter, and marks and pieces of values.
MARKS = [
    *map(chr, range(32, 127)), 'é', '\n', '{"', '":', '": ', ',"', ', "', '"}', '"]', '}}', '[]', '{}', '""',
    'true', 'false', 'null', '10', '00',
]
# What closes what is open inside a string, and outside.
CLOSERS = ['"}', '"]', '": ', '":', '"'], ['}}', '}', ']', '":', '"']


class InProcess:
    """An engine of this process."""

    def __init__(self, engine):
        self.engine = engine

    def take(self, schema, candidates):
        self.candidates = candidates
        self.engine.compile(schema)

    def start(self):
        self.engine.start()
        return self.look()

    def go(self, token):
        self.engine.commit(token)
        return self.look()

    def look(self):
        bits = self.engine.bits()
        return [len(bits) > t >> 5 and bool(int(bits[t >> 5]) >> (t & 31) & 1) for t in self.candidates]

    def complete(self):
        return bool(self.engine.complete())


class Program:
    """A program that speaks the protocol of `schema_masks`."""

    def __init__(self, command, vocab, eos):
        self.p = subprocess.Popen(command.split(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask({"vocab": vocab, "eos": eos})
        self.masks, self.bytes = [], {}

    def ask(self, what):
        self.p.stdin.write(json.dumps(what) + "\n")
        self.p.stdin.flush()
        answer = json.loads(self.p.stdout.readline())
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer

    def take(self, schema, candidates):
        self.ask({"schema": schema, "candidates": candidates})
        self.bytes[len(self.bytes)] = 0

    def start(self):
        return self.look(self.ask({"start": True}))

    def go(self, token):
        return self.look(self.ask({"token": token}))

    def look(self, answer):
        self.masks.append((answer["count"], answer["parser"], answer["us"]))
        self.bytes[len(self.bytes) - 1] = answer["bytes"]
        self.is_complete = answer["complete"]
        return [c == "1" for c in answer["allowed"]]

    def complete(self):
        return self.is_complete


def narrow(engine, texts, where):
    """The shortest way to a token that is refused, and in how many texts one is."""
    shortest, count = None, 0
    for tokens, pieces in texts:
        seen = engine.start()
        for at, token in enumerate(tokens):
            if not seen[where[token]]:
                count += 1
                way = b"".join(pieces[:at]).decode("utf-8", "replace"), pieces[at].decode("utf-8", "replace")
                if shortest is None or len(way[0]) < len(shortest[0]):
                    shortest = way
                break
            seen = engine.go(token)
        else:
            if not engine.complete():
                count += 1
                way = b"".join(pieces).decode("utf-8", "replace"), "end of text"
                shortest = shortest or way
    return shortest, count


def in_string(text):
    """True for a text of JSON that ends inside a string."""
    inside = escaped = False
    for byte in text:
        if escaped:
            escaped = False
        elif inside and byte == 0x5C:
            escaped = True
        elif byte == 0x22:
            inside = not inside
    return inside


def walk(engine, candidates, where, weights, eos, byte_of, closers, seed):
    """A text finished through the masks, or None where it got too long."""
    choose = random.Random(seed)
    seen, text = engine.start(), b""
    for step in range(MOST):
        ends = engine.complete()
        open_to = [t for t, allowed in zip(candidates, seen) if allowed and t != eos]
        number = choose.random()
        if ends and (not open_to or number < 0.3 or step >= PATIENCE):
            return text
        if not open_to:
            return None
        closing = closers[not in_string(text)] if step >= PATIENCE else []
        closing = [t for t in closing if seen[where[t]]]
        if closing and number < 0.9:
            token = closing[0]
        else:
            token = choose.choices(open_to, [weights[t] for t in open_to])[0]
        text += byte_of[token]
        seen = engine.go(token)
    return None


class TooLarge(Exception):
    """A number that a float does not hold, so that the judge would not see it."""


def finite(text):
    number = float(text)
    if abs(number) == float("inf"):
        raise TooLarge
    return number


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


class Judge:
    def __init__(self, schema):
        self.asserting = jsonschema_rs.validator_for(schema, validate_formats=True)
        self.annotating = jsonschema_rs.validator_for(schema, validate_formats=False)

    def fault(self, text):
        """The fault of the text; None also where the judge cannot tell."""
        try:
            value = json.loads(text.decode("utf-8"), parse_float=finite, parse_constant=no_constant)
        except TooLarge:
            return None
        except ValueError as error:
            return "not JSON", str(error)
        if not self.annotating.is_valid(value):
            return "invalid", next(iter(self.annotating.iter_errors(value))).message[:120]
        if not self.asserting.is_valid(value):
            return "format", next(iter(self.asserting.iter_errors(value))).message[:120]
        return None


def survey(name, engine, rows, tok, byte_of, eos, walks):
    """Results of each schema."""
    out = []
    marks = {t for mark in MARKS for t in tok.encode(mark, add_special_tokens=False).ids}
    closers = [[tok.encode(text, add_special_tokens=False).ids for text in texts] for texts in CLOSERS]
    closers = [[ids[0] for ids in spelled if len(ids) == 1] for spelled in closers]
    began = time.monotonic()
    for number, row in enumerate(rows):
        if sys.stderr.isatty():
            print(f"\r{name} {number}/{len(rows)} {time.monotonic() - began:.0f} s", end="", file=sys.stderr)
        result = {"id": row["id"], "engine": name}
        out.append(result)
        try:
            judge = Judge(row["schema"])
        except Exception as error:
            result.update(status="no judge", error=str(error)[:200])
            continue
        texts = [tok.encode(json.dumps(t["data"], ensure_ascii=False), add_special_tokens=False).ids
                 for t in row["tests"] if judge.asserting.is_valid(t["data"])]
        own = {t for ids in texts for t in ids}
        candidates = sorted(own | marks | {t for ids in closers for t in ids} | {eos})
        where = {t: at for at, t in enumerate(candidates)}
        weights = {t: 3 if t in own else 1 for t in candidates}
        try:
            engine.take(row["schema"], candidates)
        except Exception as error:
            result.update(status="refused", error=str(error)[:200])
            continue
        try:
            spelled = [(ids, [byte_of[t] for t in ids]) for ids in texts]
            result["way"], result["narrow"] = narrow(engine, spelled, where)
            faults, done = {}, 0
            for seed in range(walks):
                text = walk(engine, candidates, where, weights, eos, byte_of, closers, f"{row['id']} {seed}")
                fault = judge.fault(text) if text is not None else None
                done += text is not None
                if fault:
                    kind, why = fault
                    known = faults.get(kind)
                    count = known["count"] if known else 0
                    if known is None or len(text) < len(known["text"]):
                        known = {"text": text.decode("utf-8", "replace"), "why": why}
                    faults[kind] = {**known, "count": count + 1}
            result.update(status="ok", texts=len(texts), walks=done, wide=faults)
        except Exception as error:
            result.update(status="failed", error=f"{type(error).__name__}: {error}"[:200])
    return out


def quoted(text, most=160):
    shown = text if len(text) <= most else "…" + text[-most:]
    return "`" + shown.replace("`", "'").replace("|", "\\|").replace("\n", "\\n") + "`"


def report(surveys, out):
    print("| engine | schemas taken | valid texts | too narrow: schemas / texts | walks finished | too wide: "
          "schemas / texts | formats: schemas / texts |", file=out)
    print("|---|---|---|---|---|---|---|", file=out)
    for name, rows, _ in surveys:
        taken = [r for r in rows if r["status"] == "ok"]
        wide = [[f for k, f in r["wide"].items() if k != "format"] for r in taken]
        formats = [r["wide"]["format"] for r in taken if "format" in r["wide"]]
        thin = [r["narrow"] for r in taken if r["narrow"]]
        texts, walks = sum(r["texts"] for r in taken), sum(r["walks"] for r in taken)
        wide_texts = sum(f["count"] for w in wide for f in w)
        print(f"| {name} | {len(taken)} of {len(rows)} | {texts} | {len(thin)} / {sum(thin)} | {walks} "
              f"| {sum(map(bool, wide))} / {wide_texts} "
              f"| {len(formats)} / {sum(f['count'] for f in formats)} |", file=out)
    for name, rows, engine in surveys:
        if getattr(engine, "masks", None):
            fullness(name, engine, out)
    for name, rows, _ in surveys:
        faults(name, rows, out)


def fullness(name, engine, out):
    print(f"\n{name}: masks by how many tokens they allow.\n", file=out)
    print("| tokens allowed | masks | mean us | of the tokens, on average, the parser decides |", file=out)
    print("|---|---|---|---|", file=out)
    low = 0
    for high in (1, 10, 100, 1_000, 10_000, 100_000, 10_000_000):
        part = [m for m in engine.masks if low < m[0] <= high]
        if part:
            share = sum(m[1] for m in part) / len(part)
            us = sum(m[2] for m in part) / len(part)
            most = max(m[0] for m in part)
            print(f"| {low + 1} to {most} | {len(part)} | {us:.1f} | {share:.1f} |", file=out)
        low = high
    kept = sorted(engine.bytes.values())
    middle, high = kept[len(kept) // 2], kept[int(len(kept) * 0.99)]
    print(f"\nBytes kept by a schema, p50 / p99 / most: {middle} / {high} / {kept[-1]}.", file=out)


def faults(name, rows, out):
    shown = []
    for r in rows:
        if r["status"] == "failed":
            shown.append(f"- {r['id']}: {r['error']}")
        if r["status"] != "ok":
            continue
        if r["narrow"]:
            before, refused = map(quoted, r["way"])
            shown.append(f"- {r['id']}, too narrow: after {before} refuses {refused}")
        for kind, fault in r["wide"].items():
            shown.append(f"- {r['id']}, {kind}: {quoted(fault['text'])} ({fault['why'].replace('|', '/')})")
    print(f"\n{name}: {len(shown) or 'no'} faults.", file=out)
    if shown:
        print("", *shown, sep="\n", file=out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--engine", action="append", required=True)
    p.add_argument("--sample", type=int, default=200, help="schemas, spread over the suite's (default 200)")
    p.add_argument("--walks", type=int, default=20, help="random texts a schema (default 20)")
    p.add_argument("--tokenizer", default="tekken-131k")
    p.add_argument("--rows", help="where the outcome of every schema goes, as lines of JSON")
    p.add_argument("--out", help="where the report goes (default: standard output)")
    a = p.parse_args()
    shared = os.environ.get("DOMINO_SHARED") or sys.exit("DOMINO_SHARED names no folder")
    path = os.path.join(shared, "data", "tokenizers", a.tokenizer, "tokenizer.json")
    tok = tokenizers.Tokenizer.from_file(path)
    byte_of, eos = peers.token_bytes(path)
    suite = os.path.join(shared, "data", "jsonschema", "maskbench_sample.jsonl")
    rows = [json.loads(line) for line in open(suite, encoding="utf-8")]
    rows = [r for r in rows if r.get("tests")]
    rows = rows[:: max(1, len(rows) // a.sample)]
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", delete=False) as file:
        file.writelines(f"{id}\t{byte_of[id].hex()}\n" for id in sorted(byte_of))
        vocab = file.name
    surveys = []
    for name in a.engine:
        if name.startswith("command:"):
            command = name.split(":", 1)[1]
            name, engine = " ".join(["domino", *command.split()[1:]]), Program(command, vocab, eos)
        else:
            engine = InProcess(peers.ENGINES[name](path, byte_of, eos))
        surveys.append((name, survey(name, engine, rows, tok, byte_of, eos, a.walks), engine))
    os.remove(vocab)
    if a.rows:
        with open(a.rows, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r) + "\n" for _, rows, _ in surveys for r in rows)
    if a.out:
        with open(a.out, "w", encoding="utf-8") as f:
            report(surveys, f)
    else:
        report(surveys, sys.stdout)


if __name__ == "__main__":
    main()
