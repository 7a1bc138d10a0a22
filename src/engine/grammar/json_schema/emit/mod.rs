//! Sets of values -> grammar IR. Each set that is met gets one rule; a worklist goes through them from the
//! start.

mod array;
mod decided;
mod distinct;
mod nothing;
mod object;
mod outline;
mod plan;
mod space;
mod states;

use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use self::space::Punctuation;
use super::{
    NumberSet, StringSet, ValueSpelling, ValueStyle, WrittenKeys,
    algebra::{Algebra, Formula, FormulaId},
    document::NodeId,
    error::{Checked, PendingError, SchemaErrorKind, shortened},
    options::WhiteSpace,
    strings::word,
};
use crate::{
    grammar::{AnyOrder, DistinctItems, DistinctKeys, Expr, Grammar, GrammarBuilder, Pattern, source::Span},
    ids::ExprId,
    limits::Limits,
};

pub(super) use decided::DecidedObject;
pub use outline::Outline;
pub(super) use outline::outline;
pub(super) use plan::MemberAlternative;
pub(in crate::grammar) use space::around_arguments;

/// Levels of nesting if each level is written differently and no bound is given.
const PRETTY_LEVELS: u32 = 24;
/// Limit on the steps along schemas that are nothing but a reference.
const MOST_ALIASES: usize = 64;

/// The state of writing a grammar.
pub(super) struct SchemaEmitter<'a, 'o> {
    algebra: &'a mut Algebra<'o>,
    builder: GrammarBuilder,
    /// The punctuation written so far, by mark, by level where that matters, and by whether it stands only
    /// after new items.
    marks: HashMap<(Punctuation, u32, bool), ExprId>,
    spelling: ValueSpelling,
    /// True while the arguments of a call in Python are written.
    in_call: bool,
    /// The number of levels that values may have, if each level has rules of its own.
    levels: Option<u32>,
    rules: HashMap<(FormulaId, u32), String>,
    /// The number of times that each name was asked for.
    names: HashMap<String, u32>,
    /// Rules that have no body yet.
    open: Vec<(FormulaId, u32, String)>,
    /// The sets of strings and numbers met so far, by address. `unwritten` and `kept` keep them alive.
    strings: HashMap<*const StringSet, ExprId>,
    numbers: HashMap<*const NumberSet, ExprId>,
    /// The sets of strings that are keys.
    key_sets: HashSet<*const StringSet>,
    unwritten: Vec<Unwritten>,
    kept: Vec<Rc<NumberSet>>,
    keys: HashMap<Rc<str>, ExprId>,
    /// True as long as each key is one terminal.
    keys_are_terminals: bool,
    written: &'a mut WrittenKeys,
    literals: HashMap<&'static str, ExprId>,
    /// The rule of either boolean, once it is made.
    boolean: Option<ExprId>,
    /// The rule that keys must differ, if the grammar cannot say so itself.
    distinct_keys: Option<DistinctKeys>,
    /// The rule that the items of some arrays must differ, if the grammar cannot say so itself.
    distinct_items: Option<DistinctItems>,
    /// The schemas of objects that list members and take any others, unless they say so.
    open_objects: Vec<NodeId>,
    /// The origin of what is being written.
    span: Span,
    node: NodeId,
}

/// A set of strings whose rule has no body yet, and the place where it was met.
struct Unwritten {
    set: Rc<StringSet>,
    name: String,
    span: Span,
    node: NodeId,
}

