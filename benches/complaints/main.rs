//! Measurements of what users of other engines complain about: `cargo measure complaints`.
//!
//! 1. Masks and steps along 20,000 tokens of words, first and last thousand apart: flat, or growing with the
//!    text?
//! 2. Text that avoids a byte sequence against plain text.
//! 3. 128 tool schemas with 20 properties each as one alternative: cold compile and first mask.
//! 4. Repeats of overlapping parts next to each other, beside recursion: first mask and slowest step. Panics
//!    if a mask takes more than 16 units of work for each node of the trie.
//! 5. JSON Schemas with great lengths, many members, values or alternatives, recursion, and wide ranges,
//!    beside a plain one.
//!
//! On the shipped tokenizer, part 4 also on those of `DOMINO_SHARED`, and part 5 on that of 131k tokens if it
//! is there; needs nothing else. The allocator is that of the program `domino`. Times are of one run: compare
//! within it.

mod schemas;

use std::{env, fmt::Write, fs, path::Path, time::Instant};

use domino::{CompiledGrammar, Compiler, Constraint, Grammar, Limits, Patience, Syntax, TokenId, Vocabulary};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(folder).expect("the shipped tokenizer");
    words(&vocabulary);
    avoiding(&vocabulary);
    tools(&vocabulary);
    repeats();
    schemas::measure(&vocabulary);
}

fn compile(vocabulary: &Vocabulary, text: &str) -> CompiledGrammar {
    let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).expect("a grammar");
    Compiler::new(vocabulary.clone()).compile(&grammar).expect("a grammar that compiles")
}

/// Greedy longest-match tokens of a text; any tokenisation will do for measuring.
fn tokens(vocabulary: &Vocabulary, text: &str) -> Vec<TokenId> {
    let by_bytes: std::collections::HashMap<&[u8], TokenId> =
        vocabulary.text_tokens().map(|(id, bytes)| (bytes, id)).collect();
    let (mut rest, mut tokens) = (text.as_bytes(), Vec::new());
    while !rest.is_empty() {
        let longest = (1..=rest.len().min(16)).rev().find_map(|n| Some((n, *by_bytes.get(&rest[..n])?)));
        let (length, token) = longest.expect("every byte is a token");
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

/// Mean times of masks and of steps in nanoseconds for each block of tokens.
fn along(constraint: &mut Constraint, tokens: &[TokenId], block: usize) -> Vec<(f64, f64)> {
    let blocks = tokens.chunks(block).map(|block| {
        let (mut mask, mut step) = (0, 0);
        for &token in block {
            let start = Instant::now();
            std::hint::black_box(constraint.mask().expect("a mask"));
            mask += start.elapsed().as_nanos();
            let start = Instant::now();
            constraint.advance(token).expect("a token of the language");
            step += start.elapsed().as_nanos();
        }
        let mean = |sum: u128| sum as f64 / block.len() as f64;
        (mean(mask), mean(step))
    });
    blocks.collect()
}

/// Words of all lengths, as different as possible.
fn prose(count: usize) -> String {
    let mut state = 1_u64;
    let mut text = String::new();
    for word in 0..count {
        if word > 0 {
            text.push([' ', '\n', '\t'][word % 3]);
        }
        for _ in 0..1 + word % 9 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push(char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap_or(0)));
        }
    }
    text
}

fn words(vocabulary: &Vocabulary) {
    println!("1. root ::= c+ ([ \\t\\n] c+)*   c ::= [a-z], along 20,000 tokens, ns a token");
    let compiled = compile(vocabulary, r"root ::= c+ ([ \t\n] c+)*   c ::= [a-z]");
    let mut tokens = tokens(vocabulary, &prose(12_000));
    tokens.truncate(20_000);
    assert_eq!(tokens.len(), 20_000);
    let blocks = along(&mut compiled.constraint(), &tokens, 1000);
    for at in [0, 1, 9, 19] {
        println!("   tokens {:>6}..: mask {:7.1}  step {:7.1}", at * 1000, blocks[at].0, blocks[at].1);
    }
}

