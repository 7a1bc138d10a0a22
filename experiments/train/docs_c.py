"""Small C programs inside the C subset of the paper (functions of int, float and char).

The subset has narrow white-space rules: none around binary operators, none directly after the `{` of a
for/if/else/while body, none between functions; this printer follows them.
"""
from words import ADJ, NOUN, THINGS, ANIMALS, FOODS, FIRST, pick, sentence

VARS = """a b c d e x y z n m k p q s t i j num val value result total sum count index limit size max min temp tmp first second
third prev next cur diff prod avg mean score points price cost rate year month day hour width height length area base
power left right mid low high step start end answer number digit rest len items level speed dist amount balance""".split()
FUNCS = """compute calc process update run check helper get_value make_value evaluate transform work solve step
apply measure adjust estimate combine""".split()
MATH = ["sqrt", "abs", "pow", "rand", "mod", "min", "max", "floor", "square", "cube"]


class C:
    def __init__(self, r):
        self.r = r
        self.ind = pick(r, ["  ", "  ", "    ", "    ", "\t", "   "])
        self.fs = pick(r, ["for(", "for("])
        self.call_sp = pick(r, [", ", ", ", ","])
        self.nl = "\n" if r.random() < 0.93 else " "
        if self.nl == " ":
            self.ind = ""
        self.comments = pick(r, [0.0, 0.08, 0.2, 0.4])
        self.used = []

    def var(self, fresh=False):
        r = self.r
        if not fresh and self.used and r.random() < 0.85:
            return pick(r, self.used)
        for _ in range(20):
            v = pick(r, VARS)
            if r.random() < 0.12:
                v += "_" + pick(r, VARS)
            elif r.random() < 0.06:
                v += str(r.randint(0, 9))
            if v not in self.used:
                break
        return v

    def declare(self):
        v = self.var(fresh=True)
        self.used.append(v)
        return v

    def num(self):
        r = self.r
        x = r.random()
        return str(r.randint(0, 10) if x < 0.5 else r.randint(0, 100) if x < 0.8 else r.randint(0, 10000) if x < 0.95 else 2 ** r.randint(1, 16))

    def factor(self, d):
        r = self.r
        x = r.random()
        if x < 0.45 and self.used:
            return self.var()
        if x < 0.78 or d <= 0:
            return self.num()
        if x < 0.86:
            return "(" + self.expr(d - 1) + ")"
        if x < 0.93:
            f = pick(r, MATH)
            k = 0 if f == "rand" else 2 if f in ("pow", "mod", "min", "max") else 1
            return f + "(" + self.call_sp.join(self.expr(d - 1) for _ in range(k)) + ")"
        if x < 0.96:
            return "-" + (self.var() if self.used else self.num())
        return (self.var() if self.used else "data") + "[" + self.expr(0) + "]"

    def expr(self, d=1):
        r = self.r
        s = self.factor(d)
        while r.random() < (0.42 if d > 0 else 0.2):
            s += pick(r, "++-*/*") + self.factor(d - 1)
        return s

    def cond(self):
        return self.expr(0) + pick(self.r, ["<=", "<", "==", "!=", ">=", ">"]) + self.expr(0)

    def comment(self, text=None):
        r = self.r
        text = text or pick(r, [
            "compute the " + pick(r, VARS), "print the " + pick(r, VARS), sentence(r), "set up the " + pick(r, NOUN),
            "loop over all values", "now the " + pick(r, ADJ) + " case", "TODO: check this", "helper for " + pick(r, NOUN),
            "the " + pick(r, NOUN) + " is " + pick(r, ADJ), "done", "start with " + self.num(), "this is " + pick(r, ADJ),
            "update " + (self.var()), "find the " + pick(r, ["largest", "smallest", "first", "last", "next"]) + " " + pick(r, NOUN)])
        if self.nl == " " or r.random() < 0.25:
            return "/* " + text + " */"
        return "// " + text

    def text(self):
        r = self.r
        return pick(r, [sentence(r), "Hello, " + pick(r, FIRST + ["world", "World"]) + "!", "The " + pick(r, NOUN) + " is " + pick(r, ADJ),
                        "Enter a " + pick(r, VARS) + ": ", pick(r, NOUN).capitalize() + ":", "Done.", "Result", pick(r, ADJ) + " " + pick(r, THINGS + ANIMALS + FOODS)])

    def printf(self, args=None):
        r = self.r
        if args is None:
            args = [self.expr(0) for _ in range(pick(r, [0, 0, 1, 1, 1, 2, 2, 3]))]
        nl = "" if r.random() < 0.15 else "\\n"
        if not args:
            if r.random() < 0.15:
                return 'puts("' + self.text() + '");'
            return 'printf("' + self.text() + nl + '");'
        f = pick(r, ["%d", "%d", "%d", "%d", "%f", "%.2f", "%c"])
        if len(args) == 1:
            t = pick(r, ["%s", "The " + pick(r, NOUN + VARS) + " is %s", args[0] + " = %s", pick(r, NOUN + VARS).capitalize() + ": %s", "%s ", "value %s", "got %s " + pick(r, THINGS + FOODS)]).replace("%s", f)
        else:
            t = pick(r, [" ", ", ", " and ", " - ", ": ", " x "]).join([f] * len(args))
            if r.random() < 0.4:
                t = pick(r, NOUN + VARS).capitalize() + " " + t
        if '"' in t:
            t = f
        return 'printf("' + t + nl + '"' + self.call_sp + self.call_sp.join(args) + ");"

    # A statement is a line, or (head, body) or (head, body, else_body). The grammar allows no white space
    # directly after the brace of a body, nor after the closing brace of a while loop.
    def body(self, stmts, depth):
        out = ""
        tight = True
        for s in stmts:
            out += ("" if tight else self.nl + self.ind * (depth + 1)) + self.stmt(s, depth + 1)
            tight = isinstance(s, tuple) and s[0].startswith("while")
        if stmts and not tight:
            out += self.nl + self.ind * depth
        return out

    def stmt(self, s, depth):
        if isinstance(s, str):
            return s
        if s[0].startswith("if") and len(s) == 3:
            return s[0] + "{" + self.body(s[1], depth) + "}else{" + self.body(s[2], depth) + "}"
        return s[0] + "{" + self.body(s[1], depth) + "}"

    def random_stmts(self, n, depth):
        r = self.r
        out = []
        for _ in range(n):
            if r.random() < self.comments:
                out.append(self.comment())
            x = r.random()
            if x < 0.26 or not self.used:
                e = self.expr(1)
                t = pick(r, ["int", "int", "int", "float", "char"])
                if t == "char" and r.random() < 0.6:
                    v = self.declare()
                    out.append("char " + v + "[" + self.num() + "]" + (' = "' + pick(r, NOUN + FIRST) + '"' if r.random() < 0.5 else "") + ";")
                else:
                    v = self.declare()
                    out.append(t + " " + v + " = " + e + ";")
            elif x < 0.44:
                v = self.var()
                e = pick(r, [v + pick(r, "+-*/") + self.factor(0), self.expr(1)])
                out.append(v + " = " + e + ";")
            elif x < 0.66:
                out.append(self.printf())
            elif x < 0.72:
                out.append(pick(r, FUNCS) + "(" + self.call_sp.join(self.expr(0) for _ in range(r.randint(0, 3))) + ");")
            elif x < 0.77:
                out.append("int " + self.declare() + "[" + self.num() + "];")
            elif depth < 2:
                keep = len(self.used)
                if x < 0.86:
                    i = pick(r, ["i", "j", "k", "n", "x"])
                    up = r.random() < 0.8
                    lim = pick(r, [self.num(), self.var(), self.expr(0)])
                    head = "for(int " + i + " = " + (pick(r, ["0", "0", "1", "2"]) if up else lim) + "; " + i + (pick(r, ["<", "<", "<="]) + lim if up else pick(r, [">", ">="]) + "0") + "; " + i + " = " + i + pick(r, ["+1", "+1", "+1", "+2"] if up else ["-1"]) + ")"
                    self.used.append(i)
                    b = self.random_stmts(r.randint(1, 2), depth + 1)
                    out.append((head, b))
                elif x < 0.95:
                    b = self.random_stmts(r.randint(1, 2), depth + 1)
                    if r.random() < 0.4:
                        out.append(("if(" + self.cond() + ")", b, self.random_stmts(1, depth + 1)))
                    else:
                        out.append(("if(" + self.cond() + ")", b))
                else:
                    v = self.var()
                    b = self.random_stmts(1, depth + 1) + [v + " = " + v + pick(r, "+-/") + pick(r, ["1", "2"]) + ";"]
                    out.append(("while(" + v + pick(r, ["<", ">", "!=", "<=", ">="]) + self.num() + ") ", b))
                del self.used[keep:]
            else:
                out.append(self.printf())
        return out

    def function(self, name, param, stmts, ret="int"):
        r = self.r
        body = self.emit_fn(stmts)
        return ret + " " + name + "(" + param + ")" + " {" + body + "}"

    def emit_fn(self, stmts):
        out = ""
        prev_while = False
        for s in stmts:
            out += ("" if prev_while else self.nl + self.ind) + self.stmt(s, 1)
            prev_while = isinstance(s, tuple) and s[0].startswith("while")
        return out + ("" if prev_while else self.nl)


