//! `domino retokenize`: cuts a text into tokens as the model itself would cut it (paper, algorithm 3).

use std::{io::Write, path::PathBuf};

use clap::Args;
use domino::decode::{DecodeErrorKind, Decoder};
use domino::model::candle::join_threads;
use domino::{TokenId, Vocabulary, store::CacheFolder, vocab::Tokenizer};
use serde_json::{Value, json};

use crate::files::Input;
use crate::flags::LowDevice;
use crate::session::chat::{PromptSource, prompt_text, prompt_tokens};
use crate::session::model::{self, Runner, bad_model, load, read_tokenizer, step_error};
use crate::terminal::failure::{BadInput, Exit};
use crate::terminal::{self, describe, progress};

const EXAMPLES: &str = "\
Examples:
  domino retokenize --text '{\"name\": \"John\"}' --prompt 'A JSON file describing a person: '
  domino retokenize document.json --json";

/// Cut a text into tokens as the model itself would, and say how likely that is beside the tokenizer's own
/// cut.
///
/// At each step the model's likeliest token is taken among those that the rest of the text begins with
/// (model-based retokenisation; DOMINO paper, algorithm 3). It is greedy, so the tokenizer's tokens can be
/// likelier as a whole. Templates that cut their text by the tokenizer alone force the model off its own
/// tokens; the difference of the two log-likelihoods says how far.
///
/// Log-likelihoods are natural logarithms at temperature 1, of the text's tokens behind the prompt's, end of
/// text left out. With --json one object is printed: text, prompt_tokens, own and tokenizer, each with
/// tokens, token_ids, logprobs and log_likelihood, and same_tokens. tokenizer is null, with
/// no_tokenizer_because, where the tokenizer does not give back the text.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LowRetokenize {
    /// A file with the text; - is standard input. Every byte counts, a line feed at the end too.
    #[arg(value_name = "FILE", required_unless_present = "text")]
    file: Option<PathBuf>,
    /// The text itself.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "file")]
    text: Option<String>,
    /// The text before it, which is not split: the prompt; - is standard input.
    #[arg(long, short = 'p', value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// A file with the prompt; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    prompt_file: Option<PathBuf>,
    /// The model, as for `domino generate`: a folder, a GGUF file, or OWNER/NAME on the Hugging Face hub.
    #[arg(long, short = 'm', value_name = "DIR|FILE|ID")]
    model: Option<PathBuf>,
    #[command(flatten)]
    device: LowDevice,
}

/// A way to cut the text.
struct Cut {
    tokens: Vec<TokenId>,
    /// Log-probability of each token.
    logprobs: Vec<f64>,
}

/// Cuts the text both ways and compares.
pub(crate) fn run(flags: &LowRetokenize, json: bool, cache: &CacheFolder) -> anyhow::Result<Exit> {
    let stdin = |file: &Option<PathBuf>| file.as_ref().is_some_and(|file| file.as_os_str() == "-");
    if stdin(&flags.file) && stdin(&flags.prompt_file) {
        return Err(BadInput::new("text and prompt cannot both be standard input").into());
    }
    let options = flags.device.load_options()?;
    let text = text_bytes(flags)?;
    let prompt = prompt_text(&PromptSource::of(flags.prompt.clone(), flags.prompt_file.clone()))?;
    let folder = model::locate(flags.model.as_deref())?;
    join_threads(flags.device.threads);
    let vocabulary = model::vocabulary(&folder, cache)?;
    let tokenizer = read_tokenizer(&folder)?;
    let ids = prompt_tokens(&tokenizer, &prompt, &vocabulary)?;
    let usual = usual_tokens(&tokenizer, &vocabulary, &text);
    let model = load(&folder, &options, flags.device.resolve())?;
    let mut decoder =
        Decoder::builder(model).vocabulary(vocabulary.clone()).build().map_err(|error| bad_model(&error))?;
    let (own, usual) = progress::during("asking the model", || {
        let tokens = decoder.retokenize(&ids, &text).map_err(|error| match error.kind() {
            DecodeErrorKind::NothingAllowed { .. } => {
                BadInput::new("the model's vocabulary has no tokens for some of the text's bytes").into()
            }
            DecodeErrorKind::TextTooLong { .. } => BadInput::new(error.to_string()).into(),
            _ => step_error(error),
        })?;
        let own = cut(&mut decoder, &ids, tokens)?;
        let usual = match usual {
            Ok(tokens) => Ok(cut(&mut decoder, &ids, tokens)?),
            Err(why) => Err(why),
        };
        Ok::<_, anyhow::Error>((own, usual))
    })?;
    let mut out = terminal::stdout();
    if json {
        writeln!(out, "{}", object(&vocabulary, &text, ids.len(), &own, &usual))?;
    } else {
        show(&mut out, &vocabulary, &own, &usual)?;
    }
    Ok(Exit::Success)
}

/// Reads the text to cut, which may be any bytes.
fn text_bytes(flags: &LowRetokenize) -> Result<Vec<u8>, BadInput> {
    let bytes = match (&flags.text, &flags.file) {
        (None, Some(file)) => Input::new(file.clone()).read()?,
        (text, _) => text.clone().unwrap_or_default().into_bytes(),
    };
    match bytes.is_empty() {
        true => Err(BadInput::new("the text is empty: there is nothing to cut")),
        false => Ok(bytes),
    }
}

