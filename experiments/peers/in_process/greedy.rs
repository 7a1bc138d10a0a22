//! Greedy lexing beside llguidance's: `cargo experiment greedy --features peers -- --cases 2000`.
//!
//! Random grammars of random terminals; along random texts the bytes that both engines let follow are
//! compared, and whether the text may end.

use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::Parser;
use domino::{Compiler, Constraint, Grammar, Limits, Syntax, TokenId, Vocabulary};
use llguidance::{
    Matcher, ParserFactory,
    api::TopLevelGrammar,
    toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie},
};

/// Id of the end of text; the tokens before it are the bytes.
const END: u32 = 256;

/// Compares greedy lexing with llguidance's.
#[derive(Debug, Parser)]
struct Args {
    /// Grammars.
    #[arg(long, default_value_t = 2_000)]
    cases: u64,
    /// Bytes of a text at most.
    #[arg(long, default_value_t = 12)]
    bytes: usize,
}

/// A random generator, the same in every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % most as u64) as usize
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    tokens.push(b"\xFF<end>".to_vec());
    let trie = TokTrie::from(&TokRxInfo::new(tokens.len() as u32, END), &tokens);
    let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    let mut factory = ParserFactory::new_simple(&env)?;
    factory.quiet();
    let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(END)).build()?;
    let compiler = Compiler::new(vocabulary);
    let (mut places, mut left_out, mut different, mut greedy) = (0_u64, 0_u64, 0_u64, 0_u64);
    for case in 0..args.cases {
        let random = &mut Random(case << 20);
        let text = grammar(random);
        let read = Grammar::parse(Syntax::LarkGreedy, &text, &Limits::default())
            .with_context(|| format!("case {case}:\n{text}"))?;
        let (Ok(compiled), mut theirs) = (
            compiler.compile(&read),
            Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(text.clone()))),
        ) else {
            left_out += 1;
            continue;
        };
        if theirs.get_error().is_some() {
            left_out += 1;
            continue;
        }
        let every_way = compiler.compile(&Grammar::parse(Syntax::Lark, &text, &Limits::default())?)?;
        let (mut ours, mut every_way) = (compiled.constraint(), every_way.constraint());
        let mut written = String::new();
        for _ in 0..=args.bytes {
            places += 1;
            let (here, there) = (follow(&mut ours)?, follow_there(&mut theirs)?);
            greedy += u64::from(here != follow(&mut every_way)?);
            if here != there {
                different += 1;
                if different <= 3 {
                    println!("case {case}, after {written:?}:\n{text}ours {here:?}\nllguidance {there:?}");
                }
                break;
            }
            let next = here[random.below(here.len())];
            if next == u32::from(b'!') {
                break;
            }
            ours.advance(TokenId::new(next))?;
            theirs.consume_token(next)?;
            ensure!(every_way.advance(TokenId::new(next)).is_ok(), "case {case}: greedy texts are texts");
            written.extend(char::from_u32(next));
        }
    }
    println!("{} grammars, {left_out} of them left out as one engine refuses them", args.cases);
    println!("{places} places compared, at {greedy} of which following every way allows more");
    println!("{different} different");
    ensure!(different == 0, "the engines differ");
    Ok(())
}

/// Makes a grammar of three rules over five terminals, with something to ignore in half of them. It ends in
/// `!`: behind the last lexeme llguidance ignores nothing, and we do. Ignored text is no text of a terminal:
/// llguidance would only ignore it, and we take it both ways.
fn grammar(random: &mut Random) -> String {
    const TERMINALS: [&str; 12] = [
        "\"a\"",
        "\"b\"",
        "\"ab\"",
        "\"abc\"",
        "/a+/",
        "/[ab]+/",
        "/a?b/",
        "/(ab)+/",
        "/b+c?/",
        "\"c\" | \"ca\"",
        "/[a-c]{2}/",
        "/c(a|bb)*/",
    ];
    let mut text = "start: text \"!\"\n".to_owned();
    for (rule, parts) in [("text", "x y T0 T1 T2 T3 T4"), ("x", "y T0 T1 T2 T3"), ("y", "T1 T2 T3 T4")] {
        let parts: Vec<&str> = parts.split(' ').collect();
        let mut alternatives = Vec::new();
        for _ in 0..=random.below(3) {
            let mut sequence = String::new();
            for _ in 0..=random.below(3) {
                sequence += random.of(&parts);
                sequence += random.of(&["", "", "", "?", "*", "+"]);
                sequence.push(' ');
            }
            alternatives.push(sequence);
        }
        text += &format!("{rule}: {}\n", alternatives.join("| "));
    }
    for terminal in 0..5 {
        text += &format!("T{terminal}: {}\n", random.of(&TERMINALS));
    }
    if random.below(2) == 0 {
        text += random.of(&["%ignore /_+/\n", "%ignore /_a*/\n", "%ignore /_[abc]?/\n", "%ignore \"__\"\n"]);
    }
    text
}

/// Bytes that may follow, and the end.
fn follow(constraint: &mut Constraint) -> anyhow::Result<Vec<u32>> {
    Ok(constraint.mask()?.iter().map(TokenId::raw).collect())
}

/// Bytes that may follow by llguidance, and the end.
fn follow_there(matcher: &mut Matcher) -> anyhow::Result<Vec<u32>> {
    // A text that nothing can follow has ended there.
    let mask = matcher.compute_mask_or_eos()?;
    Ok((0..=END).filter(|&id| mask.is_allowed(id)).collect())
}
