//! The meeting of a run and its drafter: the drafter sees places of the text and the noise of its draws.

use std::time::Duration;

use super::super::{
    error::DecodeError,
    row::PassRow,
    run::{Step, TextRun},
    sampling::likely::likely_of,
    stats::timed,
};
use crate::{
    ids::TokenId,
    proposer::{Drafter, Seen, Site},
    session::Constraint,
    vocab::TokenSet,
};

/// Calls `propose` with the run's present place and the number of tokens that a draft may have there. Drafts
/// end at the run's limit of tokens, and at `context`, the number of tokens that the model can hold.
/// `sequence` is scratch.
pub(super) fn ask<T>(
    run: &TextRun,
    context: usize,
    sequence: &mut Vec<TokenId>,
    propose: impl FnOnce(&mut Site<'_>, usize) -> T,
) -> T {
    let length = run.sequence().len();
    // The row behind the last token of a draft gives one more.
    let room = (context - length.min(context)).min(run.room().saturating_sub(1));
    sequence.clear();
    sequence.extend_from_slice(run.sequence());
    let noise = |position, token| run.chooser().sampler().noise(position, token);
    let draw =
        |row: &[f32], tokens: &[TokenId], allowed: Option<&TokenSet>| run.foresee(row, tokens, allowed);
    let temperature = run.chooser().sampler().sampling().temperature();
    let site = Site::new(run.constraint(), sequence, temperature, &noise);
    let mut site = site.ahead(run.is_ahead()).drawing(&draw);
    propose(&mut site, room)
}

/// Takes the next token and shows it to the proposer.
pub(super) fn observed(
    drafter: &mut Drafter,
    run: &mut TextRun,
    row: PassRow<'_>,
    sequence: &mut Vec<TokenId>,
) -> Result<Option<Step>, DecodeError> {
    let before = run.constraint().map(Constraint::fork);
    let length = run.sequence().len();
    // Where there is no mask to be had, the run may need none: only the proposer goes without.
    let (row, likely) = match row.listed() {
        _ if !drafter.wants_likely() => (row, None),
        Some(near) => (row, Some(likely_of(near))),
        None => {
            let row = row.bring(run)?;
            let likely = match &row {
                PassRow::Here(row) => run.likely(row).ok(),
                PassRow::There(_) => None,
            };
            (row, likely)
        }
    };
    let step = row.take(run)?;
    let mut time = Duration::ZERO;
    timed(&mut time, || {
        sequence.clear();
        sequence.extend_from_slice(&run.sequence()[..length]);
        let noise = |position, token| run.chooser().sampler().noise(position, token);
        let temperature = run.chooser().sampler().sampling().temperature();
        let mut site = Site::new(before.as_ref(), sequence, temperature, &noise);
        let ended = || run.end_of_text();
        if let Some(token) = step.map(|step| step.token).or_else(ended) {
            drafter.observe(&mut site, Seen::new(token, likely.as_deref()));
        }
    });
    run.stats_mut().draft_time += time;
    Ok(step)
}
