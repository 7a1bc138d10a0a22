//! Replays of tool calls: the share of them that a schema forces, and the drafts that come true.
//!
//!     DOMINO_SHARED=.. cargo experiment calls -- [--vocabulary NAME] [--split NAME]...
//!
//! The calls are the valid instances of MaskBench's splits of tool calls. No model writes them: a scripted
//! one wants the tokens of the text, so what is counted is a **replay** of drafts, not a speed.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use anyhow::{Context, ensure};
use clap::Parser;
use domino::{
    CompiledGrammar, Compiler, Limits, TokenId, Vocabulary,
    decode::{DecodeStats, Decoder, Finish},
    grammar::json_schema::{Escapes, Format, Numbers, SchemaOptions, WhiteSpace},
    model::ScriptedModel,
    proposer::{CountProposer, DraftLength, DraftRecipe, Drafter, ForcedText, Learning, Prior},
    vocab::Tokenizer,
};
use serde::Deserialize;

/// Most tokens of a draft, and the share of guesses that must come true for one to be made.
const DRAFT: (usize, f64) = (10, 0.5);

/// Replays tool calls.
#[derive(Debug, Parser)]
struct Args {
    /// A folder of `data/tokenizers` in `DOMINO_SHARED`.
    #[arg(long, default_value = "mistral-v1-32k")]
    vocabulary: String,
    /// Splits of MaskBench.
    #[arg(long = "split", default_values = ["Glaiveai2K", "BFCL"])]
    splits: Vec<String>,
}

/// A line of MaskBench.
#[derive(Debug, Deserialize)]
struct Case {
    split: String,
    schema: serde_json::Value,
    tests: Vec<Instance>,
}

#[derive(Debug, Deserialize)]
struct Instance {
    valid: bool,
    data: serde_json::Value,
}

/// Spelling of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spelling {
    /// White space and escapes as a model likes; the texts have a space behind each comma and colon.
    Free,
    /// No white space, and no escape that is not needed.
    Strict,
}

/// Sums over some calls.
#[derive(Debug, Default)]
struct Sums {
    calls: usize,
    left_out: usize,
    tokens: usize,
    bytes: usize,
    forced_bytes: usize,
    /// Passes, tokens drafted and tokens accepted, by way of drafting.
    drafts: [[usize; 3]; 2],
}

/// A vocabulary, with its tokenizer and a compiler.
struct Bench {
    compiler: Compiler,
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let shared =
        PathBuf::from(env::var_os("DOMINO_SHARED").context("DOMINO_SHARED is not set")?).join("data");
    let folder = shared.join("tokenizers").join(&args.vocabulary);
    let vocabulary = Vocabulary::from_tokenizer_file(&folder)?;
    let tokenizer = Tokenizer::from_tokenizer_file(&folder)?;
    let bench = Bench { compiler: Compiler::new(vocabulary.clone()), vocabulary, tokenizer };
    let path = shared.join("jsonschema/maskbench_sample.jsonl");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut sums: BTreeMap<(String, Spelling), Sums> = BTreeMap::new();
    for line in text.lines() {
        let case: Case = serde_json::from_str(line)?;
        if !args.splits.contains(&case.split) {
            continue;
        }
        for spelling in [Spelling::Free, Spelling::Strict] {
            bench.replay(&case, spelling, sums.entry((case.split.clone(), spelling)).or_default())?;
        }
    }
    ensure!(!sums.is_empty(), "no split is called {}", args.splits.join(" or "));
    println!(
        "| calls | spelling | n | left out | forced | forced text: tokens/pass | acceptance | \
         counts and lookup too: tokens/pass | acceptance |"
    );
    println!("|{}", "---|".repeat(9));
    for ((split, spelling), sums) in &sums {
        println!("{}", sums.line(split, *spelling));
    }
    Ok(())
}

impl Bench {
    /// Replays the valid instances of a schema.
    fn replay(&self, case: &Case, spelling: Spelling, sums: &mut Sums) -> anyhow::Result<()> {
        let options = SchemaOptions::default().with_numbers(Numbers::Any).with_escapes(Escapes::All);
        let mut options = options.with_format(Format::Assert);
        if spelling == Spelling::Strict {
            options = options.with_white_space(WhiteSpace::Compact).with_escapes(Escapes::Minimal);
        }
        let calls = case.tests.iter().filter(|instance| instance.valid);
        let Ok(schema) = options.parse(&case.schema.to_string(), &Limits::default()) else {
            sums.left_out += calls.count();
            return Ok(());
        };
        let grammar = self.compiler.compile(&schema.grammar)?;
        for call in calls {
            let text = match spelling {
                Spelling::Free => spaced(&call.data),
                Spelling::Strict => call.data.to_string(),
            };
            // Members in another order than the schema's, above all.
            let mut constraint = grammar.constraint();
            let whole = constraint.advance_bytes(text.as_bytes())? == text.len() && constraint.is_complete();
            if !whole {
                sums.left_out += 1;
                continue;
            }
            self.replay_text(&grammar, &text, sums).with_context(|| text.clone())?;
        }
        Ok(())
    }

