"""Word problems of one and two steps with small numbers, sums, and GSM8K's own steps made into problems.

A problem is told by sentences, each picked from a list of forms. Forms that begin with `~` are held out, and so is
one calculation of ten (by a hash of `x op y`, in this order). Training uses neither; a held-out problem has at
least one held-out form, and all of its calculations are held out.
"""
import re
import zlib

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
    """What `x op y` is, if that is a whole number from 0 to 999, or None."""
    if op == "/":
        return x // y if y and x % y == 0 else None
    v = {"+": x + y, "-": x - y, "*": x * y}[op]
    return v if 0 <= v < 1000 else None


def is_held(x, op, y):
    """Is this calculation one of the tenth that is held out?"""
    return zlib.crc32(b"%d %s %d" % (x, op.encode(), y)) % 10 == 0


PLAIN = re.compile(r"\s*(\d+)\s*([-+*/])\s*(\d+)\s*")


def uses_held(thoughts):
    """Is a calculation of these thoughts a held-out one?"""
    found = (PLAIN.fullmatch(t["calculation"]) for t in thoughts)
    return any(m and is_held(int(m[1]), m[2], int(m[3])) for m in found)


class Unusable(Exception):
    """A calculation of a problem is on the wrong side of the split, or its result is no small number."""


class Problem:
    """One problem in the making: its sentences, its steps, and what its forms are filled with."""

    def __init__(self, r, held):
        self.r, self.held, self.new, self.said, self.thoughts = r, held, False, [], []
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
        return pick(self.r, [f for f in forms if not f.startswith("~")])

    def say(self, forms, **numbers):
        self.said.append(self.form(forms).format(**self.words, **numbers))

    def step(self, x, op, y, forms, **more):
        """A thought; `{c}` in its form is the calculation with its result."""
        v = value(x, op, y)
        if v is None or v > 150 or is_held(x, op, y) != self.held:
            raise Unusable
        sum_ = "%d%s%s%s%d" % (x, self.space, op, self.space, y)
        text = pick(self.r, forms).format(**self.words, **more, c="%s = %d" % (sum_, v), v=v)
        self.thoughts.append({"step": text, "calculation": sum_, "result": v})
        return v


# ---- forms -----------------------------------------------------------------------------------------------------------

START = ["{n} has {a} {ts}.", "{n} had {a} {ts}.", "At first {n} has {a} {ts}.", "{n} owns {a} {ts}.", "{n} starts with {a} {ts}.", "{n} collected {a} {ts}.", "{n} bought {a} {ts} in {month}.",
         "In the {place} {n} keeps {a} {ts}.", "{n} brought {a} {ts} to the {place}.", "There are {a} {ts} on {n}'s table.", "~{n} found {a} {ts} near the {place}.", "~{n} got {a} {ts} for a birthday.", "~In {month} {n} had {a} {ts}."]
GAIN = ["{m} gives {n} {b} more {ts}.", "{n} buys {b} more {ts}.", "{n} finds {b} more {ts}.", "{n} gets {b} {ts} from {m}.", "Then {n} receives {b} more {ts}.", "{n} wins {b} {ts} in a game.", "{m} brings {n} {b} more.",
        "{n} picks up {b} {ts} on the way home.", "Later {n} adds {b} {ts}.", "A friend gives {n} another {b} {ts}.", "~{n} is given {b} {ts} as a present.", "~{n} makes another {b} {ts}.", "~{m} hands {n} {b} extra {ts}."]
LOSE = ["{n} gives {b} {ts} to {m}.", "{n} gives {m} {b} of them.", "{n} loses {b} {ts}.", "{n} sells {b} of them.", "{n} breaks {b} of the {ts}.", "{m} takes {b} {ts} away.", "{b} of the {ts} are stolen.",
        "{n} throws {b} {ts} away.", "Then {n} uses {b} of the {ts}.", "Later {n} gives away {b} {ts}.", "~{n} lends {b} of them to {m}.", "~{b} of the {ts} get lost.", "~{n} donates {b} {ts} to the school."]
NOW = ["How many {ts} does {n} have now?", "How many {ts} does {n} have in the end?", "How many {ts} does {n} have after that?", "What is the number of {ts} that {n} has now?", "How many {ts} are there now?",
       "~Find the number of {ts} {n} has then.", "~Now how many {ts} does {n} own?"]
