//! Random grammars, vocabularies and walks.
//!
//! The alphabet is tiny, so that terminals overlap and tokens cross them, and has characters of one to
//! four bytes, so that tokens cut them. Recursion of every kind, empty strings, cycles, ambiguity and
//! dead ends are frequent. A failing grammar is printed much like GBNF.

use std::fmt;

use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, Lookahead, TokenId, TokenSet, Vocabulary,
    grammar::{AnyOrder, AnyOrderPart, GrammarBuilder, Pattern, Span},
    ids::ExprId,
    oracle::Oracle,
};
use proptest::{collection::vec, prelude::*, test_runner::FileFailurePersistence};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// Characters of texts, common ones first and more than once.
pub(super) const ALPHABET: [char; 12] = ['a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'é', 'è', '漢', '😀'];

/// The special token that ends no text.
pub(super) const SPECIAL: &str = "<special>";

/// Regular expressions that are terminals or parts of them. Some match the empty string, one matches nothing.
const REGEXES: [&str; 12] = [
    "[ab]+",
    "a*",
    "(?:ab|c)?",
    "[^a]",
    "(?:a|ab|abc)",
    "b[a-cé]{1,3}",
    "(?:aa)*b",
    "[^ab]*c",
    "(?:é|è)+",
    "[a&&b]",
    "(?s:.)",
    "(?:a(?:b(?:c)?)?)?",
];

/// A part of a rule.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A string of bytes, which may cut characters.
    Literal(Vec<u8>),
    /// The special token of the vocabulary; not in [`rules`], see [`super::grammars::specials`].
    Special,
    /// One character in (or, if the flag is set, not in) the ranges.
    Class(Vec<(char, char)>, bool),
    /// A regular expression.
    Regex(&'static str),
    /// The rule of this number modulo the number of rules.
    Rule(u8),
    /// The rule that contains this node.
    This,
    /// A sequence of nodes.
    Sequence(Vec<Node>),
    /// A choice of nodes.
    Alternatives(Vec<Node>),
    /// `min` to `max` repetitions.
    Repeat(Box<Node>, u32, Option<u32>),
    /// Parts in any order; not in [`rules`], see [`super::grammars::any_order`].
    AnyOrder(Box<Parts>),
}

/// Parts in any order, by names and marks.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) parts: Vec<(Node, Option<u32>, u8)>,
    pub(super) separator: Node,
    pub(super) required: Vec<bool>,
    pub(super) marks: u8,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

/// The rules of a grammar; rule 0 is the start.
#[derive(Clone)]
pub(super) struct Rules(pub Vec<Node>);

impl Node {
    fn build(&self, builder: &mut GrammarBuilder, this: usize, rules: usize) -> ExprId {
        let at = Span::default();
        let parts = |nodes: &[Node], builder: &mut GrammarBuilder| -> Vec<ExprId> {
            nodes.iter().map(|node| node.build(builder, this, rules)).collect()
        };
        match self {
            Self::Literal(bytes) => builder.pattern(Pattern::literal(bytes), at),
            Self::Special => builder.special(SPECIAL, at),
            Self::Class(ranges, negated) => {
                let ranges = ranges.iter().map(|&(first, last)| ClassUnicodeRange::new(first, last));
                let mut class = ClassUnicode::new(ranges);
                if *negated {
                    class.negate();
                }
                builder.pattern(Pattern::class(class), at)
            }
            Self::Regex(regex) => {
                let hir = regex_syntax::parse(regex).unwrap();
                builder.pattern(Pattern::from_hir(hir).unwrap(), at)
            }
            Self::Rule(number) => builder.rule_ref(&rule_name(usize::from(*number) % rules), at),
            Self::This => builder.rule_ref(&rule_name(this), at),
            Self::Sequence(nodes) => {
                let nodes = parts(nodes, builder);
                builder.sequence(nodes, at)
            }
            Self::Alternatives(nodes) => {
                let nodes = parts(nodes, builder);
                builder.alternatives(nodes, at)
            }
            Self::Repeat(node, min, max) => {
                let node = node.build(builder, this, rules);
                builder.repeat(node, *min, *max, at)
            }
            Self::AnyOrder(list) => {
                let separator = list.separator.build(builder, this, rules);
                let mut all = AnyOrder::new(Vec::new(), Vec::new(), separator);
                for (node, name, marks) in &list.parts {
                    let expr = node.build(builder, this, rules);
                    all.parts.push(AnyOrderPart { expr, name: *name, marks: *marks });
                }
                all.required = list.required.clone();
                (all.marks, all.min, all.max) = (list.marks, list.min, list.max);
                builder.any_order(all, at)
            }
        }
        .unwrap()
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, this: usize, rules: usize) -> fmt::Result {
        let join = |f: &mut fmt::Formatter<'_>, nodes: &[Self], between: &str| {
            for (index, node) in nodes.iter().enumerate() {
                f.write_str(if index > 0 { between } else { "" })?;
                node.print(f, this, rules)?;
            }
            Ok(())
        };
        match self {
            Self::Literal(bytes) => write!(f, "\"{}\"", bytes.utf8_chunks().fold(String::new(), quote)),
            Self::Special => f.write_str(SPECIAL),
            Self::Class(ranges, negated) => {
                write!(f, "[{}", if *negated { "^" } else { "" })?;
                for (first, last) in ranges {
                    write!(f, "{first}-{last}")?;
                }
                write!(f, "]")
            }
            Self::Regex(regex) => write!(f, "/{regex}/"),
            Self::Rule(number) => f.write_str(&rule_name(usize::from(*number) % rules)),
            Self::This => f.write_str(&rule_name(this)),
            Self::Sequence(nodes) if nodes.is_empty() => f.write_str("\"\""),
            Self::Sequence(nodes) => join(f, nodes, " "),
            Self::Alternatives(nodes) if nodes.is_empty() => f.write_str("[]"),
            Self::Alternatives(nodes) => {
                f.write_str("(")?;
                join(f, nodes, " | ")?;
                f.write_str(")")
            }
            Self::Repeat(node, min, max) => {
                f.write_str("(")?;
                node.print(f, this, rules)?;
                match (min, max) {
                    (min, Some(max)) => write!(f, "){{{min},{max}}}"),
                    (min, None) => write!(f, "){{{min},}}"),
                }
            }
            Self::AnyOrder(list) => {
                write!(f, "any order of {}..{:?} with marks {}", list.min, list.max, list.marks)?;
                write!(f, " and required {:?} between ", list.required)?;
                list.separator.print(f, this, rules)?;
                list.parts.iter().try_for_each(|(node, name, marks)| {
                    write!(f, "; {name:?} with {marks}: ")?;
                    node.print(f, this, rules)
                })
            }
        }
    }
}