/// Writes the grammar of a set of values; also returns the schemas of its open objects. `written` holds keys
/// of schemas written before.
pub(super) fn emit(
    algebra: &mut Algebra<'_>,
    root: FormulaId,
    written: &mut WrittenKeys,
    limits: &Limits,
) -> Checked<(Grammar, Vec<NodeId>)> {
    let (options, builder, start) = (algebra.options, algebra.builder(limits), algebra.here());
    let levels = match (options.max_depth, options.white_space) {
        (Some(levels), _) => Some(levels),
        (None, WhiteSpace::Pretty(_)) => Some(PRETTY_LEVELS),
        (None, _) => None,
    };
    let mut emitter = SchemaEmitter {
        spelling: options.spelling(),
        in_call: false,
        algebra,
        builder,
        marks: HashMap::new(),
        levels,
        rules: HashMap::new(),
        names: HashMap::new(),
        open: Vec::new(),
        strings: HashMap::new(),
        numbers: HashMap::new(),
        key_sets: HashSet::new(),
        unwritten: Vec::new(),
        kept: Vec::new(),
        keys: HashMap::new(),
        keys_are_terminals: true,
        written,
        literals: HashMap::new(),
        boolean: None,
        distinct_keys: None,
        distinct_items: None,
        open_objects: Vec::new(),
        span: Span::default(),
        node: start,
    };
    let strings = StringSet::common(emitter.spelling, emitter.algebra.automata.common);
    emitter.algebra.fitting(strings)?.into_iter().for_each(|common| emitter.builder.in_common(common));
    emitter.root(root)?;
    while let Some((id, level, name)) = emitter.open.pop() {
        emitter.rule(id, level, &name)?;
    }
    emitter.write_strings()?;
    if let Some(keys) = emitter.distinct_keys {
        let are_terminals = emitter.keys_are_terminals;
        emitter.builder.distinct_keys(DistinctKeys { are_terminals, ..keys });
    }
    if let Some(items) = emitter.distinct_items {
        emitter.builder.distinct_items(items);
    }
    let open = std::mem::take(&mut emitter.open_objects);
    let problem = |reason| PendingError::new(SchemaErrorKind::Invalid, start, None, reason);
    let grammar = emitter.builder.finish("root").map_err(|_| problem("the grammar is not whole"))?;
    if !nothing::has_text(&grammar) {
        return Err(algebra.nothing_allowed(root));
    }
    Ok((grammar, open))
}

impl SchemaEmitter<'_, '_> {
    /// Writes the start rule: the value, with the white space that may surround it.
    fn root(&mut self, id: FormulaId) -> Checked<()> {
        if self.spelling.style == ValueStyle::Python {
            // Rules of inner values are written later.
            self.in_call = true;
            let shape = self.algebra.expand(id)?;
            let calls = shape.objects.iter().map(|object| self.object(object, 0, "arguments"));
            let calls = calls.collect::<Checked<_>>()?;
            self.in_call = false;
            let body = self.alternatives(calls)?;
            return self.define("root", body);
        }
        let value = self.value(id, 0)?;
        let body = match self.algebra.options.white_space {
            WhiteSpace::Any => {
                let around = self.mark(Punctuation::Around, 0)?;
                self.sequence(vec![around, value, around])?
            }
            _ => value,
        };
        self.define("root", body)
    }

    /// A reference to the rule of a set; the rule is scheduled on first use.
    fn value(&mut self, id: FormulaId, level: u32) -> Checked<ExprId> {
        let id = self.algebra.without_aliases(id)?;
        let level = if self.levels.is_some() { level } else { 0 };
        let name = match self.rules.get(&(id, level)) {
            Some(name) => name.clone(),
            None => {
                let name = self.name(&shortened(&self.algebra.label(id)));
                self.rules.insert((id, level), name.clone());
                self.open.push((id, level, name.clone()));
                name
            }
        };
        self.rule_ref(&name)
    }

    /// A rule name that is not in use yet.
    fn name(&mut self, wanted: &str) -> String {
        let count = self.names.entry(wanted.to_owned()).or_insert(0);
        *count += 1;
        if *count == 1 { wanted.to_owned() } else { format!("{wanted}~{count}") }
    }

    /// Writes the body of a rule.
    fn rule(&mut self, id: FormulaId, level: u32, name: &str) -> Checked<()> {
        if let Formula::Schema { node, .. } | Formula::Value { node, .. } = *self.algebra.formulas.get(id) {
            self.node = node;
            self.algebra.stand_at(node);
            if self.algebra.resolver.documents.document(node) == 0 {
                self.span = self.algebra.resolver.documents.span(node);
            }
        }
        let shape = self.algebra.expand(id)?;
        let (mut alternatives, noted) = (Vec::new(), self.open_objects.len());
        if shape.null {
            alternatives.push(self.literal("null")?);
        }
        match shape.booleans {
            [false, false] => {}
            [true, false] => alternatives.push(self.literal("false")?),
            [false, true] => alternatives.push(self.literal("true")?),
            [true, true] => alternatives.push(self.boolean()?),
        }
        if !shape.numbers.is_empty() {
            alternatives.push(self.number_set(&shape.numbers)?);
        }
        if !shape.strings.is_empty() {
            alternatives.push(self.string_set(&shape.strings)?);
        }
        if self.levels.is_none_or(|levels| level < levels) {
            for array in &shape.arrays {
                alternatives.push(self.array(array, level, name)?);
            }
            for object in &shape.objects {
                alternatives.push(self.object(object, level, name)?);
            }
        }
        // Combinations of schemas have no place of their own.
        if !matches!(self.algebra.formulas.get(id), Formula::Schema { .. }) {
            self.open_objects.truncate(noted);
        }
        let body = self.alternatives(alternatives)?;
        self.define(name, body)
    }