    fn replay_text(&self, grammar: &CompiledGrammar, text: &str, sums: &mut Sums) -> anyhow::Result<()> {
        let tokens = self.tokens(text)?;
        sums.calls += 1;
        sums.tokens += tokens.len();
        sums.bytes += text.len();
        let forced = ForcedText::count(&grammar.constraint(), text.as_bytes());
        sums.forced_bytes += forced.context("the text leaves the language")?;
        let length = DraftLength::up_to(DRAFT.0, DRAFT.1)?;
        let forced = ForcedText::new(self.tokenizer.clone(), self.vocabulary.clone());
        let counts = CountProposer::new(Prior::new(grammar), Learning::PerText);
        let recipe = DraftRecipe::standard(&self.tokenizer, &self.vocabulary, false);
        let all = recipe.drafter(Box::new(counts), None, length);
        for (way, drafter) in [Drafter::new(Box::new(forced), length), all].into_iter().enumerate() {
            let stats = self.drafted(grammar, &tokens, drafter)?;
            let sums = &mut sums.drafts[way];
            for (sum, more) in sums.iter_mut().zip([stats.passes, stats.drafted, stats.accepted]) {
                *sum += more;
            }
        }
        Ok(())
    }

    /// Tokens of a text within a text; some tokenizers begin a text with a space.
    fn tokens(&self, text: &str) -> anyhow::Result<Vec<TokenId>> {
        let begins = |tokens: &[TokenId]| self.vocabulary.concat(tokens) == text.as_bytes();
        let tokens = self.tokenizer.encode(text, false)?;
        if begins(&tokens) {
            return Ok(tokens);
        }
        // No space comes after a line feed.
        let line = self.tokenizer.encode(&format!("\n{text}"), false)?;
        let start = (0..line.len()).find(|&start| begins(&line[start..])).context("no tokens of the text")?;
        Ok(line[start..].to_vec())
    }

    /// Generates the text by a scripted model that wants its tokens, with drafts.
    fn drafted(
        &self,
        grammar: &CompiledGrammar,
        tokens: &[TokenId],
        drafter: Drafter,
    ) -> anyhow::Result<DecodeStats> {
        let prompt = [*tokens.first().context("a token")?];
        let end = *self.vocabulary.end_of_text().first().context("no token ends a text")?;
        let script = tokens.iter().copied().chain([end]);
        let model = ScriptedModel::new(self.vocabulary.size(), tokens.len() + 64, 1).script(1, script);
        let mut decoder = Decoder::builder(model)
            .vocabulary(self.vocabulary.clone())
            .constraint(grammar.constraint())
            .drafter(drafter)
            .max_new_tokens(tokens.len() + 1)
            .build()?;
        let written = decoder.generate(&prompt)?;
        ensure!(written.tokens == tokens && written.finish == Finish::Stop, "another text was written");
        Ok(written.stats)
    }
}

impl Sums {
    fn line(&self, split: &str, spelling: Spelling) -> String {
        let share = |part: usize, whole: usize| format!("{:.3}", part as f64 / whole.max(1) as f64);
        let spelling = match spelling {
            Spelling::Free => "free",
            Spelling::Strict => "strict",
        };
        let mut cells = vec![
            split.to_owned(),
            spelling.to_owned(),
            self.calls.to_string(),
            self.left_out.to_string(),
            share(self.forced_bytes, self.bytes),
        ];
        for [passes, drafted, accepted] in self.drafts {
            // The end of a text is drawn, too.
            let written = self.tokens + self.calls;
            cells.push(format!("{:.2}", written as f64 / passes.max(1) as f64));
            cells.push(share(accepted, drafted));
        }
        format!("| {} |", cells.join(" | "))
    }
}

/// JSON on one line with a space behind each comma and colon, as Python's `json.dumps` writes it.
fn spaced(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => {
            format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Object(members) => {
            let key = |key: &str| serde_json::Value::from(key).to_string();
            let member = |(name, value): (&String, &_)| format!("{}: {}", key(name), spaced(value));
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