def classic(r):
    """A known little program with random names, constants, comments and layout; (topic, text)."""
    c = C(r)
    v = lambda *names: pick(r, list(names))
    N = str(pick(r, [5, 10, 12, 15, 20, 25, 30, 50, 100, r.randint(3, 200), r.randint(3, 2000)]))
    say = c.comments > 0 and r.random() < 0.7
    cm = lambda t: [c.comment(t)] if say and r.random() < 0.7 else []
    ret0 = ["return 0;"]
    main = lambda st, more="": more + c.function("main", "", st + ret0)
    i = v("i", "i", "k", "n", "idx", "x")
    loop = lambda a, cmp, b, body, u="+1": ("for(int " + i + " = " + a + "; " + i + cmp + b + "; " + i + " = " + i + u + ")", body)
    s = v("sum", "total", "s", "acc", "result", "res")
    f = v("printf", "printf", "printf")
    k = r.randint(0, 25)
    out = lambda fmt, *a: 'printf("' + fmt + pick(r, ["\\n", "\\n", "\\n", " ", ""]) + '"' + "".join(c.call_sp + x for x in a) + ");"
    if k == 0:
        a, b, t = v("a", "first", "prev", "x", "f0"), v("b", "second", "cur", "y", "f1"), v("t", "next", "tmp", "c", "z")
        return "fibonacci numbers", main(cm("the first two numbers") + ["int " + a + " = 0;", "int " + b + " = 1;", loop("0", "<", N, cm("print the current number") + [out(v("%d", "%d ", "fib = %d"), a), "int " + t + " = " + a + "+" + b + ";", a + " = " + b + ";", b + " = " + t + ";"])])
    if k == 1:
        fn, p = v("fib", "fibonacci", "f"), v("n", "x", "k", "num")
        base = ("if(" + p + v("<=1", "<2") + ")", ["return " + p + ";"])
        fun = c.function(fn, "int " + p, cm("base case") + [base, "return " + fn + "(" + p + "-1)+" + fn + "(" + p + "-2);"])
        return "fibonacci numbers", main([loop("0", v("<", "<="), N, [out(v("%d", "%d, ", "%d "), fn + "(" + i + ")")])], fun)
    if k == 2:
        fn, p = v("factorial", "fact", "fac"), v("n", "x", "k", "num")
        fun = c.function(fn, "int " + p, cm("base case") + [("if(" + p + v("<=1", "<2", "==0") + ")", ["return 1;"]), "return " + p + "*" + fn + "(" + p + "-1);"])
        q = v("5", "10", "6", "7", "12", "3", "8")
        return "the factorial of a number", main(["int " + s + " = " + fn + "(" + q + ");", out(v(q + "! = %d", "The factorial of " + q + " is %d", "%d"), s)], fun)
    if k == 3:
        return "the factorial of a number", main(["int " + s + " = 1;", loop(v("1", "2"), "<=", N, [s + " = " + s + "*" + i + ";"]), out(v("Factorial: %d", N + "! = %d"), s)])
    if k == 4:
        return "the sum of the first " + N + " numbers", main(cm("add all numbers") + ["int " + s + " = 0;", loop(v("0", "1"), "<=", N, [s + " = " + s + "+" + i + ";"]), out(v("Sum: %d", "The sum is %d", "sum = %d", "%d"), s)])
    if k == 5:
        return "squares of numbers", main([loop(v("0", "1"), v("<", "<="), N, [out(v("%d", "%d ", "square of %d", "%d squared"), i + "*" + i)])])
    if k == 6:
        return "prime numbers", main([loop("2", v("<", "<="), N, ["int " + v("prime", "p", "is_prime") + " = 1;"][:0] + ["int prime = 1;", ("for(int d = 2; d<" + i + "; d = d+1)", [("if(mod(" + i + c.call_sp + "d)==0)", ["prime = 0;"])]), ("if(prime==1)", [out(v("%d", "%d ", "%d is prime"), i)])])])
    if k == 7:
        a, b = str(r.randint(1, 200)), str(r.randint(1, 200))
        x, y = v("a", "x", "first"), v("b", "y", "second")
        op, w = pick(r, [("+", "sum"), ("-", "difference"), ("*", "product"), ("/", "quotient")])
        return "the " + w + " of two numbers", main(["int " + x + " = " + a + ";", "int " + y + " = " + b + ";"] + cm("compute the " + w) + ["int " + w + " = " + x + op + y + ";", out("The " + w + v(" of %d and %d is %d", " of %d and %d = %d"), x, y, w) if r.random() < 0.7 else out(w + ": %d", w)])
    if k == 8:
        x, y = v("a", "x", "first", "n1"), v("b", "y", "second", "n2")
        g = v(">", ">=", "<")
        w = "larger" if g != "<" else "smaller"
        return "the " + ("maximum" if g != "<" else "minimum") + " of two numbers", main(["int " + x + " = " + c.num() + ";", "int " + y + " = " + c.num() + ";", ("if(" + x + g + y + ")", [out("%d is " + w, x)], [out("%d is " + w, y)])])
    if k == 9:
        return "numbers counting down", main(["int " + i + " = " + N + ";", ("while(" + i + v(">0", ">=0", ">1") + ") ", [out(v("%d", "%d...", "%d left"), i), i + " = " + i + "-1;"]), out(v("Liftoff!", "Done!", "Go!", "Boom"))])
    if k == 10:
        a, d = v("a", "arr", "data", "values", "numbers"), v("set", "fill", "put", "store")
        return "an array of numbers", main(["int " + a + "[" + N + "];", loop("0", "<", N, [d + "(" + c.call_sp.join([a, i, v(i, i + "*" + i, i + "*2", i + "+1")]) + ");"]), loop("0", "<", N, [out(v("%d", "%d ", "element %d"), a + "[" + i + "]")])])
    if k == 11:
        t = v("fahrenheit", "f", "temp", "celsius")
        e = v("fahr", "x", "c", "deg")
        return "a temperature conversion", main(cm("convert the temperature") + ["float " + e + " = " + str(r.randint(0, 120)) + ";", "float " + t + " = " + (v("(" + e + "-32)*5/9", e + "*9/5+32")) + ";", out(v("%f degrees is %f", "%.1f -> %.1f", "%f = %f"), e, t)])
    if k == 12:
        fn, a, b = v("gcd", "greatest"), v("a", "x", "m"), v("b", "y", "n")
        x, y = str(r.randint(4, 200)), str(r.randint(4, 200))
        return "the greatest common divisor", main(["int " + a + " = " + x + ";", "int " + b + " = " + y + ";", ("while(" + b + "!=0) ", ["int t = " + b + ";", b + " = mod(" + a + c.call_sp + b + ");", a + " = t;"]), out(v("gcd = %d", "GCD: %d", "The gcd is %d"), a)])
    if k == 13:
        b, e = str(r.randint(2, 12)), str(r.randint(2, 12))
        return "powers of a number", main(["int " + s + " = 1;", loop("0", "<", e, [s + " = " + s + "*" + b + ";"] + ([out("%d", s)] if r.random() < 0.5 else [])), out(v(b + " to the power " + e + " is %d", "power = %d"), s)])
    if k == 14:
        n = str(r.randint(2, 19))
        return "a multiplication table", main([loop("1", "<=", v("10", "12", N), [out(v(n + " x %d = %d", "%d * " + n + " = %d"), i, i + "*" + n)])])
    if k == 15:
        j = v("j", "c", "col")
        ch = v("*", "#", "x", "o", "+")
        return "a triangle of " + v("stars", "characters"), main([loop("1", "<=", N, [("for(int " + j + " = 0; " + j + "<" + i + "; " + j + " = " + j + "+1)", ['printf("' + ch + '");']), 'printf("\\n");'])])
    if k == 16:
        x = v("a", "x", "n")
        return "whether a number is even or odd", main(["int " + x + " = " + c.num() + ";", ("if(" + v("mod(" + x + c.call_sp + "2)", x + "-" + x + "/2*2") + "==0)", [out("%d is even", x)], [out("%d is odd", x)])])
    if k == 17:
        return "FizzBuzz", main([loop("1", "<=", N, [("if(mod(" + i + c.call_sp + "15)==0)", [out("FizzBuzz")], [("if(mod(" + i + c.call_sp + "3)==0)", [out("Fizz")], [("if(mod(" + i + c.call_sp + "5)==0)", [out("Buzz")], [out("%d", i)])])])])])
    if k == 18:
        x = v("n", "x", "num")
        return "the digits of a number", main(["int " + x + " = " + str(r.randint(10, 99999)) + ";", ("while(" + x + ">0) ", ["int digit = mod(" + x + c.call_sp + "10);", out(v("%d", "digit %d"), "digit"), x + " = " + x + "/10;"])])
    if k == 19:
        x = v("n", "x", "steps")
        return "the Collatz sequence", main(["int n = " + str(r.randint(3, 99)) + ";", ("while(n!=1) ", [("if(mod(n" + c.call_sp + "2)==0)", ["n = n/2;"], ["n = 3*n+1;"]), out(v("%d", "%d "), "n")])])
    if k == 20:
        nm = v("name", "user", "who")
        return "a greeting", main(["char " + nm + "[" + v("32", "64", "100", "20") + '] = "' + pick(r, FIRST) + '";'] + cm("say hello") + [out(v("Hello, %s!", "Hi %s", "Welcome, %s.", "Good morning, %s!"), nm)])
    if k == 21:
        return "hello world", main(cm("greet") + [out(v("Hello, world!", "Hello, World!", "Hello World", "hello, world"))])
    if k == 22:
        fn, p = v("square", "twice", "cube", "half", "add_one", "negate"), v("x", "n", "a", "value")
        e = {"square": p + "*" + p, "twice": "2*" + p, "cube": p + "*" + p + "*" + p, "half": p + "/2", "add_one": p + "+1", "negate": "-" + p}[fn]
        t = v("int", "int", "float")
        fun = c.function(fn, t + " " + p, [v("return " + e + ";", "return " + e + ";")], t)
        return "a function called " + fn, main([out(v("%d", fn + ": %d"), fn + "(" + c.num() + ")")] if r.random() < 0.5 else [loop("0", "<", N, [out("%d", fn + "(" + i + ")")])], fun)
    if k == 23:
        p, rt, y = v("principal", "balance", "money"), v("rate", "interest"), v("years", "year", "y")
        return "compound interest", main(["float " + p + " = " + str(r.randint(1, 99) * 100) + ";", "float " + rt + " = " + str(r.randint(1, 12)) + ";", loop("1", "<=", str(r.randint(2, 30)), [p + " = " + p + "+" + p + "*" + rt + "/100;", out(v("%f", "year %d: %f") if False else "%.2f", p)])])
    if k == 24:
        a, n = v("values", "data", "a", "numbers"), str(r.randint(3, 20))
        return "the average of an array", main(["int " + a + "[" + n + "];", "float " + s + " = 0;", loop("0", "<", n, [v("scanf", "read") + '("%d"' + c.call_sp + a + "[" + i + "]);", s + " = " + s + "+" + a + "[" + i + "];"]), "float avg = " + s + "/" + n + ";", out(v("Average: %f", "The average is %.2f"), "avg")])
    w, h = v("width", "w", "a"), v("height", "h", "b")
    return "the area of a rectangle", main(["int " + w + " = " + c.num() + ";", "int " + h + " = " + c.num() + ";", "int area = " + w + "*" + h + ";", out(v("Area: %d", "The area is %d", "area = %d"), "area")])


