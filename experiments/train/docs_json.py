"""JSON documents (free, GSM8K thoughts, RPG template) and their prompts."""
import json
import re

from words import *
import words as W


# ---- white space -------------------------------------------------------------------------------------------

def escape(s, r, ascii_only):
    return json.dumps(s, ensure_ascii=ascii_only)


def style(r):
    """(indent or None, item separator, key separator, inline limit, ascii)."""
    x = r.random()
    asc = r.random() < 0.3
    if x < 0.34:
        return (None, ", ", ": ", 0, asc)
    if x < 0.46:
        return (None, ",", ":", 0, asc)
    if x < 0.49:
        return (None, ",", ": ", 0, asc)
    if x < 0.50:
        return (None, ", ", ":", 0, asc)
    ind = pick(r, ["  ", "  ", "  ", "    ", "    ", "\t", " "])
    return (ind, ",", ": " if r.random() < 0.95 else ":", pick(r, [0, 0, 0, 40, 70]), asc)


def dump(v, st, depth=0):
    ind, isep, ksep, inline, asc = st
    if isinstance(v, str):
        return json.dumps(v, ensure_ascii=asc)
    if not isinstance(v, (dict, list)):
        return json.dumps(v)
    if not v:
        return "{}" if isinstance(v, dict) else "[]"
    o, c = "{}" if isinstance(v, dict) else "[]"
    items = [(json.dumps(k, ensure_ascii=asc) + ksep if isinstance(v, dict) else "", x) for k, x in (v.items() if isinstance(v, dict) else ((None, x) for x in v))]
    if ind is None:
        return o + isep.join(k + dump(x, st, depth) for k, x in items) + c
    if inline and depth > 0:
        flat = o + ", ".join(k + dump(x, (None, ", ", ksep, 0, asc)) for k, x in items) + c
        if len(flat) <= inline:
            return flat
    pad = "\n" + ind * (depth + 1)
    return o + pad + ("," + pad).join(k + dump(x, st, depth + 1) for k, x in items) + "\n" + ind * depth + c


# ---- free JSON ---------------------------------------------------------------------------------------------

def money(r):
    x = r.random()
    v = r.randint(1, 99) if x < 0.4 else r.randint(1, 2000) if x < 0.8 else r.randint(100, 200000)
    if r.random() < 0.6:
        return round(v + pick(r, [0.99, 0.5, 0.95, 0.25, r.randint(0, 99) / 100]), 2)
    return v


def integer(r):
    x = r.random()
    return r.randint(0, 10) if x < 0.3 else r.randint(0, 100) if x < 0.6 else r.randint(0, 10000) if x < 0.9 else r.randint(-1000, 10 ** 9)


def ident(r):
    return pick(r, [r.randint(1, 99), r.randint(1, 9999), r.randint(10000, 9999999), hexid(r, pick(r, [6, 8, 12, 24])), pick(r, "ABCDEFGHKPRSTX") + pick(r, "ABCDEFGHKPRSTX-") + str(r.randint(100, 99999)), "%s-%s-%s-%s-%s" % (hexid(r, 8), hexid(r, 4), hexid(r, 4), hexid(r, 4), hexid(r, 12))])


def some(r, f, lo=0, hi=5):
    return [f(r) for _ in range(r.randint(lo, hi))]


def words_of(xs):
    return lambda r: pick(r, xs)


def address(r):
    return obj(r, [("street", street), ("city", words_of(CITIES)), ("state", lambda r: pick(r, ["CA", "NY", "TX", "IL", "WA", "MA", "FL", "OH", "CO", "OR"])), ("zip", lambda r: pick(r, [str(r.randint(10000, 99999)), r.randint(10000, 99999)])), ("country", words_of(COUNTRIES)), ("postalCode", lambda r: str(r.randint(1000, 99999)))], 2, 5)


def small_person(r):
    return obj(r, [("name", W.person), ("age", lambda r: r.randint(1, 99)), ("email", W.email), ("city", words_of(CITIES)), ("relation", lambda r: pick(r, ["friend", "brother", "sister", "mother", "father", "colleague", "neighbor", "spouse", "child"]))], 1, 3, keep=1)


def obj(r, fields, lo, hi, keep=0):
    """A random subset of fields (the first `keep` always), mostly in the listed order."""
    n = min(len(fields), max(keep, r.randint(lo, hi)))
    idx = list(range(keep)) + sorted(r.sample(range(keep, len(fields)), n - keep))
    if r.random() < 0.35:
        r.shuffle(idx)
    return {fields[i][0]: fields[i][1](r) for i in idx}


B = lambda r: r.random() < 0.5
AGE = lambda r: r.randint(1, 99)
TEXT = lambda r: W.sentence(r) if r.random() < 0.75 else " ".join(W.sentence(r) for _ in range(2))
OPT = lambda f: (lambda r: None if r.random() < 0.2 else f(r))
LIST = lambda f, lo=0, hi=5: (lambda r: some(r, f, lo, hi))
WO = words_of

