//! Times of the engine's parts, on the paper's five grammars and the shipped tokenizer.
//!
//! `cargo measure engine -- FILTER`. Nothing outside the repository is needed; with `DOMINO_SHARED` set,
//! vocabularies are read for a tokenizer of 131,000 tokens too. The texts are the accepted examples of each
//! grammar in the tokenizer's own tokens; times of `mask`, `allows` and `commit` are for all steps of all
//! texts, and their throughput is in steps.

use std::{fs, hint::black_box, path::Path, time::Duration};

use criterion::{BatchSize, Criterion, Throughput};
use domino::{
    CompiledGrammar, Compiler, Constraint, Grammar, Limits, Syntax, TokenId, Vocabulary, store::CacheFolder,
    vocab::Tokenizer,
};

const GRAMMARS: [&str; 5] = ["json", "gsm8k", "xml_person", "rpg", "c"];

/// A grammar and texts of it in tokens.
struct Case {
    name: &'static str,
    grammar: String,
    texts: Vec<Vec<TokenId>>,
}

impl Case {
    fn read(name: &'static str, tokenizer: &Tokenizer, vocabulary: &Vocabulary) -> Self {
        let read = |ending: &str| read(&format!("grammars/paper/{name}.{ending}"));
        let examples: serde_json::Value = serde_json::from_str(&read("examples.json")).expect("examples");
        let accepted = examples["accepted"].as_array().expect("accepted examples").iter();
        let texts: Vec<Vec<TokenId>> = accepted
            .filter_map(|text| tokens(text.as_str().expect("a text"), tokenizer, vocabulary))
            .collect();
        assert!(texts.len() > 10, "{name}: too few texts");
        Self { name, grammar: read("gbnf"), texts }
    }

    fn compile(&self, compiler: &Compiler) -> CompiledGrammar {
        let grammar = Grammar::parse(Syntax::Gbnf, &self.grammar, &Limits::default()).expect("a grammar");
        compiler.compile(&grammar).expect("a compiled grammar")
    }

    /// Constraints before each token of each text and at its end, all without a mask.
    fn places(&self, compiled: &CompiledGrammar) -> Vec<(Constraint, Option<TokenId>)> {
        let mut places = Vec::new();
        for text in &self.texts {
            let mut constraint = compiled.constraint();
            for &token in text {
                places.push((constraint.clone(), Some(token)));
                constraint.advance(token).expect("a token of the text");
            }
            places.push((constraint, None));
        }
        places
    }

    /// The number of tokens of all texts.
    fn steps(&self) -> usize {
        self.texts.iter().map(Vec::len).sum()
    }
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Tokens of a text within a text, without the space that the tokenizer puts in front.
fn tokens(text: &str, tokenizer: &Tokenizer, vocabulary: &Vocabulary) -> Option<Vec<TokenId>> {
    let all = tokenizer.encode(&format!("\n{text}"), false).expect("tokens");
    let front = (0..all.len()).find(|&end| vocabulary.concat(&all[..end]).ends_with(b"\n"))?;
    let tokens = all[front..].to_vec();
    (vocabulary.concat(&tokens) == text.as_bytes()).then_some(tokens)
}

fn elements(steps: usize) -> Throughput {
    Throughput::Elements(u64::try_from(steps).unwrap_or(u64::MAX))
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let json = read("models/domino-small/tokenizer.json");
    let tokenizer = Tokenizer::from_tokenizer_json(&json).expect("a tokenizer");
    let vocabulary = Vocabulary::from_tokenizer_json(&json).expect("a vocabulary");
    let compiler = Compiler::new(vocabulary.clone());
    vocabularies(
        &mut criterion,
        "vocabulary",
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/domino-small"),
    );
    if let Some(shared) = std::env::var_os("DOMINO_SHARED") {
        let folder = Path::new(&shared).join("data/tokenizers/tekken-131k");
        vocabularies(&mut criterion, "vocabulary, tekken-131k", &folder);
    }
    for name in GRAMMARS {
        let case = Case::read(name, &tokenizer, &vocabulary);
        cold(&mut criterion, &case, &compiler);
        warm(&mut criterion, &case, &compiler);
    }
    criterion.final_summary();
}

/// Measures reading a tokenizer, and finding it in the cache folder.
fn vocabularies(criterion: &mut Criterion, name: &str, path: &Path) {
    let mut group = criterion.benchmark_group(name);
    group.bench_function("built", |bencher| {
        bencher.iter(|| Vocabulary::from_tokenizer_file(black_box(path)).expect("a vocabulary"));
    });
    let folder = tempfile::tempdir().expect("a folder");
    let cache = CacheFolder::new(folder.path());
    let cached = || Vocabulary::from_tokenizer_file_cached(black_box(path), &cache).expect("a vocabulary");
    cached();
    group.bench_function("from the cache folder", |bencher| bencher.iter(cached));
    assert!(!cache.files().expect("files").is_empty(), "nothing was kept");
}

/// Measures fresh grammars, of which only the results of compiling are known.
fn cold(criterion: &mut Criterion, case: &Case, compiler: &Compiler) {
    let mut group = criterion.benchmark_group(case.name);
    group.bench_function("compile", |bencher| bencher.iter(|| case.compile(compiler)));
    group.bench_function("compile to first mask", |bencher| {
        bencher.iter(|| {
            let mut constraint = case.compile(compiler).constraint();
            constraint.mask().expect("a mask").contains(TokenId::new(0))
        });
    });
    // The steps themselves are taken outside the clock; every mask is new to the grammar or was met before
    // in these very texts.
    let places = || case.places(&case.compile(compiler));
    group.throughput(elements(case.steps() + case.texts.len()));
    group.sample_size(10);
    group.bench_function("mask, first visit", |bencher| {
        bencher.iter_batched_ref(places, |places| masks(places), BatchSize::PerIteration);
    });
}

/// Measures warm grammars, which have met these texts before.
fn warm(criterion: &mut Criterion, case: &Case, compiler: &Compiler) {
    let mut group = criterion.benchmark_group(case.name);
    let compiled = case.compile(compiler);
    masks(&mut case.places(&compiled));
    let places = || case.places(&compiled);
    group.throughput(elements(case.steps() + case.texts.len()));
    group.bench_function("mask, warm", |bencher| {
        bencher.iter_batched_ref(places, |places| masks(places), BatchSize::LargeInput);
    });
    group.throughput(elements(case.steps()));
    group.bench_function("allows", |bencher| {
        bencher.iter_batched_ref(
            places,
            |places| {
                for (constraint, token) in places {
                    let Some(token) = *token else { continue };
                    assert!(constraint.allows(token).expect("an answer"));
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("commit", |bencher| {
        let requests = || vec![compiled.constraint(); case.texts.len()];
        bencher.iter_batched_ref(
            requests,
            |requests| {
                for (constraint, text) in requests.iter_mut().zip(&case.texts) {
                    for &token in text {
                        constraint.advance(token).expect("a token of the text");
                    }
                }
            },
            BatchSize::LargeInput,
        );
    });
}

fn masks(places: &mut [(Constraint, Option<TokenId>)]) {
    for (constraint, _) in places {
        black_box(constraint.mask().expect("a mask"));
    }
}
