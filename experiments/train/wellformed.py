"""Decides whether a text is in the language of one of the paper's grammars.

A small recogniser for GBNF grammars without left recursion: for each (node, position) the set of end
positions, memoised. Independent of the Rust code on purpose, so that the two can be held against each other.
"""
import os
import sys

sys.setrecursionlimit(100000)
NAMES = ["json", "gsm8k", "xml_person", "rpg", "c"]


def parse(text):
    pos = 0
    rules = {}

    def skip(multi=True):
        nonlocal pos
        while pos < len(text):
            if text[pos] == "#":
                while pos < len(text) and text[pos] != "\n":
                    pos += 1
            elif text[pos] in " \t" or (multi and text[pos] in "\r\n"):
                pos += 1
            else:
                return

    def word():
        nonlocal pos
        a = pos
        while pos < len(text) and (text[pos].isalnum() or text[pos] in "-_"):
            pos += 1
        return text[a:pos]

    def char():
        nonlocal pos
        c = text[pos]
        pos += 1
        if c != "\\":
            return c
        c = text[pos]
        pos += 1
        if c in "xuU":
            n = {"x": 2, "u": 4, "U": 8}[c]
            v = int(text[pos:pos + n], 16)
            pos += n
            return chr(v)
        return {"n": "\n", "t": "\t", "r": "\r"}.get(c, c)

    def at_rule():
        """A rule head `name ::=` starts here."""
        nonlocal pos
        keep = pos
        w = word()
        skip(False)
        yes = bool(w) and text.startswith("::=", pos)
        pos = keep
        return yes

    def alt():
        nonlocal pos
        out = [seq()]
        while True:
            skip()
            if pos < len(text) and text[pos] == "|":
                pos += 1
                out.append(seq())
            else:
                return ("alt", out) if len(out) > 1 else out[0]

    def seq():
        nonlocal pos
        out = []
        while True:
            skip()
            if pos >= len(text) or text[pos] in "|)" or at_rule():
                return ("seq", out)
            if text[pos] == '"':
                pos += 1
                s = ""
                while text[pos] != '"':
                    s += char()
                pos += 1
                node = ("lit", s)
            elif text[pos] == "[":
                pos += 1
                neg = text[pos] == "^"
                pos += neg
                rs = []
                while text[pos] != "]":
                    a = char()
                    b = a
                    if text[pos] == "-" and text[pos + 1] != "]":
                        pos += 1
                        b = char()
                    rs.append((a, b))
                pos += 1
                node = ("set", neg, tuple(rs))
            elif text[pos] == "(":
                pos += 1
                node = alt()
                skip()
                assert text[pos] == ")", text[pos:pos + 40]
                pos += 1
            else:
                w = word()
                assert w, text[pos:pos + 40]
                node = ("ref", w)
            while pos < len(text) and text[pos] in "*+?":
                node = ("rep", node, text[pos])
                pos += 1
            out.append(node)

    while True:
        skip()
        if pos >= len(text):
            return rules
        name = word()
        skip()
        assert text.startswith("::=", pos), text[pos:pos + 40]
        pos += 3
        rules[name] = alt()


class Recogniser:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.rules = parse(f.read())

    def accepts(self, s):
        rules, memo, n = self.rules, {}, len(s)

        def ends(node, p):
            k = node[0]
            if k == "lit":
                return (p + len(node[1]),) if s.startswith(node[1], p) else ()
            if k == "set":
                if p < n and any(a <= s[p] <= b for a, b in node[2]) != node[1]:
                    return (p + 1,)
                return ()
            key = (id(node), p)
            got = memo.get(key)
            if got is not None:
                return got
            if k == "ref":
                got = ends(rules[node[1]], p)
            elif k == "alt":
                got = set()
                for x in node[1]:
                    got.update(ends(x, p))
            elif k == "seq":
                got = {p}
                for x in node[1]:
                    nxt = set()
                    for q in got:
                        nxt.update(ends(x, q))
                    got = nxt
                    if not got:
                        break
            else:
                got = {p}
                todo = [p]
                first = set()
                while todo:
                    q = todo.pop()
                    for e in ends(node[1], q):
                        first.add(e)
                        if e not in got:
                            got.add(e)
                            if node[2] != "?":
                                todo.append(e)
                if node[2] == "+":
                    got = first
            got = tuple(got)
            memo[key] = got
            return got

        return n in ends(rules["root"], 0)


def load(folder):
    return {task: Recogniser(os.path.join(folder, task + ".gbnf")) for task in NAMES}


if __name__ == "__main__":
    import random
    import time
    from docs_c import c_doc
    from docs_json import json_doc, rpg_doc, gsm_made, gsm_doc
    from docs_misc import xml_doc
    gs = load(sys.argv[1])
    k = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    made = {"json": json_doc, "xml_person": xml_doc, "rpg": rpg_doc, "c": c_doc, "gsm8k": lambda r: gsm_doc(r, *gsm_made(r))}
    for task, g in gs.items():
        t = time.time()
        bad = []
        for i in range(k):
            p, d = made[task](random.Random("check %s %d" % (task, i)))
            if not g.accepts(d):
                bad.append((p, d))
        print(task, "in the grammar:", k - len(bad), "of", k, "%.1f s" % (time.time() - t))
        for p, d in bad[:3]:
            print("   ", repr(p), repr(d[:400]))