PERSON = [("name", W.person), ("age", AGE), ("firstName", W.first), ("lastName", W.last), ("email", W.email), ("phone", OPT(W.phone)), ("occupation", W.job), ("job", W.job),
          ("address", address), ("city", WO(CITIES)), ("country", WO(COUNTRIES)), ("married", B), ("isActive", B), ("children", LIST(W.first, 0, 4)), ("hobbies", LIST(WO(HOBBIES), 0, 5)),
          ("friends", LIST(small_person, 0, 3)), ("height", lambda r: round(r.uniform(1.4, 2.1), 2)), ("height_cm", lambda r: r.randint(140, 210)), ("weight", lambda r: r.randint(40, 130)), ("gender", WO(["male", "female", "other"])),
          ("birthDate", W.date), ("nationality", WO(COUNTRIES)), ("skills", LIST(WO(HOBBIES + NOUN), 1, 5)), ("languages", LIST(WO(LANGS + LANG_NAMES), 1, 3)), ("salary", money), ("company", W.company),
          ("spouse", OPT(W.person)), ("id", ident), ("favoriteColor", WO(COLORS)), ("pets", LIST(lambda r: {"type": pick(r, ANIMALS), "name": W.first(r)}, 0, 2)), ("bio", TEXT), ("website", W.url),
          ("phoneNumbers", LIST(lambda r: {"type": pick(r, ["home", "work", "mobile", "office"]), "number": W.phone(r)}, 1, 2)), ("eyeColor", WO(["brown", "blue", "green", "hazel", "gray"])), ("education", lambda r: {"degree": pick(r, ["BSc", "MSc", "PhD", "BA", "MBA"]), "year": r.randint(1970, 2024)})]
