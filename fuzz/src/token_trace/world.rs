//! A grammar, a vocabulary and budgets, made from bytes.

use std::sync::{Arc, OnceLock};

use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Lookahead, Syntax, Vocabulary,
    grammar::{GrammarBuilder, Pattern, Span},
    ids::ExprId,
    limits::LimitExceeded,
    oracle::Oracle,
};

use super::super::{bytes::Bytes, walk};

/// Grammars that went wrong before, here or in other engines: ambiguity, nullable parts, recursion on both
/// sides, terminals that overlap or contain each other.
const GRAMMARS: [&str; 20] = [
    r#"root ::= root root root | root root | "a""#,
    r#"root ::= "a"* "b"* ("a" | "b")*"#,
    r#"root ::= "(" root ")" | root root | "" "#,
    r#"root ::= x ("," x)*  x ::= "(" x? ")" | [a-b]+"#,
    r#"root ::= root "," x | x  x ::= "a" | "ab" | "b""#,
    r#"root ::= c+ ([ ,] c+)*  c ::= [ab]"#,
    r#"root ::= ([^(] | "(" [^)])*"#,
    concat!(
        r#"root ::= ws "(" ws list ws ")" ws  list ::= (x ws ("," ws x ws)*)?  "#,
        r#"x ::= [ab]+ | root  ws ::= (" " ws)?"#,
    ),
    r#"root ::= a b c  a ::= b? "a"?  b ::= c? "b"?  c ::= "(" a ")" | "" "#,
    r#"root ::= "if(" root ")" root ("b" root)? | "a,""#,
    r#"root ::= s s  s ::= "(" [^()]* ")" | "(" s ")""#,
    r#"root ::= [ab]+ "ab" | [ab]* "(" | "aab" root"#,
    r#"root ::= "a"{2,3} root? | ("ab"){0,2} "(" | "b"{3}"#,
    r#"root ::= "\u00e9"+ | [^a]* "\u00e9" | . "a""#,
    r#"root ::= e  e ::= e "," t | t  t ::= t "(" f ")" | f  f ::= "a" | "b" | "(" e ")""#,
    r#"root ::= x x x x  x ::= "a"? "b"? y  y ::= "a"? | "," x"#,
    r#"root ::= "a" root "a" | "b" root "b" | "a" | "b" | "" "#,
    include_str!("../../../grammars/arithmetic.gbnf"),
    include_str!("../../../grammars/json.gbnf"),
    include_str!("../../../grammars/csv.gbnf"),
];
/// Literals of generated grammars, and the first tokens of every vocabulary.
const TEXTS: [&str; 16] =
    ["a", "b", "(", ")", ",", "", "ab", "ba", "aa", "((", ")(", "a,", "é", " ", "\"", "aab("];
/// Patterns of generated grammars.
const PATTERNS: [&str; 10] =
    ["[ab]+", "[^a]", "[ab]*b", "(?:ab)*", "a|ab|b", "(?s).", "é|[^(]{2}", "[(),]+", "a?b?", "[^ab]*a"];
/// Bytes that tokens are made of.
const ALPHABET: [u8; 12] = [b'a', b'b', b'(', b')', b',', b' ', b'"', b'1', 0xC3, 0xA9, b'{', 0xFF];
/// Most expressions of a generated grammar.
const EXPRESSIONS: usize = 40;
/// Names of the rules of a generated grammar.
const RULES: [&str; 3] = ["root", "x", "y"];

/// A grammar with its oracle, if that is cheap.
pub(super) struct Language {
    pub(super) grammar: Grammar,
    pub(super) oracle: Option<Oracle>,
}

impl Language {
    fn new(grammar: Grammar) -> Arc<Self> {
        let oracle = Oracle::within(&grammar, walk::ORACLE_SYMBOLS).ok();
        Arc::new(Self { grammar, oracle })
    }

    /// One of [`GRAMMARS`], read once.
    fn listed(choice: usize) -> Option<Arc<Self>> {
        static LISTED: [OnceLock<Arc<Language>>; GRAMMARS.len()] =
            [const { OnceLock::new() }; GRAMMARS.len()];
        let text = GRAMMARS.get(choice)?;
        let read = || Self::new(Grammar::parse(Syntax::Gbnf, text, &Limits::default()).expect("a grammar"));
        Some(Arc::clone(LISTED[choice].get_or_init(read)))
    }
}

/// Source of the subterminal trees.
enum Trees {
    Lazy,
    Eager,
    Read,
}

/// Grammar, vocabulary and budgets of a trace.
pub(super) struct World {
    pub(super) language: Arc<Language>,
    pub(super) vocabulary: Vocabulary,
    pub(super) lookahead: Lookahead,
    /// True if budgets may be exhausted.
    pub(super) is_tight: bool,
    /// Number of steps that can be rolled back.
    pub(super) history: usize,
    trees: Trees,
    limits: Limits,
}

impl World {
    /// Makes a world; `None` if the bytes name none.
    pub(super) fn new(bytes: &mut Bytes<'_>) -> Option<Self> {
        let language = match Language::listed(bytes.below(GRAMMARS.len() * 2)) {
            Some(language) => language,
            None => Language::new(generated(bytes)?),
        };
        let vocabulary = vocabulary(bytes);
        let lookahead = match bytes.below(8) {
            few @ 0..=2 => Lookahead::Terminals(u32::try_from(few).expect("few")),
            _ => Lookahead::Unbounded,
        };
        let (limits, is_tight, trees) = limits(bytes);
        Some(Self { language, vocabulary, lookahead, is_tight, history: limits.history, trees, limits })
    }

