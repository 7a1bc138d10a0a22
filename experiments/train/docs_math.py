"""Word problems of one and two steps with small numbers, sums, and GSM8K's own steps made into problems.

A problem is told by sentences, each picked from a list of forms (`math_forms`). Some forms are held out, and
so is one calculation of ten (by a hash of `x op y`, in this order). Training uses neither; a held-out problem
has at least one held-out form, and all of its calculations are held out. Training has three stages: the
second has more forms and larger numbers than the first, and half of the numbers of the third are from a range
too wide to know by heart, so that which of them never come cannot be learnt either.
"""
import math
import re
import zlib

from math_forms import (AGE, ARE_LEFT, ASK, BOTH, COST, DIFFER, EACH, EACH_GETS, EARN, ELDER, FEWER, GAIN, GROUPS,
    HALF, HAS, HAS_TOO, HOLD, HOLDERS_ARE, HOW_OLD, IN_ALL, JUNIOR, LACK, LEFT, LOSE, MONEY, MONEY_LEFT, MONEY_NOW,
    MORE, NEED, NOW, OLDER, OTHER, OWNS, PACK, PAYS, PRICE, RATE, REST, RICH, SHARE, SPEND, START, TIMES, TOTAL,
    TWICE, WHILE, WORDS, YEARS, YEARS_TOO, YOUNGER)
from words import ANIMALS, FIRST, FOODS, HOBBIES, MONTHS, NOUN, THINGS, pick

NAMES = [n for n in FIRST if n.isascii()]
COUNTABLE = [t for t in THINGS + ANIMALS if not t.endswith("s") and t not in ("fish", "paint", "goldfish", "sheep", "wolf", "fox", "brush", "knife", "watch", "box", "basket", "bucket")]
COUNTABLE += "apple banana lemon mango orange pear carrot onion potato cookie sandwich burger egg cake pie".split()
COUNTABLE += "marble sticker stamp coin card toy shell flower balloon crayon ribbon button bead puzzle photo magazine".split()
HOLDERS = "bag basket shelf jar crate bucket packet tray drawer carton row bowl case".split()
RATES = [("reads", "read", "page", "day"), ("runs", "run", "mile", "day"), ("drives", "drive", "mile", "hour"), ("writes", "write", "letter", "week"), ("bakes", "bake", "cake", "hour"),
         ("plants", "plant", "tree", "day"), ("solves", "solve", "puzzle", "day"), ("types", "type", "line", "minute"), ("walks", "walk", "mile", "day"), ("makes", "make", "toy", "hour"),
         ("swims", "swim", "lap", "day"), ("washes", "wash", "car", "day"), ("picks", "pick", "apple", "hour"), ("sells", "sell", "ticket", "hour"), ("draws", "draw", "picture", "week"),
         ("learns", "learn", "word", "day"), ("folds", "fold", "shirt", "minute"), ("repairs", "repair", "phone", "day"), ("collects", "collect", "shell", "hour"), ("eats", "eat", "cookie", "day")]
NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}


def plural(word):
    if word in ("shelf", "knife", "wolf"):
        return word.rstrip("fe") + "ves"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh", "potato", "tomato", "mango")) else "s")


def value(x, op, y):
    """The value of `x op y`, if that is a whole number from 0 to 999, or None."""
    if op == "/":
        return x // y if y and x % y == 0 else None
    v = {"+": x + y, "-": x - y, "*": x * y}[op]
    return v if 0 <= v < 1000 else None


def is_held(x, op, y):
    """True for a calculation of the tenth that is held out."""
    return zlib.crc32(b"%d %s %d" % (x, op.encode(), y)) % 10 == 0


PLAIN = re.compile(r"\s*(\d+)\s*([-+*/])\s*(\d+)\s*")


def uses_held(thoughts):
    """True if a calculation of these thoughts is held out."""
    found = (PLAIN.fullmatch(t["calculation"]) for t in thoughts)
    return any(m and is_held(int(m[1]), m[2], int(m[3])) for m in found)


class Unusable(Exception):
    """A calculation of a problem is on the wrong side of the split, or its result is no small number."""


