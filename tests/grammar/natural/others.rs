//! More kinds: queries, tables of values, settings, log lines, flow collections, headers, patterns, formulas,
//! programs.

use super::{Dice, Kind, run, spaces, times};

/// The kinds of grammars from [`OTHERS`](super::OTHERS) on.
pub(super) const KINDS: [Kind; 11] = [
    ("queries", queries),
    ("values", values),
    ("settings", settings),
    ("tables", tables),
    ("logs", logs),
    ("flow", flow),
    ("headers", headers),
    ("patterns", patterns),
    ("formulas", formulas),
    ("programs", programs),
    ("dialogue", dialogue),
];

/// Expressions in the manner of SQL, with comments wherever spaces may be.
fn queries(dice: &mut Dice) -> String {
    let (name, many, more) = (run(dice, "[a-zA-Z_]"), times(dice), times(dice));
    let text =
        dice.pick(&[r#"([^'] | "''")*"#, r#"([^'\\] | "\\" [^\n] | "''"){0,80}"#, r#"([^'\n]+ | "''")*"#]);
    let star = dice.pick(&[r#""*" [^/]"#, r#""*"+ [^*/]"#, r#""* ""#]);
    format!(
        r#"root ::= query (ws ";" ws query){{0,{}}} ws ";"?
query ::= "SELECT" ws1 columns (ws1 "FROM" ws1 source)? (ws1 "WHERE" ws1 expr)? | "(" ws query ws ")"
columns ::= "*" | column (ws "," ws column){many}
column ::= expr (ws1 ("AS" ws1)? name)?
source ::= name (ws1 name)? | "(" ws query ws ")" | source (ws "," ws | ws1 "JOIN" ws1) source
expr ::= term (ws ("+" | "-" | "*" | "/" | "=" | "<>" | "||" | "AND" | "OR") ws term){more}
term ::= name ("." name){{0,3}} | call | number | text | "(" ws expr ws ")" | "-" term
call ::= name ws "(" ws (expr (ws "," ws expr)*)? ws ")"
name ::= {name} | "\"" [^"\n]{{1,{}}} "\"" | "`" [^`]+ "`"
number ::= [0-9]{{1,{}}} ("." [0-9]*)?
text ::= "'" {text} "'"
comment ::= "--" [^\n]* "\n" | "/*" (comment | [^*/]+ | {star} | "/" [^*])* "*/"
ws ::= ({} | comment)*
ws1 ::= ([ \n] | comment)+
"#,
        1 + dice.below(20),
        10 + dice.below(80),
        3 + dice.below(20),
        spaces(dice),
    )
}

/// Rows of values, quoted or not, with nested tables.
fn values(dice: &mut Dice) -> String {
    let separator = dice.pick(&[",", ";", "|"]);
    let plain = run(dice, &format!(r#"[^"{separator}\r\n()]"#));
    let (columns, rows) = (2 + dice.below(30), 5 + dice.below(100));
    format!(
        r#"root ::= (comment | row){{1,{rows}}}
row ::= cell ("{separator}" cell){{{},{columns}}} "\r"? "\n"
cell ::= ws (quoted | plain | nested)? ws
quoted ::= "\"" ([^"] | "\"\"" | [^"\n]{{1,{}}}){} "\""
nested ::= "(" (cell "{separator}")* cell ")"
plain ::= {plain}
comment ::= "{}" [^\n]* "\n"
ws ::= {}
"#,
        dice.below(3),
        10 + dice.below(90),
        times(dice),
        dice.pick(&["#", "//", "%"]),
        dice.pick(&[r"[ \t]*", r#"" "?"#, r"[ ]{0,8}"]),
    )
}

/// Sections of keys and values, with lists and tables inside.
fn settings(dice: &mut Dice) -> String {
    let key = run(dice, "[A-Za-z0-9_-]");
    let bare = dice.pick(&[r#"[^\n#;"']"#, r"[^\n,#\]}]", "[a-z /.]"]);
    let bare = run(dice, bare);
    format!(
        r#"root ::= (line "\n"){{0,{}}} section{}
section ::= "[" "["? name ("." name){{0,{}}} "]" "]"? note? "\n" (line "\n"){}
line ::= ws (pair | note)? ws
pair ::= name ws ("=" | ":") ws value (ws note)?
value ::= text | list | table | number | "true" | "false" | bare
list ::= "[" gap (value (gap "," gap value){{0,{}}} (gap ",")?)? gap "]"
table ::= "{{" ws (pair (ws "," ws pair)*)? ws "}}"
long ::= "\"\"\"" ([^"\\] | "\"" [^"] | "\\" [^\n])* "\"\"\""
text ::= long | "\"" ([^"\\\n]{} | "\\" [^\n])* "\"" | "'" [^'\n]{{0,{}}} "'"
number ::= [+-]? [0-9] ("_"? [0-9]){{0,{}}} ("." [0-9]+)?
name ::= {key} | text
bare ::= {bare}
note ::= [#;] [^\n]*
gap ::= ([ \t\n] | note "\n")*
ws ::= [ \t]*
"#,
        dice.below(40),
        times(dice),
        1 + dice.below(6),
        times(dice),
        1 + dice.below(40),
        dice.pick(&["", "+", "{1,40}"]),
        20 + dice.below(100),
        5 + dice.below(15),
    )
}

/// Tables in the manner of markdown, whose cells have marked text.
fn tables(dice: &mut Dice) -> String {
    let (text, cells) = (run(dice, r"[^|*_`\n]"), 1 + dice.below(20));
    format!(
        r#"root ::= (paragraph | table | "\n"){}
table ::= row rule row{{0,{}}}
row ::= "|" (cell "|"){{{},{cells}}} "\n"
rule ::= ("|" " "? ":"? "-"{{{},}} ":"? " "?){{1,{cells}}} "|"? "\n"
cell ::= (span | " " | "<br>" | "\\|"){}
paragraph ::= span (" " span | span)* "\n"
span ::= text | "**" span{{1,{}}} "**" | "*" span+ "*" | "_" span* "_" | code | "[" cell "](" [^ )\n]* ")"
code ::= "`" [^`\n]{{1,60}} "`"
text ::= {text}
"#,
        times(dice),
        1 + dice.below(60),
        dice.below(2),
        1 + dice.below(3),
        times(dice),
        2 + dice.below(30),
    )
}

/// Lines with a time, a level, fields and a message that may look like them.
fn logs(dice: &mut Dice) -> String {
    let (word, many) = (run(dice, r#"[^ \n\[\]="]"#), times(dice));
    format!(
        r#"root ::= line{{1,{}}}
line ::= time " "{{1,2}} level? (" " tag){{0,{}}} " " message "\n" (trace "\n"){{0,{}}}
date ::= [0-9]{{4}} "-" [0-9]{{2}} "-" [0-9]{{2}}
time ::= date [T ] [0-9]{{2}} (":" [0-9]{{2}}){{1,2}} ([.,] [0-9]{{1,9}})? "Z"?
level ::= "[" level "]" | "INFO" | "WARN" | "ERROR" | "DEBUG"
tag ::= "[" (word | " " | tag)+ "]" | word "=" value
value ::= word | "\"" ([^"\\\n] | "\\" [^\n]){{0,{}}} "\"" | "{{" (field ("," " "? field)*)? "}}"
field ::= word (":" | "=") value
message ::= (word | " " | tag | value){many}
trace ::= ("\t" | " "{{2,8}}) ("at " | "... ") (word | " " | "(" message ")"){}
word ::= {word}
"#,
        1 + dice.below(60),
        1 + dice.below(10),
        dice.below(30),
        10 + dice.below(120),
        times(dice),
    )
}

/// Flow collections in the manner of YAML: plain texts, quoted ones, tags, anchors, comments.
fn flow(dice: &mut Dice) -> String {
    let plain = dice.pick(&[r#"[^\]\[{},:#&*!|>'"%@` \n]"#, r#"[^\]\[{},:#\n'" ]"#, "[a-zA-Z0-9_./-]"]);
    let plain = run(dice, plain);
    format!(
        r##"root ::= gap node gap
node ::= (("&" name | "!" name?) " "{{1,{}}})? (sequence | mapping | scalar) | "*" name
sequence ::= "[" gap (entry (gap "," gap entry){})? (gap ",")? gap "]"
mapping ::= "{{" gap (pair (gap "," gap pair){})? (gap ",")? gap "}}"
entry ::= node | pair
pair ::= ("?" " "+)? node (gap ":" " " gap node?)?
scalar ::= word (" "+ word){{0,{}}} | "\"" ([^"\\] | "\\" [^\n]){{0,{}}} "\"" | "'" ([^'] | "''")* "'"
word ::= {plain}
name ::= [a-zA-Z0-9]+
gap ::= ({} | "#" [^\n]* "\n")*
"##,
        1 + dice.below(4),
        times(dice),
        times(dice),
        2 + dice.below(30),
        20 + dice.below(100),
        dice.pick(&[r"[ \n]", r"[ \t\n]+", r"[ \n]{1,8}"]),
    )
}

/// Headers of messages: folded lines, lists of addresses, comments in parentheses.
fn headers(dice: &mut Dice) -> String {
    let (atom, many) = (run(dice, "[a-zA-Z0-9!#$%&'*+/=?^_-]"), times(dice));
    format!(
        r#"root ::= header{{1,{}}} "\n" body
header ::= address | plain
address ::= ("From" | "To" | "Cc") ":" cfws entry (cfws "," cfws entry){{0,{}}} cfws "\n"
plain ::= [A-Z] [a-zA-Z-]{{0,{}}} ":" (word | " " | "\n" [ \t]){many} "\n"
entry ::= mailbox | phrase ":" cfws (mailbox (cfws "," cfws mailbox)*)? ";"
mailbox ::= (phrase cfws)? "<" spec ">" | spec
phrase ::= (atom | quoted) (cfws (atom | quoted | ".")){{0,{}}}
spec ::= (atom ("." atom)* | quoted) "@" (atom ("." atom){{0,8}} | "[" [^\]\n]* "]")
quoted ::= "\"" ([^"\\\n] | "\\" [^\n] | "\n "){} "\""
cfws ::= (comment | [ \t] | "\n" [ \t]+)*
comment ::= "(" (comment | [^()\\\n]+ | "\\" [^\n] | " "){} ")"
atom ::= {atom}
word ::= [^ \n]{{1,{}}}
body ::= ([^\n]{{0,{}}} "\n"){{0,200}}
"#,
        1 + dice.below(30),
        1 + dice.below(50),
        4 + dice.below(60),
        1 + dice.below(20),
        times(dice),
        times(dice),
        20 + dice.below(60),
        70 + dice.below(30),
    )
}

/// Regular expressions as texts.
fn patterns(dice: &mut Dice) -> String {
    let (literal, many, more) = (run(dice, r"[^\]\[(){}|?*+.\\^$\n]"), times(dice), times(dice));
    format!(
        r#"root ::= "/" either "/" [gimsuy]{{0,{}}}
either ::= branch ("|" branch){many}
branch ::= piece{more}
piece ::= atom count? | "^" | "$" | "\\b"
count ::= ("*" | "+" | "?" | "{{" [0-9]{{1,{}}} ("," [0-9]{{0,5}})? "}}") "?"?
atom ::= literal | "." | escape | class | group
group ::= "(" ("?:" | "?=" | "?!" | "?<" [a-z]+ ">")? either ")"
class ::= "[" "^"? (item | item "-" item | class){{1,{}}} "]"
item ::= [^\]\\\n\[] | escape
escape ::= "\\" ([dwsDWSbBnrt] | number | "p{{" [a-zA-Z]{{1,20}} "}}" | [^a-z0-9\n])
number ::= "x" [0-9a-f]{{2}} | "u" [0-9a-f]{{4}}
literal ::= {literal}
"#,
        1 + dice.below(6),
        1 + dice.below(4),
        1 + dice.below(40),
    )
}

/// Formulas in the manner of LaTeX.
fn formulas(dice: &mut Dice) -> String {
    let (text, many) = (run(dice, r"[^\\{}$&%#_^~]"), times(dice));
    let space = dice.pick(&[r#" | " ""#, r#" | "~""#, r#" | ws"#]);
    format!(
        r#"root ::= (text | command | environment | math | group | comment{space}){many}
command ::= "\\" ([a-zA-Z]{{1,{}}} "*"? | [^a-zA-Z]) option{{0,{}}} group{{0,{}}} ws
option ::= "[" (text | command | "=" | ","){} "]"
group ::= "{{" root "}}"
environment ::= "\\begin{{" name "}}" option? root ("&" root | "\\\\" root){{0,{}}} "\\end{{" name "}}"
math ::= "$" formula "$" | "$$" formula{{1,3}} "$$" | "\\(" formula "\\)"
formula ::= (letter | number | command | "{{" formula "}}" | ("_" | "^") script | [-+*/=<>()] | " ")*
script ::= letter | number | command | "{{" formula "}}"
letter ::= [a-zA-Z]
number ::= [0-9]+ ("." [0-9]*)?
name ::= [a-z]{{1,{}}} "*"?
comment ::= "%" [^\n]* "\n"
text ::= {text}
ws ::= {}
"#,
        4 + dice.below(20),
        1 + dice.below(3),
        1 + dice.below(4),
        times(dice),
        dice.below(40),
        3 + dice.below(12),
        spaces(dice),
    )
}

/// Statements with blocks, calls, texts with expressions inside, comments.
fn programs(dice: &mut Dice) -> String {
    let (name, many, statements) = (run(dice, "[a-zA-Z_]"), times(dice), times(dice));
    format!(
        r#"root ::= (statement | ws | comment){statements}
statement ::= (expr | "let" s name ws "=" ws expr | "return" (s expr)?) ws ";" | block | choice | function
choice ::= "if" ws "(" ws expr ws ")" ws (block | statement) (ws "else" ws (block | statement))?
function ::= "function" s name ws parameters ws block
parameters ::= "(" ws (name (ws "," ws name){{0,{}}})? ws ")"
block ::= "{{" (ws | statement | comment){many} "}}"
expr ::= unary (ws operator ws unary){{0,{}}}
unary ::= [-!]{{0,2}} postfix
postfix ::= primary (ws "." ws name | ws "[" ws expr ws "]" | ws "(" ws arguments? ws ")"){{0,{}}}
primary ::= name | number | string | template | "(" ws expr ws ")" | "[" ws arguments? ws "]" | closure
closure ::= parameters ws "=>" ws (expr | block)
arguments ::= expr (ws "," ws expr){} (ws ",")?
operator ::= "+" | "-" | "*" | "/" | "%" | "==" | "!=" | "<" | ">" | "<=" | ">=" | "&&" | "||" | "="
string ::= "\"" ([^"\\\n] | "\\" [^\n]){{0,{}}} "\"" | "'" [^'\n]* "'"
template ::= "`" ([^`$\\]+ | "$" [^{{`] | "${{" ws expr ws "}}" | "\\" [^\n])* "`"
comment ::= "//" [^\n]* "\n" | "/*" ([^*] | "*"+ [^*/])* "*"+ "/"
name ::= {name} [0-9]*
number ::= [0-9]{{1,{}}} ("." [0-9]+)? ([eE] [-+]? [0-9]{{1,3}})?
s ::= [ \n]+
ws ::= {}
"#,
        1 + dice.below(12),
        1 + dice.below(30),
        1 + dice.below(12),
        times(dice),
        20 + dice.below(180),
        4 + dice.below(20),
        spaces(dice),
    )
}

/// Talk with quotations inside each other, asides, and turns of counted sentences.
fn dialogue(dice: &mut Dice) -> String {
    let (word, many) = (run(dice, r#"[^ .,!?"'()\n-]"#), times(dice));
    format!(
        r#"root ::= turn{{1,{}}}
turn ::= speaker ": " sentence (gap sentence){{{},{}}} "\n"{{1,3}}
speaker ::= [A-Z] word (" " word){{0,3}}
sentence ::= phrase (("," | ";" | " -- " | "...") gap? phrase){many} [.!?]{{1,3}}
phrase ::= (word | aside | quote | gap | "-"){}
aside ::= "(" phrase ")" | "*" phrase "*" | "--" phrase "--"
quote ::= "\"" (sentence | phrase){{1,{}}} "\"" | "'" (sentence | phrase)+ "'"
gap ::= " " | "\n" | gap gap
word ::= {word}
"#,
        1 + dice.below(80),
        dice.below(3),
        3 + dice.below(20),
        times(dice),
        1 + dice.below(10),
    )
}