LEFT = ["How many {ts} are left?", "How many {ts} does {n} have left?", "How many {ts} remain?", "How many {ts} does {n} still have?", "How many {ts} does {n} have now?", "~What number of {ts} is left over?", "~How many of the {ts} are still there?"]
BOTH = ["{n} has {a} {ts} and {m} has {b} {ts}.", "{n} has {a} {ts}. {m} has {b} {ts}.", "{n} collects {a} {ts} and {m} collects {b}.", "There are {a} {ts} in the {place} and {b} {ts} in the kitchen.", "{n} sold {a} {ts} in {month} and {b} {ts} in the next month.",
        "{n} bought {a} {ts} on Monday and {b} {ts} on Friday.", "{n} found {a} {ts}, and {m} found {b}.", "~{a} {ts} belong to {n} and {b} to {m}.", "~{n} counted {a} {ts} in the morning and {b} {ts} in the evening.", "~{m} carries {b} {ts} and {n} carries {a}."]
TOTAL = ["How many {ts} are there in total?", "How many {ts} is that altogether?", "How many {ts} are there in all?", "How many {ts} do they have together?", "What is the total number of {ts}?", "How many {ts} are there altogether?",
         "~Together, how many {ts} is that?", "~How many {ts} were counted overall?"]
MORE = ["{m} has {b} more {ts} than {n}.", "{m} has {b} {ts} more than {n} has.", "{n} has {b} {ts} less than {m}.", "{m} owns {b} more {ts} than {n} does.", "~{m} has as many {ts} as {n} and {b} more.", "~Compared with {n}, {m} has {b} more {ts}."]
FEWER = ["{m} has {b} fewer {ts} than {n}.", "{m} has {b} {ts} fewer than {n} has.", "{n} has {b} more {ts} than {m}.", "{m} owns {b} fewer {ts} than {n} does.", "~{m} is {b} {ts} short of what {n} has.", "~Compared with {n}, {m} has {b} fewer {ts}."]
TWICE = ["{m} has twice as many {ts} as {n}.", "{m} has 2 times as many {ts} as {n}.", "{m} owns double the number of {ts}.", "{m} has twice that many {ts}.", "~{m} has two times the {ts} that {n} has.", "~The {ts} of {m} are twice as many."]
TIMES = ["{m} has {w} times as many {ts} as {n}.", "{m} has {b} times as many {ts}.", "{m} owns {w} times that number of {ts}.", "The number of {ts} that {m} has is {b} times as large.", "~{m} has {b} times the {ts} that {n} has.", "~{m} has {n}'s number of {ts}, {b} times."]
HALF = ["{m} has half as many {ts} as {n}.", "{m} has half that many {ts}.", "{m} owns half the number of {ts}.", "~{m} has only half of that number.", "~{m} has one half of what {n} has."]
OTHER = ["How many {ts} does {m} have?", "How many {ts} does {m} own?", "What is the number of {ts} that {m} has?", "Then how many {ts} does {m} have?", "~How many {ts} belong to {m}?"]
DIFFER = ["How many more {ts} does {n} have than {m}?", "What is the difference?", "How many fewer {ts} does {m} have than {n}?", "How many {ts} does {m} need to have as many as {n}?", "~By how many {ts} does {n} have more?"]
GROUPS = ["There are {a} {gs} with {b} {ts} in each {g}.", "{n} has {a} {gs} of {ts}. Each {g} holds {b} {ts}.", "{n} fills {a} {gs} with {b} {ts} each.", "{n} has {a} {gs}. There are {b} {ts} in each of them.", "Each {g} has {b} {ts}, and {n} has {a} {gs}.",
          "A {g} holds {b} {ts}. {n} buys {a} {gs}.", "{n} puts {b} {ts} into each of {a} {gs}.", "~{n} packs {a} {gs}, {b} {ts} to a {g}.", "~In every {g} are {b} {ts}; {n} owns {a} {gs}.", "~{n} carries {a} {gs}, and every one has {b} {ts}."]
PRICE = ["{n} buys {a} {ts} for ${b} each.", "{n} buys {a} {ts}. Each {t} costs ${b}.", "A {t} costs ${b}. {n} buys {a} of them.", "One {t} is ${b}, and {n} takes {a} {ts}.", "{n} orders {a} {ts} at ${b} each.", "The price of a {t} is ${b}. {n} wants {a} {ts}.",
         "~{n} pays ${b} for every {t} and takes {a}.", "~At ${b} a {t}, {n} chooses {a} {ts}."]
