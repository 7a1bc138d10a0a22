//! Random grammars of the kinds that people write: markup, markdown, nested quotes, lists in lists, comments,
//! templates, shell words. Each has recursion, neighbouring repeats of overlapping terminals, and bounded
//! repeats.

#[path = "others.rs"]
mod others;

/// Repeatable choices (xorshift).
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice whose throws follow from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            dice.below(2);
        }
        dice
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound.max(1)
    }

    /// One of these.
    pub(crate) fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// Makes a grammar of one kind.
type Kind = (&'static str, fn(&mut Dice) -> String);

/// The kinds of grammars.
pub(crate) const KINDS: [Kind; 8] = [
    ("markup", markup),
    ("markdown", markdown),
    ("quotes", quotes),
    ("lists", lists),
    ("comments", comments),
    ("templates", templates),
    ("shell", shell),
    ("prose", prose),
];

/// First number of the kinds in `others`.
pub(crate) const OTHERS: u64 = 1_000_000;

/// The grammar of a number, in GBNF, and the name of its kind.
pub(crate) fn grammar(number: u64) -> (&'static str, String) {
    let kinds: &[Kind] = if number < OTHERS { &KINDS } else { &others::KINDS };
    let (kind, make) = kinds[usize::try_from(number % kinds.len() as u64).unwrap_or(0)];
    (kind, make(&mut Dice::new(number)))
}

/// Repetition of a part: any number, some, or counted.
fn times(dice: &mut Dice) -> String {
    match dice.below(6) {
        0 | 1 => "*".to_owned(),
        2 => "+".to_owned(),
        3 => format!("{{0,{}}}", 2 + dice.below(60)),
        4 => format!("{{1,{}}}", 2 + dice.below(20)),
        _ => format!("{{{},}}", dice.below(3)),
    }
}

/// A run of characters of a class, in one of the spellings that people use.
fn run(dice: &mut Dice, class: &str) -> String {
    match dice.below(5) {
        0 => class.to_owned(),
        1 | 2 => format!("{class}+"),
        3 => format!("{class}{{1,{}}}", 5 + dice.below(120)),
        _ => format!("{class}*"),
    }
}

fn spaces(dice: &mut Dice) -> &'static str {
    dice.pick(&[r"[ \n]+", r"[ \t\n]*", r#"" "*"#, r"[ \t]{0,20}", r#"([ \n] ws)?"#, r"[ \n]"])
}

fn markup(dice: &mut Dice) -> String {
    let tag = dice.pick(&["a", "b", "div", "p"]);
    let attributes = dice.pick(&["", " (ws1 attr)*", " (ws1 attr){0,3}"]);
    let class = dice.pick(&["[^<]", "[^<>]", "[^<&]", r"[^<>&\n]", "[a-zA-Z .,]"]);
    let entity = if dice.coin() { r#" | "&" [a-z]{2,6} ";""# } else { "" };
    let other = if dice.coin() { " | item" } else { "" };
    let empty = if dice.coin() { r#" | "<br/>""# } else { "" };
    let (run, spaces, many) = (run(dice, class), spaces(dice), times(dice));
    let close = dice.pick(&["", " ws"]);
    format!(
        r#"root ::= "<{tag}"{attributes} ">" (root | text | ws{other}{entity}{empty}){many} "</{tag}>"{close}
item ::= "<i>" (item | text | root)* "</i>"
text ::= {run}
ws ::= {spaces}
ws1 ::= [ \n]+
attr ::= [a-z]+ ws "=" ws "\"" [^"<]{{0,{}}} "\""
"#,
        10 + dice.below(90)
    )
}

fn markdown(dice: &mut Dice) -> String {
    let class = dice.pick(&["[^*_`\\[\\]\\n]", "[^*`\\n]", "[a-zA-Z0-9 ,.]", "[^*_\\n]"]);
    let (run, many) = (run(dice, class), times(dice));
    let extra =
        dice.pick(&["", r#" | "_" inline "_""#, r#" | "~~" inline "~~""#, r#" | "![" inline "](" url ")""#]);
    let block = dice.pick(&["", r#" | "> " line"#, r#" | "```\n" code "```""#, r#" | ("- " line "\n")+"#]);
    format!(
        r##"root ::= block ("\n" "\n"? block){{0,{}}} "\n"?
block ::= "#"{{1,6}} " " line | line{block}
line ::= inline{}
inline ::= (text | bold | em | "`" [^`\n]+ "`" | link{extra}){many}
bold ::= "**" inline "**"
em ::= "*" inline "*"
link ::= "[" inline "](" url ")"
url ::= [^ ()\n]{{1,{}}}
text ::= {run}
code ::= ([^`\n]* "\n"){{0,20}}
"##,
        5 + dice.below(60),
        dice.pick(&["", " inline", "+"]),
        20 + dice.below(200),
    )
}

fn quotes(dice: &mut Dice) -> String {
    let (first, second) = (run(dice, r#"[^"'\\]"#), run(dice, r#"[^"'\\]"#));
    let (many, other) = (times(dice), times(dice));
    let escape = dice.pick(&[r#""\\" ["'\\nt]"#, r#""\\" [^\n]"#, r#""\\" (["\\] | "u" [0-9a-f]{4})"#]);
    let between = dice.pick(&[r#"", " "#, r#"" "+ "#, "word ", "ws ", ""]);
    format!(
        r#"root ::= value ({between}value){{0,{}}} ws
value ::= double | single | word
double ::= "\"" (plain | escape | single){many} "\""
single ::= "'" (other | escape | double){other} "'"
plain ::= {first}
other ::= {second}
escape ::= {escape}
word ::= [a-zA-Z]+ ("-" [a-zA-Z]+)*
ws ::= {}
"#,
        1 + dice.below(50),
        spaces(dice),
    )
}

fn lists(dice: &mut Dice) -> String {
    let class = dice.pick(&["[a-z]", r#"[^\]\[(){},;:' \n-]"#, "[a-zA-Z0-9_]"]);
    let item = run(dice, class);
    let (many, open) = (times(dice), dice.pick(&["[", "(", "{"]));
    let close = match open {
        "[" => "]",
        "(" => ")",
        _ => "}",
    };
    let separator = dice.pick(&[r#"",""#, r#"("," | ";")"#, r#"ws"#, r#"ws "," ws"#]);
    format!(
        r#"root ::= list
list ::= "{open}" ws (entry ({separator} entry){many})? ws "{close}"
entry ::= list | atom | "- " line | pair
pair ::= atom ws ":" ws entry
line ::= (atom | " " | list)+ "\n"
atom ::= {item} | [0-9]{{1,{}}} | "'" [^']{{0,{}}} "'"
ws ::= {}
"#,
        2 + dice.below(20),
        5 + dice.below(95),
        spaces(dice),
    )
}

fn comments(dice: &mut Dice) -> String {
    let inner = dice.pick(&[
        r#"comment | [^*/] | "*" [^/] | "/" [^*]"#,
        r#"comment | [^*/]+ | "*"+ [^*/] | "/""#,
        r#"comment | [^*/]* | "* ""#,
    ]);
    let (many, code) = (times(dice), run(dice, "[a-zA-Z_]"));
    let line = dice.pick(&[r#""//" [^\n]* "\n""#, r##""#" [^\n]{0,100} "\n""##, r#""--" [^\n]+ "\n""#]);
    format!(
        r#"root ::= (space | token)* block?
block ::= "{{" (space | token | block){many} "}}" root?
token ::= name | number | [-+*=<>;,.()] | string
space ::= {} | comment | line
comment ::= "/*" ({inner})* "*/"
line ::= {line}
name ::= {code}
number ::= [0-9]{{1,{}}} ("." [0-9]*)?
string ::= "\"" ([^"\\\n] | "\\" [^\n]){{0,{}}} "\""
"#,
        dice.pick(&[r"[ \n]+", r"[ \t\n]", r#"" "+ | "\n""#]),
        3 + dice.below(20),
        20 + dice.below(180),
    )
}

fn templates(dice: &mut Dice) -> String {
    let class = dice.pick(&["[^{}]", "[^{]", "[^{}%]"]);
    let text = run(dice, class);
    let many = times(dice);
    let filter = dice.pick(&["", r#" (ws "|" ws name)*"#, r#" (ws "|" ws name ("(" expr ")")?){0,4}"#]);
    format!(
        r#"root ::= (text | output | cond | loop | ws){many}
output ::= "{{{{" ws expr{filter} ws "}}}}"
cond ::= "{{% if " expr " %}}" root ("{{% else %}}" root)? "{{% endif %}}"
loop ::= "{{% for " name " in " expr " %}}" (root | text)* "{{% endfor %}}"
expr ::= term (ws ("+" | "-" | "and" | "==") ws term)*
term ::= name ("." name){{0,{}}} | "'" [^']* "'" | [0-9]+ | "(" ws expr ws ")"
name ::= [a-zA-Z_] [a-zA-Z0-9_]{{0,{}}}
text ::= {text}
ws ::= {}
"#,
        1 + dice.below(5),
        8 + dice.below(56),
        spaces(dice),
    )
}

fn shell(dice: &mut Dice) -> String {
    let class = dice.pick(&[r#"[^ \n"'$|;&()\\]"#, "[a-zA-Z0-9_./-]", r#"[^ "'$|;&()\n]"#]);
    let plain = run(dice, class);
    let (many, arguments) = (times(dice), times(dice));
    format!(
        r#"root ::= pipe (ws (";" | "&&" | "||" | "\n") ws pipe){{0,{}}} ws
pipe ::= command (ws "|" ws command)*
command ::= word (" "+ word){arguments} (" "* ">" " "* word)?
word ::= (plain | double | single | variable | substitution | "\\" [^\n])+
double ::= "\"" ([^"$\\]+ | variable | substitution | "\\" [^\n]){many} "\""
single ::= "'" [^']{{0,{}}} "'"
variable ::= "$" [a-zA-Z_]+ | "${{" [a-zA-Z_]{{1,{}}} (":-" word)? "}}"
substitution ::= "$(" ws root ws ")"
plain ::= {plain}
ws ::= {}
"#,
        1 + dice.below(30),
        10 + dice.below(200),
        4 + dice.below(30),
        dice.pick(&[r"[ \t]*", r#"" "*"#, r"[ ]{0,8}"]),
    )
}

fn prose(dice: &mut Dice) -> String {
    let class = dice.pick(&["[a-z]", "[a-zA-Z'-]", r"[^ .,()\n]"]);
    let (word, many) = (run(dice, class), times(dice));
    let word = word.trim_end_matches('*').to_owned();
    format!(
        r#"root ::= paragraph ("\n\n" paragraph){{0,{}}} "\n"?
paragraph ::= sentence (ws sentence){many}
sentence ::= [A-Z]? clause (("," | ";") ws clause)* [.!?]+
clause ::= part (ws part)* | part ws clause
part ::= word | "(" ws clause ws ")" | "\"" (sentence | clause) "\"" | number
word ::= {word}
number ::= [0-9]{{1,{}}} ("," [0-9]{{3}}){{0,4}}
ws ::= {}
"#,
        1 + dice.below(40),
        2 + dice.below(10),
        dice.pick(&[r#"" ""#, r"[ \n]+", r"[ ]{1,3}"]),
    )
}