fn quote(mut text: String, chunk: std::str::Utf8Chunk<'_>) -> String {
    text.push_str(chunk.valid());
    for byte in chunk.invalid() {
        text.push_str(&format!("\\x{byte:02X}"));
    }
    text
}

fn rule_name(number: usize) -> String {
    format!("r{number}")
}

impl Rules {
    /// Builds the grammar.
    pub(super) fn build(&self) -> Grammar {
        let mut builder = GrammarBuilder::new(&Limits::default());
        for (number, node) in self.0.iter().enumerate() {
            let body = node.build(&mut builder, number, self.0.len());
            builder.define(&rule_name(number), body, Span::default()).unwrap();
        }
        builder.finish(&rule_name(0)).unwrap()
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, node) in self.0.iter().enumerate() {
            write!(f, "\n    {} ::= ", rule_name(number))?;
            node.print(f, number, self.0.len())?;
        }
        Ok(())
    }
}

/// A string over the alphabet.
pub(super) fn text(characters: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = String> {
    vec(proptest::sample::select(&ALPHABET[..]), characters).prop_map(String::from_iter)
}

/// A string over the alphabet from which bytes may be cut on both sides.
fn cut_text() -> impl Strategy<Value = Vec<u8>> {
    (text(1..=4), 0..4_usize, 0..4_usize).prop_map(|(text, front, back)| {
        let bytes = text.into_bytes();
        if front + back < bytes.len() { bytes[front..bytes.len() - back].to_vec() } else { bytes }
    })
}

fn class() -> impl Strategy<Value = Node> {
    let character = || proptest::sample::select(&ALPHABET[..]);
    let range = (character(), character(), any::<bool>())
        .prop_map(|(one, other, single)| if single { (one, one) } else { (one.min(other), one.max(other)) });
    (vec(range, 1..=2), prop::bool::weighted(0.2)).prop_map(|(ranges, negated)| Node::Class(ranges, negated))
}

fn leaf() -> impl Strategy<Value = Node> + Clone {
    prop_oneof![
        8 => text(1..=3).prop_map(|text| Node::Literal(text.into_bytes())),
        1 => cut_text().prop_map(Node::Literal),
        3 => class(),
        3 => proptest::sample::select(&REGEXES[..]).prop_map(Node::Regex),
        9 => any::<u8>().prop_map(Node::Rule),
        1 => Just(Node::Sequence(Vec::new())),
    ]
    .boxed()
}

fn counts() -> impl Strategy<Value = (u32, Option<u32>)> {
    prop_oneof![
        3 => Just((0, Some(1))),
        2 => Just((0, None)),
        2 => Just((1, None)),
        2 => (0..4_u32, 0..4_u32).prop_map(|(min, more)| (min, Some(min + more))),
        1 => (0..4_u32).prop_map(|min| (min, None)),
    ]
}

pub(super) fn node(depth: u32) -> BoxedStrategy<Node> {
    leaf()
        .prop_recursive(depth, 10, 3, |inner| {
            prop_oneof![
                6 => vec(inner.clone(), 2..=3).prop_map(Node::Sequence),
                5 => vec(inner.clone(), 2..=3).prop_map(Node::Alternatives),
                3 => (inner, counts()).prop_map(|(node, (min, max))| Node::Repeat(Box::new(node), min, max)),
            ]
        })
        .boxed()
}

/// A rule in which `recursive`, made of a random part, stands beside an alternative that ends it.
fn recursive(shape: fn(Node, Node) -> Vec<Node>) -> BoxedStrategy<Node> {
    (node(1), node(1), leaf())
        .prop_map(move |(one, other, end)| Node::Alternatives(vec![Node::Sequence(shape(one, other)), end]))
        .boxed()
}

fn optional(node: Node) -> Node {
    Node::Repeat(Box::new(node), 0, Some(1))
}

fn rule() -> impl Strategy<Value = Node> {
    prop_oneof![
        8 => node(3),
        2 => recursive(|one, _| vec![Node::This, one]),
        2 => recursive(|one, _| vec![one, Node::This]),
        2 => recursive(|one, other| vec![one, Node::This, other]),
        1 => recursive(|one, _| vec![Node::This, one, Node::This]),
        1 => recursive(|_, _| vec![Node::This, Node::This]),
        2 => recursive(|one, other| vec![optional(one), Node::This, other]),
        1 => recursive(|one, _| vec![optional(one), Node::This]),
        1 => (any::<u8>(), node(1)).prop_map(|(rule, end)| {
            Node::Alternatives(vec![Node::Rule(rule), Node::This, end])
        }),
        1 => leaf().prop_map(|leaf| Node::Alternatives(vec![leaf, Node::Sequence(Vec::new())])),
    ]
}

/// A random grammar.
pub(super) fn rules() -> impl Strategy<Value = Rules> {
    vec(rule(), 2..=6).prop_map(Rules)
}

/// A random grammar of nested counted repeats, which can be counted in many ways.
fn counted_rules() -> impl Strategy<Value = Rules> {
    let literal = |text: &str| Node::Literal(text.into());
    let around = move |mark: &str, rule| Node::Sequence(vec![literal(mark), Node::Rule(rule), literal(mark)]);
    let part = prop_oneof![
        3 => proptest::sample::select(&["a", "b", "aa", "ab", "c"][..]).prop_map(literal),
        2 => proptest::sample::select(&REGEXES[..]).prop_map(Node::Regex),
        3 => (0..3_u8).prop_map(move |rule| around("a", rule)),
        2 => (0..3_u8).prop_map(move |rule| around("aa", rule)),
        1 => (0..3_u8).prop_map(move |rule| Node::Sequence(vec![literal("b"), Node::Rule(rule)])),
        1 => (1..3_u8).prop_map(Node::Rule),
    ];
    let counts = (0..4_u32, prop::option::weighted(0.9, 0..10_u32))
        .prop_map(|(min, more)| (min, more.map(|more| min + more)));
    let repeat = (vec(part, 1..=4), counts)
        .prop_map(|(parts, (min, max))| Node::Repeat(Box::new(Node::Alternatives(parts)), min, max));
    let rule = prop_oneof![3 => repeat.clone(), 1 => vec(repeat, 2..=3).prop_map(Node::Sequence)];
    vec(rule, 3).prop_map(|mut rules| {
        // A language that has a text, whatever the others are.
        rules[0] = Node::Alternatives(vec![rules[0].clone(), Node::Literal(b"c".to_vec())]);
        Rules(rules)
    })
}

/// The words of a vocabulary.
#[derive(Clone)]
pub(super) struct Words {
    tokens: Vec<Vec<u8>>,
    /// True if the bytes of the alphabet are tokens too.
    bytes: bool,
    ends: usize,
    /// True if special ids come before all others.
    specials_first: bool,
}

impl Words {
    /// Builds the vocabulary, with `more` tokens.
    fn build(&self, more: &[Vec<u8>]) -> Vocabulary {
        let mut texts = [&self.tokens[..], more].concat();
        if self.bytes {
            let mut bytes: Vec<u8> = String::from_iter(ALPHABET).into_bytes();
            bytes.extend(*b"d\x00\x80\xFF");
            bytes.sort_unstable();
            bytes.dedup();
            texts.extend(bytes.into_iter().map(|byte| vec![byte]));
        }
        let specials = self.ends + 1;
        let (texts_at, specials_at) = if self.specials_first { (specials, 0) } else { (0, texts.len() + 3) };
        let id = |index: usize| TokenId::from_index(index).unwrap();
        let mut builder = Vocabulary::builder().special(id(specials_at), SPECIAL);
        for end in 0..self.ends {
            builder = builder.end_of_text(id(specials_at + 1 + end));
        }
        for (index, bytes) in texts.into_iter().enumerate() {
            builder = builder.token(id(texts_at + index), bytes);
        }
        builder.build().unwrap()
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for bytes in &self.tokens {
            write!(f, "\"{}\" ", bytes.escape_ascii())?;
        }
        write!(f, "bytes: {}, ends: {}, specials first: {}", self.bytes, self.ends, self.specials_first)
    }
}

fn words() -> impl Strategy<Value = Words> {
    let token = prop_oneof![
        6 => text(1..=4).prop_map(String::into_bytes),
        3 => cut_text(),
        1 => Just(Vec::new()),
    ];
    (vec(token, 0..12), vec(any::<u8>(), 0..2), prop::bool::weighted(0.85), 1..=2_usize, any::<bool>())
        .prop_map(|(mut tokens, again, bytes, ends, specials_first)| {
            // Some tokens have the bytes of others.
            let twice: Vec<_> = again
                .iter()
                .filter_map(|&n| tokens.get(usize::from(n) % tokens.len().max(1)).cloned())
                .collect();
            tokens.extend(twice);
            if !bytes {
                tokens.push(b"a".to_vec());
            }
            Words { tokens, bytes, ends, specials_first }
        })
}

/// A grammar, a vocabulary, and choices that guide a walk.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The rules of the grammar.
    pub(super) rules: Rules,
    /// Words of the vocabulary, without tokens cut from texts of the grammar.
    words: Words,
    /// Texts of the grammar from which tokens are cut.
    texts: Vec<Vec<u8>>,
    /// Choices of a walk, one a step.
    pub(super) choices: Vec<u16>,
}