    fn string_set(&mut self, set: &Rc<StringSet>) -> Checked<ExprId> {
        if let Some(&known) = self.strings.get(&Rc::as_ptr(set)) {
            return Ok(known);
        }
        set.written().spell_ahead(self.spelling);
        // A rule is one terminal or one nonterminal, no matter how often it is used.
        let name = self.name(if set.is_all() { "string" } else { "strings" });
        let expr = self.rule_ref(&name)?;
        self.strings.insert(Rc::as_ptr(set), expr);
        self.unwritten.push(Unwritten { set: set.clone(), name, span: self.span, node: self.node });
        Ok(expr)
    }

    /// Writes the rules of all sets of strings. They come last, so that other cores have spelled the large
    /// ones by then.
    fn write_strings(&mut self) -> Checked<()> {
        for Unwritten { set, name, span, node } in std::mem::take(&mut self.unwritten) {
            (self.span, self.node) = (span, node);
            self.algebra.stand_at(node);
            // Who reads a string takes the token's name for the token, so it is left out where there is room.
            let marked =
                self.spelling.style.delimiter().map(|token| set.without(&regex_syntax::escape(token)));
            let common = self.algebra.automata.common;
            let mut emit = |set: &StringSet| set.emit_with(common, &mut self.builder, self.spelling, span);
            let written = match marked {
                Some(Ok(part)) => emit(&part).or_else(|_| emit(&set)),
                _ => emit(&set),
            };
            let mut written = self.algebra.fitting_strings(written)?;
            if self.key_sets.contains(&Rc::as_ptr(&set)) {
                self.keys_are_terminals &= matches!(self.builder.expr(written), Expr::Pattern(_));
            } else if let Some(token) = self.spelling.style.delimiter() {
                let token = self.builder.special(token, span);
                let token = token.map_err(|limit| PendingError::of_limit(node, limit))?;
                written = self.sequence(vec![token, written, token])?;
            }
            self.define(&name, written)?;
        }
        Ok(())
    }

    fn number_set(&mut self, set: &Rc<NumberSet>) -> Checked<ExprId> {
        if let Some(&known) = self.numbers.get(&Rc::as_ptr(set)) {
            return Ok(known);
        }
        let made = set.emit_with(self.algebra.automata.common, &mut self.builder, self.spelling, self.span);
        let written = self.algebra.fitting(made)?;
        let wanted = if set.is_all() { "number" } else { "numbers" };
        let expr = self.as_rule(wanted, written)?;
        self.numbers.insert(Rc::as_ptr(set), expr);
        self.kept.push(set.clone());
        Ok(expr)
    }