class Problem:
    """One problem in the making: its sentences, its steps, and what its forms are filled with."""

    def __init__(self, r, held, stage):
        self.r, self.held, self.stage, self.new, self.said, self.thoughts = r, held, stage, False, [], []
        self.wide = stage == 3 and r.random() < 0.5
        self.space = pick(r, ["", " ", " "])
        n, m = pick(r, NAMES), pick(r, NAMES)
        if n == m:
            raise Unusable
        t, g = pick(r, COUNTABLE), pick(r, HOLDERS)
        self.words = {"n": n, "m": m, "t": t, "ts": plural(t), "g": g, "gs": plural(g), "place": pick(r, NOUN), "month": pick(r, MONTHS)}

    def form(self, forms):
        """One of the forms, of the right side of the split."""
        new = [f for f in forms if f.startswith("~")]
        if self.held and new and self.r.random() < 0.5:
            self.new = True
            return pick(self.r, new)[1:]
        some = [f for f in forms if not f.startswith("~" if self.stage > 1 else ("~", "+"))]
        return re.sub(r"\[([^]]*)\]", lambda part: pick(self.r, part[1].split("|")), pick(self.r, some).lstrip("+"))

    def say(self, forms, **numbers):
        self.said.append(self.form(forms).format(**self.words, **numbers))

    def step(self, x, op, y, forms, **more):
        """A thought; `{c}` in its form is the calculation with its result."""
        v = value(x, op, y)
        if v is None or v > (999 if self.wide else 150) or is_held(x, op, y) != self.held:
            raise Unusable
        sum_ = "%d%s%s%s%d" % (x, self.space, op, self.space, y)
        text = pick(self.r, forms).format(**self.words, **more, c="%s = %d" % (sum_, v), v=v)
        self.thoughts.append({"step": text, "calculation": sum_, "result": v})
        return v


# ---- problems ----------------------------------------------------------------------------------------------

def spread(r, low, high):
    """A number of low..=high, each size as likely as the next."""
    return min(high, int(low * math.exp(r.random() * math.log((high + 1) / low))))


def wide_addends(r):
    return spread(r, 2, 600), spread(r, 2, 400)