/// A random case with a walk of up to `steps` steps.
pub(super) fn case(steps: usize) -> impl Strategy<Value = Case> {
    case_of(rules(), steps)
}

/// A random case of nested counted repeats.
pub(super) fn counted_case(steps: usize) -> impl Strategy<Value = Case> {
    case_of(counted_rules(), steps)
}

/// A random case with grammars of `rules`.
pub(super) fn case_of(rules: impl Strategy<Value = Rules>, steps: usize) -> impl Strategy<Value = Case> {
    let texts = vec(vec(any::<u8>(), 1..10), 0..4);
    (rules, words(), texts, vec(any::<u16>(), 1..=steps)).prop_map(|(rules, words, texts, choices)| Case {
        rules,
        words,
        texts,
        choices,
    })
}

/// Grammar, oracle and vocabulary of a [`Case`].
pub(super) struct World {
    pub(super) grammar: Grammar,
    pub(super) oracle: Oracle,
    pub(super) vocabulary: Vocabulary,
}

impl Case {
    /// Builds grammar, oracle and vocabulary.
    pub(super) fn build(&self) -> World {
        let grammar = self.rules.build();
        let oracle = Oracle::new(&grammar).unwrap();
        let more: Vec<_> = self.texts.iter().filter_map(|choices| cut_from_text(&oracle, choices)).collect();
        let vocabulary = self.words.build(&more);
        World { grammar, oracle, vocabulary }
    }
}

