//! Finite sets of strings -> several automata.

use super::{
    emit::StringEmitter,
    spelling::{quoted, spell},
};
use crate::grammar::json_schema::{dfa::CharDfa, leaf::LeafError};

/// Characters of a piece of a string that is too long for one automaton.
const PIECE_CHARS: usize = 256;

impl StringEmitter<'_> {
    /// Adds these strings in several automata. Sorted strings share their beginnings, so neighbours go
    /// together.
    pub(super) fn strings(&mut self, strings: &[String]) -> Result<(), LeafError> {
        let mut open = vec![strings];
        while let Some(strings) = open.pop() {
            if let Ok(automaton) = CharDfa::of(strings).and_then(|dfa| quoted(&dfa, self.style)) {
                self.automaton(automaton)?;
            } else if let [only] = strings {
                self.long(only)?;
            } else {
                let (before, after) = strings.split_at(strings.len() / 2);
                open.extend([after, before]);
            }
        }
        Ok(())
    }

    /// Adds one string in pieces.
    fn long(&mut self, string: &str) -> Result<(), LeafError> {
        let characters: Vec<char> = string.chars().collect();
        let mut row = vec![self.quote()?];
        for piece in characters.chunks(PIECE_CHARS) {
            let piece = CharDfa::of([piece.iter().collect::<String>()])?;
            row.push(self.pattern(spell(&piece, self.style, (false, false))?)?);
        }
        row.push(self.quote()?);
        let whole = self.builder.sequence(row, self.span)?;
        self.parts.push(whole);
        Ok(())
    }
}
