//! Programs of a definition as methods: other engines, which answer lines of JSON by lines of JSON.
//!
//! A program is started once for each model and grammar. The first line that it reads says what texts will be
//! written, and each further one asks for a text; it answers each line by one. docs/speculation-reference.md
//! has their keys.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{ExternalWriter, PeerError};
use crate::decode::{DecodeOptions, DecodeStats, Finish, Generation};
use crate::experiment::{End, ExperimentError, ExternalProgram, Task};
use crate::{ids::TokenId, vocab::Vocabulary};

/// The folder of a definition's programs, and what they are given.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Programs {
    folder: PathBuf,
    models: Vec<PathBuf>,
    threads: usize,
}

impl Programs {
    /// Names the programs' folder, models and threads. A program named by a path lies at it from `folder`,
    /// that of the definition; other names are looked up as a shell does. They load `models`, one for each of
    /// the definition's, and use `threads` threads.
    #[must_use]
    pub fn new(folder: PathBuf, models: Vec<PathBuf>, threads: usize) -> Self {
        Self { folder, models, threads }
    }

    /// Starts a program for a model and a task. Also returns the seconds that reading the grammar took, if it
    /// tells them.
    pub(in crate::experiment) fn start(
        &self,
        program: &ExternalProgram,
        model: usize,
        task: &Task,
        vocabulary: &Vocabulary,
    ) -> Result<(Box<dyn ExternalWriter>, Option<f64>), ExperimentError> {
        let path = match program.command.first() {
            Some(first) if first.contains('/') => self.folder.join(first),
            Some(first) => PathBuf::from(first),
            None => PathBuf::new(),
        };
        let mut command = Command::new(&path);
        command.args(program.command.iter().skip(1)).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C is for the experiment, which ends after the running text.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let failed = |source| ExperimentError::Program { name: program.name.clone(), source };
        let mut child = command.spawn().map_err(ExperimentError::io("start", path))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let Some((input, output)) = pipes else {
            return Err(failed(PeerError("it has no standard input and output".to_owned())));
        };
        let mut talk = Talk { child, input, output: BufReader::new(output) };
        let grammar = program.grammar.then(|| {
            let texts = task.notations().map(|(syntax, text)| (syntax.name(), text));
            NotatedGrammar { name: &task.name, texts: texts.collect() }
        });
        let model = self.models.get(model).map_or(Path::new(""), PathBuf::as_path);
        let job = ProgramJob { model, threads: self.threads, grammar };
        let ready: ReadyReply = talk.ask(&job).map_err(failed)?;
        let writer = ProgramWriter { talk, vocabulary: vocabulary.clone() };
        Ok((Box::new(writer), ready.compile_seconds))
    }
}

/// The first line: the texts that will be requested.
#[derive(Serialize)]
struct ProgramJob<'a> {
    model: &'a Path,
    threads: usize,
    grammar: Option<NotatedGrammar<'a>>,
}

/// A grammar in all notations that the definition has.
#[derive(Serialize)]
struct NotatedGrammar<'a> {
    name: &'a str,
    /// Texts by the notation's name; the first one counts if one occurs twice.
    #[serde(serialize_with = "as_map")]
    texts: Vec<(&'static str, &'a str)>,
}