/// Walks the grammar by bytes and cuts a part out of the text.
fn cut_from_text(oracle: &Oracle, choices: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = String::from_iter(ALPHABET).into_bytes();
    bytes.sort_unstable();
    bytes.dedup();
    let mut session = oracle.session();
    let mut text = Vec::new();
    for &choice in choices {
        bytes.rotate_left(usize::from(choice) % 11);
        text.extend(bytes.iter().find(|&&byte| session.push(byte)));
    }
    let from = usize::from(choices[0] / 64).min(text.len());
    (from < text.len()).then(|| text[from..].to_vec())
}

impl World {
    /// Compiles the grammar with default budgets, or returns `None` if its language is empty.
    pub(super) fn compile(&self, lookahead: Lookahead) -> Option<CompiledGrammar> {
        self.compile_with(self.compiler().lookahead(lookahead))
    }

    /// A compiler for this world's vocabulary, with much work for a step: only promise 6 is about budgets.
    pub(super) fn compiler(&self) -> Compiler {
        let mut limits = Limits::default();
        limits.step_work *= 100;
        // Some random grammars have millions of completions, which would take minutes of search.
        limits.completion_visits /= 4;
        Compiler::new(self.vocabulary.clone()).limits(limits)
    }

    /// Compiles the grammar by a given compiler, as [`compile`](Self::compile) does.
    pub(super) fn compile_with(&self, compiler: Compiler) -> Option<CompiledGrammar> {
        match compiler.compile(&self.grammar) {
            Ok(compiled) => {
                assert!(self.oracle.has_sentence(), "compiled, but the language is empty");
                Some(compiled)
            }
            Err(error) => {
                assert_eq!(error.kind(), &domino::CompileErrorKind::EmptyLanguage, "{error}");
                assert!(!self.oracle.has_sentence(), "not empty: {error}");
                None
            }
        }
    }

