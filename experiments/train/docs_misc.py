"""XML persons, the small formats (arithmetic, CSV, date-times, e-mails, SQL, calls), and pieces of real
documents."""
import json
import re
import xml.etree.ElementTree as ET

from words import *
import words as W
from docs_json import dump, style, integer, money


# ---- XML ---------------------------------------------------------------------------------------------------

def x_person(r, s, depth, name=None, friends=None):
    """`s`: (newline, indent) of the document; empty strings for one line."""
    nl, ind, salary, age = s
    pad = lambda k: (nl + ind * (depth + k)) if nl else ""
    esc = lambda t: t.replace("&", "&amp;").replace("<", "&lt;")
    out = "<person>" + pad(1) + "<name>" + esc(name or W.person(r)) + "</name>"
    a = r.randint(1, 99) if r.random() < 0.9 else r.randint(18, 70)
    out += pad(1) + "<age>" + age(a) + "</age>"
    out += pad(1) + "<job>" + pad(2) + "<title>" + esc(W.job(r) if r.random() < 0.92 else W.job(r) + " at " + W.company(r)) + "</title>"
    out += pad(2) + "<salary>" + salary(r) + "</salary>" + pad(1) + "</job>"
    if friends is None:
        friends = r.random() < (0.42, 0.15, 0.06, 0)[min(depth // 2, 3)]
    if friends:
        n = pick(r, [1, 1, 2, 2, 3]) if depth == 0 else 1
        # the grammar has no white space between two friends; a few documents have some all the same
        loose = r.random() < 0.08
        out += pad(1) + "<friends>" + pad(2) + (pad(2) if loose else "").join([x_person(r, s, depth + 2) for _ in range(n)]) + pad(1) + "</friends>"
    return out + pad(0) + "</person>"


XP = ["An XML file describing a person", "An XML file describing a person: ", "An XML file describing a person:", "An XML file describing a person:\n", "An XML file describing a person\n", "XML of a person: ", "An XML person:\n", "A person in XML: ",
      "An XML document about a person:\n", "An XML file of a person with name, age and job:\n", "Describe a person in XML.\n", "The following is an XML file describing a person:\n", "An XML record of a person: ", "XML file of a person:"]
XN = ["An XML file of a person {n}:", "An XML file of a person named {n}\n", "An XML file of a person {n}: ", "XML of a person {n}:\n", "An XML file describing {n}: ", "Describe {n} in XML.\n", "An XML file of the person {n}", "An XML file describing the person {n}:\n"]
XF = ["An XML file of a person {n} with friends", "An XML file of a person {n} with friends:\n", "XML of a person {n} with friends: ", "An XML file of a person named {n} with friends:"]
XQ = ["An XML file describing a person with friends: ", "An XML file describing a person and their friends:\n", "An XML file of a person with friends", "A person with friends in XML:\n"]


def xml_doc(r):
    x = r.random()
    s = ("", "", None, None) if x < 0.28 else ("\n", pick(r, ["  ", "  ", "    ", "    ", "\t", "", " "]), None, None)
    sal = pick(r, [lambda r: str(r.randint(15, 250) * 1000), lambda r: str(r.randint(15000, 250000)), lambda r: "$" + format(r.randint(15, 250) * 1000, ","), lambda r: str(r.randint(1500, 25000)) + " " + cur, lambda r: format(r.randint(20, 200) * 500, ","), lambda r: str(r.randint(20, 200)) + "k", lambda r: str(r.randint(1500, 99999)) + ".00", lambda r: str(r.randint(12, 90)) + " per hour"][:] if r.random() < 0.4 else [lambda r: str(r.randint(15, 250) * 1000), lambda r: str(r.randint(15000, 250000))])
    cur = pick(r, CURRENCY)
    age = pick(r, [str, str, str, str, str, str, lambda a: str(a) + " years", lambda a: str(a) + " years old"])
    s = (s[0], s[1], sal, age)
    y = r.random()
    if y < 0.42:
        return pick(r, XP), x_person(r, s, 0)
    if y < 0.54:
        return pick(r, XQ), x_person(r, s, 0, friends=True)
    n = W.person(r)
    if y < 0.70:
        return pick(r, XF).format(n=n), x_person(r, s, 0, n, True)
    return pick(r, XN).format(n=n), x_person(r, s, 0, n, None if r.random() < 0.3 else False)


# ---- small formats -----------------------------------------------------------------------------------------

def arith(r):
    sp = pick(r, [" ", " ", ""])
    def num():
        x = r.random()
        return str(r.randint(0, 9) if x < 0.4 else r.randint(0, 99) if x < 0.75 else r.randint(0, 9999)) + ("." + str(r.randint(0, 99)) if r.random() < 0.12 else "")
    def e(d):
        k = r.randint(1, 3 if d else 2)
        return (sp + "@" + sp).join(f(d) for _ in range(k))
    def f(d):
        x = r.random()
        return "(" + e(d - 1) + ")" if d > 0 and x < 0.3 else "-" + num() if x < 0.35 else num()
    t = e(pick(r, [1, 2, 2, 3]))
    while "@" in t:
        t = t.replace("@", pick(r, "++-*/"), 1)
    return pick(r, ["An arithmetic expression: ", "An arithmetic expression:\n", "Arithmetic: ", "A calculation with numbers: ", "A mathematical expression:\n", "An expression with + and *: "]), t


def csv(r):
    cols = [("name", W.person), ("age", lambda r: str(r.randint(1, 99))), ("city", lambda r: pick(r, CITIES)), ("email", W.email), ("price", lambda r: str(money(r))), ("date", W.date), ("id", lambda r: str(r.randint(1, 99999))), ("color", lambda r: pick(r, COLORS)), ("product", lambda r: pick(r, ADJ) + " " + pick(r, THINGS)), ("quantity", lambda r: str(r.randint(0, 500))), ("country", lambda r: pick(r, COUNTRIES)), ("job", W.job), ("score", lambda r: str(round(r.uniform(0, 100), 1))), ("company", W.company), ("note", W.sentence)]
    cs = r.sample(cols, r.randint(2, 6))
    q = r.random() < 0.15
    cell = lambda s: '"' + s.replace('"', '""') + '"' if q or "," in s or '"' in s else s
    rows = [",".join(cell(f(r)) for _, f in cs) for _ in range(r.randint(1, 7))]
    if r.random() < 0.75:
        rows = [",".join(n for n, _ in cs)] + rows
    names = ", ".join(n for n, _ in cs)
    return pick(r, ["A CSV file: ", "A CSV file:\n", "A CSV table with the columns " + names + ":\n", "CSV data of " + names + ":\n", "CSV:\n", "A CSV file with %d columns:\n" % len(cs)]), "\n".join(rows) + ("\n" if r.random() < 0.5 else "")


def dates(r):
    return pick(r, ["An ISO 8601 date and time: ", "ISO date-time: ", "A timestamp: ", "The date and time in ISO format:\n", "A date-time (RFC 3339): ", "Timestamp of the event: "]), W.datetime(r)


def mails(r):
    if r.random() < 0.5:
        a, b = W.first(r), W.last(r)
        u = pick(r, [a + "." + b, a + b, a[0] + b]).lower().replace("'", "").replace(" ", "")
        d = pick(r, MAIL)
        return pick(r, ["The e-mail address of {n}: ", "E-mail of {n}: ", "An email address for {n}:\n"]).format(n=a + " " + b), u + "@" + d + "." + pick(r, TLD)
    return pick(r, ["An e-mail address: ", "An email address:\n", "E-mail: ", "Contact: "]), W.email(r)


def sql(r):
    t = pick(r, ["users", "orders", "products", "employees", "books", "cars", "events", "customers", "students", "items", "logs", "accounts"] + NOUN)
    pool = ["id", "name", "age", "email", "price", "city", "country", "status", "created_at", "total", "title", "year", "score", "quantity", "salary", "department", "color"]
    cs = r.sample(pool, r.randint(1, 4))
    kw = (lambda s: s) if r.random() < 0.85 else str.lower
    val = lambda: pick(r, [str(r.randint(0, 1000)), "'" + pick(r, FIRST + CITIES + STATUS) + "'", str(r.randint(0, 99))])
    cnd = lambda: pick(r, pool) + pick(r, [" = " + val(), " > " + str(r.randint(0, 1000)), " < " + str(r.randint(0, 1000)), " >= " + str(r.randint(0, 99)), " <> " + val(), kw(" LIKE ") + "'%" + pick(r, NOUN) + "%'", kw(" IS NOT NULL"), kw(" IN ") + "(" + ", ".join(str(r.randint(1, 99)) for _ in range(r.randint(1, 4))) + ")", kw(" BETWEEN ") + str(r.randint(0, 50)) + kw(" AND ") + str(r.randint(51, 200))])
    sel = pick(r, ["*", ", ".join(cs), ", ".join(cs), ", ".join(cs), kw("COUNT") + "(*)", cs[0] + ", " + kw("SUM") + "(" + pick(r, pool) + ")", kw("DISTINCT ") + cs[0], kw("AVG") + "(" + cs[0] + ")", kw("MAX") + "(" + cs[0] + ") " + kw("AS") + " top"])
    s = kw("SELECT ") + sel + kw(" FROM ") + t
    if r.random() < 0.15:
        s += kw(" JOIN ") + "orders" + kw(" ON ") + t + ".id = orders." + t + "_id"
    if r.random() < 0.65:
        s += kw(" WHERE ") + cnd()
        while r.random() < 0.3:
            s += kw(pick(r, [" AND ", " OR "])) + cnd()
    if "(" in sel and "," in sel:
        s += kw(" GROUP BY ") + cs[0]
    if r.random() < 0.35:
        s += kw(" ORDER BY ") + pick(r, cs) + kw(pick(r, ["", " DESC", " ASC"]))
    if r.random() < 0.25:
        s += kw(" LIMIT ") + str(pick(r, [1, 5, 10, 20, 100]))
    return pick(r, ["A SQL query: ", "An SQL SELECT statement:\n", "SQL query on the table %s: " % t, "SQL: ", "A SQL query that reads %s:\n" % t, "SELECT statement:\n"]), s + (";" if r.random() < 0.6 else "")


def calls(r):
    fs = ["f", "g", "h", "max", "min", "add", "sum", "mul", "concat", "map", "print", "len", "range", "sqrt", "get", "set", "find", "load", "open", "send", "foo", "bar"] + VERB[:20]
    sp = pick(r, [", ", ", ", ","])
    def e(d):
        x = r.random()
        if d > 0 and x < 0.45:
            return c(d - 1)
        return str(r.randint(0, 99)) if x < 0.75 else pick(r, "abcnxyz") if x < 0.92 else '"' + pick(r, NOUN) + '"'
    def c(d):
        n = pick(r, fs) + ("_" + pick(r, NOUN) if r.random() < 0.15 else "")
        return n + "(" + sp.join(e(d) for _ in range(r.randint(0 if d < 2 else 1, 3))) + ")"
    return pick(r, ["A function call: ", "A call expression:\n", "A nested function call: ", "Call: ", "An expression with calls: "]), c(pick(r, [1, 2, 2, 3]))


def small_doc(r):
    x = r.random()
    return (arith if x < 0.17 else csv if x < 0.42 else dates if x < 0.54 else mails if x < 0.66 else sql if x < 0.84 else calls)(r)


# ---- real documents ----------------------------------------------------------------------------------------

def rows(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)


def subobjects(v, out):
    if isinstance(v, dict):
        out.append(v)
        for x in v.values():
            subobjects(x, out)
    elif isinstance(v, list):
        for x in v:
            subobjects(x, out)


def json_real(data):
    """[(document id, file name, object)]: the objects inside real JSON documents that are of a useful size."""
    out = []
    for row in rows(data + "/json/realworld.jsonl"):
        objs = []
        subobjects(json.loads(row["text"]), objs)
        seen = set()
        for o in objs:
            t = json.dumps(o, sort_keys=True)
            shape = (tuple(o), len(t) // 200)
            if 40 <= len(t) <= 1100 and t not in seen and sum(1 for s in seen if s == shape) == 0:
                seen.add(t)
                out.append((row["id"], row["path"].split("/")[-1], o))
    return out


def xml_real(data):
    """[(document id, file name, text)]: short XML files whole, elements of longer ones."""
    out = []
    for row in rows(data + "/xml/realworld.jsonl"):
        name = row["path"].split("/")[-1]
        if len(row["text"]) <= 1300:
            out.append((row["id"], name, row["text"].strip()))
        try:
            root = ET.fromstring(row["text"])
        except ET.ParseError:
            continue
        seen = set()
        for el in root.iter():
            if "{" in str(el.tag) or el is root:
                continue
            el.tail = None
        for el in root.iter():
            if el is root or not isinstance(el.tag, str) or any("{" in str(d.tag) for d in el.iter()):
                continue
            t = ET.tostring(el, encoding="unicode")
            key = (el.tag, len(t) // 60)
            if 60 <= len(t) <= 1000 and key not in seen and "xmlns:" not in t:
                seen.add(key)
                out.append((row["id"], name, t))
    return out


def c_real(data):
    """[(document id, file name, text)]: real C, cut at blank lines into pieces of at most about 1200 characters."""
    out = []
    for row in rows(data + "/c/realworld.jsonl"):
        name = row["path"].split("/")[-1]
        piece = ""
        for para in re.split(r"\n\n+", row["text"].strip()):
            if piece and len(piece) + len(para) > 1200:
                out.append((row["id"], name, piece))
                piece = ""
            piece = piece + "\n\n" + para if piece else para
            piece = piece[:1400]
        if piece:
            out.append((row["id"], name, piece))
    return out


def real_doc(r, kind, name, body):
    if kind == "json":
        return pick(r, ["A part of {n}:\n", "An object from the file {n}: ", "{n}:\n", "JSON from {n}: ", "Real JSON from {n}:\n"]).format(n=name), dump(body, style(r))
    if kind == "xml":
        return pick(r, ["A part of {n}:\n", "XML from {n}:\n", "{n}:\n", "An XML element from {n}:\n"]).format(n=name), body
    return pick(r, ["A part of {n}:\n", "C source from {n}:\n", "{n}:\n", "/* {n} */\n", "C code of the library file {n}:\n"]).format(n=name), body