    /// Makes the trees ahead, if this world does.
    pub(super) fn grow(&self, compiled: &CompiledGrammar) {
        match self.trees {
            Trees::Lazy => {}
            Trees::Eager => compiled.grow_trees(),
            Trees::Read => {
                let other = self.compiler().compile(&self.language.grammar).expect("compiled before");
                compiled.load_artefact(&other.artefact()).expect("an artefact of the same grammar");
            }
        }
    }

    /// The compiler with this world's budgets.
    pub(super) fn compiler(&self) -> Compiler {
        self.roomy_compiler().limits(self.limits.clone())
    }

    /// The compiler with default budgets. It folds the same rules, since the reach of a bounded lookahead
    /// depends on that.
    pub(super) fn roomy_compiler(&self) -> Compiler {
        let mut limits = Limits::default();
        limits.fold_states = self.limits.fold_states;
        Compiler::new(self.vocabulary.clone()).lookahead(self.lookahead).limits(limits)
    }
}

/// Makes budgets that only cost time, and in some worlds budgets that are soon exhausted.
fn limits(bytes: &mut Bytes<'_>) -> (Limits, bool, Trees) {
    let mut limits = Limits::default();
    let choice = bytes.byte();
    limits.fold_states = if choice & 1 == 0 { limits.fold_states } else { 0 };
    limits.tree_bytes = if choice & 2 == 0 { limits.tree_bytes } else { usize::from(choice >> 4) << 8 };
    limits.mask_bytes = if choice & 4 == 0 { limits.mask_bytes } else { usize::from(choice >> 6) * 300 };
    limits.history = if choice & 64 == 0 { limits.history } else { usize::from(choice & 3) };
    let is_tight = choice & 8 != 0;
    if is_tight {
        limits.state_bytes = 400 + usize::from(bytes.byte()) * 16;
        limits.parser_bytes = 1_000 + usize::from(bytes.byte()) * 64;
        limits.step_work = 64 + usize::from(bytes.byte()) * 4;
    }
    let trees = match choice >> 4 & 3 {
        1 => Trees::Eager,
        2 => Trees::Read,
        _ => Trees::Lazy,
    };
    (limits, is_tight, trees)
}

/// Makes a vocabulary: the fixed tokens, and some more of a few bytes of the alphabet.
fn vocabulary(bytes: &mut Bytes<'_>) -> Vocabulary {
    let mut builder = Vocabulary::builder().end_of_text(walk::id(0)).special(walk::id(1), "<pad>");
    let mut next = 2;
    let mut add = |builder: domino::vocab::VocabularyBuilder, token: &[u8]| {
        next += 1;
        builder.token(walk::id(next), token)
    };
    for text in TEXTS {
        builder = add(builder, text.as_bytes());
    }
    for byte in [b'1', b'.', b'+', b'{', b'}', b':', b't', b'\n', 0xC3] {
        builder = add(builder, &[byte]);
    }
    for _ in 0..bytes.below(8) {
        let token: Vec<u8> = (0..=bytes.below(4)).map(|_| bytes.pick(&ALPHABET)).collect();
        builder = add(builder, &token);
    }
    if bytes.below(4) == 0 {
        builder = builder.end_of_text(walk::id(next + 3));
    }
    builder.build().expect("a vocabulary")
}

/// A grammar of a few rules.
fn generated(bytes: &mut Bytes<'_>) -> Option<Grammar> {
    let mut builder = GrammarBuilder::new(&Limits::default());
    for name in RULES {
        let mut left = EXPRESSIONS;
        let body = expression(&mut builder, bytes, 4, &mut left).ok()?;
        builder.define(name, body, Span::default()).ok()?;
    }
    builder.finish("root").ok()
}

fn expression(
    builder: &mut GrammarBuilder,
    bytes: &mut Bytes<'_>,
    depth: usize,
    left: &mut usize,
) -> Result<ExprId, LimitExceeded> {
    *left = left.saturating_sub(1);
    let span = Span::default();
    let kinds = if depth == 0 || *left == 0 { 5 } else { 10 };
    match bytes.below(kinds) {
        0..=2 => builder.pattern(Pattern::literal(bytes.pick(&TEXTS).as_bytes()), span),
        3 => {
            let hir = regex_syntax::parse(bytes.pick(&PATTERNS)).expect("a regular expression");
            builder.pattern(Pattern::from_hir(hir).expect("no look-around"), span)
        }
        4 => builder.rule_ref(bytes.pick(&RULES), span),
        kind @ 5..=8 => {
            let count = [2, 3, 0, 1][bytes.below(4)];
            let parts: Result<Vec<_>, _> =
                (0..count).map(|_| expression(builder, bytes, depth - 1, left)).collect();
            if kind % 2 == 1 { builder.sequence(parts?, span) } else { builder.alternatives(parts?, span) }
        }
        _ => {
            let (min, max) = bytes.pick(&[
                (0, Some(1)),
                (0, None),
                (1, None),
                (0, Some(2)),
                (2, Some(3)),
                (3, Some(3)),
                (0, Some(0)),
            ]);
            let part = expression(builder, bytes, depth - 1, left)?;
            builder.repeat(part, min, max, span)
        }
    }
}