def wide_factors(r):
    b = spread(r, 2, 12)
    return spread(r, 2, 999 // b), b


def addends(p):
    r = p.r
    if p.wide:
        return wide_addends(r)
    if p.stage > 1 and r.random() < 0.6:
        return r.randint(1, 99), r.randint(1, 60)
    return (r.randint(1, 20), r.randint(1, 20)) if r.random() < 0.5 else (r.randint(2, 60), r.randint(2, 40))


def minuends(p):
    a, b = addends(p)
    return a + b, b


def factors(p):
    r = p.r
    if p.wide:
        return wide_factors(r)
    if p.stage > 1 and r.random() < 0.4:
        return r.randint(2, 40), r.randint(2, 9)
    return (r.randint(2, 12), r.randint(2, 12)) if r.random() < 0.8 else (r.randint(2, 25), r.randint(2, 5))


def rate_words(p):
    does, do, u, per = pick(p.r, RATES)
    p.words.update(does=does, do=do, us=plural(u), per=per, pers=per + "s")


def doubled(p):
    return (spread(p.r, 2, 499) if p.wide else p.r.randint(2, 70 if p.stage > 1 else 40)), 2


def multiplied(p):
    a = spread(p.r, 2, 99) if p.wide else p.r.randint(2, 40 if p.stage > 1 else 12)
    return a, p.r.randint(3, 10)


def halved(p):
    return 2 * (spread(p.r, 1, 499) if p.wide else p.r.randint(1, 70 if p.stage > 1 else 40)), 2


def dividends(p):
    b, v = factors(p)
    return b * v, b


def one(numbers, op, slots, steps, words=None):
    """A kind of problem of one step: `a op b`, told by a form of each slot."""
    def kind(p):
        a, b = numbers(p)
        if words:
            words(p)
        for forms in slots:
            p.say(forms, a=a, b=b, w=NUMBERS.get(b))
        p.step(a, op, b, steps, b=b)
    return kind


HOW_MANY = ["How many {ts} are there?"] + TOTAL[:3] + NOW[:1] + TOTAL[-2:]
gain = one(addends, "+", [START, GAIN, NOW], HAS)
lose = one(minuends, "-", [START, LOSE, LEFT], ARE_LEFT)
both = one(addends, "+", [BOTH, TOTAL], IN_ALL)
more = one(addends, "+", [OWNS, MORE, OTHER], HAS_TOO)
fewer = one(minuends, "-", [OWNS, FEWER, OTHER], HAS_TOO)
differ = one(minuends, "-", [BOTH[:3] + ["~{a} {ts} belong to {n} and {b} to {m}."], DIFFER], ["The difference is {c} {ts}.", "{n} has {c} {ts} more."])
twice = one(doubled, "*", [OWNS, TWICE, OTHER], HAS_TOO)
times = one(multiplied, "*", [OWNS, TIMES, OTHER], HAS_TOO)
half = one(halved, "/", [OWNS, HALF, OTHER], HAS_TOO)
groups = one(factors, "*", [GROUPS, HOW_MANY], IN_ALL)
price = one(factors, "*", [PRICE, COST], PAYS)
rate = one(factors, "*", [RATE, WHILE], ["In {b} {pers} that is {c} {us}.", "{n} {does} {c} {us}."], rate_words)
share = one(dividends, "/", [SHARE, EACH], EACH_GETS)
pack = one(dividends, "/", [PACK, HOLD], HOLDERS_ARE)
spend = one(minuends, "-", [MONEY, SPEND, REST], MONEY_LEFT)
earn = one(addends, "+", [MONEY, EARN, RICH], MONEY_NOW)
need = one(minuends, "-", [NEED, LACK], ["{c} {ts} are missing.", "{n} needs {c} more {ts}."])


def age(p):
    a, b = p.r.randint(5, 60), p.r.randint(2, 30)
    p.say(AGE, a=a)
    if p.r.random() < 0.6 or a <= b:
        p.say(OLDER, b=b)
        p.step(a, "+", b, YEARS)
    else:
        p.say(YOUNGER, b=b)
        p.step(a, "-", b, ["{n} was {c} years old.", "That is {c} years."])


def ages(p):
    a, b = p.r.randint(5, 60), p.r.randint(2, 30)
    p.say(AGE, a=a)
    if p.r.random() < 0.5 or a <= b:
        p.say(ELDER, b=b), p.say(HOW_OLD)
        p.step(a, "+", b, YEARS_TOO)
    else:
        p.say(JUNIOR, b=b), p.say(HOW_OLD)
        p.step(a, "-", b, YEARS_TOO)


def ask(p):
    op = pick(p.r, "++--*/")
    x, y = addends(p) if op == "+" else minuends(p) if op == "-" else factors(p)
    x = x * y if op == "/" else x
    p.say(ASK, x=x, y=y, op=op, word=pick(p.r, WORDS[op]))
    p.step(x, op, y, ["{c}", "{c}."])


def changes(p):
    a, b = addends(p)
    p.say(START, a=a)
    v = a
    for _ in range(2):
        b = p.r.randint(1, 20)
        if v > b and p.r.random() < 0.5:
            p.say(LOSE, b=b)
            v = p.step(v, "-", b, ARE_LEFT)
        else:
            p.say(GAIN, b=b)
            v = p.step(v, "+", b, HAS)
    p.say(NOW)


def groups_change(p):
    a, b = factors(p)
    c = p.r.randint(1, 20)
    p.say(GROUPS, a=a, b=b)
    v = p.step(a, "*", b, IN_ALL)
    if p.r.random() < 0.5 and v > c:
        p.say(LOSE, b=c), p.say(LEFT)
        p.step(v, "-", c, ARE_LEFT)
    else:
        p.say(GAIN, b=c), p.say(NOW)
        p.step(v, "+", c, HAS)


def price_rest(p):
    a, b = factors(p)
    more = p.r.randint(1, 40)
    p.say(MONEY, a=a * b + more), p.say(PRICE, a=a, b=b), p.say(REST)
    v = p.step(a, "*", b, PAYS)
    p.step(a * b + more, "-", v, MONEY_LEFT)


def money_changes(p):
    a, b = minuends(p)
    c = p.r.randint(1, 20)
    p.say(MONEY, a=a), p.say(SPEND, b=b)
    v = p.step(a, "-", b, MONEY_LEFT)
    if p.r.random() < 0.5 and v > c:
        p.say([f.replace("{t}", "ticket") for f in SPEND], b=c), p.say(REST)
        p.step(v, "-", c, MONEY_LEFT)
    else:
        p.say([f.replace("{t}", "ticket") for f in EARN], b=c), p.say(RICH)
        p.step(v, "+", c, MONEY_NOW)


def more_total(p):
    a, b = p.r.randint(2, 30), p.r.randint(1, 20)
    p.say(OWNS, a=a)
    if p.r.random() < 0.5 or a <= b:
        p.say(MORE, b=b)
        v = p.step(a, "+", b, HAS_TOO)
    else:
        p.say(FEWER, b=b)
        v = p.step(a, "-", b, HAS_TOO)
    p.say(TOTAL)
    p.step(a, "+", v, IN_ALL)


def times_total(p):
    k = p.r.random()
    a = p.r.randint(2, 12) if k < 0.3 else p.r.randint(2, 30) * (1 if k < 0.65 else 2)
    p.say(OWNS, a=a)
    if k < 0.3:
        b = p.r.randint(3, 9)
        p.say(TIMES, b=b, w=NUMBERS[b])
        v = p.step(a, "*", b, HAS_TOO)
    elif k < 0.65:
        p.say(TWICE)
        v = p.step(a, "*", 2, HAS_TOO)
    else:
        p.say(HALF)
        v = p.step(a, "/", 2, HAS_TOO)
    p.say(TOTAL)
    p.step(a, "+", v, IN_ALL)


def both_share(p):
    c, each = p.r.randint(2, 9), p.r.randint(2, 10)
    a = p.r.randint(1, c * each - 1)
    b = c * each - a
    p.say(BOTH, a=a, b=b)
    p.say(["They share them equally among {c} friends.", "All of them are put into {c} equal groups.", "The {ts} are divided equally between {c} children.", "~All the {ts} are split evenly between {c} people."], c=c)
    p.say(EACH)
    v = p.step(a, "+", b, IN_ALL)
    p.step(v, "/", c, EACH_GETS)


def lose_share(p):
    c, each, b = p.r.randint(2, 9), p.r.randint(2, 10), p.r.randint(1, 20)
    a = c * each + b
    p.say(START, a=a), p.say(LOSE, b=b)
    p.say(["The rest is shared equally among {c} friends.", "{n} puts the other {ts} into {c} equal groups.", "The others are divided equally between {c} children.", "~{n} splits the rest evenly between {c} people."], c=c)
    p.say(EACH)
    v = p.step(a, "-", b, ARE_LEFT)
    p.step(v, "/", c, EACH_GETS)


def both_lose(p):
    a, b = addends(p)
    c = p.r.randint(1, 20)
    if c >= a + b:
        raise Unusable
    p.say(BOTH, a=a, b=b)
    p.say(["{c} of the {ts} are given away.", "{c} {ts} are sold.", "Then {c} of them are lost.", "{c} of these {ts} are broken.", "~{c} {ts} are taken by a friend."], c=c)
    p.say(["How many {ts} are left?", "How many {ts} remain?", "How many {ts} are there now?", "~What number of {ts} is left over?"])
    v = p.step(a, "+", b, IN_ALL)
    p.step(v, "-", c, ["There are {c} {ts} left.", "{c} {ts} are left."])


def rate_change(p):
    a, b = factors(p)
    c = p.r.randint(1, 20)
    rate_words(p)
    p.say(RATE, a=a)
    p.say(["{n} does so for {b} {pers} and then {does} {d} more {us}.", "After {b} {pers}, {n} {does} another {d} {us}.", "This goes on for {b} {pers}, then come {d} more {us}.", "~{n} keeps on for {b} {pers} and adds {d} {us}."], b=b, d=c)
    p.say(["How many {us} is that in total?", "How many {us} does {n} {do} altogether?", "How many {us} are there in all?", "~What is the number of {us} overall?"])
    v = p.step(a, "*", b, ["In {b} {pers} that is {c} {us}.", "{n} {does} {c} {us}."], b=b)
    p.step(v, "+", c, ["In total that is {c} {us}.", "Altogether {n} {does} {c} {us}."])


def hours_pay(p):
    a, b, c = p.r.randint(1, 6), p.r.randint(1, 6), p.r.randint(2, 12)
    p.say(["{n} earns ${c} an hour.", "{n} is paid ${c} for an hour.", "{n}'s work pays ${c} an hour.", "~For one hour {n} gets ${c}."], c=c)
    p.say(["{n} works {a} hours on Monday and {b} hours on Tuesday.", "On Saturday {n} works {a} hours, on Sunday {b} hours.", "{n} works {a} hours in the morning and {b} hours in the evening.", "~{n} stays {a} hours the first day and {b} hours the second."], a=a, b=b)
    p.say(["How much does {n} earn?", "How many dollars does {n} earn?", "How much money is that?", "~What does {n} get?"])
    v = p.step(a, "+", b, ["{n} works {c} hours.", "That is {c} hours."])
    p.step(v, "*", c, ["{n} earns ${c}.", "That is ${c}."])


def two_prices(p):
    a, b = p.r.randint(1, 30), p.r.randint(1, 30)
    c = a + b + p.r.randint(1, 30)
    u = pick(p.r, ["ticket", "sandwich", "card", "drink", "magazine"])
    p.say(["{n} buys a {t} for ${a} and a {u} for ${b}.", "A {t} costs ${a} and a {u} costs ${b}. {n} buys both.", "{n} pays ${a} for a {t} and ${b} for a {u}.", "~{n} chooses a {t} at ${a} and a {u} at ${b}."], a=a, b=b, u=u)
    p.say(["{n} had ${c}.", "{n} came with ${c}.", "{n} has ${c} before that.", "~{n} started out with ${c}."], c=c)
    p.say(REST)
    v = p.step(a, "+", b, ["{n} spends ${c}.", "That costs ${c}."])
    p.step(c, "-", v, MONEY_LEFT)


ONE = [gain, gain, lose, lose, both, more, fewer, differ, twice, times, half, groups, groups, price, rate, share, pack, spend, earn, need, age, ages, ask]
TWO = [changes, changes, groups_change, price_rest, money_changes, more_total, times_total, both_share, lose_share, both_lose, rate_change, hours_pay, two_prices]


def made(r, kinds, held, stage=1):
    """(question, thoughts and answer) of a problem of one of the kinds."""
    while True:
        try:
            p = Problem(r, held, stage)
            pick(r, kinds)(p)
        except Unusable:
            continue
        if p.new == held:
            return " ".join(p.said), {"thoughts": p.thoughts, "answer": p.thoughts[-1]["result"]}


# ---- sums and GSM8K's steps --------------------------------------------------------------------------------

def fact(r, held=False, stage=1):
    """A calculation of one side of the split, as (x, op, y, result)."""
    while True:
        op = pick(r, "+++---**//")
        x, y = r.randint(1, 99 if stage > 1 else 60), r.randint(1, 60 if stage > 1 else 40)
        if r.random() < (0.2 if stage > 1 else 0.4):
            x, y = r.randint(1, 20), r.randint(1, 20)
        if op in "*/":
            x, y = r.randint(1, 12), r.randint(1, 12)
            if stage > 1 and r.random() < 0.4:
                x, y = r.randint(2, 40), r.randint(2, 9)
        if stage == 3 and r.random() < 0.6:
            x, y = wide_factors(r) if op in "*/" else wide_addends(r)
        if op == "-":
            x += y
        if op == "/":
            x *= y
        if is_held(x, op, y) == held and value(x, op, y) is not None:
            return x, op, y, value(x, op, y)


SUMS = ["Sums:\n", "Calculations with small numbers:\n", "A list of calculations:\n", "Sums with their results:\n"]


def sums_doc(r, stage=1):
    """A list of calculations: the numbers of word problems without the words."""
    sp = pick(r, ["", " "])
    facts = [fact(r, stage=stage) for _ in range(r.randint(4, 16))]
    if r.random() < 0.3:
        # One number and its neighbours, as in a table.
        x, op, y, _ = facts[0]
        near = [(x + k, op, y) for k in range(-3, 6)] if op in "+-" else [(x, op, y)]
        facts += [(a, o, b, value(a, o, b)) for a, o, b in near if a > 0 and value(a, o, b) is not None and not is_held(a, o, b)]
    return pick(r, SUMS), "\n".join("%d%s%s%s%d = %d" % (x, sp, op, sp, y, v) for x, op, y, v in facts)


def gsm_steps(solutions):
    """The steps of GSM8K solutions that are one small calculation written out: (text around it, operation, x, y)."""
    out = []
    for _, solution in solutions:
        for t in solution["thoughts"]:
            m = PLAIN.fullmatch(t["calculation"])
            if not m or not 12 < len(t["step"]) < 110:
                continue
            x, op, y = int(m[1]), m[2], int(m[3])
            if value(x, op, y) is None or max(x, y) > 99:
                continue
            at = re.search(r"(?<![\d.,*/+-])\$?%d\s*[%sx]\s*\$?%d\s*=\s*\$?%d(?![\d.,/*])" % (x, re.escape(op), y, value(x, op, y)), t["step"])
            if at:
                out.append((t["step"][:at.start()], t["step"][at.end():], op, x, y))
    return out


def gsm_step(r, steps, held):
    """Such a step as a problem, half of the time with other numbers."""
    while True:
        before, after, op, x, y = pick(r, steps)
        if r.random() < 0.5:
            x, o, y, _ = fact(r, held)
            if o != op:
                continue
        if is_held(x, op, y) != held:
            continue
        v = value(x, op, y)
        c = "%d %s %d" % (x, op, y)
        step = before + c + " = %d" % v + after
        return before + c + " = ?" + after, {"thoughts": [{"step": step, "calculation": c, "result": v}], "answer": v}


if __name__ == "__main__":
    import random
    for held, stage in ((False, 1), (False, 2), (False, 3), (True, 1)):
        for k in range(25):
            r = random.Random(k)
            print("held out" if held else "stage %d" % stage, *made(r, pick(r, [ONE, TWO]), held, stage))
    print(sums_doc(random.Random(5), 3))
