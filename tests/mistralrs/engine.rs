//! mistral.rs' engine with the shipped model, for the tests of the plugin.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domino::{CompiledGrammar, Compiler, Grammar, Limits, Syntax, TokenId, vocab::Tokenizer};
use mistralrs_candle::Device;
use mistralrs_core::{
    DefaultSchedulerMethod, DeviceMapSetting, Loader, MistralRs, MistralRsBuilder, ModelDType,
    NormalLoaderBuilder, NormalRequest, NormalSpecificConfig, Pipeline, Request, RequestMessage, Response,
    SamplingParams, SchedulerConfig, TokenSource,
};
use tokio::sync::mpsc::{Receiver, channel};

pub(super) const GRAMMARS: [&str; 6] = ["json", "gsm8k", "xml_person", "rpg", "c", "arithmetic"];
pub(super) const PROMPTS: [&str; 4] = [
    "A JSON file describing a person: ",
    "Q: A robe takes 2 bolts of blue fiber and half that much white fiber. How many bolts?\nA: ",
    "An XML file of a person John Smith:",
    "C program that prints fibonacci numbers:\n",
];

pub(super) type SharedPipeline = Arc<tokio::sync::Mutex<dyn Pipeline + Send + Sync>>;

/// The repository, two folders above the package.
fn repository() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("the package is in the repository")
}

pub(super) fn model() -> PathBuf {
    repository().join("models/domino-small")
}

/// The runtime of the engines, with several threads as in programs.
pub(super) static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime")
});

/// A lock for tests that compare texts of a stock engine, which mixes up requests of equal length that run at
/// once, and for those that use the shared speculative engine, one of which waits for it to be idle.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A loader of the shipped model.
pub(super) fn loader() -> Box<dyn Loader> {
    let folder = model().display().to_string();
    NormalLoaderBuilder::new(NormalSpecificConfig::default(), None, None, Some(folder), false, None)
        .build(None)
        .expect("a loader")
}

pub(super) fn load(loader: &dyn Loader) -> anyhow::Result<SharedPipeline> {
    loader.load_model_from_hf(
        None,
        TokenSource::None,
        &ModelDType::F32,
        &Device::Cpu,
        true,
        DeviceMapSetting::dummy(),
        None,
        None,
    )
}

/// An engine, and the vocabulary of its model.
pub(super) struct Engine {
    pub(super) runner: Arc<MistralRs>,
    pub(super) tokenizer: Tokenizer,
    compiler: Compiler,
}

impl Engine {
    /// An engine without speculation.
    pub(super) fn stock(prefix_cache: bool) -> Self {
        let pipeline = load(&*loader()).expect("the shipped model");
        Self::of(pipeline, prefix_cache)
    }

    pub(super) fn of(pipeline: SharedPipeline, prefix_cache: bool) -> Self {
        let (vocabulary, tokenizer) = {
            let pipeline = pipeline.blocking_lock();
            let vocabulary = domino_mistralrs::vocabulary(&*pipeline).expect("a vocabulary");
            (vocabulary, domino_mistralrs::tokenizer(&*pipeline).expect("a tokenizer"))
        };
        let method = DefaultSchedulerMethod::Fixed(8.try_into().expect("not zero"));
        let builder =
            MistralRsBuilder::new(pipeline, SchedulerConfig::DefaultScheduler { method }, false, None)
                .with_no_prefix_cache(!prefix_cache);
        let runner = RUNTIME.block_on(async { tokio::spawn(builder.build()).await.expect("an engine") });
        let compiler = Compiler::new(vocabulary);
        Self { runner, tokenizer, compiler }
    }

    pub(super) fn grammar(&self, name: &str) -> CompiledGrammar {
        let text =
            std::fs::read_to_string(repository().join(format!("grammars/{name}.gbnf"))).expect("a grammar");
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default()).expect("a grammar");
        self.compiler.compile(&grammar).expect("a grammar")
    }

    pub(super) fn regex(&self, regex: &str) -> CompiledGrammar {
        let grammar = Grammar::parse(Syntax::Regex, regex, &Limits::default()).expect("a regex");
        self.compiler.compile(&grammar).expect("a regex")
    }

    pub(super) fn tokens(&self, prompt: &str) -> Vec<u32> {
        self.tokenizer.encode(prompt, true).expect("tokens").into_iter().map(TokenId::raw).collect()
    }

    /// A request to go on from a prompt, and the receiver of its answers.
    pub(super) fn request(
        &self,
        prompt: &str,
        params: SamplingParams,
    ) -> (NormalRequest, Receiver<Response>) {
        let (sender, receiver) = channel(1_000);
        let messages = RequestMessage::CompletionTokens(self.tokens(prompt));
        let id = self.runner.next_request_id();
        (NormalRequest::new_simple(messages, params, sender, id, None, None), receiver)
    }

    pub(super) fn send(&self, request: NormalRequest) {
        // `send_request` blocks, which tasks must not.
        let requests = self.runner.get_sender(None).expect("an engine that runs");
        assert!(
            requests.try_send(Request::Normal(Box::new(request))).is_ok(),
            "the engine takes no requests"
        );
    }
}

/// One choice of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) finish: String,
}

/// Receives the choices of an answer; fails if the engine hangs.
pub(super) async fn answers(mut receiver: Receiver<Response>) -> Vec<Answer> {
    let mut streamed = Answer { text: String::new(), finish: String::new() };
    loop {
        let response =
            tokio::time::timeout(Duration::from_secs(300), receiver.recv()).await.expect("an answer in time");
        match response.expect("an answer") {
            Response::CompletionDone(done) => {
                let answer = |choice: mistralrs_core::CompletionChoice| Answer {
                    text: choice.text,
                    finish: choice.finish_reason,
                };
                return done.choices.into_iter().map(answer).collect();
            }
            Response::CompletionChunk(chunk) => {
                let choice = chunk.choices.into_iter().next().expect("a choice");
                streamed.text.push_str(&choice.text);
                if let Some(finish) = choice.finish_reason {
                    streamed.finish = finish;
                    return vec![streamed];
                }
            }
            Response::InternalError(error) | Response::ValidationError(error) => panic!("{error}"),
            Response::CompletionModelError(error, _) => panic!("{error}"),
            _ => panic!("another kind of answer"),
        }
    }
}

/// True for a text in the language, false for a proper prefix of one, `None` for others. The engine strips
/// white space from the beginning of a text.
pub(super) fn complete(grammar: &CompiledGrammar, text: &str) -> Option<bool> {
    ["", " ", "\n", "  "].iter().find_map(|lost| {
        let mut constraint = grammar.constraint();
        let bytes = [lost.as_bytes(), text.as_bytes()].concat();
        let taken = constraint.advance_bytes(&bytes).expect("within the budget");
        (taken == bytes.len()).then(|| constraint.is_complete())
    })
}