    /// True for an end-of-text token.
    pub(super) fn ends(&self, token: TokenId) -> bool {
        self.vocabulary.end_of_text().contains(&token)
    }

    /// A token of `mask`: any for most choices, end of text for few.
    pub(super) fn choose(&self, mask: &TokenSet, choice: u16) -> Option<TokenId> {
        let (ends, texts): (Vec<_>, Vec<_>) = mask.iter().partition(|&token| self.ends(token));
        let tokens =
            if texts.is_empty() || (choice.is_multiple_of(16) && !ends.is_empty()) { ends } else { texts };
        (!tokens.is_empty()).then(|| tokens[usize::from(choice / 16) % tokens.len()])
    }
}

/// The proptest configuration of the promises: `cases` unless `PROPTEST_CASES` says otherwise; failing
/// seeds are kept beside the test.
pub(super) fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config.failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")));
    config.max_shrink_iters = 4_000;
    config
}

/// Statistics of the random cases: a property of trivial cases would hold vacuously.
#[test]
fn random_cases_are_telling() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};

    const CASES: usize = 300;
    let mut runner = TestRunner::deterministic();
    let (mut sentences, mut steps, mut telling, mut long, mut ended) = (0, 0, 0, 0, 0);
    for _ in 0..CASES {
        let case = case(12).new_tree(&mut runner).unwrap().current();
        let world = case.build();
        sentences += usize::from(world.oracle.has_sentence());
        let mut text = Vec::new();
        for (step, &choice) in case.choices.iter().enumerate() {
            let mask = world.oracle.mask(&text, &world.vocabulary);
            let Some(token) = world.choose(&mask, choice) else { break };
            steps += 1;
            long += usize::from(step == 4);
            if world.ends(token) {
                ended += 1;
                break;
            }
            // Some tokens of several bytes are allowed, and some of the alphabet are not.
            let several = mask.iter().any(|token| world.vocabulary.bytes(token).is_some_and(|b| b.len() > 1));
            telling += usize::from(several && mask.len() < world.vocabulary.size() / 2);
            text.extend_from_slice(world.vocabulary.bytes(token).unwrap_or_default());
        }
    }
    eprintln!(
        "of {CASES} cases {sentences} have sentences, {long} go five steps, {ended} end; \
         of {steps} steps {telling} are telling"
    );
    assert!(sentences > CASES * 7 / 10 && sentences < CASES, "{sentences} have sentences");
    assert!(long > CASES / 3, "{long} go five steps");
    assert!(telling > steps / 4, "{telling} of {steps} steps are telling");
    assert!(ended > CASES / 20, "{ended} end");
}
