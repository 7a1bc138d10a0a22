//! Runner of definitions in a program that has llguidance: `cargo experiment methods --features peers --
//! DEFINITION.toml [--quick] --out DIR`.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::SystemTime,
};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use domino::{
    TokenId, Vocabulary,
    chat::ChatTemplate,
    experiment::{
        DEFAULT_MODEL, Definition, Ended, ExperimentError, Header, Loaded, ModelPart, ModelRecord, Others,
        Plan, Records, Row, Task, Watch,
        methods::{Peer, PeerError, PeerGrammar, PeerText},
        model_hash,
        outputs::{Beside, Outputs},
        run_with, summary,
    },
    grammar::Syntax,
    model::candle::{CandleModel, LoadOptions},
    vocab::{TokenSet, Tokenizer},
};
use llguidance::{Matcher, ParserFactory, api::TopLevelGrammar, toktrie::ApproximateTokEnv};
use toktrie_hf_tokenizers::{ByteTokenizer, ByteTokenizerEnv};

/// Runs a definition, llguidance among its methods.
#[derive(Debug, Parser)]
struct Args {
    /// The definition.
    definition: PathBuf,
    /// Run what its table [quick] leaves.
    #[arg(long)]
    quick: bool,
    /// The folder of the records. One that was begun goes on.
    #[arg(long, short = 'o', value_name = "DIR")]
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let definition = Definition::read(&args.definition, args.quick, &shipped)?;
    let models = definition.models.clone();
    let [name] = &models[..] else { bail!("the definition has several models") };
    let model = if name == DEFAULT_MODEL { Path::new("models/domino-small") } else { Path::new(name) };
    let vocabulary = Vocabulary::from_tokenizer_file(model)?;
    let hash = model_hash(model)?;
    let records = vec![ModelRecord { name: name.clone(), hash }];
    let mut header = Header::new(&definition, None, records, SystemTime::now());
    header.command = std::iter::once("methods".to_owned()).chain(std::env::args().skip(1)).collect();
    header.commit = head();
    let peer = Llguidance::read(model, &vocabulary)?;
    let plan = Plan::new(definition, None);
    let mut records = Records::open(&args.out, &header)?;
    let mut load = |part| {
        if part == ModelPart::Draft {
            let message = "this program has no draft models".to_owned();
            return Err(ExperimentError::Model { name: "draft_model".to_owned(), message });
        }
        let bad = |message: String| ExperimentError::Model { name: DEFAULT_MODEL.to_owned(), message };
        Ok(Loaded {
            model: CandleModel::load(model, &LoadOptions::default())
                .map_err(|error| bad(error.to_string()))?,
            vocabulary: vocabulary.clone(),
            tokenizer: Tokenizer::from_tokenizer_file(model)?,
            priors: Some(model.join("priors")).filter(|folder| folder.is_dir()),
            template: ChatTemplate::of_model(model, false).map_err(|error| bad(error.to_string()))?,
        })
    };
    let others = Others { peer: Some(&peer), ..Others::default() };
    let ended = run_with(&plan, &mut records, &mut load, &mut Shown, others)?;
    ensure!(ended == Ended::Complete, "the experiment was stopped");
    let rows = records.tabulate()?;
    let lines = summary::summarise(&rows);
    Outputs::new(&header, &rows, &lines, &Beside::read(&args.out)?).write(&args.out)?;
    print!("{}", summary::markdown(&lines));
    Ok(())
}

/// The commit of the working tree, if git knows it, and whether files differ from it.
fn head() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}, modified") })
}

/// Shipped grammars, from their folder.
fn shipped(name: &str) -> Option<&'static str> {
    let text = std::fs::read_to_string(Path::new("grammars/paper").join(name).with_extension("gbnf")).ok()?;
    Some(Box::leak(text.into_boxed_str()))
}

/// Prints progress on standard error.
struct Shown;

impl Watch for Shown {
    fn begun(&mut self, runs: usize, there: usize) {
        eprintln!("{runs} runs, {there} of them there already");
    }

    fn made(&mut self, row: &Row) {
        eprintln!("{} {} {}", row.run.grammar, row.run.method, row.run.seed);
    }
}

/// llguidance with the tables of a vocabulary.
struct Llguidance {
    factory: ParserFactory,
}

impl Llguidance {
    /// Reads the `tokenizer.json` of a model's folder. Nothing is forced, so masks are as exact as its
    /// lexemes.
    fn read(model: &Path, vocabulary: &Vocabulary) -> anyhow::Result<Self> {
        let mut tokens = ByteTokenizer::from_file(model.join("tokenizer.json"))?;
        let end = vocabulary.end_of_text().first().context("the model has no end of text")?;
        tokens.set_eos_token(end.raw());
        let exact = ByteTokenizerEnv::new(tokens, None)?;
        let env: llguidance::toktrie::TokEnv = std::sync::Arc::new(ApproximateTokEnv::new(exact.tok_trie));
        let mut factory = ParserFactory::new_simple(&env)?;
        factory.quiet();
        Ok(Self { factory })
    }
}

impl Peer for Llguidance {
    fn compile(&self, task: &Task, _vocabulary: &Vocabulary) -> Result<Box<dyn PeerGrammar>, PeerError> {
        let text = task.grammar.clone();
        let grammar = match task.syntax {
            Syntax::Lark | Syntax::LarkGreedy => TopLevelGrammar::from_lark(text),
            Syntax::Regex => TopLevelGrammar::from_regex(&text),
            Syntax::JsonSchema => {
                TopLevelGrammar::from_json_schema(serde_json::from_str(&text).map_err(say)?)
            }
            other => return Err(PeerError(format!("llguidance does not read {other:?}"))),
        };
        let template = Matcher::new(self.factory.create_parser(grammar));
        match template.get_error() {
            Some(error) => Err(PeerError(error)),
            None => Ok(Box::new(Compiled { template })),
        }
    }
}

/// A compiled grammar.
struct Compiled {
    template: Matcher,
}

impl PeerGrammar for Compiled {
    fn text(&self) -> Result<Box<dyn PeerText>, PeerError> {
        Ok(Box::new(Text { matcher: self.template.clone() }))
    }
}

/// A text that is being written.
struct Text {
    matcher: Matcher,
}

impl PeerText for Text {
    fn mask(&mut self, size: usize) -> Result<TokenSet, PeerError> {
        let found = self.matcher.compute_mask_or_eos().map_err(say)?;
        let mut mask = TokenSet::empty(size);
        let inside = found.iter().map(TokenId::new).filter(|token| token.index() < size);
        inside.for_each(|token| mask.insert(token));
        Ok(mask)
    }

    fn advance(&mut self, token: TokenId) -> Result<(), PeerError> {
        self.matcher.consume_token(token.raw()).map_err(say)
    }
}

fn say(error: impl std::fmt::Display) -> PeerError {
    PeerError(error.to_string())
}