ENT = {
    "person": PERSON, "user": [("id", ident), ("username", lambda r: W.first(r).lower() + str(r.randint(1, 999)))] + PERSON[:8] + [("roles", LIST(WO(["admin", "editor", "user", "guest", "owner"]), 1, 3)), ("lastLogin", W.datetime), ("createdAt", W.datetime), ("verified", B), ("settings", lambda r: {"theme": pick(r, ["dark", "light"]), "language": pick(r, LANGS), "notifications": B(r)})],
    "student": [("name", W.person), ("grade", lambda r: r.randint(1, 12)), ("school", lambda r: pick(r, CITIES) + " " + pick(r, ["High School", "University", "Academy", "College"])), ("subjects", LIST(WO(["math", "physics", "history", "art", "music", "biology", "chemistry", "English", "geography"]), 1, 5)), ("gpa", lambda r: round(r.uniform(1, 4), 2)), ("scores", lambda r: {k: r.randint(40, 100) for k in r.sample(["math", "science", "art", "reading", "history", "music"], r.randint(1, 4))}), ("graduated", B), ("teacher", W.person), ("age", AGE)],
    "product": [("id", ident), ("name", lambda r: pick(r, ADJ).capitalize() + " " + pick(r, THINGS).capitalize()), ("price", money), ("currency", WO(CURRENCY)), ("inStock", B), ("quantity", integer), ("tags", LIST(WO(ADJ + COLORS), 0, 4)), ("description", TEXT), ("category", WO(["toys", "books", "garden", "kitchen", "electronics", "clothing", "sports", "office", "food"])), ("color", WO(COLORS)), ("rating", lambda r: round(r.uniform(1, 5), 1)), ("dimensions", lambda r: {"width": r.randint(1, 200), "height": r.randint(1, 200), "depth": r.randint(1, 200)}), ("manufacturer", W.company), ("sku", ident), ("reviews", LIST(lambda r: {"user": W.first(r), "stars": r.randint(1, 5), "comment": W.sentence(r)}, 0, 2))],
    "book": [("title", W.phrase), ("author", W.person), ("year", lambda r: r.randint(1800, 2025)), ("pages", lambda r: r.randint(40, 1200)), ("genre", WO(GENRES)), ("isbn", lambda r: "978-" + str(r.randint(10 ** 9, 10 ** 10 - 1))), ("publisher", W.company), ("price", money), ("available", B), ("genres", LIST(WO(GENRES), 1, 3)), ("chapters", LIST(W.phrase, 1, 5)), ("language", WO(LANG_NAMES)), ("rating", lambda r: round(r.uniform(1, 5), 1))],
    "movie": [("title", W.phrase), ("director", W.person), ("year", lambda r: r.randint(1930, 2025)), ("duration", lambda r: r.randint(60, 220)), ("genre", WO(GENRES)), ("cast", LIST(lambda r: {"actor": W.person(r), "role": W.first(r)}, 1, 3)), ("rating", lambda r: round(r.uniform(1, 10), 1)), ("oscars", lambda r: r.randint(0, 11)), ("budget", lambda r: r.randint(1, 300) * 1000000), ("actors", LIST(W.person, 1, 4))],
    "car": [("brand", W.last), ("make", W.made_name), ("model", lambda r: pick(r, ADJ).capitalize() + " " + str(r.randint(1, 900))), ("year", lambda r: r.randint(1950, 2026)), ("color", WO(COLORS)), ("price", money), ("mileage", lambda r: r.randint(0, 300000)), ("electric", B), ("doors", lambda r: r.randint(2, 5)), ("engine", lambda r: {"type": pick(r, ["diesel", "petrol", "electric", "hybrid"]), "horsepower": r.randint(50, 700)}), ("features", LIST(lambda r: pick(r, ADJ) + " " + pick(r, ["seats", "wheels", "lights", "roof", "mirrors", "brakes"]), 0, 4)), ("owner", W.person), ("licensePlate", ident)],
    "company": [("name", W.company), ("founded", lambda r: r.randint(1850, 2024)), ("employees", LIST(small_person, 1, 3)), ("employeeCount", integer), ("headquarters", WO(CITIES)), ("ceo", W.person), ("revenue", lambda r: r.randint(1, 9999) * 1000), ("public", B), ("industry", WO(["software", "retail", "banking", "energy", "farming", "health", "media", "transport"])), ("website", W.url), ("address", address), ("departments", LIST(WO(["Sales", "Research", "Marketing", "Support", "Finance", "Design", "Legal"]), 1, 4))],
    "order": [("orderId", ident), ("customer", W.person), ("items", LIST(lambda r: {"product": pick(r, ADJ) + " " + pick(r, THINGS), "quantity": r.randint(1, 9), "price": money(r)}, 1, 3)), ("total", money), ("status", WO(STATUS)), ("date", W.date), ("paid", B), ("shipping", address), ("note", OPT(TEXT)), ("currency", WO(CURRENCY))],
    "recipe": [("name", lambda r: pick(r, ADJ).capitalize() + " " + pick(r, FOODS) + " " + pick(r, ["soup", "salad", "pie", "stew", "cake", "curry", "bowl"])), ("servings", lambda r: r.randint(1, 12)), ("ingredients", LIST(lambda r: pick(r, [pick(r, FOODS), {"name": pick(r, FOODS), "amount": str(r.randint(1, 500)) + pick(r, [" g", " ml", " cups", " tbsp", ""])}]), 2, 5)), ("steps", LIST(lambda r: pick(r, ["Mix", "Chop", "Add", "Boil", "Bake", "Fry", "Serve"]) + " the " + pick(r, FOODS) + pick(r, [".", "", " for %d minutes." % r.randint(1, 60)]), 1, 4)), ("prepTime", lambda r: r.randint(5, 180)), ("vegetarian", B), ("difficulty", WO(["easy", "medium", "hard"]))],
    "event": [("title", W.phrase), ("date", W.date), ("start", W.datetime), ("end", W.datetime), ("location", lambda r: pick(r, [pick(r, CITIES), {"city": pick(r, CITIES), "venue": W.phrase(r)}])), ("attendees", LIST(W.person, 0, 4)), ("price", money), ("online", B), ("organizer", W.person), ("capacity", integer), ("description", TEXT)],
    "city": [("name", WO(CITIES)), ("country", WO(COUNTRIES)), ("population", lambda r: r.randint(1000, 20000000)), ("area", lambda r: round(r.uniform(1, 3000), 1)), ("capital", B), ("mayor", W.person), ("coordinates", lambda r: {"lat": round(r.uniform(-90, 90), r.randint(2, 6)), "lon": round(r.uniform(-180, 180), r.randint(2, 6))}), ("landmarks", LIST(W.phrase, 1, 4)), ("founded", lambda r: r.randint(100, 1900))],
    "weather report": [("city", WO(CITIES)), ("date", W.date), ("temperature", lambda r: round(r.uniform(-25, 42), 1)), ("humidity", lambda r: r.randint(5, 100)), ("condition", WO(["sunny", "cloudy", "rain", "snow", "windy", "fog", "storm"])), ("wind", lambda r: {"speed": r.randint(0, 120), "direction": pick(r, ["N", "NE", "E", "SE", "S", "SW", "W", "NW"])}), ("forecast", LIST(lambda r: {"day": pick(r, ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]), "high": r.randint(0, 40), "low": r.randint(-20, 20)}, 1, 3)), ("alerts", LIST(W.sentence, 0, 1))],
    "configuration": [("version", lambda r: "%d.%d.%d" % (r.randint(0, 9), r.randint(0, 20), r.randint(0, 20))), ("debug", B), ("port", lambda r: r.randint(80, 65535)), ("host", lambda r: pick(r, ["localhost", "0.0.0.0", "127.0.0.1", pick(r, NOUN) + "." + pick(r, TLD)])), ("database", lambda r: {"host": pick(r, NOUN) + ".local", "port": r.randint(1000, 9999), "name": slug(r), "user": pick(r, ["root", "admin", "app"])}), ("logging", lambda r: {"level": pick(r, ["debug", "info", "warn", "error"]), "file": "/var/log/" + pick(r, NOUN) + ".log"}), ("timeout", integer), ("retries", lambda r: r.randint(0, 10)), ("features", lambda r: {pick(r, NOUN) + "_" + pick(r, ["enabled", "mode", "flag"]): B(r) for _ in range(r.randint(1, 3))}), ("paths", LIST(lambda r: "/" + pick(r, NOUN) + "/" + pick(r, NOUN), 0, 3)), ("name", slug), ("env", WO(["production", "staging", "development", "test"]))],
    "server response": [("status", lambda r: pick(r, [200, 201, 204, 400, 401, 403, 404, 500, "ok", "error"])), ("message", TEXT), ("data", lambda r: pick(r, [None, {}, [], {"id": ident(r), "name": W.person(r)}, some(r, small_person, 1, 2)])), ("timestamp", lambda r: pick(r, [W.datetime(r), r.randint(10 ** 9, 2 * 10 ** 9)])), ("requestId", ident), ("errors", LIST(lambda r: {"code": r.randint(1, 999), "field": pick(r, NOUN)}, 0, 2)), ("page", lambda r: r.randint(1, 99)), ("pageSize", WO([10, 20, 25, 50, 100])), ("total", integer), ("success", B)],
    "log entry": [("time", W.datetime), ("level", WO(["DEBUG", "INFO", "WARN", "ERROR"])), ("message", TEXT), ("service", slug), ("pid", integer), ("duration_ms", lambda r: round(r.uniform(0, 900), 2)), ("user", OPT(lambda r: W.first(r).lower())), ("trace", lambda r: hexid(r, 16)), ("ok", B)],
    "sensor": [("sensorId", ident), ("type", WO(["temperature", "pressure", "humidity", "motion", "light"])), ("value", lambda r: round(r.uniform(-100, 1000), r.randint(0, 4))), ("unit", WO(["C", "F", "Pa", "%", "lux", "m/s"])), ("readings", LIST(lambda r: round(r.uniform(0, 100), 1), 1, 6)), ("battery", lambda r: r.randint(0, 100)), ("location", WO(NOUN)), ("online", B), ("updated", W.datetime)],
    "song": [("title", W.phrase), ("artist", W.person), ("album", W.phrase), ("seconds", lambda r: r.randint(60, 600)), ("year", lambda r: r.randint(1950, 2025)), ("genre", WO(["rock", "pop", "jazz", "folk", "blues", "metal", "classical", "hip hop"])), ("explicit", B), ("plays", integer), ("lyrics", lambda r: "\n".join(W.sentence(r) for _ in range(r.randint(1, 3))))],
    "pet": [("name", W.first), ("species", WO(ANIMALS)), ("age", lambda r: r.randint(0, 30)), ("owner", lambda r: pick(r, [W.person(r), small_person(r)])), ("vaccinated", B), ("color", WO(COLORS)), ("weight", lambda r: round(r.uniform(0.1, 90), 1)), ("favorite_food", WO(FOODS)), ("tricks", LIST(lambda r: pick(r, ["sit", "roll over", "jump", "speak", "fetch", "spin"]), 0, 3))],
    "game": [("title", W.phrase), ("players", LIST(lambda r: {"name": W.first(r), "score": integer(r), "level": r.randint(1, 99)}, 1, 3)), ("level", lambda r: r.randint(1, 99)), ("score", integer), ("inventory", LIST(WO(RPG_ITEM), 0, 5)), ("paused", B), ("position", lambda r: pick(r, [[r.randint(-99, 99), r.randint(-99, 99)], {"x": r.randint(-99, 99), "y": r.randint(-99, 99)}])), ("health", lambda r: r.randint(0, 100)), ("difficulty", WO(["easy", "normal", "hard"]))],
    "bank account": [("accountNumber", lambda r: str(r.randint(10 ** 7, 10 ** 10))), ("owner", W.person), ("balance", lambda r: round(r.uniform(-5000, 90000), 2)), ("currency", WO(CURRENCY)), ("type", WO(["checking", "savings", "business"])), ("transactions", LIST(lambda r: {"date": W.date(r), "amount": round(r.uniform(-900, 900), 2), "to": pick(r, [W.person(r), W.company(r)])}, 0, 3)), ("frozen", B), ("opened", W.date), ("bank", W.company)],
    "animal": [("name", WO(ANIMALS)), ("legs", WO([0, 2, 4, 6, 8])), ("habitat", WO(["forest", "ocean", "desert", "river", "farm", "mountain"])), ("diet", LIST(WO(FOODS + ["grass", "insects", "leaves", "seeds"]), 1, 3)), ("endangered", B), ("lifespan", lambda r: r.randint(1, 100)), ("weight_kg", lambda r: round(r.uniform(0.01, 5000), 2)), ("can_fly", B)],
    "task": [("id", ident), ("title", lambda r: pick(r, ["Fix", "Write", "Review", "Update", "Delete", "Test", "Plan"]) + " the " + pick(r, ADJ) + " " + pick(r, NOUN)), ("done", B), ("priority", lambda r: pick(r, ["low", "medium", "high", 1, 2, 3])), ("due", OPT(W.date)), ("assignee", OPT(W.person)), ("labels", LIST(WO(["bug", "feature", "docs", "urgent", "later", "ui", "backend"]), 0, 3)), ("subtasks", LIST(lambda r: {"title": W.phrase(r), "done": B(r)}, 0, 3)), ("estimate", lambda r: round(r.uniform(0.5, 40), 1))],
}
ENT_NAMES = list(ENT)
ART = lambda n: ("an " if n[0] in "aeiou" else "a ") + n
P_OPEN = ["A JSON file describing {a}: ", "A JSON file describing {a}:", "A JSON file describing {a}:\n", "A JSON file describing {a}\n", "A JSON object for {a}: ", "JSON of {a}:\n", "A JSON {n}:", "A JSON {n}: ", "A {n} in JSON: ", "A JSON document about {a}:\n", "Describe {a} in JSON.\n",
          "The following is a JSON file describing {a}:\n", "JSON file of {a}:", "JSON data of {a}\n", "A JSON record of {a}: ", "Write {a} as JSON:\n"]
