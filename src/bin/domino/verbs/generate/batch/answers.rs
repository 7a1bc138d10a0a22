//! Destinations of a batch's answers: standard output, or a file that a later run goes on with. Answers are
//! counted: there is a bar for people while the batch runs, and a line at its end.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::{collections::HashSet, time::Instant};

use anyhow::Context;
use indicatif::ProgressBar;

use crate::files::{Input, lines};
use crate::rows::{ObjectMembers, SeenIds, key_of};
use crate::terminal::failure::{BadInput, Exit, Paint, note, remark};
use crate::terminal::progress;
use crate::terminal::{self, count};

/// A destination of answers, a line each.
#[derive(Debug)]
pub(super) enum Answers {
    /// Standard output.
    Stdout,
    /// A device or a pipe.
    Device(File, PathBuf),
    /// A file; the lines that were there stay.
    File(File, PathBuf),
}

/// The answers that were in the file before.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    done: HashSet<String>,
    /// Number of answers that are errors.
    pub(super) failed: usize,
}

impl Answers {
    /// Opens the file, if there is to be one, and reads the answers in it. A last line that is not whole is
    /// dropped. The file is locked against other runs while it is open.
    pub(super) fn open(out: Option<&Path>, input: &Input) -> Result<(Self, Earlier), BadInput> {
        let Some(path) = out else { return Ok((Self::Stdout, Earlier::default())) };
        let cannot = |error: &dyn std::fmt::Display| {
            BadInput::new(format!("cannot write {}: {error}", path.display()))
        };
        if path.is_dir() {
            return Err(cannot(&"it is a folder"));
        }
        if same_file(path, input) {
            return Err(cannot(&"it is the file of the rows").hint("give --out another file"));
        }
        let mut options = OpenOptions::new();
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let device = options.write(true).open(path).map_err(|error| cannot(&error))?;
            return Ok((Self::Device(device, path.to_owned()), Earlier::default()));
        }
        let opened = options.read(true).write(true).create(true).truncate(false).open(path);
        let mut file = opened.map_err(|error| cannot(&error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(cannot(&"another run writes it").hint("wait for it, or give --out another file"));
            }
            // Some file systems have no locks.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        let (earlier, whole, dropped) = read(&file, path)?;
        if dropped > 0 {
            let (name, what) = (path.display(), "its last line was written only in part");
            remark!("note:", "{name}: {what} ({dropped} bytes), and is dropped");
        }
        let cut = file.set_len(whole).and_then(|()| file.seek(SeekFrom::Start(whole)));
        cut.map_err(|error| cannot(&error))?;
        Ok((Self::File(file, path.to_owned()), earlier))
    }

    /// True if a later run can go on with them.
    pub(super) fn can_go_on(&self) -> bool {
        matches!(self, Self::File(..))
    }

    /// True if a person reads them as they come.
    pub(super) fn are_seen(&self) -> bool {
        matches!(self, Self::Stdout) && terminal::stdout().is_terminal()
    }

    /// Writes a line, which ends with a line feed, at once.
    pub(super) fn write(&mut self, line: &str) -> anyhow::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = terminal::stdout();
                out.write_all(line.as_bytes())?;
                out.flush()?;
                Ok(())
            }
            Self::File(file, path) | Self::Device(file, path) => {
                file.write_all(line.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }
}

impl Earlier {
    /// True if this answer was there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.done.contains(key)
    }
}

/// True if the path is the file of the rows.
fn same_file(path: &Path, input: &Input) -> bool {
    let Input::File(rows) = input else { return false };
    fs::canonicalize(path).ok().is_some_and(|path| fs::canonicalize(rows).is_ok_and(|rows| rows == path))
}

/// Reads the answers in a file, the length of its whole lines, and that of a last line that is not whole.
fn read(file: &File, path: &Path) -> Result<(Earlier, u64, usize), BadInput> {
    let name = path.display();
    let other = |number: usize| {
        BadInput::new(format!("{name}:{number}: no line of `domino generate --batch`; nothing was written"))
            .hint("--out goes on with what an earlier run has written; give it another file")
    };
    let mut reader = BufReader::new(file);
    let (mut earlier, mut seen) = (Earlier::default(), SeenIds::default());
    let (mut line, mut whole) = (Vec::new(), 0_u64);
    for number in 1.. {
        line.clear();
        let length = reader
            .read_until(b'\n', &mut line)
            .map_err(|error| BadInput::new(format!("cannot read {name}: {error}")))?;
        if line.last() != Some(&b'\n') {
            return if is_part(&line) { Ok((earlier, whole, length)) } else { Err(other(number)) };
        }
        whole += length as u64;
        if lines::content(&line).is_empty() {
            continue;
        }
        let text = std::str::from_utf8(&line).map_err(|_| other(number))?;
        let mut members = ObjectMembers::read(text).map_err(|_| other(number))?;
        let (has_text, failed) = (members.has("text"), members.has("error"));
        let key = key_of(&mut members).filter(|_| has_text || failed).ok_or_else(|| other(number))?;
        seen.note(key.clone(), &format!("id {key}"), number)
            .map_err(|error| error.about(&name.to_string()).hint("take one of the two lines out"))?;
        earlier.failed += usize::from(failed);
        earlier.done.insert(key);
    }
    Ok((earlier, whole, 0))
}

