//! A short walk from a text through its grammar, held against the oracle where that is cheap.

use std::sync::OnceLock;

use domino::{
    CompileErrorKind, CompiledGrammar, Compiler, Constraint, Grammar, GrammarError, Limits, StepErrorKind,
    Syntax, TokenId, TokenSet, Vocabulary,
    oracle::{Oracle, Session, SortedTokens},
};

/// Most symbols of a grammar over bytes that is given to the oracle.
pub const ORACLE_SYMBOLS: usize = 1_500;
/// Tokens walked.
const STEPS: usize = 5;

/// Budgets with which no input takes long.
pub fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.grammar_bytes = 4_096;
    limits.regex_bytes = 1_024;
    limits.expressions = 2_000;
    limits.repeat = 200;
    limits.regex_nesting = 50;
    limits.dfa_states = 300;
    limits.nfa_bytes = 128 << 10;
    limits.symbols = 10_000;
    limits.parser_bytes = 1 << 20;
    limits.state_bytes = 1 << 20;
    limits.step_work = 20_000;
    limits.tree_bytes = 500_000;
    limits
}

/// The vocabulary of the walks: much of ASCII, some bytes of other characters, some short texts.
pub fn vocabulary() -> &'static Vocabulary {
    static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
    VOCABULARY.get_or_init(|| {
        let bytes = *b" !\"#$&()*+,-./019:;<=>?@AKZ[\\]^_`abcfknsxz{|}~\n\r\0\x7F\xC3\xA9\xE2\x82\xAC\xFF";
        let texts =
            ["aa", "ab", "ba", "abc", "a b", "  ", "{\"", "\": ", "0.", "10", "é", "€", "()", "true", "\r\n"];
        let tokens =
            bytes.map(|byte| vec![byte]).into_iter().chain(texts.map(|text| text.as_bytes().to_vec()));
        let builder = Vocabulary::builder().special(id(1), "<pad>").end_of_text(id(0));
        let numbered = (2..).zip(tokens);
        let builder = numbered.fold(builder, |builder, (number, bytes)| builder.token(id(number), bytes));
        builder.build().expect("a vocabulary")
    })
}

/// The token of a number.
pub fn id(number: usize) -> TokenId {
    TokenId::from_index(number).expect("a small number")
}

/// Reads a grammar. An error must have its places inside the text and be short.
pub fn read(syntax: Syntax, text: &[u8]) -> Option<Grammar> {
    match Grammar::parse_bytes(syntax, text, &limits()) {
        Ok(grammar) => {
            check_spans(&grammar, std::str::from_utf8(text).expect("what is read is UTF-8"));
            Some(grammar)
        }
        Err(error) => {
            check_error(&error, text);
            None
        }
    }
}

fn check_spans(grammar: &Grammar, text: &str) {
    let rules = grammar.rules().map(|rule| grammar.rule_span(rule));
    let exprs = grammar.exprs().map(|(expr, _)| grammar.expr_span(expr));
    for span in rules.chain(exprs) {
        assert!(text.get(span.range()).is_some(), "{span:?} is not in the text");
    }
}

fn check_error(error: &GrammarError, text: &[u8]) {
    for place in error.places() {
        let range = place.span().range();
        assert!(range.start <= range.end && range.end <= text.len(), "{range:?} of {} bytes", text.len());
        if let Ok(text) = std::str::from_utf8(text) {
            assert!(text.get(range.clone()).is_some(), "{range:?} cuts a character");
        }
        assert!(place.position().line >= 1 && place.position().column >= 1);
    }
    let shown = error.to_string();
    assert!(shown.starts_with(error.message()) && !error.message().is_empty());
    assert!(shown.len() < 20_000, "a message of {} bytes", shown.len());
}

/// Compiles; checks that a language is called empty if and only if the oracle says so.
pub fn compile(compiler: &Compiler, grammar: &Grammar, oracle: Option<&Oracle>) -> Option<CompiledGrammar> {
    match compiler.compile(grammar) {
        Ok(compiled) => {
            assert!(oracle.is_none_or(Oracle::has_sentence), "compiled, but the language is empty");
            Some(compiled)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            match error.kind() {
                CompileErrorKind::Limit(_) => {}
                CompileErrorKind::EmptyLanguage => {
                    assert!(!oracle.is_some_and(Oracle::has_sentence), "{error}");
                }
                // The vocabulary has no special token but the end.
                CompileErrorKind::NoSpecialToken(..) | CompileErrorKind::EndsText(_)
                    if !grammar.specials().is_empty() => {}
                // It has none for an image, and beside token classes the byte that marks them is forbidden.
                CompileErrorKind::NoSpecialToken(name, _) if name == "IMAGE" => {}
                CompileErrorKind::SpecialsAmongBytes => {}
                kind => panic!("{kind:?}: {error}"),
            }
            None
        }
    }
}

