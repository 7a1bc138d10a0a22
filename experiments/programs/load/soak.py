"""Thousands of random requests: answers, metrics and memory are checked. See `load.py`."""

import collections
import json
import random
import re
import sys
import threading
import time

# Requests that no server should have to answer, and what it may say to them.
HOSTILE = [
    ("{", {400}),
    ("[1, 2]", {400, 422}),
    ({"prompt": 7}, {400, 422}),
    ({"prompt": "a", "max_tokens": -1}, {400, 422}),
    ({"prompt": "a", "temperature": 1e9}, {400}),
    ({"prompt": "a", "nobody": True}, {400}),
    ({"prompt": "a", "n": 10_000}, {400}),
    ({"prompt": "a", "grammar": {"type": "gbnf", "value": "root ::= ("}}, {400}),
    ({"prompt": "a", "grammar": {"type": "gbnf", "value": "root ::= root"}}, {400}),
    ({"prompt": "a", "grammar": {"type": "regex", "value": "(((a{1,900}){1,900}){1,900})"}}, {200, 400, 503}),
    ({"prompt": "a", "grammar": {"type": "json_schema", "value": {"type": "strange"}}}, {400}),
    ({"prompt": "a " * 200_000}, {400, 413}),
    ({"prompt": "a", "grammar": {"type": "named", "value": "../../secret"}}, {400, 404}),
]


class Tally:
    """What came, by all clients."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.wrong = []
        # Texts of requests that are asked more than once must be the same.
        self.texts = {}

    def add(self, what):
        with self.lock:
            self.counts[what] += 1

    def fault(self, what):
        with self.lock:
            self.wrong.append(what)

    def text(self, asked, text):
        with self.lock:
            if self.texts.setdefault(asked, text) != text:
                self.wrong.append(f"another text for {asked}")


def soak(args, server_of, asked, together):
    tally, numbers = Tally(), iter(range(args.requests))
    lock, grammars = threading.Lock(), args.grammars.split(",") + ["none"]
    before = metrics(server_of(args.url, args.key))
    sizes = []

    def client():
        server = server_of(args.url, args.key)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return server.close()
            draw = random.Random(number)
            try:
                one(args, server, asked, draw, grammars, tally)
            except Exception as error:  # whatever it is, it is told at the end
                tally.fault(f"request {number}: {error!r}")
                server.close()
            if number % 100 == 0:
                sizes.append((number, resident(args.pid)))
            if number % 1000 == 999:
                print(f"{number + 1} requests, {sizes[-1][1]:.0f} MB", file=sys.stderr, flush=True)

    begun = time.perf_counter()
    together(client for _ in range(args.clients))
    took = time.perf_counter() - begun
    report(args, tally, sizes, took, before, server_of)


def one(args, server, asked, draw, grammars, tally):
    kind = draw.random()
    if kind < 0.1:
        body, expected = draw.choice(HOSTILE)
        status, text = server.call("/v1/completions", body)
        tally.add(f"hostile, {status}")
        if status not in expected:
            tally.fault(f"{status} to {str(body)[:100]}: {text[:200]}")
        return
    # Few seeds, so that most requests come several times, beside others.
    body = asked(args, draw.choice(grammars), draw.randrange(args.seeds), draw.choice([8, 24, 64]))
    if kind < 0.1 + 1 / 3:
        events = server.events("/v1/completions", body)
        for _ in range(draw.randrange(1, 6)):
            next(events, None)
        server.close()
        return tally.add("given up")
    status, text = server.call("/v1/completions", body)
    if status == 429 or status == 503:
        return tally.add(f"refused, {status}")
    if status != 200:
        return tally.fault(f"{status} to {body}: {text[:200]}")
    choice = json.loads(text)["choices"][0]
    tally.add(f"whole, {choice['finish_reason']}")
    tally.text(json.dumps(body, sort_keys=True), choice["text"])


def resident(pid):
    if not pid:
        return 0.0
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1)) / 1000


def metrics(server):
    _, text = server.call("/metrics")
    sums = collections.Counter()
    for line in text.decode().splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            sums[name.split("{")[0]] += float(value)
    return sums


def report(args, tally, sizes, took, before, server_of):
    time.sleep(2)  # requests that were given up come to their end
    server = server_of(args.url, args.key)
    after = metrics(server)
    print(f"{args.requests} requests by {args.clients} clients in {took:.0f} s")
    for what, count in sorted(tally.counts.items()):
        print(f"  {what}: {count}")
    names = ["started", "finished", "cancelled", "failed"]
    total = "domino_requests_{}_total"
    found = {name: after[total.format(name)] - before[total.format(name)] for name in names}
    print("metrics:", ", ".join(f"{name} {count:.0f}" for name, count in found.items()))
    if found["started"] != sum(found[name] for name in names[1:]):
        tally.fault("metrics do not add up")
    if args.pid:
        # After a fifth of the requests caches are filled.
        later = sorted(size for number, size in sizes if number >= args.requests / 5)
        last = resident(args.pid)
        print(f"memory after the first fifth: {later[0]:.0f} to {later[-1]:.0f} MB, at the end {last:.0f}")
    status, _ = server.call("/health")
    if status != 200:
        tally.fault(f"health is {status}")
    compared = held_to(args.texts_file, tally) if args.texts_file else ""
    print(f"{len(tally.wrong)} wrong; {len(tally.texts)} texts, each the same whenever asked for{compared}")
    for what in tally.wrong[:20]:
        print("WRONG:", what)
    sys.exit(1 if tally.wrong else 0)


def held_to(path, tally):
    """Holds texts to those of an earlier run, of another server perhaps; the first run keeps its own."""
    if not path.exists():
        path.write_text(json.dumps(tally.texts), encoding="utf-8")
        return f", kept in {path}"
    earlier = json.loads(path.read_text(encoding="utf-8"))
    both = earlier.keys() & tally.texts.keys()
    for asked in both:
        if earlier[asked] != tally.texts[asked]:
            tally.fault(f"another text than in {path} for {asked}")
    return f", {len(both)} of them held to {path}"