fn avoiding(vocabulary: &Vocabulary) {
    println!("2. text that avoids a sequence against plain text, 5,000 tokens, second time, ns a token");
    let tokens = tokens(vocabulary, &prose(2_000).replace("a ", "a < "));
    let tokens = &tokens[..5_000];
    for (name, text) in
        [("plain [^<|]* with <", r"root ::= [^\x00]*"), ("avoiding <|", r#"root ::= ([^<] | "<" [^|])*"#)]
    {
        let compiled = compile(vocabulary, text);
        let first = along(&mut compiled.constraint(), tokens, tokens.len())[0];
        let again = along(&mut compiled.constraint(), tokens, tokens.len())[0];
        println!(
            "   {name:22} mask {:6.1} (first visit {:6.1})  step {:6.1} (first visit {:6.1})",
            again.0, first.0, again.1, first.1
        );
    }
}

/// A grammar of calls, each with properties of its own.
fn tool_grammar(tools: usize, properties: usize) -> String {
    let mut text = String::from("root ::= ");
    for tool in 0..tools {
        let _ = write!(text, "{}tool{tool}", if tool > 0 { " | " } else { "" });
    }
    text.push('\n');
    for tool in 0..tools {
        let _ = write!(text, r#"tool{tool} ::= "{{" ws "\"name\"" ws ":" ws "\"tool_{tool}\"" ws "#);
        text.push_str(r#""," ws "\"arguments\"" ws ":" ws "{" ws "#);
        for property in 0..properties {
            let comma = if property > 0 { r#""," ws "# } else { "" };
            let kind = ["string", "number", "boolean"][property % 3];
            let _ = write!(text, r#"{comma}"\"p{tool}_{property}\"" ws ":" ws {kind} ws "#);
        }
        text.push_str("\"}\" ws \"}\"\n");
    }
    text.push_str(
        r#"string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
boolean ::= "true" | "false"
ws ::= [ \t\n]*
"#,
    );
    text
}

fn tools(vocabulary: &Vocabulary) {
    println!("3. 128 tools with 20 properties each as one alternative, ms");
    let text = tool_grammar(128, 20);
    let start = Instant::now();
    let compiled = compile(vocabulary, &text);
    let compile_ms = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let mut constraint = compiled.constraint();
    let allowed = constraint.mask().expect("a mask").len();
    let mask_ms = start.elapsed().as_secs_f64() * 1e3;
    println!("   cold compile {compile_ms:.1}  first mask {mask_ms:.2} ({allowed} tokens)");
    let call = r#"{"name": "tool_77", "arguments": {"p77_0": "Ada", "p77_1": 36, "p77_2": true, "p77_3": "x"#;
    let tokens = tokens(vocabulary, call);
    let first = along(&mut constraint, &tokens, tokens.len())[0];
    println!(
        "   along a call of {} tokens, ns a token: mask {:.0}  step {:.0}",
        tokens.len(),
        first.0,
        first.1
    );
}

/// Grammars in which a text can be split into repeats in very many ways, each with a text that begins one.
const REPEATS: [(&str, Syntax, &str, &str); 7] = [
    (
        "markup",
        Syntax::Gbnf,
        "root ::= \"<a>\" (root | text | ws)* \"</a>\"\ntext ::= [^<]+\nws ::= [ \\n]+\n",
        "<a>",
    ),
    ("markup by characters", Syntax::Gbnf, "root ::= \"<b>\" (root | [^<>])* \"</b>\"\n", "<b>"),
    ("markup by texts", Syntax::Gbnf, "root ::= \"<b>\" (root | text)* \"</b>\"\ntext ::= [^<>]+\n", "<b>"),
    ("a counted string", Syntax::Regex, r#""[^"\n]{0,50}""#, "\""),
    (
        "markdown, counted",
        Syntax::Gbnf,
        r##"root ::= ("#"{1,6} " " line | line) ("\n" line){0,14}
line ::= (text | "**" line "**" | "*" line "*" | "`" [^`\n]+ "`" | link | "_" line "_"){0,58}
link ::= "[" line "](" [^ ()\n]{1,177} ")"
text ::= [^*_`\[\]\n]+
"##,
        "# ",
    ),
    (
        "markdown, repeated",
        Syntax::Gbnf,
        r#"root ::= line+ ("\n" line){0,23}
line ::= (text | "**" line "**" | "*" line "*" | "`" [^`\n]+ "`" | "_" line "_"){0,46}
text ::= [^*`\n]*
"#,
        "> ",
    ),
    (
        "lists of empty parts",
        Syntax::Gbnf,
        r#"root ::= "{" ws (entry (ws entry){1,20})? ws "}"
entry ::= root | atom | "- " (atom | " " | root)+ "\n" | atom ws ":" ws entry
atom ::= [a-zA-Z0-9_]* | [0-9]{1,7} | "'" [^']{0,44} "'"
ws ::= ([ \n] ws)?
"#,
        "{",
    ),
];

/// Units of work that a mask of these grammars may take, for each node of the trie.
const UNITS: usize = 16;

fn repeats() {
    println!("4. repeats of overlapping parts, ms: first mask after the opening, slowest of 40 steps");
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/domino-small")];
    if let Some(shared) = env::var_os("DOMINO_SHARED") {
        let more = fs::read_dir(Path::new(&shared).join("data/tokenizers")).into_iter().flatten().flatten();
        folders.extend(more.map(|entry| entry.path()));
    }
    folders.sort();
    for folder in folders {
        let vocabulary = Vocabulary::from_tokenizer_file(&folder).expect("a vocabulary");
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        for (grammar, syntax, text, opening) in REPEATS {
            let grammar_of = Grammar::parse(syntax, text, &Limits::default()).expect("a grammar");
            let mut limits = Limits::default();
            (limits.step_work, limits.step_units) = (100_000, UNITS);
            let compiler = Compiler::new(vocabulary.clone()).limits(limits).patience(Patience::whole());
            let compiled = compiler.compile(&grammar_of).expect("a grammar");
            let mut constraint = compiled.constraint();
            constraint.advance_bytes(opening.as_bytes()).expect("an opening");
            let start = Instant::now();
            constraint.mask().expect("a mask");
            let first = start.elapsed();
            let mut slowest = first;
            for step in 0..40 {
                let start = Instant::now();
                let allowed = constraint.mask().expect("a mask");
                let token =
                    allowed.iter().filter(|&token| !vocabulary.is_end_of_text(token)).nth(step * 37 % 300);
                slowest = slowest.max(start.elapsed());
                let Some(token) = token else { break };
                constraint.advance(token).expect("a token of the mask");
            }
            let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
            println!("   {name:16} {grammar:22} first mask {:6.2}  slowest {:6.2}", ms(first), ms(slowest));
        }
    }
}
