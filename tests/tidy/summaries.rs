//! The first sentence of documentation is one: it begins with a noun or a verb, and names what it is about.
//!
//! A machine cannot parse it, so `fragment` looks at how it opens, in what stands before its first `;` or
//! `:`:
//!
//! * with a question word ([`QUESTIONS`]: "What it is.", "How texts are drawn."), where no other clause
//!   follows: at most one of [`VERBS`] is in it;
//! * with a pronoun ([`PRONOUNS`], "The same", "The one that": "Those of a text."), where nothing before it
//!   says whose: of at most [`FEW_WORDS`] words, or without one of the verbs;
//! * with a preposition or conjunction ([`LINKS`]: "By index.", "For tests."), without one of the verbs.
//!
//! What ends in a question mark is a question, and may open so. Of 40 hits drawn by chance, none to two were
//! sentences.

use super::{
    exceptions::{Found, counted},
    source::Source,
};

const QUESTIONS: [&str; 10] =
    ["What", "Which", "Who", "Whom", "Whose", "Why", "How", "Whether", "Where", "When"];
const PRONOUNS: [&str; 9] = ["Its", "Their", "Those", "That", "It", "They", "Them", "Same", "Ditto"];
const LINKS: [&str; 36] = [
    "About", "Against", "Along", "Also", "Among", "And", "As", "At", "Because", "Before", "After", "Behind",
    "Beside", "Between", "But", "By", "For", "From", "If", "In", "Inside", "Into", "Not", "Of", "On", "Or",
    "Outside", "Over", "Per", "Since", "So", "To", "Under", "Until", "With", "Without",
];
/// Quantities that open with a preposition.
const QUANTITIES: [&str; 3] = ["At most", "At least", "About how"];
/// Verbs in a form that makes a sentence, as far as they are frequent.
const VERBS: [&str; 46] = [
    "is", "are", "was", "were", "isn't", "may", "can", "cannot", "must", "might", "has", "have", "had",
    "does", "do", "did", "will", "would", "should", "need", "needs", "comes", "come", "stands", "stand",
    "goes", "go", "stays", "stay", "gives", "holds", "takes", "makes", "means", "returns", "panics",
    "counts", "ends", "begins", "follows", "follow", "becomes", "fails", "share", "leads", "differ",
];
/// Words of a sentence that cannot say much.
const FEW_WORDS: usize = 8;

/// Files with summaries that are fragments.
pub(super) fn fragments(sources: &[Source]) -> Vec<Found> {
    let found = sources.iter().filter_map(|source| {
        let places = summaries(source).into_iter().filter(|(_, summary)| is_fragment(summary));
        let mut found = counted("fragment", source, places.clone().map(|(at, _)| at).collect())?;
        for (place, (_, summary)) in found.places.iter_mut().zip(places) {
            *place = format!("{place}: {summary}");
        }
        Some(found)
    });
    found.collect()
}

/// The first sentences of blocks of documentation, with the places of the blocks.
fn summaries(source: &Source) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut before: Option<(usize, &str)> = None;
    let mut paragraph_ended = false;
    for range in &source.lexed.comments {
        let comment = &source.text[range.clone()];
        let Some(mark) = mark(comment) else { continue };
        let line = comment[mark.len()..].trim_end_matches("*/").trim();
        let goes_on = before.is_some_and(|(end, last)| {
            let between = &source.text[end..range.start];
            last == mark && between.trim().is_empty() && between.matches('\n').count() == 1
        });
        if !goes_on {
            found.push((range.start, String::new()));
            paragraph_ended = false;
        }
        before = Some((range.end, mark));
        let (_, text) = found.last_mut().expect("a block");
        let other = line.is_empty() || line.starts_with(['#', '|']) || line.starts_with("```");
        paragraph_ended |= other && !text.is_empty();
        if !paragraph_ended && !other {
            text.push_str(if text.is_empty() { "" } else { " " });
            text.push_str(line);
        }
    }
    for (_, text) in &mut found {
        text.truncate(sentence_end(text));
    }
    found
}

/// The mark of a comment that is documentation.
fn mark(comment: &str) -> Option<&'static str> {
    let marks = ["///", "//!", "/**", "/*!"];
    let mark = marks.into_iter().find(|mark| comment.starts_with(mark))?;
    // `////` and `/***` are plain comments, `/**/` is an empty one.
    (!comment[mark.len()..].starts_with(['/', '*']) || mark.ends_with('!')).then_some(mark)
}