/// Writes pairs as an object.
fn as_map<S: serde::Serializer>(pairs: &[(&'static str, &str)], serializer: S) -> Result<S::Ok, S::Error> {
    let once = pairs
        .iter()
        .enumerate()
        .filter(|(at, (name, _))| pairs.iter().position(|(other, _)| other == name) == Some(*at));
    serializer.collect_map(once.map(|(_, pair)| *pair))
}

/// The answer to a [`ProgramJob`].
#[derive(Deserialize)]
struct ReadyReply {
    compile_seconds: Option<f64>,
}

/// A request for a text.
#[derive(Serialize)]
struct TextRequest {
    prompt: Vec<u32>,
    max_tokens: usize,
    temperature: f64,
    seed: u64,
}

/// A text that was written.
#[derive(Deserialize)]
struct TextReply {
    tokens: Vec<u32>,
    finish: End,
    seconds: f64,
    first_seconds: f64,
    passes: Option<usize>,
    #[serde(default)]
    drafted: usize,
    #[serde(default)]
    accepted: usize,
    #[serde(default)]
    model_seconds: f64,
    #[serde(default)]
    mask_seconds: f64,
    interventions: Option<usize>,
}

/// An answer, or an error.
#[derive(Deserialize)]
#[serde(untagged)]
enum ProgramReply<T> {
    Failed { error: String },
    Good(T),
}

/// A running program, line by line.
struct Talk {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talk {
    /// Writes a line, and reads one.
    fn ask<T: DeserializeOwned>(&mut self, question: &impl Serialize) -> Result<T, PeerError> {
        let said = |error: &dyn std::fmt::Display| PeerError(error.to_string());
        let mut line = serde_json::to_string(question).map_err(|error| said(&error))?;
        line.push('\n');
        let written = self.input.write_all(line.as_bytes()).and_then(|()| self.input.flush());
        written.map_err(|error| self.ended(&error))?;
        line.clear();
        match self.output.read_line(&mut line) {
            Ok(0) => Err(self.ended(&io::Error::from(io::ErrorKind::UnexpectedEof))),
            Ok(_) => match serde_json::from_str(&line) {
                Ok(ProgramReply::Good(answer)) => Ok(answer),
                Ok(ProgramReply::Failed { error }) => Err(PeerError(error)),
                Err(_) => Err(PeerError(format!("it answered {:?}", line.trim_end()))),
            },
            Err(error) => Err(said(&error)),
        }
    }

    /// Describes why it does not answer.
    fn ended(&mut self, error: &io::Error) -> PeerError {
        // One that closed its pipes is about to end, or is of no use any more.
        let _ = self.child.kill();
        match self.child.wait() {
            Ok(status) if !status.success() => PeerError(format!("it ended early, with {status}")),
            _ => PeerError(format!("it ended early: {error}")),
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // Nothing is lost: it has answered all that it was asked.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes texts of one model and grammar.
struct ProgramWriter {
    talk: Talk,
    vocabulary: Vocabulary,
}

impl ExternalWriter for ProgramWriter {
    fn write(
        &mut self,
        prompt: &[TokenId],
        options: &DecodeOptions,
    ) -> Result<(Generation, Duration), PeerError> {
        let told: TextReply = self.talk.ask(&TextRequest {
            prompt: prompt.iter().map(|token| token.raw()).collect(),
            max_tokens: options.max_new_tokens,
            temperature: options.sampling.temperature(),
            seed: options.seed,
        })?;
        let tokens: Vec<TokenId> = told.tokens.iter().map(|&token| TokenId::new(token)).collect();
        if let Some(unknown) = tokens.iter().find(|token| self.vocabulary.bytes(**token).is_none()) {
            return Err(PeerError(format!("it wrote the token {}, which is none of a text", unknown.raw())));
        }
        let seconds =
            |seconds: f64| Duration::try_from_secs_f64(seconds).map_err(|error| PeerError(error.to_string()));
        let finish = match told.finish {
            End::Stop => Finish::Stop,
            End::Length => Finish::Length,
        };
        let draws = tokens.len() + usize::from(finish == Finish::Stop);
        let stats = DecodeStats {
            prompt_tokens: prompt.len(),
            tokens: tokens.len(),
            passes: told.passes.unwrap_or(draws),
            draws,
            own_draws: told.interventions.map_or(0, |_| draws),
            interventions: told.interventions.unwrap_or(0),
            drafted: told.drafted,
            accepted: told.accepted,
            mask_time: seconds(told.mask_seconds)?,
            model_time: seconds(told.model_seconds)?,
            total_time: seconds(told.seconds)?,
            ..DecodeStats::default()
        };
        let text = self.vocabulary.concat(&tokens);
        let complete = finish == Finish::Stop;
        let generation = Generation {
            tokens,
            text,
            complete,
            finish,
            reasoning: None,
            answer_at: 0,
            end_of_text: None,
            completion: None,
            logprobs: Vec::new(),
            stats,
        };
        Ok((generation, seconds(told.first_seconds)?))
    }
}