P_KEYS = ["A JSON file describing {a} with {k}: ", "A JSON object for {a} ({k}): ", "JSON of {a} with {k}\n", "A JSON {n} with the fields {k}:\n", "A JSON file of {a} with {k}:"]
P_NAME = ["A JSON file of {a} {v}:", "A JSON file of {a} {v}: ", "A JSON file of {a} {v}:\n", "JSON of {a} {v}:", "JSON of {a} {v}\n", "A JSON object for the {n} {v}: ", "A JSON file describing the {n} {v}: ", "Describe the {n} {v} in JSON.\n", "A JSON file about {v}: "]
P_NAME_WITH = ["A JSON file of {a} {v} with {k}", "JSON of {a} {v} with {k}", "A JSON file of {a} {v} with {k}:", "JSON of {a} {v} with {k}: ", "A JSON file of {a} {v} with {k}\n"]


def key_case(o, how):
    def f(k):
        parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", k) or [k]
        if how == "snake":
            return "_".join(x.lower() for x in parts)
        if how == "kebab":
            return "-".join(x.lower() for x in parts)
        if how == "Pascal":
            return "".join(x[:1].upper() + x[1:] for x in parts)
        if how == "spaced":
            return " ".join(x.lower() for x in parts)
        if how == "UPPER":
            return "_".join(x.upper() for x in parts)
        return parts[0].lower() + "".join(x[:1].upper() + x[1:] for x in parts[1:])
    if isinstance(o, dict):
        return {f(k): key_case(v, how) for k, v in o.items()}
    if isinstance(o, list):
        return [key_case(v, how) for v in o]
    return o


