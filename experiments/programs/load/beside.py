#!/usr/bin/env python3
"""Measures servers that speak OpenAI's protocol beside each other: tokens a second, with and without a schema.

Usage: beside.py NAME=URL ... [--clients 1,8] [--requests N] [--tokens N] [--rounds N]

The requests are those of the ten schemas of `real/ends.json`, as chats; without a schema they are the same
chats. Every server gets the same in turn, and while one writes the others do nothing. A rate is that of all
tokens of a round by its wall time, prompts and the way through HTTP included; the table has the median of the
rounds, and the share of texts that ended by themselves. Seeds are the numbers of the requests, but draws of
different servers differ. Servers run already, each with one model and places for the most clients.
"""

import argparse
import json
import statistics
import sys
import threading
import time
from pathlib import Path

from load import Server, together

HERE = Path(__file__).resolve().parent


def chats():
    """Prompts with their schemas."""
    asked = json.loads((HERE / "../../real/ends.json").read_text(encoding="utf-8"))
    return list(asked["schemas"].values())


def body(args, model, number, with_schema):
    prompt, schema = args.chats[number % len(args.chats)]
    asked = {
        "model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": args.tokens,
        "temperature": args.temperature, "seed": number,
    }
    if with_schema:
        named = {"name": f"answer{number % len(args.chats)}", "schema": schema}
        asked["response_format"] = {"type": "json_schema", "json_schema": named}
    return asked


def write(args, url, clients, with_schema, first):
    """Tokens, seconds, and how many of the texts ended, of one round."""
    model = json.loads(Server(url, args.key).call("/v1/models")[1])["data"][0]["id"]
    numbers = iter(range(first, first + args.requests))
    lock, counts, ended, failed = threading.Lock(), [], [], []

    def client():
        server = Server(url, args.key)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None or failed:
                return server.close()
            try:
                status, text = server.call("/v1/chat/completions", body(args, model, number, with_schema))
                if status != 200:
                    raise RuntimeError(f"{status}: {text[:300]}")
                answer = json.loads(text)
                counts.append(answer["usage"]["completion_tokens"])
                ended.append(answer["choices"][0]["finish_reason"] == "stop")
            except Exception as error:  # told by the main thread
                failed.append(error)

    begun = time.perf_counter()
    together(client for _ in range(clients))
    took = time.perf_counter() - begun
    if failed:
        sys.exit(f"{url}: a request failed: {failed[0]}")
    return sum(counts), took, sum(ended)


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("servers", nargs="+", metavar="NAME=URL")
    parser.add_argument("--key", default="none", help="the key of all")
    parser.add_argument("--clients", default="1,8")
    parser.add_argument("--requests", type=int, default=20, help="requests of a round")
    parser.add_argument("--tokens", type=int, default=96, help="most tokens of a text")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--temperature", type=float, default=0.7)
    args = parser.parse_args()
    args.chats = chats()
    servers = [server.split("=", 1) for server in args.servers]
    cells = [(schema, int(clients)) for schema in (False, True) for clients in args.clients.split(",")]
    rates, ended = {}, {}
    # Seeds of their own, and not counted: schemas are compiled here, and memory is touched for the first time.
    for name, url in servers:
        for schema in (False, True):
            write(args, url, cells[-1][1], schema, 10**6)
    for turn in range(args.rounds):
        for schema, clients in cells:
            for name, url in servers:
                tokens, took, stopped = write(args, url, clients, schema, 1000 * turn)
                rates.setdefault((name, schema, clients), []).append(tokens / took)
                ended.setdefault((name, schema, clients), []).append(stopped / args.requests)
                print(f"{turn} {name} schema={schema} {clients}: {tokens / took:.1f}", file=sys.stderr)
    heads = [f"{'schema' if schema else 'free'}, {clients}" for schema, clients in cells]
    print("| server |", " | ".join(f"{head} | ended" for head in heads), "|")
    print("|---" * (1 + 2 * len(cells)) + "|")
    for name, _ in servers:
        found = (
            f"{statistics.median(rates[name, *cell]):.0f} | {statistics.mean(ended[name, *cell]):.2f}"
            for cell in cells
        )
        print(f"| {name} |", " | ".join(found), "|")


if __name__ == "__main__":
    main()
