//! `--config FILE`: flags in a file of TOML.
//!
//! Each key becomes the flag of its name, and the command line is read with these flags behind it. So values,
//! defaults and dependencies of flags are declared once, for clap. Flags that the command line or the
//! environment give are left out, so that these win.

use std::{ffi::OsString, fs, ops::Range, path::Path};

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource};
use domino::grammar::suggest;
use toml::{Spanned, de::DeArray, de::DeTable, de::DeValue};

use crate::terminal::failure::BadInput;

/// The command that takes such a file.
const SERVE: &str = "serve";

/// Flags that a file cannot have.
const NOT_HERE: [&str; 3] = ["config", "help", "version"];

const HINT: &str = "a key is the name of a flag of `domino serve` (see its --help), such as port = 8081";

/// Adds the flags of its file to the command line, if it names one.
///
/// # Errors
/// If the file cannot be read, is not TOML, or has a key that is no flag.
pub(crate) fn merge(command: &Command, line: Vec<OsString>) -> Result<Vec<OsString>, BadInput> {
    // Mistakes of the line alone are reported when the whole line is read.
    let mut lenient = command.clone().ignore_errors(true);
    let Ok(matches) = lenient.try_get_matches_from_mut(&line) else { return Ok(line) };
    let Some((SERVE, given)) = matches.subcommand() else { return Ok(line) };
    let Some(path) = given.get_one::<std::path::PathBuf>("config") else { return Ok(line) };
    let Some(serve) = lenient.find_subcommand(SERVE) else { return Ok(line) };
    let text = fs::read_to_string(path).map_err(|error| {
        BadInput::new(format!("{}: {error}", path.display())).hint("--config takes a file of TOML")
    })?;
    let flags: Vec<&Arg> = serve.get_arguments().chain(lenient.get_arguments()).collect();
    let more = ConfigFile { path, text: &text, flags, given }.flags()?;
    let mut merged = line;
    merged.extend(more.into_iter().map(OsString::from));
    Ok(merged)
}

/// A file of settings, and the flags that it may have.
struct ConfigFile<'a> {
    path: &'a Path,
    text: &'a str,
    flags: Vec<&'a Arg>,
    given: &'a ArgMatches,
}

impl ConfigFile<'_> {
    /// The file's flags that were not given elsewhere.
    fn flags(&self) -> Result<Vec<String>, BadInput> {
        let table = DeTable::parse(self.text).map_err(|error| {
            self.wrong(error.span().unwrap_or_default(), error.message())
                .hint("--config takes a file of TOML")
        })?;
        let mut seen: Vec<String> = Vec::new();
        let mut flags = Vec::new();
        let mut lines: Vec<_> = table.into_inner().into_iter().collect();
        lines.sort_unstable_by_key(|(key, _)| key.span().start);
        for (key, value) in lines {
            let name = key.get_ref().replace('_', "-");
            let flag = self.flag(&key.span(), &name)?;
            if seen.contains(&name) {
                return Err(self.wrong(key.span(), &format!("--{name} is given twice")));
            }
            seen.push(name.clone());
            let of_file = written(flag, &name, &value).map_err(|wanted| {
                self.wrong(value.span(), &format!("`{}` takes {wanted}", key.get_ref())).hint(HINT)
            })?;
            if !self.is_given(flag) {
                flags.extend(of_file);
            }
        }
        Ok(flags)
    }

    fn flag(&self, place: &Range<usize>, name: &str) -> Result<&Arg, BadInput> {
        let known = |flag: &&Arg| flag.get_long().is_some_and(|long| !NOT_HERE.contains(&long));
        let flags = || self.flags.iter().copied().filter(known);
        if let Some(flag) = flags().find(|flag| flag.get_long() == Some(name)) {
            return Ok(flag);
        }
        let wrong = self.wrong(place.clone(), &format!("there is no flag --{name}"));
        let near = suggest::did_you_mean(name, flags().filter_map(Arg::get_long));
        Err(wrong.hint(near.unwrap_or_else(|| HINT.to_owned())))
    }

    /// Was the flag given on the command line, or by the environment?
    fn is_given(&self, flag: &Arg) -> bool {
        let source = self.given.try_contains_id(flag.get_id().as_str()).ok();
        let source = source.and_then(|_| self.given.value_source(flag.get_id().as_str()));
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    }

    fn wrong(&self, place: Range<usize>, message: &str) -> BadInput {
        let before = self.text.get(..place.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        BadInput::new(format!("{}:{line}:{column}: {message}", self.path.display()))
    }
}

/// Writes a flag with its value. The error says which values the flag takes.
fn written(flag: &Arg, name: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, &'static str> {
    let takes_value = flag.get_action().takes_values();
    let alone = !takes_value || flag.get_num_args().is_some_and(|range| range.min_values() == 0);
    match (flag.get_action(), value.get_ref()) {
        (ArgAction::SetTrue | ArgAction::SetFalse, DeValue::Boolean(true)) => Ok(vec![format!("--{name}")]),
        (ArgAction::SetTrue | ArgAction::SetFalse, DeValue::Boolean(false)) => Ok(Vec::new()),
        (ArgAction::SetTrue | ArgAction::SetFalse, _) => Err("true or false"),
        (_, DeValue::Boolean(true)) if alone => Ok(vec![format!("--{name}")]),
        (ArgAction::Append, DeValue::Array(list)) => listed(name, list),
        (ArgAction::Append, one) => {
            Ok(vec![scalar(name, one).ok_or("a text, a number, or a list of these")?])
        }
        (_, one) => Ok(vec![scalar(name, one).ok_or("a text or a number")?]),
    }
}

fn listed(name: &str, list: &DeArray<'_>) -> Result<Vec<String>, &'static str> {
    let each = list.iter().map(|one| scalar(name, one.get_ref()));
    each.collect::<Option<_>>().ok_or("a list of texts or numbers")
}

fn scalar(name: &str, value: &DeValue<'_>) -> Option<String> {
    let text = match value {
        DeValue::String(text) => text.to_string(),
        // As the flag takes them: without underscores.
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        _ => return None,
    };
    Some(format!("--{name}={text}"))
}

#[cfg(test)]
mod tests;
