//! The shortest completion of a session's text: the grammar's, changed where readers or classes want another.
//!
//! The machine finds the shortest text that the grammar allows. Where it would repeat a key, it is changed at
//! its first repeat; where that does not help, or it would repeat an item, another one is searched byte by
//! byte. Classes of tokens are replaced by the shortest of their tokens.

use super::completion::Completion;
use crate::{
    machine::lock,
    program::{Program, ResolvedClass},
    session::{Constraint, StepError, StepErrorKind, TextPosition},
    special,
};

impl Constraint {
    /// The shortest text that makes this one complete: exactly as few bytes as can be. Among equally short
    /// ones, one of the fewest tokens, as far as a sixteenth of the budget goes ([`Completion::fewest`] says
    /// whether it did); of those a fixed one. If it would repeat a key or an item that must be distinct,
    /// another one is found, which may be a few bytes longer. Empty if the text is complete already. Nothing
    /// moves; [`advance_bytes`](Self::advance_bytes) appends it.
    ///
    /// Costs shortest paths over the open parser sets (Dijkstra's algorithm, over shortest texts of symbols
    /// by Knuth's), and lookups for each byte and each token on a way.
    ///
    /// # Errors
    /// When a budget is used up, above all [`Limits::completion_visits`](crate::Limits::completion_visits):
    /// the shortest text may be exponentially longer than the grammar. With [greedy
    /// lexing](crate::Syntax::LarkGreedy) also if no text completes this one.
    pub fn shortest_completion(&mut self) -> Result<Completion, StepError> {
        match self.here {
            TextPosition::In(mut state) => {
                let found =
                    self.run(&mut state, |machine, program, state, _| machine.completion(program, state))?;
                let found = found.ok_or_else(|| StepError::new(StepErrorKind::NoCompletion))?;
                let found = self.program.without_classes(found);
                let found = self.with_new_keys(found)?;
                self.with_new_items(found)
            }
            TextPosition::Ended(_) => {
                Ok(Completion { tokens: Some(Vec::new()), fewest: true, ..Completion::default() })
            }
        }
    }

    /// Returns a completion in which no key comes twice: the given one if it has none. Otherwise its bytes up
    /// to the first byte that makes the key new, or else the shortest completion that a search byte by byte
    /// finds.
    fn with_new_keys(&mut self, found: Completion) -> Result<Completion, StepError> {
        let Some(keys) = &self.readers.keys else { return Ok(found) };
        let read = keys.clone().read(&found.bytes)?;
        if read == found.bytes.len() {
            return Ok(found);
        }
        let mut other = self.fork();
        let mut bytes = found.bytes[..read].to_vec();
        // Possibly no new key begins with the bytes of this one.
        if other.advance_bytes(&bytes)? < bytes.len() {
            return self.completion_with_readers();
        }
        // The keys that have come are finitely many, so bytes that are no quote lead away from them.
        let next = other.next_bytes()?.into_iter().find(|&byte| byte != b'"' && byte != b'\\');
        let Some(byte) = next else { return self.completion_with_readers() };
        other.advance_bytes(&[byte])?;
        bytes.push(byte);
        bytes.extend_from_slice(&other.shortest_completion()?.bytes);
        Ok(Completion { bytes, tokens: None, fewest: false })
    }

    /// A completion that the readers of keys and items allow, found byte by byte.
    fn completion_with_readers(&mut self) -> Result<Completion, StepError> {
        let mut state = self.here.state();
        let readers = self.readers.clone();
        let bytes = self.run(&mut state, |machine, program, state, _| {
            machine.completion_with_readers(program, state, &readers)
        })?;
        let bytes = bytes.ok_or_else(|| StepError::new(StepErrorKind::NoCompletion))?;
        Ok(Completion { bytes, tokens: None, fewest: false })
    }

    /// Returns a completion in which no item comes again that must not: the given one if it has none, else
    /// the shortest that a search byte by byte finds.
    fn with_new_items(&mut self, found: Completion) -> Result<Completion, StepError> {
        if self.readers.items.is_none() {
            return Ok(found);
        }
        // Behind an item that repeats one, the machine knows nothing of where it may not end.
        if let Ok((state, _)) = self.along(&found.bytes)?
            && lock(&self.machine).is_complete(state)
        {
            return Ok(found);
        }
        self.completion_with_readers()
    }
}

impl Program {
    /// Puts a token in place of each class in a completion; there may be a shorter one then.
    fn without_classes(&self, mut completion: Completion) -> Completion {
        for class in &self.classes {
            let tokens = completion.tokens.iter_mut().flatten().filter(|token| **token == class.id);
            tokens.for_each(|token| *token = class.shortest);
        }
        let bytes = std::mem::take(&mut completion.bytes);
        let mut rest = &bytes[..];
        while let [first, ..] = rest {
            // A name is taken whole: its second mark does not begin another.
            let class = self.classes.iter().find(|class| rest.starts_with(&class.spelled));
            let name = || self.asked.specials.iter().find(|name| is_spelled(rest, name));
            let (text, taken) = if *first != special::MARK {
                (&rest[..1], 1)
            } else if let Some(class) = class {
                completion.fewest = false;
                (self.text_of_shortest(class), class.spelled.len())
            } else {
                let taken = name().map_or(1, |name| name.len() + 2);
                (&rest[..taken], taken)
            };
            completion.bytes.extend_from_slice(text);
            rest = &rest[taken..];
        }
        completion
    }

    /// Returns the text of the shortest token of a class.
    fn text_of_shortest<'p>(&'p self, class: &'p ResolvedClass) -> &'p [u8] {
        let (token, given) = (class.shortest, &self.asked.vocabulary);
        let text = self.vocabulary.bytes(token).or_else(|| given.bytes(token));
        text.or_else(|| class.name(token, given)).unwrap_or_default()
    }
}

/// Does a text begin with the special token of this name, as grammars have it?
fn is_spelled(text: &[u8], name: &str) -> bool {
    let inner = text.get(1..name.len() + 1);
    inner == Some(name.as_bytes()) && text.get(name.len() + 1) == Some(&special::MARK)
}