COST = ["How much does {n} pay?", "How much does {n} spend?", "What is the total cost?", "How many dollars does {n} pay in total?", "How much do the {ts} cost?", "~What does {n} have to pay?", "~How much money is that?"]
RATE = ["{n} {does} {a} {us} a {per}.", "{n} {does} {a} {us} every {per}.", "Every {per} {n} {does} {a} {us}.", "In one {per} {n} {does} {a} {us}.", "{n} {does} {a} {us} each {per}.", "~{n} {does} {a} {us} per {per}.", "~It takes {n} one {per} for {a} {us}."]
WHILE = ["How many {us} does {n} {do} in {b} {pers}?", "How many {us} is that in {b} {pers}?", "In {b} {pers}, how many {us} does {n} {do}?", "How many {us} does {n} {do} after {b} {pers}?", "~What is the number of {us} for {b} {pers}?", "~{n} goes on for {b} {pers}. How many {us} is that?"]
SHARE = ["{n} shares {a} {ts} equally among {b} friends.", "{n} divides {a} {ts} equally between {b} children.", "{n} gives {a} {ts} to {b} friends, the same number to each.", "{b} friends share {a} {ts} equally.", "{n} wants to share {a} {ts} between {b} friends.",
         "{a} {ts} are put into {b} equal groups.", "~{n} splits {a} {ts} evenly between {b} people.", "~{a} {ts} are handed out to {b} children in equal parts."]
EACH = ["How many {ts} does each one get?", "How many {ts} does each get?", "How many {ts} are there for each?", "What is the number of {ts} for each one?", "~How many {ts} will one of them have?"]
PACK = ["{n} puts {a} {ts} into {gs} of {b}.", "{n} has {a} {ts}. A {g} holds {b} {ts}.", "{n} packs {a} {ts}, {b} in each {g}.", "Each {g} has room for {b} {ts}. {n} has {a} {ts}.", "~{a} {ts} are sorted into {gs}, {b} {ts} to each.", "~{b} {ts} fit into one {g}, and {n} has {a}."]
HOLD = ["How many {gs} does {n} need?", "How many {gs} are filled?", "How many {gs} are there?", "How many {gs} does {n} fill?", "~What is the number of {gs}?"]
MONEY = ["{n} has ${a}.", "{n} had ${a}.", "{n} goes to the {place} with ${a}.", "{n} saved ${a}.", "{n} starts the day with ${a}.", "There are ${a} in {n}'s wallet.", "~{n} takes ${a} to the {place}.", "~{n} earned ${a} last week."]
SPEND = ["{n} spends ${b} on a {t}.", "{n} buys a {t} for ${b}.", "A {t} for {m} costs ${b}.", "{n} pays ${b} for a {t}.", "{n} gives ${b} to {m}.", "~{n} hands over ${b} for a {t}.", "~${b} goes to {m}."]
EARN = ["{m} gives {n} ${b}.", "{n} earns another ${b}.", "{n} finds ${b}.", "{n} gets ${b} from {m}.", "{n} sells a {t} for ${b}.", "~{n} is paid ${b} for some work.", "~{m} pays back ${b}."]
REST = ["How much money does {n} have left?", "How much is left?", "How many dollars does {n} have left?", "How much money does {n} still have?", "How many dollars does {n} have now?", "~What is left of the money?", "~How many dollars remain?"]
RICH = ["How much money does {n} have now?", "How many dollars does {n} have now?", "How many dollars does {n} have in all?", "How much money is that in total?", "~What does {n} have then?"]
NEED = ["{n} needs {a} {ts} and has {b}.", "{n} wants to have {a} {ts}. {n} already has {b}.", "{n} must collect {a} {ts} and has collected {b} so far.", "{n} has {b} {ts} but needs {a}.", "~{n}'s goal is {a} {ts}; {b} are there.", "~Of {a} {ts} that {n} needs, {b} are ready."]
LACK = ["How many more {ts} does {n} need?", "How many {ts} are missing?", "How many more {ts} are needed?", "~How many {ts} must {n} still get?"]
AGE = ["{n} is {a} years old.", "{n} is {a}.", "Today {n} turns {a}.", "~{n} has just become {a} years old."]
OLDER = ["How old will {n} be in {b} years?", "How old is {n} {b} years from now?", "In {b} years, how old is {n}?", "~What is {n}'s age {b} years later?"]
YOUNGER = ["How old was {n} {b} years ago?", "What was {n}'s age {b} years ago?", "~{b} years before, how old was {n}?"]
ELDER = ["{m} is {b} years older than {n}.", "{n} is {b} years younger than {m}.", "{m} was born {b} years before {n}.", "~{m}'s age is {b} more."]
JUNIOR = ["{m} is {b} years younger than {n}.", "{n} is {b} years older than {m}.", "{m} was born {b} years after {n}.", "~{m}'s age is {b} less."]
HOW_OLD = ["How old is {m}?", "What is {m}'s age?", "How many years old is {m}?", "~Tell the age of {m}."]
ASK = ["What is {x} {word} {y}?", "{x} {op} {y} = ?", "Calculate {x} {op} {y}.", "How much is {x} {word} {y}?", "Work out {x} {op} {y}.", "~Give the result of {x} {op} {y}.", "~{x} {word} {y} is how much?"]
WORDS = {"+": ["plus"], "-": ["minus"], "*": ["times"], "/": ["divided by"]}