/// The answer of a step; `None` if a budget is exhausted or there is none. Any other error is a finding.
pub fn unless_limited<T>(answer: Result<T, domino::StepError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        // Greedy lexing may come to where no text ends.
        Err(error) if matches!(error.kind(), StepErrorKind::Limit(_) | StepErrorKind::NoCompletion) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Fails if two masks differ, and names the tokens.
pub fn assert_same(mask: &TokenSet, exact: &TokenSet, vocabulary: &Vocabulary, text: &[u8]) {
    if mask != exact {
        let tokens = (0..vocabulary.size()).map(id);
        let odd: Vec<_> = tokens.filter(|&token| mask.contains(token) != exact.contains(token)).collect();
        let bytes = odd.first().and_then(|&token| vocabulary.bytes(token)).unwrap_or_default();
        panic!(
            "after {:?} the mask is wrong about {odd:?} (first: {:?}, in the mask: {})",
            text.escape_ascii().to_string(),
            bytes.escape_ascii().to_string(),
            odd.first().is_some_and(|&token| mask.contains(token)),
        );
    }
}

/// Compiles `grammar` and walks along its masks, guided by `seed`; `see` gets every text, and whether it is
/// complete.
pub fn walk(grammar: &Grammar, seed: &[u8], mut see: impl FnMut(&[u8], bool)) {
    let oracle = Oracle::within(grammar, ORACLE_SYMBOLS).ok();
    let mut limits = limits();
    if !seed.len().is_multiple_of(4) {
        // Automata of large classes, such as `\w`, take most of the time: not for every input.
        limits.dfa_states = 64;
    }
    let compiler = Compiler::new(vocabulary().clone()).limits(limits);
    let Some(compiled) = compile(&compiler, grammar, oracle.as_ref()) else { return };
    let mut walk =
        Walk { choices: Choices::new(seed), session: oracle.as_ref().map(Oracle::session), text: Vec::new() };
    // The first walk meets everything for the first time, the second one meets what the first has left
    // behind.
    for _ in 0..2 {
        let mut constraint = compiled.constraint();
        walk.restart();
        for _ in 0..STEPS {
            if walk.step(&mut constraint, &mut see).is_none() {
                break;
            }
        }
        if !constraint.is_ended() {
            walk.text_at_once(&mut constraint, seed);
        }
    }
}

struct Walk<'o> {
    choices: Choices,
    session: Option<Session<'o>>,
    text: Vec<u8>,
}

impl Walk<'_> {
    fn restart(&mut self) {
        self.text.clear();
        if let Some(session) = &mut self.session {
            while session.pop() {}
        }
    }

    /// Takes one more token; `None` where that is not possible.
    fn step(&mut self, constraint: &mut Constraint, see: &mut impl FnMut(&[u8], bool)) -> Option<()> {
        let vocabulary = vocabulary();
        see(&self.text, constraint.is_complete());
        let tried = id(self.choices.below(vocabulary.size() + 3));
        let allowed = unless_limited(constraint.allows(tried))?;
        let mask = unless_limited(constraint.mask())?.clone();
        assert_eq!(allowed, mask.contains(tried), "{tried} after {:?}", self.text.escape_ascii().to_string());
        if let Some(session) = &mut self.session {
            assert_same(&mask, &session.mask(sorted_tokens()), vocabulary, &self.text);
            assert_eq!(constraint.is_complete(), session.is_complete());
        }
        if !allowed {
            let error = constraint.advance(tried).expect_err("not in the mask");
            assert!(matches!(error.kind(), StepErrorKind::Refused(_) | StepErrorKind::Limit(_)), "{error}");
        }
        let count = mask.len();
        assert!(count > 0 || self.session.is_none() || !self.can_go_on(), "nothing may follow");
        let token = mask.iter().nth(self.choices.below(count.max(1)))?;
        // A mask by trees needs less work than a step through what they pass over.
        unless_limited(constraint.advance(token))?;
        let Some(bytes) = vocabulary.bytes(token) else {
            assert!(constraint.is_ended() && constraint.mask().is_ok_and(TokenSet::is_empty));
            return None;
        };
        self.text.extend_from_slice(bytes);
        let viable = self.session.as_mut().is_none_or(|session| session.push_all(bytes));
        assert!(viable);
        Some(())
    }

    /// True for a text that is a sentence, or a prefix of one whose next byte this vocabulary can spell.
    fn can_go_on(&mut self) -> bool {
        let Some(session) = &mut self.session else { return false };
        session.is_complete() || !session.mask(sorted_tokens()).is_empty()
    }

    /// Tries text that may not follow: as much of it is taken as is viable.
    fn text_at_once(&mut self, constraint: &mut Constraint, text: &[u8]) {
        let text = &text[..text.len().min(16)];
        let Some(taken) = unless_limited(constraint.advance_bytes(text)) else { return };
        if let Some(session) = &mut self.session {
            let viable = text.iter().take_while(|&&byte| session.push(byte)).count();
            assert_eq!(taken, viable, "{:?} after {:?}", text.escape_ascii(), self.text.escape_ascii());
        }
    }
}

fn sorted_tokens() -> &'static SortedTokens {
    static TOKENS: OnceLock<SortedTokens> = OnceLock::new();
    TOKENS.get_or_init(|| SortedTokens::new(vocabulary()))
}

/// Choices that follow from the input.
#[derive(Debug)]
pub struct Choices {
    state: u64,
}

impl Choices {
    /// Choices seeded with `data`.
    pub fn new(data: &[u8]) -> Self {
        let mix = |state: u64, &byte: &u8| (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        Self { state: data.iter().fold(0xCBF2_9CE4_8422_2325, mix) }
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        usize::try_from(self.state >> 33).map_or(0, |high| high % bound)
    }
}