/// Behind the first point, question or exclamation mark that another sentence or nothing follows.
fn sentence_end(text: &str) -> usize {
    let mut ends = text.match_indices(['.', '?', '!']).map(|(at, _)| at + 1);
    let end = ends.find(|end| {
        let rest = &text[*end..];
        let next = rest.trim_start().chars().next();
        next.is_none_or(|c| rest.starts_with(' ') && !c.is_lowercase())
    });
    end.unwrap_or(text.len())
}

/// True if a sentence opens as none does.
fn is_fragment(sentence: &str) -> bool {
    if sentence.ends_with('?') {
        return false;
    }
    let bare = sentence.trim_start_matches(['*', '_', '[']);
    let clause_end = bare
        .match_indices([';', ':'])
        .find(|(at, _)| bare[at + 1..].starts_with(' ') || at + 1 == bare.len())
        .map_or(bare.len(), |(at, _)| at);
    let clause = &bare[..clause_end];
    let words: Vec<&str> =
        clause.split_whitespace().map(|word| word.trim_matches([',', '.', '(', ')', '*', '_'])).collect();
    let Some(first) = words.first() else { return false };
    let verbs = words.iter().filter(|word| VERBS.contains(word)).count();
    if QUESTIONS.contains(first) {
        return verbs <= 1;
    }
    let opens =
        |with: &str| clause.strip_prefix(with).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    let stands_in = ["The same", "The one that", "The one of", "The ones"].into_iter().any(opens);
    if stands_in || PRONOUNS.contains(first) {
        return verbs == 0 || bare.split_whitespace().count() <= FEW_WORDS;
    }
    LINKS.contains(first) && verbs == 0 && !QUANTITIES.into_iter().any(opens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_that_are_fragments_are_found() {
        for fragment in [
            "What it is.",
            "Those of a text.",
            "Its name.",
            "It as bytes for a file.",
            "The same, of a state.",
            "The one that new sessions get.",
            "That of the program.",
            "Which sequence.",
            "How texts of a grammar are drawn.",
            "Why a step could not be taken.",
            "Where the tensors' bytes start in the file.",
            "When it began, in UTC.",
            "What the terminal does to the tokens at and below the trie nodes just met, in any order.",
            "What JSON forbids: keys that are there, and items that may not be there again.",
            "By index.",
            "Of a root: the state that it is the root of.",
            "For tests.",
            "As [`new`](Self::new), with a limit.",
            "Without `RUST_LOG`.",
            "*What* it is",
        ] {
            assert!(is_fragment(fragment), "{fragment}");
        }
    }

    #[test]
    fn sentences_are_not_taken_for_fragments() {
        for sentence in [
            "The name.",
            "A token of a vocabulary.",
            "Reads a file.",
            "Is it a text?",
            "What is it?",
            "What the grammar forbids is never written, whatever the model may want.",
            "Where a draft ends is what the planner has found.",
            "In a string, each byte is a character.",
            "After end of text nothing may follow.",
            "At most one.",
            "The same tokens come from every engine, whatever its speed and its threads may be.",
            "Items come in order.",
            "`what` the user calls it.",
            "Whatever.",
            "",
        ] {
            assert!(!is_fragment(sentence), "{sentence}");
        }
    }

    fn summaries_of(text: &str) -> Vec<String> {
        summaries(&Source::new("a.rs", text)).into_iter().map(|(_, summary)| summary).collect()
    }

    #[test]
    fn summaries_are_first_sentences() {
        let text = "//! The head,\n//! over lines. More.\n\n/// One, e.g. this. `Two`.\n///\n/// Three.\n";
        assert_eq!(summaries_of(text), ["The head, over lines.", "One, e.g. this."]);
        assert_eq!(summaries_of("//! A.\n/// B.\nfn a() { \"\n/// no\n\" } // no\n//// no\n"), ["A.", "B."]);
        assert_eq!(summaries_of("/// A.\n\n/// B [`a::b`]\n/// # C\n"), ["A.", "B [`a::b`]"]);
        assert_eq!(summaries_of("/** A. */ fn a() {}\n/*! B */\n/* no */\n/**/\n"), ["A.", "B"]);
        let source = Source::new("a.rs", "/// The.\nfn a() {}\n\n    /// What it is.\n    b: u8,\n");
        assert_eq!(fragments(&[source])[0].places, ["a.rs:4: What it is."]);
        assert_eq!(fragments(&[Source::new("a.rs", "/// The.\nfn a() {}\n")]).len(), 0);
    }
}