def any_value(r, d):
    x = r.random()
    if d > 0 and x < 0.28:
        return {pick(r, NOUN + THINGS + ADJ) + pick(r, ["", "", "_id", "Name", "_count"]): any_value(r, d - 1) for _ in range(r.randint(0, 4))}
    if d > 0 and x < 0.45:
        if r.random() < 0.5:
            f = pick(r, [integer, W.first, B, money, WO(NOUN)])
            return some(r, f, 0, 6)
        return [any_value(r, d - 1) for _ in range(r.randint(0, 4))]
    return pick(r, [integer, integer, money, B, OPT(W.first), WO(NOUN), W.phrase, W.sentence, W.date, lambda r: None, lambda r: "", lambda r: r.randint(-100, 100) / pick(r, [2, 4, 5, 8, 10, 100]), lambda r: pick(r, [1e6, 1.5e-3, 2e10, -3.2e5, 6.02e23]), W.email, W.url, lambda r: pick(r, ["café", "naïve", "Zürich", "日本", "λ", "a\tb", "line\nbreak", "C:\\temp", 'say "hi"', "50 %", "ümlaut", "😀"])])(r)


def has_name(o):
    for k in ("name", "title", "firstName", "artist"):
        if k in o and isinstance(o[k], str):
            return k
    return None