/// Cuts the text as the tokenizer does by itself, or says why there is no such cut.
fn usual_tokens(tokenizer: &Tokenizer, vocabulary: &Vocabulary, text: &[u8]) -> Result<Vec<TokenId>, String> {
    let utf8 = str::from_utf8(text).map_err(|_| "the text is not UTF-8".to_owned())?;
    // Some tokenizers put a space before a text, but not behind a line feed. A line feed before the text
    // becomes a token of its own, behind at most that space.
    for before in ["", "\n"] {
        let tokens =
            tokenizer.encode(&format!("{before}{utf8}"), false).map_err(|error| error.to_string())?;
        for skipped in 0..tokens.len().min(3) {
            if vocabulary.concat(&tokens[skipped..]) == text {
                return Ok(tokens[skipped..].to_vec());
            }
        }
    }
    Err("the tokenizer does not give back the text".to_owned())
}

/// Asks the model for the log-probability of each token.
fn cut(decoder: &mut Decoder<Runner>, prompt: &[TokenId], tokens: Vec<TokenId>) -> anyhow::Result<Cut> {
    let replayed = decoder.replay(prompt, &tokens, 0).map_err(step_error)?;
    Ok(Cut { tokens, logprobs: replayed.iter().map(|replayed| replayed.logprobs.taken.model).collect() })
}

impl Cut {
    fn likelihood(&self) -> f64 {
        self.logprobs.iter().sum()
    }

    /// Makes an object of JSON. Minus infinity has no number there: it is null.
    fn object(&self, vocabulary: &Vocabulary) -> Value {
        let text = |token: &TokenId| {
            vocabulary.bytes(*token).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        json!({
            "tokens": self.tokens.iter().map(text).collect::<Vec<_>>(),
            "token_ids": self.tokens.iter().map(|token| token.raw()).collect::<Vec<_>>(),
            "logprobs": self.logprobs,
            "log_likelihood": self.likelihood(),
        })
    }

    /// Lists the places where tokens begin: the offset in bytes, the token and its log-probability.
    fn places<'a>(&'a self, vocabulary: &'a Vocabulary) -> impl Iterator<Item = (usize, String)> + 'a {
        let mut at = 0;
        self.tokens.iter().zip(&self.logprobs).map(move |(&token, logprob)| {
            let begin = at;
            at += vocabulary.bytes(token).map_or(0, <[u8]>::len);
            (begin, format!("{logprob:>8.3}  {}", describe::token(vocabulary, token)))
        })
    }
}

fn object(
    vocabulary: &Vocabulary,
    text: &[u8],
    prompt_tokens: usize,
    own: &Cut,
    usual: &Result<Cut, String>,
) -> Value {
    let mut object = json!({
        "text": String::from_utf8_lossy(text),
        "prompt_tokens": prompt_tokens,
        "own": own.object(vocabulary),
        "tokenizer": usual.as_ref().ok().map(|usual| usual.object(vocabulary)),
        "same_tokens": usual.as_ref().is_ok_and(|usual| usual.tokens == own.tokens),
    });
    if let Err(why) = usual {
        object["no_tokenizer_because"] = why.as_str().into();
    }
    object
}

/// Prints both cuts side by side, by the bytes at which their tokens begin.
fn show(
    out: &mut impl Write,
    vocabulary: &Vocabulary,
    own: &Cut,
    usual: &Result<Cut, String>,
) -> anyhow::Result<()> {
    let line = |name: &str, cut: &Cut| {
        format!("{name:<12} {:>5} tokens, log-likelihood {:.3}", cut.tokens.len(), cut.likelihood())
    };
    writeln!(out, "{}", line("the model's", own))?;
    let mine: Vec<(usize, String)> = own.places(vocabulary).collect();
    let theirs: Vec<(usize, String)> = match usual {
        Ok(usual) => {
            writeln!(out, "{}", line("tokenizer's", usual))?;
            usual.places(vocabulary).collect()
        }
        Err(why) => {
            writeln!(out, "tokenizer's  none: {why}")?;
            Vec::new()
        }
    };
    let mut begins: Vec<usize> = mine.iter().chain(&theirs).map(|(begin, _)| *begin).collect();
    begins.sort_unstable();
    begins.dedup();
    let wide = mine.iter().map(|(_, shown)| shown.chars().count()).max().unwrap_or(0);
    writeln!(out, "  byte  {:<wide$}  tokenizer's", "the model's")?;
    let at = |list: &[(usize, String)], begin: usize| {
        let found = list.binary_search_by_key(&begin, |(begin, _)| *begin);
        found.ok().and_then(|index| list.get(index)).map(|(_, shown)| shown.clone()).unwrap_or_default()
    };
    for begin in begins {
        let (mine, theirs) = (at(&mine, begin), at(&theirs, begin));
        let gap = wide.saturating_sub(mine.chars().count());
        writeln!(out, "{}", format!("{begin:>6}  {mine}{:gap$}  {theirs}", "").trim_end())?;
    }
    Ok(())
}