    /// The characters that end a key beside white space, where keys stand without quotes.
    fn key_ends(&self) -> Option<&'static str> {
        match self.spelling.style {
            ValueStyle::Delimited(_) => Some(":,{}[]"),
            ValueStyle::Python if self.in_call => Some(":,{}[]=()\"'"),
            _ => None,
        }
    }

    /// A key.
    fn key(&mut self, key: &Rc<str>) -> Checked<ExprId> {
        if let Some(&known) = self.keys.get(key) {
            return Ok(known);
        }
        if let Some(ends) = self.key_ends() {
            if key.is_empty() || key.contains(|c: char| c.is_whitespace() || ends.contains(c)) {
                let reason = "a key with white space or punctuation of JSON cannot stand without quotes";
                return Err(PendingError::new(SchemaErrorKind::Unsupported, self.node, None, reason));
            }
            return self.key_pattern(Pattern::literal(key.as_bytes()));
        }
        let expr = match self.written.get(&(key.as_ref().into(), self.spelling)) {
            Some(pattern) => self.key_pattern(pattern.clone())?,
            None => {
                let expr = match word(key, self.spelling) {
                    Some(automaton) => self.key_pattern(Pattern::automaton(automaton))?,
                    None => {
                        let set = self.algebra.fitting(StringSet::one(key))?;
                        let builder = &mut self.builder;
                        let expr =
                            set.emit_with(self.algebra.automata.common, builder, self.spelling, self.span);
                        self.algebra.fitting(expr)?
                    }
                };
                match self.builder.expr(expr) {
                    Expr::Pattern(pattern) => {
                        self.written.insert((key.as_ref().into(), self.spelling), pattern.clone());
                    }
                    _ => self.keys_are_terminals = false,
                }
                expr
            }
        };
        self.keys.insert(key.clone(), expr);
        Ok(expr)
    }

    fn key_pattern(&mut self, pattern: Pattern) -> Checked<ExprId> {
        let expr = self.builder.pattern(pattern, self.span);
        expr.map_err(|limit| PendingError::of_limit(self.node, limit))
    }

    /// Makes a rule of an expression, and returns a reference to it.
    fn as_rule(&mut self, wanted: &str, body: ExprId) -> Checked<ExprId> {
        let name = self.name(wanted);
        self.define(&name, body)?;
        self.rule_ref(&name)
    }

    fn literal(&mut self, text: &'static str) -> Checked<ExprId> {
        if let Some(&known) = self.literals.get(text) {
            return Ok(known);
        }
        let written = match text {
            _ if self.spelling.style != ValueStyle::Python => text,
            "null" => "None",
            "true" => "True",
            _ => "False",
        };
        let expr = self.pattern(Pattern::literal(written.as_bytes()))?;
        self.literals.insert(text, expr);
        Ok(expr)
    }

    /// Either boolean, as one rule, and so as one terminal, for all uses.
    fn boolean(&mut self) -> Checked<ExprId> {
        if let Some(known) = self.boolean {
            return Ok(known);
        }
        let values = vec![self.literal("false")?, self.literal("true")?];
        let either = self.alternatives(values)?;
        let made = self.as_rule("boolean", either)?;
        self.boolean = Some(made);
        Ok(made)
    }

    /// A byte language that is part of no schema.
    fn pattern(&mut self, pattern: Pattern) -> Checked<ExprId> {
        let expr = self.builder.pattern(pattern, Span::default());
        expr.map_err(|limit| PendingError::of_limit(self.node, limit))
    }

    fn sequence(&mut self, parts: Vec<ExprId>) -> Checked<ExprId> {
        self.builder.sequence(parts, self.span).map_err(|limit| PendingError::of_limit(self.node, limit))
    }

    fn alternatives(&mut self, parts: Vec<ExprId>) -> Checked<ExprId> {
        self.builder.alternatives(parts, self.span).map_err(|limit| PendingError::of_limit(self.node, limit))
    }

    fn list_of(&mut self, parts: AnyOrder) -> Checked<ExprId> {
        self.builder.any_order(parts, self.span).map_err(|limit| PendingError::of_limit(self.node, limit))
    }

    /// Repeats a part `min` to `max` times. A `max` too large for the IR counts as none, as no text reaches
    /// it.
    fn repeat(&mut self, part: ExprId, min: u64, max: Option<u64>) -> Checked<ExprId> {
        let too_many = || self.algebra.too_large(&format!("at least {min} items or members are too many"));
        let min = u32::try_from(min).map_err(|_| too_many())?;
        let max = max.and_then(|max| u32::try_from(max).ok());
        self.builder
            .repeat(part, min, max, self.span)
            .map_err(|limit| PendingError::of_limit(self.node, limit))
    }

    fn rule_ref(&mut self, name: &str) -> Checked<ExprId> {
        self.builder.rule_ref(name, self.span).map_err(|limit| PendingError::of_limit(self.node, limit))
    }

    fn define(&mut self, name: &str, body: ExprId) -> Checked<()> {
        match self.builder.define(name, body, self.span) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.algebra.too_large("two rules have one name")),
        }
    }
}

impl Algebra<'_> {
    /// Follows schemas that are nothing but a reference.
    fn without_aliases(&mut self, id: FormulaId) -> Checked<FormulaId> {
        let mut here = id;
        for _ in 0..MOST_ALIASES {
            let Formula::Schema { node, scope, negated: false } = *self.formulas.get(here) else { break };
            let meaning = self.formula_of(node, scope)?;
            if !matches!(self.formulas.get(meaning), Formula::Schema { .. } | Formula::Any | Formula::Never) {
                break;
            }
            here = meaning;
        }
        Ok(here)
    }

    /// The name for the rule of a set: the pointer of its first schema.
    fn label(&self, id: FormulaId) -> String {
        match self.formulas.get(id) {
            Formula::Any => "any".to_owned(),
            Formula::Schema { node, negated, .. } => {
                let pointer = self.resolver.documents.pointer(*node);
                if *negated { format!("not {pointer}") } else { pointer }
            }
            Formula::And(parts) | Formula::Or(parts) | Formula::One { of: parts, .. } => {
                let first = parts.iter().find_map(|&part| match *self.formulas.get(part) {
                    Formula::Schema { node, .. } => Some(self.resolver.documents.pointer(node)),
                    _ => None,
                });
                format!("{}...", first.unwrap_or_else(|| "value".to_owned()))
            }
            Formula::Never | Formula::Value { .. } | Formula::Leaf { .. } => "value".to_owned(),
        }
    }
}