def json_doc(r):
    x = r.random()
    if x < 0.10:  # no schema at all
        n = r.randint(1, 6)
        o = {pick(r, NOUN + THINGS) + pick(r, ["", "", "", "_id", "Type", "_" + pick(r, NOUN)]): any_value(r, 2) for _ in range(n)}
        p = pick(r, ["A JSON file: ", "A JSON file:\n", "A JSON object: ", "JSON:\n", "Some JSON data:\n", "A JSON document: ", "An example of a JSON file:\n", "A JSON object with %d keys: " % n if len(o) == n else "JSON object:"])
    else:
        n = "person" if r.random() < 0.40 else pick(r, ENT_NAMES)
        if x < 0.42 and n != "person" or x > 0.93:
            n = pick(r, ENT_NAMES)
        hi = pick(r, [3, 5, 7, 9])
        if n == "person" and r.random() < 0.6:
            fields = [PERSON[0]] + [f for f in PERSON[1:] if f[0] not in ("firstName", "lastName")]
            o = obj(r, fields, 2, hi, keep=1)
        else:
            o = obj(r, ENT[n], 2, hi, keep=1 if r.random() < 0.7 else 0)
        how = pick(r, ["as is", "as is", "as is", "snake", "snake", "camel", "kebab", "Pascal", "spaced", "UPPER"])
        if how != "as is":
            o = key_case(o, how)
        nk = next((k for k in o if k.lower() in ("name", "title") and isinstance(o[k], str)), None)
        y = r.random()
        if nk and y < 0.35:
            rest = [k for k in o if k != nk and isinstance(o[k], (list, dict)) and o[k]]
            if rest and r.random() < 0.6:
                p = pick(r, P_NAME_WITH).format(a=ART(n), n=n, v=o[nk], k=pick(r, rest).replace("_", " ").lower())
            else:
                p = pick(r, P_NAME).format(a=ART(n), n=n, v=o[nk])
        elif y < 0.50:
            ks = list(o)
            if r.random() < 0.5:
                ks = ks[:r.randint(1, len(ks))]
            p = pick(r, P_KEYS).format(a=ART(n), n=n, k=", ".join(ks) if len(ks) < 2 or r.random() < 0.5 else ", ".join(ks[:-1]) + " and " + ks[-1])
        elif y < 0.54 and r.random() < 0.7:
            m = r.randint(2, 3)
            o = {pick(r, [n + "s", "items", "data", "list", "results"]): [obj(r, ENT[n], 1, 4, keep=1) for _ in range(m)]}
            p = pick(r, ["A JSON file of {m} {n}s: ", "A JSON file with a list of {n}s:\n", "A JSON object with {m} {n}s:\n", "A list of {n}s in JSON: "]).format(m=m, n=n)
        else:
            p = pick(r, P_OPEN).format(a=ART(n), n=n)
    st = style(r)
    if r.random() < 0.02:
        return pick(r, ["A JSON array: ", "A JSON array:\n", "An array in JSON:\n", "A JSON list of objects: "]), dump([o] + [any_value(r, 1) for _ in range(r.randint(0, 2))], st)
    return p, dump(o, st)


# ---- GSM8K -------------------------------------------------------------------------------------------------

CALC = re.compile(r"<<([^<>]*)=([^<>=]*)>>")


def number(s):
    s = s.replace(",", "").replace("$", "").strip().rstrip(".")
    if not re.fullmatch(r"-?\d*\.?\d+", s):
        return None
    v = float(s)
    return int(v) if v == int(v) and abs(v) < 1e15 else v


def gsm_convert(answer):
    """The thoughts/answer object of a GSM8K solution through its <<a=b>> annotations, or None."""
    body, _, final = answer.partition("####")
    final = number(final)
    if final is None:
        return None
    thoughts = []
    carry = ""
    for line in body.strip().split("\n"):
        line = line.strip()
        at = 0
        found = list(CALC.finditer(line))
        for j, m in enumerate(found):
            end = found[j + 1].start() if j + 1 < len(found) else len(line)
            # the sentence goes on to the last punctuation before the next annotation's own clause
            stop = len(line) if j + 1 == len(found) else m.end() + max(0, line[m.end():end].find(", ") + 1, line[m.end():end].find(". ") + 1, line[m.end():end].find(" and ") + 1)
            if j + 1 < len(found) and stop == m.end():
                return None
            step = CALC.sub("", line[at:stop]).strip().rstrip(",").strip()
            at = stop
            if step.startswith("and "):
                step = step[4:]
            calc, res = m.group(1).strip(), number(m.group(2))
            if res is None or not step or not re.fullmatch(r"[-+*/().\d ]+", calc):
                return None
            thoughts.append({"step": (carry + step).strip(), "calculation": calc, "result": res})
            carry = ""
        if not found:
            carry = line + " "
    if not thoughts or len(carry) > 160:
        return None
    return {"thoughts": thoughts, "answer": final}


def gsm_style(r):
    x = r.random()
    if x < 0.72:
        return (None, ", ", ": ", 0, False)
    if x < 0.82:
        return (None, ",", ":", 0, False)
    return (pick(r, ["  ", "    ", "\t"]), ",", ": ", 0, False)


