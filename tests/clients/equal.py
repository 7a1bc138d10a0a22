"""The texts with --grammar-speculate are those without: the same requests to two servers.

    python3 tests/clients/equal.py PROGRAM [--requests 300] [--clients 8] [--tokens 64] [FLAGS OF serve..]

Half of the requests are greedy, half drawn by a seed, of the paper's five grammars. One server answers them
one after the other; the other, with drafts, from several clients at once, as streams and whole texts by
turns. Fails if a text differs. Rows of a pass over several tokens can differ in their last bits from those of
a pass over one, so a draw between two tokens that are as good as equally likely could fall otherwise; it was
not seen yet. Needs Python 3.9, nothing else.
"""

import argparse
import http.client
import json
import random
import sys
import time

from servers import clients, start

PROMPTS = {
    "json": ["A JSON file describing a person: ", "A JSON file of a person John Smith with friends: "],
    "gsm8k": ["Q: A robe takes 2 bolts of blue fiber and half that much white fiber. How many bolts in total does it take?\nA: "],
    "xml_person": ["An XML file of a person Jane Doe with friends: ", "An XML file describing a person: "],
    "rpg": ["A RPG character in JSON: ", "A character profile for an RPG game in JSON format: "],
    "c": ["C program that prints fibonacci numbers:\n", "A C program: "],
}


def body(number, tokens):
    draw = random.Random(number)
    name = sorted(PROMPTS)[number % len(PROMPTS)]
    return {
        "model": "default", "prompt": draw.choice(PROMPTS[name]), "grammar": {"type": "named", "value": name},
        "seed": number, "max_tokens": draw.randint(1, tokens), "temperature": 0 if number // 5 % 2 else draw.choice([0.7, 1]),
    }


def ask(address, sent):
    """The text, why it ended, and what it took."""
    connection = http.client.HTTPConnection(address, timeout=1800)
    try:
        connection.request("POST", "/v1/completions", json.dumps(sent), {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        if not sent.get("stream"):
            answer = json.loads(response.read())
            choice = answer["choices"][0]
            return choice["text"], choice["finish_reason"], answer["usage"]["domino"]
        text, finish, usage = "", None, None
        for line in response:
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                assert "error" not in event, event
                for choice in event["choices"]:
                    text += choice["text"]
                    finish = choice["finish_reason"] or finish
                usage = event.get("usage") or usage
        return text, finish, usage["domino"]
    finally:
        connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64, help="of a text at most")
    arguments, flags = parser.parse_known_args()
    servers = []
    try:
        for more in [[], ["--grammar-speculate"]]:
            servers.append(start(arguments.program, ["--dtype", "f32", "--stall-timeout", "1800", *more, *flags]))
        (_, plain), (_, speculative) = servers
        requests = [body(number, arguments.tokens) for number in range(arguments.requests)]
        begun = time.monotonic()
        expected = [ask(plain, sent) for sent in requests]
        between = time.monotonic()
        found = [None] * len(requests)

        def again(number):
            stream = {"stream": True, "stream_options": {"include_usage": True}} if number % 2 else {}
            found[number] = ask(speculative, {**requests[number], **stream})

        for thread in clients(arguments.clients, range(len(requests)), again):
            thread.join()
        after = time.monotonic()
        different = [n for n, (one, other) in enumerate(zip(expected, found)) if other is None or one[:2] != other[:2]]
        total = {key: sum(other[2][key] for other in found if other) for key in ["passes", "drafted", "accepted"]}
        tokens = sum(one[2]["passes"] for one in expected)
        print(f"{len(requests)} texts: {len(requests) - len(different)} the same; {tokens} tokens in {total['passes']} passes, "
              f"{total['accepted']} of {total['drafted']} drafted tokens accepted")
        print(f"{between - begun:.0f} s one after the other without drafts, {after - between:.0f} s from {arguments.clients} clients with")
        for number in different[:5]:
            print(requests[number], expected[number], found[number], sep="\n  ")
        if different:
            sys.exit("equal: not all is well")
    finally:
        for server, _ in servers:
            server.kill()


main()