HAS = ["{n} now has {c} {ts}.", "Then {n} has {c} {ts}.", "That makes {c} {ts}."]
ARE_LEFT = ["There are {c} {ts} left.", "{n} has {c} {ts} left.", "{c} {ts} are left."]
IN_ALL = ["In total there are {c} {ts}.", "Altogether that is {c} {ts}.", "There are {c} {ts} in all."]
HAS_TOO = ["{m} has {c} {ts}.", "So {m} has {c} {ts}."]
PAYS = ["The {ts} cost ${c}.", "{n} pays ${c}."]
MONEY_LEFT = ["{n} has ${c} left.", "There are ${c} left."]
MONEY_NOW = ["{n} has ${c} now.", "That makes ${c}."]
EACH_GETS = ["Each gets {c} {ts}.", "That is {c} {ts} for each."]
HOLDERS_ARE = ["That is {c} {gs}.", "{n} needs {c} {gs}."]
YEARS = ["{n} is {c} years old then.", "That is {c} years."]
YEARS_TOO = ["{m} is {c} years old.", "So {m} is {c}."]


# ---- problems --------------------------------------------------------------------------------------------------------

def addends(p):
    r = p.r
    return (r.randint(1, 20), r.randint(1, 20)) if r.random() < 0.5 else (r.randint(2, 60), r.randint(2, 40))


def minuends(p):
    a, b = addends(p)
    return a + b, b


def factors(p):
    r = p.r
    return (r.randint(2, 12), r.randint(2, 12)) if r.random() < 0.8 else (r.randint(2, 25), r.randint(2, 5))


def rate_words(p):
    does, do, u, per = pick(p.r, RATES)
    p.words.update(does=does, do=do, us=plural(u), per=per, pers=per + "s")


def gain(p):
    a, b = addends(p)
    p.say(START, a=a), p.say(GAIN, b=b), p.say(NOW)
    p.step(a, "+", b, HAS)


def lose(p):
    a, b = minuends(p)
    p.say(START, a=a), p.say(LOSE, b=b), p.say(LEFT)
    p.step(a, "-", b, ARE_LEFT)


def both(p):
    a, b = addends(p)
    p.say(BOTH, a=a, b=b), p.say(TOTAL)
    p.step(a, "+", b, IN_ALL)


def more(p):
    a, b = addends(p)
    p.say(START[:5] + ["~{n} got {a} {ts} for a birthday."], a=a), p.say(MORE, b=b), p.say(OTHER)
    p.step(a, "+", b, HAS_TOO)


def fewer(p):
    a, b = minuends(p)
    p.say(START[:5] + ["~{n} got {a} {ts} for a birthday."], a=a), p.say(FEWER, b=b), p.say(OTHER)
    p.step(a, "-", b, HAS_TOO)


def differ(p):
    a, b = minuends(p)
    p.say(BOTH[:3] + ["~{a} {ts} belong to {n} and {b} to {m}."], a=a, b=b), p.say(DIFFER)
    p.step(a, "-", b, ["The difference is {c} {ts}.", "{n} has {c} {ts} more."])


