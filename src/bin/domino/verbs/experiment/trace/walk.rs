//! Timed walks along the tokens of a text, with any engine, and Domino as such an engine.
//!
//! Only the engine's own calls are timed; looking at a mask is not. Times are in nanoseconds and include the
//! cost of one pair of clock readings ([`clock_cost`]).

use std::{fmt, time::Instant};

use clap::ValueEnum;
use domino::{
    CompiledGrammar, Compiler, Constraint, Lookahead, Patience, StepError, Terminals, TokenId, Vocabulary,
};
use serde::Serialize;

/// A mask engine with one grammar compiled, as a walk needs it.
pub(crate) trait Engine {
    /// The state of one text that is being written.
    type Request;
    /// The reason why a step failed.
    type Error: fmt::Display;

    /// Makes a request at the start of a text.
    fn start(&self) -> Result<Self::Request, Self::Error>;
    /// Makes the mask of the whole vocabulary available.
    fn mask(&self, request: &mut Self::Request) -> Result<(), Self::Error>;
    /// True if `token` is in the last mask.
    fn holds(&self, request: &mut Self::Request, token: TokenId) -> Result<bool, Self::Error>;
    /// The digest of the last mask.
    fn digest(&self, request: &mut Self::Request) -> Result<Digest, Self::Error>;
    /// True if `token` may follow; asked where no mask was made.
    fn allows(&self, request: &mut Self::Request, token: TokenId) -> Result<bool, Self::Error>;
    /// Goes on by `token`.
    fn commit(&self, request: &mut Self::Request, token: TokenId) -> Result<(), Self::Error>;
}

/// A digest of a mask, which is enough to compare it with the exact one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    /// Number of text tokens allowed.
    pub(crate) pop: u64,
    /// Hash (FNV-1a, 64 bit) of the mask's bytes without special tokens.
    pub(crate) hash: u64,
    /// True if the text may end.
    pub(crate) eos: bool,
}

impl Digest {
    /// Makes the digest of the `allowed` ids of a vocabulary of ids `0..size`, of which `ends` end a text.
    pub(crate) fn new(
        allowed: impl IntoIterator<Item = TokenId>,
        size: usize,
        ends: impl Fn(TokenId) -> bool,
    ) -> Self {
        let mut bytes = vec![0_u8; size.div_ceil(32) * 4];
        let (mut pop, mut eos) = (0, false);
        for token in allowed {
            if ends(token) {
                eos = true;
            } else if let Some(byte) = bytes.get_mut(token.index() / 8) {
                *byte |= 1 << (token.index() % 8);
                pop += 1;
            }
        }
        let hash = bytes.into_iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self { pop, hash, eos }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let eos = if self.eos { "with" } else { "without" };
        write!(f, "{} tokens {:016x} {eos} end of text", self.pop, self.hash)
    }
}

/// The times of one walk with masks. A text of `n` tokens has `n + 1` masks and `n` commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Time of making the request.
    pub(crate) start: u64,
    pub(crate) masks: Vec<u64>,
    pub(crate) commits: Vec<u64>,
    /// The step of the first token that the mask did not hold; the walk ended there.
    pub(crate) rejected_at: Option<usize>,
}

/// The times of one walk without masks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checks {
    /// Times of asking whether the token may follow.
    pub(crate) allows: Vec<u64>,
    /// Times of asking and then committing the token.
    pub(crate) check_commits: Vec<u64>,
}

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Stuck {
    pub(crate) step: usize,
    pub(crate) what: String,
}

impl Stuck {
    fn at<E: fmt::Display>(step: usize) -> impl FnOnce(E) -> Self {
        move |error| Self { step, what: error.to_string() }
    }
}

/// Walks along `tokens`, with a mask before each and one at the end. With `digests` every mask is looked at,
/// which disturbs the times of the steps after it.
pub(crate) fn walk<E: Engine>(
    engine: &E,
    tokens: &[TokenId],
    mut digests: Option<&mut Vec<Digest>>,
) -> Result<Walk, Stuck> {
    let mut walk = Walk {
        masks: Vec::with_capacity(tokens.len() + 1),
        commits: Vec::with_capacity(tokens.len()),
        ..Walk::default()
    };
    let (request, start) = timed(|| engine.start());
    let mut request = request.map_err(Stuck::at(0))?;
    walk.start = start;
    for step in 0..=tokens.len() {
        let (made, time) = timed(|| engine.mask(&mut request));
        made.map_err(Stuck::at(step))?;
        walk.masks.push(time);
        if let Some(digests) = &mut digests {
            digests.push(engine.digest(&mut request).map_err(Stuck::at(step))?);
        }
        let Some(&token) = tokens.get(step) else { break };
        if !engine.holds(&mut request, token).map_err(Stuck::at(step))? {
            walk.rejected_at = Some(step);
            break;
        }
        let (done, time) = timed(|| engine.commit(&mut request, token));
        done.map_err(Stuck::at(step))?;
        walk.commits.push(time);
    }
    Ok(walk)
}