/// True for the beginning of a line of such a file; a line of another file must not be dropped.
fn is_part(line: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"{\"id\":";
    let length = line.len().min(BEGINNING.len());
    if line[..length] != BEGINNING[..length] || line.get(length).is_some_and(u8::is_ascii_whitespace) {
        return false;
    }
    let members = std::str::from_utf8(line).ok().and_then(|text| ObjectMembers::read(text).ok());
    members.is_none_or(|members| members.has("text") || members.has("error"))
}

/// Counts of the texts by what has become of them.
pub(super) struct BatchTally {
    begun: Instant,
    bar: ProgressBar,
    /// Number of texts that were written.
    texts: usize,
    /// Number of rows that are wrong, and of texts that failed while they were written.
    failed: usize,
    /// Number of texts that a limit has cut, such as that of tokens.
    cut: usize,
    /// Number of texts that were there before, and of failed ones among them.
    there: usize,
    failed_before: usize,
    /// Number of texts that had begun, and were dropped after Ctrl-C.
    dropped: usize,
    tokens: usize,
}

impl BatchTally {
    /// Begins to count; `all` is the number of texts, if it is known.
    pub(super) fn start(all: Option<usize>, failed_before: usize) -> Self {
        Self {
            begun: Instant::now(),
            bar: progress::bar("writing", all),
            texts: 0,
            failed: 0,
            cut: 0,
            there: 0,
            failed_before,
            dropped: 0,
            tokens: 0,
        }
    }

    /// Counts a text that was there before.
    pub(super) fn skipped(&mut self) {
        self.there += 1;
        self.bar.set_position((self.there + self.texts + self.failed) as u64);
        self.bar.reset_eta();
    }

    /// Counts a row that is wrong.
    pub(super) fn wrong(&mut self) {
        self.failed += 1;
        self.one_more();
    }

    /// Counts a text that has ended.
    pub(super) fn ended(&mut self, failed: bool, cut: bool, tokens: usize) {
        self.tokens += tokens;
        self.cut += usize::from(cut);
        *(if failed { &mut self.failed } else { &mut self.texts }) += 1;
        self.one_more();
    }

    /// Counts a text that had begun before Ctrl-C and is not written.
    pub(super) fn dropped(&mut self) {
        self.dropped += 1;
    }

    fn one_more(&self) {
        if self.failed > 0 {
            self.bar.set_message(format!("writing, {} failed", self.failed));
        }
        self.bar.inc(1);
    }

    /// Runs `work` while the bar is hidden, if a person sees on the same terminal what it prints.
    pub(super) fn beside<T>(&self, seen: bool, work: impl FnOnce() -> T) -> T {
        if seen { self.bar.suspend(work) } else { work() }
    }

    /// Prints the totals on standard error, and chooses the exit code.
    pub(super) fn finish(self, passes: usize, goes_on: bool) -> Exit {
        drop(self.bar);
        let seconds = self.begun.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "counts of tokens are far below 2^52")]
        let rate = if seconds > 0.0 { self.tokens as f64 / seconds } else { 0.0 };
        let paint = Paint::for_stderr();
        let pressed = progress::interrupted();
        let end = if pressed { paint.red("interrupted") } else { "done".to_owned() };
        let mut parts = vec![count(self.texts, "text")];
        let failed = self.failed + self.failed_before;
        if failed > 0 {
            let before = match self.failed_before {
                0 => String::new(),
                before => format!(", {before} of them in an earlier run"),
            };
            parts.push(paint.red(&format!("{failed} failed{before}")));
        }
        for (number, what) in [(self.cut, "cut"), (self.there, "there before")] {
            if number > 0 {
                parts.push(format!("{number} {what}"));
            }
        }
        if self.dropped > 0 {
            parts.push(format!("{} begun and dropped", self.dropped));
        }
        let (tokens, passes) = (count(self.tokens, "token"), count(passes, "pass"));
        let more = if pressed && goes_on { "; the same command goes on" } else { "" };
        note!(
            "[{end}; {}, {tokens} in {passes}, {rate:.1} tokens/s, {seconds:.2} s{more}]",
            parts.join(", ")
        );
        match (pressed, failed) {
            (true, _) => Exit::Interrupted,
            (false, 0) => Exit::Success,
            (false, _) => Exit::Failure,
        }
    }
}
