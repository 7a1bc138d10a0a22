//! Counts of a batch: a bar for people while it runs, and a line at its end.

use std::time::Instant;

use crate::terminal::count;
use crate::terminal::failure::{Exit, Paint, note};
use crate::terminal::progress::{self, StepBar};

/// Counts of the texts by what has become of them.
pub(super) struct BatchTally {
    begun: Instant,
    bar: Option<StepBar>,
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
        let bar = match all {
            Some(all) => StepBar::start("writing", all),
            None => StepBar::without_end("writing"),
        };
        Self {
            begun: Instant::now(),
            bar: Some(bar),
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
        if let Some(bar) = &self.bar {
            bar.skip(self.there + self.texts + self.failed);
        }
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
        if let Some(bar) = &self.bar {
            if self.failed > 0 {
                bar.say(format!("writing, {} failed", self.failed));
            }
            bar.one_more();
        }
    }

    /// Runs `work` while the bar is hidden, if a person sees on the same terminal what it prints.
    pub(super) fn beside<T>(&self, seen: bool, work: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) if seen => bar.beside(work),
            _ => work(),
        }
    }

    /// Prints the totals on standard error, and chooses the exit code.
    pub(super) fn finish(mut self, passes: usize, goes_on: bool) -> Exit {
        self.bar = None;
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
