//! Another engine in the place of llguidance: our own masks behind the interface for peers.

use std::path::Path;

use super::{tests::made_with, *};
use crate::{
    Compiler, Constraint, Grammar, Limits,
    experiment::{Others, Row, Task},
    vocab::{TokenSet, Vocabulary},
};

const DEFINITION: &str = "name = \"p\"\ngrammars = [\"small\"]\nprompts = [\"A: \", \"B\"]\nmax_tokens = 24\n\
    seeds = [0, 1, 2]\nmethods = [\"always\", \"llguidance\"]";

/// Our constraint as another engine; if it `lies`, it allows everything.
struct Own {
    lies: bool,
}

struct Text {
    constraint: Constraint,
    lies: bool,
}

impl Peer for Own {
    fn compile(&self, task: &Task, vocabulary: &Vocabulary) -> Result<Box<dyn PeerGrammar>, PeerError> {
        let grammar = Grammar::parse(task.syntax, &task.grammar, &Limits::default());
        let compiled = Compiler::new(vocabulary.clone()).compile(&grammar.map_err(say)?).map_err(say)?;
        Ok(Box::new(Text { constraint: compiled.constraint(), lies: self.lies }))
    }
}

impl PeerGrammar for Text {
    fn text(&self) -> Result<Box<dyn PeerText>, PeerError> {
        Ok(Box::new(Self { constraint: self.constraint.fork(), lies: self.lies }))
    }
}

impl PeerText for Text {
    fn mask(&mut self, size: usize) -> Result<TokenSet, PeerError> {
        let mut mask = TokenSet::empty(size);
        let all = crate::decode::possible(self.constraint.vocabulary());
        let found = if self.lies { &all } else { self.constraint.mask().map_err(say)? };
        found.iter().for_each(|token| mask.insert(token));
        Ok(mask)
    }

    fn advance(&mut self, token: TokenId) -> Result<(), PeerError> {
        if self.lies { Ok(()) } else { self.constraint.advance(token).map_err(say) }
    }
}

fn say(error: impl std::fmt::Display) -> PeerError {
    PeerError(error.to_string())
}

fn made(folder: &Path, peer: Option<&dyn Peer>) -> Result<Vec<Row>, ExperimentError> {
    made_with(DEFINITION, folder, Others { peer, ..Others::default() })
}

#[test]
fn a_peer_with_our_masks_writes_our_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let rows = made(folder.path(), Some(&Own { lies: false })).unwrap();
    let of = |method: &'static str| rows.iter().filter(move |row| row.run.method == method);
    assert_eq!((of("always").count(), of("llguidance").count()), (6, 6));
    for (ours, theirs) in of("always").zip(of("llguidance")) {
        assert_eq!((&ours.tokens, ours.finish, ours.masks), (&theirs.tokens, theirs.finish, theirs.masks));
        assert_eq!((theirs.run.k, theirs.drafted), (Some(K::Infinite), 0));
        assert!(theirs.compile_seconds.unwrap() > 0.0 && theirs.compile_seconds != ours.compile_seconds);
    }
}

#[test]
fn missing_or_wrong_peers_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let error = made(&folder.path().join("none"), None).unwrap_err();
    assert!(matches!(error, ExperimentError::NoPeer) && error.hint().unwrap().contains("cargo experiment"));
    let error = made(&folder.path().join("wrong"), Some(&Own { lies: true })).unwrap_err();
    assert!(matches!(error, ExperimentError::Run { .. }), "{error}");
}