NUMW = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def gsm_made(r):
    """A one- to three-step word problem with small numbers, the operands copied from the question."""
    n1, n2 = pick(r, FIRST), pick(r, FIRST)
    th = pick(r, THINGS + FOODS + ANIMALS)
    ths = th + ("s" if not th.endswith("s") else "")
    pl = pick(r, NOUN)
    big = pick(r, [10, 10, 20, 20, 50, 100])
    a, b, c = r.randint(2, big), r.randint(2, max(3, big // 2)), r.randint(2, 9)
    sp = pick(r, ["", "", " "])
    st = []
    def step(text, x, op, y):
        v = {"+": x + y, "-": x - y, "*": x * y, "/": x // y}[op]
        st.append({"step": text.replace("#", str(v)), "calculation": str(x) + sp + op + sp + str(y), "result": v})
        return v
    k = r.randint(0, 11)
    if k == 0:
        q = f"{n1} has {a} {ths}. {n2} gives {n1} {b} more {ths}. How many {ths} does {n1} have now?"
        v = step(f"{n1} now has {a} + {b} = # {ths}.", a, "+", b)
    elif k == 1:
        a, b = a + b, b
        q = f"{n1} had {a} {ths} and lost {b} of them. How many {ths} are left?"
        v = step(f"There are {a} - {b} = # {ths} left.", a, "-", b)
    elif k == 2:
        q = f"{n1} buys {a} {ths} for ${c} each. How much does {n1} pay?"
        v = step(f"The {ths} cost {a} * {c} = $#.", a, "*", c)
    elif k == 3:
        q = f"There are {a} {ths} in the {pl} and {b} {ths} in the {pick(r, NOUN)}. {n1} takes {c} of them. How many {ths} remain?"
        v = step(f"In total there are {a} + {b} = # {ths}.", a, "+", b)
        if v < c:
            return gsm_made(r)
        v = step(f"After {n1} takes {c}, there are {v} - {c} = # {ths}.", v, "-", c)
    elif k == 4:
        q = f"{n1} has {a} {ths}. {n2} has {pick(r, ['twice as many', '2 times as many'])} {ths} as {n1}. How many {ths} do they have together?"
        v = step(f"{n2} has {a} * 2 = # {ths}.", a, "*", 2)
        v = step(f"Together they have {a} + {v} = # {ths}.", a, "+", v)
    elif k == 5:
        q = f"A box holds {c} {ths}. {n1} has {b} boxes and {a} extra {ths}. How many {ths} does {n1} have?"
        v = step(f"The boxes hold {b} * {c} = # {ths}.", b, "*", c)
        v = step(f"{n1} has {v} + {a} = # {ths}.", v, "+", a)
    elif k == 6:
        t = b * c
        q = f"{n1} wants to share {t} {ths} between {c} friends. How many {ths} does each friend get?"
        v = step(f"Each friend gets {t} / {c} = # {ths}.", t, "/", c)
    elif k == 7:
        q = f"{n1} earns ${c} an hour. {n1} works {b} hours on Monday and {a} hours on Tuesday. How much does {n1} earn?"
        v = step(f"{n1} works {b} + {a} = # hours.", b, "+", a)
        v = step(f"{n1} earns {v} * {c} = $#.", v, "*", c)
    elif k == 8:
        h = 2 * a
        q = f"{n1} sold {h} {ths} in {pick(r, W.MONTHS)} and half as many in {pick(r, W.MONTHS)}. How many {ths} did {n1} sell altogether?"
        v = step(f"{n1} sold {h} / 2 = # {ths} in the second month.", h, "/", 2)
        v = step(f"Altogether {n1} sold {h} + {v} = # {ths}.", h, "+", v)
    elif k == 9:
        q = f"{n1} reads {a} pages a day. How many pages does {n1} read in {c} days?"
        v = step(f"{n1} reads {a} * {c} = # pages.", a, "*", c)
    elif k == 10:
        p = r.randint(1, 9)
        bill = b * p + r.randint(1, 20)
        q = f"{n1} has ${bill}. {n1} buys {b} {ths} at ${p} each. How many dollars does {n1} have left?"
        v = step(f"The {ths} cost {b} * {p} = $#.", b, "*", p)
        v = step(f"{n1} has {bill} - {v} = $# left.", bill, "-", v)
    else:
        q = f"{n1} is {a} years old. {n2} is {c} years older than {n1}. How old is {n2} in {b} years?"
        v = step(f"{n2} is {a} + {c} = # years old.", a, "+", c)
        v = step(f"In {b} years {n2} is {v} + {b} = # years old.", v, "+", b)
    return q, {"thoughts": st, "answer": v}


GSM_PRE = ["", "", "", "", "", "", "Answer the question with thoughts and an answer in JSON.\n\n", "Solve the problem step by step. Respond in JSON.\n\n", "Solve the math problems.\n\n"]


def gsm_doc(r, q, o, shots=()):
    st = gsm_style(r)
    pre = pick(r, GSM_PRE)
    ctx = "".join("Q: " + a + "\nA: " + dump(b, st) + "\n\n" for a, b in shots)
    return pre + ctx + "Q: " + q + "\nA: ", dump(o, st)


# ---- RPG ---------------------------------------------------------------------------------------------------

def rpg_doc(r):
    nm = (made_name(r) if r.random() < 0.3 else pick(r, RPG_FIRST + FIRST))
    if r.random() < 0.75:
        nm += " " + (pick(r, RPG_LAST) if r.random() < 0.7 else made_name(r) + pick(r, ["", "", "son", "dottir"]))
    if r.random() < 0.06:
        nm += " the " + pick(r, ADJ).capitalize()
    cl = pick(r, RPG_CLASS)
    if r.random() < 0.3:
        cl = pick(r, RPG_PRE) + " " + cl
    if r.random() < 0.1:
        cl = cl.lower()
    thing = lambda: pick(r, NOUN + ["honor", "glory", "justice", "freedom", "peace", "gold", "courage", "hope", "truth", "wisdom", "speed", "silence", "steel", "blood", "fate", "luck", "victory", "my people", "the king", "the weak", "revenge"])
    mantra = pick(r, [
        lambda: "For " + thing() + " and " + thing() + pick(r, "!."), lambda: "Strike " + pick(r, ["fast", "first", "hard", "true", "from the shadows"]) + ", " + pick(r, ["vanish faster", "think later", "never miss", "leave no trace", "ask no questions"]) + pick(r, ["", ".", "!"]),
        lambda: "No " + thing() + " without " + thing() + pick(r, [".", ""]), lambda: "The " + pick(r, NOUN + ANIMALS) + " " + pick(r, ["sees all", "never sleeps", "remembers", "is my friend", "guides me", "shall fall", "knows the way"]) + pick(r, ["", ".", "!"]),
        lambda: pick(r, ["Never", "Always"]) + " " + pick(r, ["trust", "follow", "fear", "fight for", "protect", "seek"]) + " the " + pick(r, ADJ) + " " + pick(r, NOUN) + pick(r, ["", ".", "!"]), lambda: thing().capitalize() + " before " + thing() + pick(r, ["", ".", "!"]), lambda: sentence(r),
        lambda: "I am the " + pick(r, NOUN + ANIMALS) + " in the " + pick(r, NOUN) + pick(r, ["", ".", "!"]), lambda: thing().capitalize() + ", " + thing() + ", " + thing() + pick(r, [".", "!", ""]), lambda: "For " + thing() + "!"])()
    item = lambda: pick(r, RPG_ITEM) if r.random() < 0.5 else pick(r, RPG_ADJ) + " " + pick(r, RPG_ITEM) if r.random() < 0.85 else pick(r, ADJ) + " " + pick(r, THINGS)
    o = {"id": pick(r, [r.randint(1, 9), r.randint(1, 99), r.randint(1, 9999), r.randint(0, 10 ** 6)]), "description": "A nimble fighter", "name": nm, "age": r.randint(14, 60) if r.random() < 0.75 else r.randint(60, 900), "armor": pick(r, ARMOR), "weapon": pick(r, WEAPON), "class": cl, "mantra": mantra, "strength": r.randint(1, 20) if r.random() < 0.8 else r.randint(1, 100), "items": [item() for _ in range(3)]}
    x = r.random()
    if x < 0.34:
        st = (None, ", ", ": ", 0, False)
    elif x < 0.44:
        st = (None, ",", ":", 0, False)
    else:
        st = (pick(r, ["  ", "  ", "    ", "    ", "\t"]), ",", ": ", pick(r, [0, 200, 200]), False)
    y = r.random()
    d = {"a": "an RPG character", "n": nm, "c": cl}
    if y < 0.45:
        p = pick(r, ["A RPG character in JSON", "A RPG character in JSON: ", "A RPG character in JSON:\n", "A character profile for an RPG game in JSON format\n", "A character profile for an RPG game in JSON:\n", "An RPG character in JSON format: ", "The following is a character profile for an RPG game in JSON format:\n", "A JSON file describing an RPG character: ", "A JSON file of an RPG character:", "An RPG character sheet in JSON:\n", "RPG character (JSON): ", "A nimble fighter in JSON: ", "A fighter for a role-playing game in JSON:\n"])
    elif y < 0.75:
        p = pick(r, ["A RPG character named {n} in JSON: ", "The character profile of {n} for an RPG game in JSON:\n", "An RPG character in JSON called {n}\n", "A JSON file of the RPG character {n}:", "A RPG character {n} in JSON:\n", "A RPG character in JSON, named {n}"]).format(**d)
    else:
        p = pick(r, ["A RPG {c} in JSON: ", "An RPG character in JSON of the class {c}:\n", "A RPG character in JSON, a {c}\n", "A JSON character sheet of a {c}: ", "A RPG character of class {c} in JSON:"]).format(**d)
    return p, dump(o, st)