/// Walks along `tokens` and asks for each whether it may follow, without masks (opportunistic masking).
pub(crate) fn check<E: Engine>(engine: &E, tokens: &[TokenId]) -> Result<Checks, Stuck> {
    let mut checks =
        Checks { allows: Vec::with_capacity(tokens.len()), check_commits: Vec::with_capacity(tokens.len()) };
    let mut request = engine.start().map_err(Stuck::at(0))?;
    for (step, &token) in tokens.iter().enumerate() {
        let begun = Instant::now();
        let allowed = engine.allows(&mut request, token);
        let asked = begun.elapsed();
        if !allowed.map_err(Stuck::at(step))? {
            break;
        }
        let committed = engine.commit(&mut request, token);
        let both = begun.elapsed();
        committed.map_err(Stuck::at(step))?;
        checks.allows.push(nanoseconds(asked));
        checks.check_commits.push(nanoseconds(both));
    }
    Ok(checks)
}

/// The time that reading the clock twice adds to every time, as the median of many.
pub(crate) fn clock_cost() -> u64 {
    let mut empty: Vec<u64> = (0..1001).map(|_| timed(|| ()).1).collect();
    empty.sort_unstable();
    empty[empty.len() / 2]
}

/// Runs `work` and measures its time in nanoseconds.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let begun = Instant::now();
    let result = work();
    let time = begun.elapsed();
    (result, nanoseconds(time))
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos().into())
}

/// The time at which subterminal trees are grown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trees {
    /// Grown when a text first needs them; the mask that needs them then takes longer.
    #[default]
    Lazy,
    /// All grown while compiling, which then takes longer.
    Eager,
    /// All grown while compiling, and masks made of the places that texts come to first; compiling then takes
    /// longest.
    Explored,
}

/// The tables of a grammar's terminals that are there when it is compiled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tables {
    /// None: what terminals do to the vocabulary is worked out within the measured time.
    #[default]
    Cold,
    /// All: the same terminals were compiled for the same vocabulary before, as in a server after its first
    /// grammars.
    Kept,
}

/// Limits the threads of everything that is measured. Only the first call in a process counts.
pub(crate) fn at_most(threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    if let Err(error) = pool.build_global() {
        tracing::warn!("more threads than {threads} may be at work: {error}");
    }
}

/// A maker of compiled grammars for measuring.
#[derive(Debug)]
pub(crate) struct Setup {
    vocabulary: Vocabulary,
    lookahead: Lookahead,
    terminals: Terminals,
    trees: Trees,
    kept: Option<Compiler>,
}

impl Setup {
    /// Makes a setup with cold tables.
    pub(crate) fn new(vocabulary: Vocabulary, lookahead: Lookahead, trees: Trees) -> Self {
        Self { vocabulary, lookahead, terminals: Terminals::default(), trees, kept: None }
    }

    /// Sets the terminals.
    pub(crate) fn over(mut self, terminals: Terminals) -> Self {
        self.terminals = terminals;
        self
    }

    fn fresh(&self) -> Compiler {
        Compiler::new(self.vocabulary.clone())
            .patience(Patience::whole())
            .lookahead(self.lookahead)
            .terminals(self.terminals)
    }

    /// Fills the tables of this grammar's terminals and keeps them from now on.
    pub(crate) fn keep_tables<E>(
        &mut self,
        compile: impl FnOnce(&Compiler) -> Result<CompiledGrammar, E>,
    ) -> Result<(), E> {
        let compiler = self.fresh();
        compile(&compiler)?.grow_trees();
        self.kept = Some(compiler);
        Ok(())
    }

    /// Compiles a grammar that has seen no text.
    pub(crate) fn compile<E>(
        &self,
        compile: impl FnOnce(&Compiler) -> Result<CompiledGrammar, E>,
    ) -> Result<Compiled, E> {
        let grammar = match &self.kept {
            Some(compiler) => compile(compiler)?,
            None => compile(&self.fresh())?,
        };
        match self.trees {
            Trees::Lazy => {}
            Trees::Eager => grammar.grow_trees(),
            Trees::Explored => {
                grammar.explore();
            }
        }
        Ok(Compiled { grammar })
    }
}

/// A compiled grammar.
#[derive(Debug)]
pub(crate) struct Compiled {
    grammar: CompiledGrammar,
}

impl Engine for Compiled {
    type Request = Constraint;
    type Error = StepError;

    fn start(&self) -> Result<Constraint, StepError> {
        Ok(self.grammar.constraint())
    }

    fn mask(&self, request: &mut Constraint) -> Result<(), StepError> {
        request.mask().map(|_| ())
    }

    fn holds(&self, request: &mut Constraint, token: TokenId) -> Result<bool, StepError> {
        Ok(request.mask()?.contains(token))
    }

    fn digest(&self, request: &mut Constraint) -> Result<Digest, StepError> {
        let vocabulary = self.grammar.vocabulary();
        Ok(Digest::new(request.mask()?.iter(), vocabulary.size(), |token| vocabulary.is_end_of_text(token)))
    }

    fn allows(&self, request: &mut Constraint, token: TokenId) -> Result<bool, StepError> {
        request.allows(token)
    }

    fn commit(&self, request: &mut Constraint, token: TokenId) -> Result<(), StepError> {
        request.advance(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_of_the_bytes_without_the_end_of_text() {
        let token = TokenId::new;
        let digest = Digest::new([token(0), token(9), token(33)], 34, |id| id == token(33));
        // The expected hash is FNV-1a of 01 02 00 00 00 00 00 00.
        assert_eq!(digest, Digest { pop: 2, hash: 0x1472_283d_c0d2_955a, eos: true });
        assert_eq!(Digest::new([], 1, |_| false).hash, 0x4d25_767f_9dce_13f5);
    }
}
