//! Flags of `domino explain`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use domino::{decode::DecodeOptions, model::candle::LoadOptions};

use crate::flags::grammar::{LowGrammar, LowReach};
use crate::flags::{LowContext, LowDevice};
use crate::session::chat::{Chat, PromptSource, Prompts};
use crate::{
    flags::drawing::LowOptions, flags::speculate::LowSpeculate, flags::tools::LowChat,
    grammar::compiler::Reach, grammar::source::GrammarSource, session::drafts::Speculation,
    session::runner::Card, terminal::failure::BadInput,
};

/// Number of alternatives that are listed unless `--logprobs` says otherwise.
const USUAL_ALTERNATIVES: usize = 8;

const EXAMPLES: &str = "\
Examples:
  domino explain --grammar json --prompt 'A JSON file describing a person: ' -o person.html
  domino explain --grammar my.schema.json -p 'One order:' --temperature 0 --speculate 6 -o order.html
  domino explain --regex '[0-9]{4}-[0-9]{2}' -p 'Today is ' --json";

/// Show how a text was written: what the model wanted, what the grammar allowed, and what was drafted.
///
/// Writes the text that `domino generate` writes with the same flags, then goes over it once more with all
/// probabilities, and writes a page of HTML that needs nothing but a browser. Each token is a box. Its hue
/// is the surprise -ln p under the model without a grammar. The bar below shows the share of the model's
/// probability that the grammar kept. The line under the bar names the terminals that the token's text
/// belongs to, as the grammar writes them, whatever --terminals says. Where the grammar intervened, the token
/// that the model alone would have drawn stands above the box, struck through. Marks show which tokens were
/// drafted and accepted, and where a draft was refused. The pointer or the arrow keys show alternatives.
///
/// All probabilities are of the model's distribution at temperature 1, without penalties and cuts.
///
/// With --json the same is printed as an object: text, finish, complete, tokens (a list, each with token,
/// token_id, logprob, constrained_logprob, log_kept, allowed, own, intervened, draft, pieces and
/// alternatives), and sums. The exit code is 0 once the page is written, whether the text is complete or cut.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LowExplain {
    #[command(flatten)]
    grammar: LowGrammar,
    /// The text to go on from; - is standard input.
    #[arg(long, short = 'p', value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// A file with the text to go on from; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    #[command(flatten)]
    chat: LowChat,
    /// The model: a folder, a GGUF file, or OWNER/NAME on the Hugging Face hub, as for `domino generate`.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    model: Option<PathBuf>,
    #[command(flatten)]
    device: LowDevice,
    #[command(flatten)]
    context: LowContext,
    #[command(flatten)]
    options: LowOptions,
    #[command(flatten)]
    reach: LowReach,
    #[command(flatten)]
    speculate: LowSpeculate,
    /// The file that the page is written to. Can be left out with --json.
    #[arg(long, short = 'o', value_name = "FILE.html")]
    out: Option<PathBuf>,
}

/// The resolved command `domino explain`.
#[derive(Debug)]
pub(crate) struct Explain {
    /// The grammar; `None` if any text may be written.
    pub(crate) grammar: Option<GrammarSource>,
    pub(crate) prompt: PromptSource,
    /// The flags of the chat template; `None` if the prompt stays as it is.
    pub(crate) chat: Option<Chat>,
    /// The model; `None` for the default model.
    pub(crate) model: Option<PathBuf>,
    pub(crate) card: Card,
    pub(crate) threads: Option<NonZeroUsize>,
    pub(crate) load: LoadOptions,
    pub(crate) options: DecodeOptions,
    /// Number of alternatives of each kind that are listed for a token.
    pub(crate) alternatives: usize,
    pub(crate) reach: Reach,
    pub(crate) speculation: Speculation,
    /// The file of the page, if one is wanted.
    pub(crate) out: Option<PathBuf>,
    pub(crate) json: bool,
}

impl Explain {
    /// Makes the maker of the prompt's tokens, for the model in `folder`.
    pub(super) fn prompts(&self, folder: &Path) -> Result<Prompts, BadInput> {
        Prompts::open(self.chat.as_ref(), folder, self.grammar.as_ref(), self.json)
    }
}

impl LowExplain {
    /// Reads the flags as the command.
    pub(crate) fn resolve(mut self, json: bool) -> Result<Explain, BadInput> {
        let mut options = self.options.resolve()?;
        let template = self.grammar.is_for(self.model.as_deref(), self.chat.is_asked());
        let chat = self.chat.resolve(template);
        let grammar = self.grammar.resolve()?;
        self.reach.refuse_idle(grammar.is_some())?;
        self.options.tell_idle(false);
        if options.close && grammar.is_none() {
            return Err(BadInput::new("--finish needs a grammar: without one any text is finished"));
        }
        if self.speculate.compares() {
            return Err(BadInput::new("--compare makes no text to explain").hint("see `domino generate`"));
        }
        if self.out.is_none() && !json {
            return Err(
                BadInput::new("no place for the page").hint("give -o FILE.html, or --json to print its data")
            );
        }
        // The text is drawn as `generate` would draw it; the alternatives are found afterwards, by a replay.
        let alternatives = options.logprobs.take().unwrap_or(USUAL_ALTERNATIVES);
        let threads = self.device.threads();
        let load = self.context.beside(self.device.load_options()?);
        Ok(Explain {
            prompt: PromptSource::of(self.prompt, self.prompt_file),
            chat,
            model: self.model,
            card: self.device.resolve(),
            threads,
            load,
            options,
            alternatives,
            reach: self.reach.resolve(),
            speculation: self.speculate.resolve(grammar.is_some())?,
            grammar,
            out: self.out,
            json,
        })
    }
}
