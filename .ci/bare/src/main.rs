//! Masks and draws of the bare library, as a number. The features `simd` and `threads` must not change it,
//! and neither must `wasm32-unknown-unknown`, which has no threads, no clock and no output.
//!
//! Where `DOMINO_EXPECTED` was set when it was built, its exit code says whether the number is that.
//! Elsewhere it prints the number.

use std::{error::Error, process::ExitCode};

use domino::decode::{BatchDecoder, BatchEvent, DecodeOptions, Decoder, Sampling};
use domino::grammar::tools::{Calling, Spelling, Tools};
use domino::model::{OneByOne, ScriptedModel};
use domino::proposer::{BestOf, CountProposer, DraftLength, Drafter, Learning, Lookup, Prior};
use domino::vocab::VocabularyBuilder;
use domino::{CompiledGrammar, Compiler, Grammar, Limits, Patience, Syntax, TokenId, Vocabulary};

/// FNV-1a, of 64-bit words.
struct Digest(u64);

impl Digest {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3);
    }

    fn add_all(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.add(u64::from(byte)));
        self.add(u64::MAX);
    }
}

/// All bytes, and some thousands of tokens of several.
fn vocabulary() -> Result<Vocabulary, Box<dyn Error>> {
    let letters = "etaoinshrdlu {}[]\":,.0127truefalsenull\n\\";
    let mut builder = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
    let mut id = 257;
    for first in letters.chars() {
        for second in letters.chars() {
            for rest in ["", "e\"", " \""] {
                builder = builder.token(TokenId::new(id), format!("{first}{second}{rest}"));
                id += 1;
            }
        }
    }
    let special = |builder: VocabularyBuilder, name| {
        id += 1;
        builder.special(TokenId::new(id), name)
    };
    Ok(["[TOOL_CALLS]", "[ARGS]"].into_iter().fold(builder, special).build()?)
}

/// A schema with more automata than one thread alone is given, and keys and items that must differ.
fn schema() -> String {
    let property =
        |n: usize| format!(r#""name{n}": {{"type": "string", "pattern": "^[a-z]{{1,{}}}x{n}$"}}"#, n % 7 + 1);
    let properties: Vec<String> = (0..150).map(property).collect();
    format!(
        r#"{{"type": "object", "additionalProperties": {{"type": "array", "uniqueItems": true}},
            "properties": {{{}}}}}"#,
        properties.join(", ")
    )
}

fn grammars() -> Result<Vec<Grammar>, Box<dyn Error>> {
    let limits = Limits::default();
    let json = include_str!("../../../grammars/json.gbnf");
    let c = include_str!("../../../grammars/c.gbnf");
    let functions: Vec<String> = (0..40)
        .map(|n| {
            format!(
                r#"{{"type": "function", "function": {{"name": "call{n}", "parameters": {{"type": "object",
                    "properties": {{"a{n}": {{"type": "integer", "minimum": {n}}}, "b": {{"type": "string"}}}},
                    "required": ["b"], "additionalProperties": false}}}}}}"#
            )
        })
        .collect();
    let tools = format!("[{}]", functions.join(", "));
    let tag = Tools::parse(&tools)?.structural_tag(&Calling::new(Spelling::MistralArgs))?;
    Ok(vec![
        Grammar::parse(Syntax::Gbnf, json, &limits)?,
        Grammar::parse(Syntax::Gbnf, c, &limits)?,
        Grammar::parse(Syntax::JsonSchema, &schema(), &limits)?,
        Grammar::parse(Syntax::Regex, r"\d{4}-\d{2}-\d{2}( [a-z]+){0,20}", &limits)?,
        Grammar::parse(Syntax::StructuralTag, &tag, &limits)?,
    ])
}

/// Masks along a text of drawn tokens.
fn masks(compiled: &CompiledGrammar, digest: &mut Digest) -> Result<(), Box<dyn Error>> {
    let mut constraint = compiled.constraint().patient(Patience::whole());
    for step in 0..60 {
        let mask = constraint.mask()?;
        mask.words().iter().for_each(|&word| digest.add(word));
        let count = mask.len();
        let Some(token) = mask.iter().nth(step * 7919 % count.max(1)) else { break };
        if compiled.vocabulary().is_end_of_text(token) {
            break;
        }
        constraint.advance(token)?;
    }
    Ok(())
}

fn drafter(compiled: &CompiledGrammar) -> Drafter {
    let counts = CountProposer::new(Prior::new(compiled), Learning::Online);
    Drafter::new(
        Box::new(BestOf::new(vec![Box::new(counts), Box::new(Lookup::default())])),
        DraftLength::Auto,
    )
}

/// Texts drawn one by one, with drafts and without, and several at once.
fn texts(compiled: &CompiledGrammar, digest: &mut Digest) -> Result<(), Box<dyn Error>> {
    let vocabulary = compiled.vocabulary().clone();
    let model = || ScriptedModel::new(vocabulary.size(), 512, 11);
    let prompt = [TokenId::new(65)];
    let mut options = DecodeOptions::default();
    options.sampling = Sampling::with_temperature(0.9)?;
    options.max_new_tokens = 60;
    options.seed = 5;
    let mut plain = None;
    for drafter in [None, Some(drafter(compiled))] {
        let mut decoder = Decoder::builder(model())
            .vocabulary(vocabulary.clone())
            .constraint(compiled.constraint())
            .options(options.clone())
            .build()?;
        decoder.set_drafter(drafter);
        let text = decoder.generate(&prompt)?.text;
        assert_eq!(*plain.get_or_insert(text.clone()), text, "drafts change a text");
        digest.add_all(&text);
    }
    let mut decoder = BatchDecoder::new(OneByOne::new(vec![model(), model()]), vocabulary.clone())?;
    for _ in 0..3 {
        decoder.add_with_drafter(&prompt, Some(compiled.constraint()), &options, drafter(compiled))?;
    }
    while !decoder.is_empty() {
        for event in decoder.step() {
            match event {
                BatchEvent::Finished { generation, .. } => digest.add_all(&generation.text),
                BatchEvent::Failed { error, .. } => return Err(error.into()),
                _ => {}
            }
        }
    }
    Ok(())
}

fn digest() -> Result<u64, Box<dyn Error>> {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    let compiler = Compiler::new(vocabulary()?);
    for grammar in grammars()? {
        let compiled = compiler.compile(&grammar)?;
        masks(&compiled, &mut digest)?;
        compiled.grow_trees();
        compiled.explore();
        masks(&compiled, &mut digest)?;
        texts(&compiled, &mut digest)?;
    }
    Ok(digest.0)
}

fn main() -> ExitCode {
    match (digest(), option_env!("DOMINO_EXPECTED")) {
        (Ok(digest), None) => println!("{digest:016x}"),
        (Ok(digest), Some(expected)) if format!("{digest:016x}") == expected => {}
        (Ok(digest), Some(expected)) => {
            eprintln!("{digest:016x} and not {expected}");
            return ExitCode::from(1);
        }
        (Err(error), _) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