def twice(p):
    a = p.r.randint(2, 40)
    p.say(START[:5] + ["~{n} got {a} {ts} for a birthday."], a=a), p.say(TWICE), p.say(OTHER)
    p.step(a, "*", 2, HAS_TOO)


def times(p):
    a, b = p.r.randint(2, 12), p.r.randint(3, 10)
    p.say(START[:5] + ["~{n} got {a} {ts} for a birthday."], a=a), p.say(TIMES, b=b, w=NUMBERS[b]), p.say(OTHER)
    p.step(a, "*", b, HAS_TOO)


def half(p):
    a = 2 * p.r.randint(1, 40)
    p.say(START[:5] + ["~{n} got {a} {ts} for a birthday."], a=a), p.say(HALF), p.say(OTHER)
    p.step(a, "/", 2, HAS_TOO)


def groups(p):
    a, b = factors(p)
    p.say(GROUPS, a=a, b=b), p.say(["How many {ts} are there?"] + TOTAL[:3] + NOW[:1] + TOTAL[-2:])
    p.step(a, "*", b, IN_ALL)


def price(p):
    a, b = factors(p)
    p.say(PRICE, a=a, b=b), p.say(COST)
    p.step(a, "*", b, PAYS)


def rate(p):
    a, b = factors(p)
    rate_words(p)
    p.say(RATE, a=a), p.say(WHILE, b=b)
    p.step(a, "*", b, ["In {b} {pers} that is {c} {us}.", "{n} {does} {c} {us}."], b=b)


def share(p):
    b, v = factors(p)
    p.say(SHARE, a=b * v, b=b), p.say(EACH)
    p.step(b * v, "/", b, EACH_GETS)


def pack(p):
    b, v = factors(p)
    p.say(PACK, a=b * v, b=b), p.say(HOLD)
    p.step(b * v, "/", b, HOLDERS_ARE)


def spend(p):
    a, b = minuends(p)
    p.say(MONEY, a=a), p.say(SPEND, b=b), p.say(REST)
    p.step(a, "-", b, MONEY_LEFT)


def earn(p):
    a, b = addends(p)
    p.say(MONEY, a=a), p.say(EARN, b=b), p.say(RICH)
    p.step(a, "+", b, MONEY_NOW)


def need(p):
    a, b = minuends(p)
    p.say(NEED, a=a, b=b), p.say(LACK)
    p.step(a, "-", b, ["{c} {ts} are missing.", "{n} needs {c} more {ts}."])


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
    p.say(START[:5] + ["~{n} got {a} {ts} for a birthday."], a=a)
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
    p.say(START[:5] + ["~{n} got {a} {ts} for a birthday."], a=a)
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


def made(r, kinds, held):
    """(question, thoughts and answer) of a problem of one of the kinds."""
    while True:
        try:
            p = Problem(r, held)
            pick(r, kinds)(p)
        except Unusable:
            continue
        if p.new == held:
            return " ".join(p.said), {"thoughts": p.thoughts, "answer": p.thoughts[-1]["result"]}


# ---- sums and GSM8K's steps ------------------------------------------------------------------------------------------

def fact(r, held=False):
    """A calculation of one side of the split, as (x, op, y, result)."""
    while True:
        op = pick(r, "+++---**//")
        x, y = r.randint(1, 60), r.randint(1, 40)
        if r.random() < 0.4:
            x, y = r.randint(1, 20), r.randint(1, 20)
        if op in "*/":
            x, y = r.randint(1, 12), r.randint(1, 12)
        if op == "-":
            x += y
        if op == "/":
            x *= y
        if is_held(x, op, y) == held:
            return x, op, y, value(x, op, y)


SUMS = ["Sums:\n", "Calculations with small numbers:\n", "A list of calculations:\n", "Sums with their results:\n"]


def sums_doc(r):
    """A list of calculations: the numbers of word problems without the words."""
    sp = pick(r, ["", " "])
    facts = [fact(r) for _ in range(r.randint(4, 16))]
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
    for held in (False, True):
        for k in range(25):
            r = random.Random(k)
            print(held, *made(r, pick(r, [ONE, TWO]), held))
    print(sums_doc(random.Random(5)))