def program(r):
    """(topic or None, text) of a program in the subset."""
    if r.random() < 0.55:
        return classic(r)
    c = C(r)
    fns = []
    names = []
    for _ in range(pick(r, [0, 0, 0, 1, 1, 2])):
        c.used = []
        name = pick(r, FUNCS) if r.random() < 0.6 else pick(r, ["add", "get", "set", "print", "is", "find", "next", "to"]) + "_" + pick(r, VARS)
        t = pick(r, ["int", "int", "int", "float", "char"])
        prm = ""
        if r.random() < 0.8:
            p = c.declare()
            prm = pick(r, ["int", "int", "float", "char"]) + " " + p
        st = c.random_stmts(r.randint(0, 3), 0)
        st.append("return " + c.expr(1) + ";")
        fns.append(c.function(name, prm, st, t))
        names.append(name)
    c.used = []
    st = c.random_stmts(r.randint(1, 7), 0)
    for nm in names:
        if r.random() < 0.7:
            call = nm + "(" + c.expr(0) + ")"
            if r.random() < 0.5:
                x = c.declare()
                st += ["int " + x + " = " + call + ";", c.printf([x])]
            else:
                st.append(c.printf([call]))
    st.append("return " + (c.expr(0) if r.random() < 0.15 else "0") + ";")
    fns.append(c.function("main", "" if r.random() < 0.95 else "int argc", st))
    return (names[0] if names and r.random() < 0.3 else None), "".join(fns)


PROMPTS = ["C program that prints {t}", "C program that prints {t}:\n", "A C program that prints {t}: ", "A C program that computes {t}:\n",
           "C program: {t}\n", "Write a C program that prints {t}.\n", "A small C program about {t}:\n", "C code that prints {t}:\n", "A simple C program for {t}: ",
           "C program that prints {t}\n", "C program to print {t}:", "A program in C that shows {t}\n", "C program that calculates {t}\n"]
PLAIN = ["A C program: ", "A C program:\n", "C program:\n", "A small C program:\n", "A simple C program\n", "C code:\n", "A C file with a main function:\n", "An example of a C program:\n", "C program with a main function:", "A short C program"]


def c_doc(r):
    topic, text = program(r)
    if topic and r.random() < 0.9:
        p = pick(r, PROMPTS).format(t=topic)
    else:
        p = pick(r, PLAIN)
    return p, text
