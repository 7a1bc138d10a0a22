//! Resolves the names of one Lark grammar, and checks every use of them. A nested grammar is a scope of its
//! own.

use std::collections::HashMap;

use super::syntax::{Ending, ExprKind, LarkDefinition, LarkExpr, LarkItem, is_terminal};
use crate::grammar::{
    errors::{GrammarError, GrammarErrorKind, MOST_SHOWN, quoted, quoted_list},
    source::{Source, Span},
    suggest, token_numbers,
};

/// The name of the start rule.
const START: &str = "start";

/// The meaning of a name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meaning<'a, 't> {
    /// A rule, a template or a terminal.
    Defined(&'a LarkDefinition<'t>),
    /// An imported terminal, with its expression.
    Imported(&'static str),
}

/// The names of a grammar.
#[derive(Debug)]
pub(super) struct Scope<'a, 't> {
    /// The text before the names of its rules in the IR.
    pub(super) prefix: String,
    pub(super) names: HashMap<&'t str, (Meaning<'a, 't>, Span)>,
    /// The definitions in the text's order.
    pub(super) definitions: Vec<&'a LarkDefinition<'t>>,
    /// The imported terminals in the text's order.
    pub(super) imported: Vec<(&'t str, &'static str, Span)>,
    pub(super) ignored: Vec<&'a LarkExpr<'t>>,
    /// The places of `%llguidance` values.
    pub(super) options: Vec<Span>,
    pub(super) start: &'a LarkDefinition<'t>,
}

/// The surroundings of an expression, which say what may be used in it.
#[derive(Clone, Copy)]
struct UseSite<'p> {
    /// The parameters of the template around it.
    parameters: &'p [&'p str],
    /// The name of the definition that is one lexeme, if the expression is part of one.
    lexeme: Option<&'p str>,
}

/// Collects the names of `items`, and checks every use.
pub(super) fn of<'a, 't>(
    text: &'t str,
    items: &'a [LarkItem<'t>],
    prefix: String,
    at: Span,
) -> Result<Scope<'a, 't>, GrammarError> {
    let mut collector = Collector { source: Source::new(text), names: HashMap::new(), undefined: Vec::new() };
    let (mut definitions, mut imported) = (Vec::new(), Vec::new());
    let (mut ignored, mut options) = (Vec::new(), Vec::new());
    for item in items {
        match item {
            LarkItem::Define(definition) => {
                collector.define(definition.name, Meaning::Defined(definition), definition.span)?;
                definitions.push(definition);
            }
            LarkItem::Import { module, module_span, names } => {
                for &(name, span, local) in names {
                    let expression = collector.import(module, *module_span, name, span)?;
                    collector.define(local, Meaning::Imported(expression), span)?;
                    imported.push((local, expression, span));
                }
            }
            LarkItem::Ignore(body) => ignored.push(body),
            LarkItem::Options(value) => options.push(*value),
        }
    }
    for definition in &definitions {
        collector.definition(definition)?;
    }
    for body in &ignored {
        collector.uses(body, UseSite { parameters: &[], lexeme: Some("%ignore") })?;
    }
    if !collector.undefined.is_empty() {
        return Err(collector.undefined());
    }
    collector.terminals_end(&definitions)?;
    let start = collector.start(&definitions, at)?;
    let names = collector.names;
    Ok(Scope { prefix, names, definitions, imported, ignored, options, start })
}

struct Collector<'a, 't> {
    source: Source<'t>,
    names: HashMap<&'t str, (Meaning<'a, 't>, Span)>,
    undefined: Vec<(&'t str, Span)>,
}

impl<'a, 't> Collector<'a, 't> {
    fn define(&mut self, name: &'t str, meaning: Meaning<'a, 't>, span: Span) -> Result<(), GrammarError> {
        match self.names.insert(name, (meaning, span)) {
            None => Ok(()),
            Some((_, first)) => Err(GrammarError::new(
                GrammarErrorKind::Duplicate(name.to_owned()),
                format!("{} is defined twice", quoted(name)),
            )
            .at(self.source, span, "defined again here")
            .at(self.source, first, "first defined here")
            .with_hint("give one of them another name, or join them with `|`")),
        }
    }

    fn import(
        &self,
        module: &str,
        module_span: Span,
        name: &str,
        span: Span,
    ) -> Result<&'static str, GrammarError> {
        if module != "common" {
            let shown = if module.is_empty() { quoted(name) } else { quoted(module) };
            return Err(GrammarError::unsupported(format!("no module {shown} to import from"))
                .at(self.source, module_span, "")
                .with_hint("there is `common` alone, no files are read: `%import common.NAME`"));
        }
        common_expression(name).ok_or_else(|| {
            let error = GrammarError::new(
                GrammarErrorKind::Undefined(vec![format!("common.{name}")]),
                format!("`common` has no terminal {}", quoted(name)),
            );
            let label = match suggest::nearest(name, common_names()) {
                Some(meant) => format!("did you mean {}?", quoted(meant)),
                None => String::new(),
            };
            let all: Vec<&str> = common_names().collect();
            error.at(self.source, span, label).with_hint(format!("it has {}", all.join(", ")))
        })
    }

    fn definition(&mut self, definition: &'a LarkDefinition<'t>) -> Result<(), GrammarError> {
        let lexeme = match (&definition.ending, is_terminal(definition.name)) {
            (Some((_, span)), true) => {
                return Err(GrammarError::syntax(format!(
                    "{} is a terminal, and only rules have options",
                    quoted(definition.name)
                ))
                .at(self.source, *span, "")
                .with_hint("make a rule of it, with a name of small letters"));
            }
            (None, false) => None,
            _ => Some(definition.name),
        };
        let place = UseSite { parameters: &definition.parameters, lexeme };
        self.uses(&definition.body, place)?;
        match &definition.ending {
            Some((Ending::Suffix(value) | Ending::Stop(value), _)) => self.uses(value, place),
            _ => Ok(()),
        }
    }

    /// Checks that everything in `expr` is allowed in its place. Undefined names are only collected.
    fn uses(&mut self, expr: &'a LarkExpr<'t>, place: UseSite<'_>) -> Result<(), GrammarError> {
        let refuse = |what: &str, hint: &str| {
            let inside = place.lexeme.unwrap_or_default();
            let message = format!("{what} cannot be a part of {}, which is one lexeme", quoted(inside));
            Err(GrammarError::syntax(message).at(self.source, expr.span, "").with_hint(hint))
        };
        match &expr.kind {
            ExprKind::Name(name) | ExprKind::Template(name, _) if place.parameters.contains(name) => {
                if let ExprKind::Template(..) = expr.kind {
                    let message = format!("{} is a parameter, and takes no arguments", quoted(name));
                    return Err(GrammarError::syntax(message).at(self.source, expr.span, ""));
                }
            }
            ExprKind::Name(name) => match self.names.get(name) {
                None => self.undefined.push((name, expr.span)),
                Some(_) if place.lexeme.is_some() && !is_terminal(name) => {
                    let what = format!("the rule {}", quoted(name));
                    return refuse(&what, "make it a terminal, with a name of capital letters");
                }
                Some((Meaning::Defined(definition), first)) if !definition.parameters.is_empty() => {
                    return Err(self.arity(expr.span, name, definition.parameters.len(), 0, *first));
                }
                Some(_) => {}
            },
            ExprKind::Template(name, arguments) => match self.names.get(name) {
                None => self.undefined.push((name, expr.span)),
                Some(_) if place.lexeme.is_some() => {
                    return refuse("a template", "only rules can use templates");
                }
                Some((Meaning::Defined(definition), _)) if definition.parameters.len() == arguments.len() => {
                }
                Some((meaning, first)) => {
                    let parameters = match meaning {
                        Meaning::Defined(definition) => definition.parameters.len(),
                        Meaning::Imported(_) => 0,
                    };
                    return Err(self.arity(expr.span, name, parameters, arguments.len(), *first));
                }
            },
            ExprKind::Both(_) if place.lexeme.is_none() => {
                return Err(GrammarError::unsupported(
                    "`&` is for terminals: of rules, no intersection can be had",
                )
                .at(self.source, expr.span, "")
                .with_hint("make a terminal of it, with a name of capital letters"));
            }
            ExprKind::Json(_) if place.lexeme.is_some() => return refuse("a schema", "use it in a rule"),
            ExprKind::Nested(_) if place.lexeme.is_some() => {
                return refuse("a nested grammar", "use it in a rule");
            }
            ExprKind::Special(_) if place.lexeme.is_some() => {
                return refuse("a special token", "use it in a rule");
            }
            ExprKind::Special(name) if token_numbers::begins(name) => {
                token_numbers::read(name, self.source, expr.span)?;
            }
            ExprKind::Reference(name) => return Err(self.unsupported(name, expr.span)),
            _ => {}
        }
        // The operand of `~` is a lexeme, wherever it stands.
        let negated = matches!(expr.kind, ExprKind::Not(_)) && place.lexeme.is_none();
        let place = if negated { UseSite { lexeme: Some("~"), ..place } } else { place };
        expr.parts().iter().try_for_each(|part| self.uses(part, place))
    }

    fn unsupported(&self, name: &str, span: Span) -> GrammarError {
        let name = quoted(name);
        GrammarError::unsupported(format!(
            "the reference {name} to a grammar beside this one is not supported"
        ))
        .at(self.source, span, "")
        .with_hint("write the other grammar as `%lark { .. }`, or a schema as `%json { .. }`")
    }

    fn arity(&self, at: Span, name: &str, parameters: usize, arguments: usize, first: Span) -> GrammarError {
        let message = match parameters {
            0 => format!("{} is no template: it takes no arguments", quoted(name)),
            _ => {
                let plural = if parameters == 1 { "" } else { "s" };
                format!("{} takes {parameters} argument{plural}, and is given {arguments} here", quoted(name))
            }
        };
        GrammarError::syntax(message)
            .at(self.source, at, "")
            .at(self.source, first, "defined here")
            .with_hint(
                "arguments stand in braces right after the name, with commas between: `_list{item, \",\"}`",
            )
    }

    fn undefined(&self) -> GrammarError {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in &self.undefined {
            if !names.contains(name) && names.len() <= MOST_SHOWN {
                names.push(name);
            }
        }
        let list = quoted_list(names.iter().copied());
        let message = match names.len() {
            1 => format!("{list} is used but not defined"),
            count => format!("{count} names are used but not defined: {list}"),
        };
        let kind = GrammarErrorKind::Undefined(names.iter().map(|&name| name.to_owned()).collect());
        let mut error = GrammarError::new(kind, message);
        let mut importable = None;
        for &(name, span) in &self.undefined {
            let label = match suggest::nearest(name, self.names.keys().copied()) {
                _ if common_expression(name).is_some() => {
                    importable = importable.or(Some(name));
                    "a terminal of `common`".to_owned()
                }
                Some(meant) => format!("did you mean {}?", quoted(meant)),
                None => "not defined".to_owned(),
            };
            error = error.at(self.source, span, label);
        }
        match importable {
            Some(name) => error.with_hint(format!("import it: `%import common.{name}`")),
            None => error,
        }
    }

    /// Checks that no terminal is a part of itself, by depth-first search with a stack of its own.
    fn terminals_end(&self, definitions: &[&'a LarkDefinition<'t>]) -> Result<(), GrammarError> {
        let mut done: HashMap<&str, bool> = HashMap::new();
        for definition in definitions.iter().filter(|definition| is_terminal(definition.name)) {
            // An open terminal, and the terminals in it that are left.
            let mut open: Vec<(&'a LarkDefinition<'t>, Vec<&'t str>)> =
                vec![(definition, names_in(&definition.body))];
            if done.contains_key(definition.name) {
                continue;
            }
            done.insert(definition.name, false);
            while let Some((current, rest)) = open.last_mut() {
                let Some(name) = rest.pop() else {
                    done.insert(current.name, true);
                    open.pop();
                    continue;
                };
                let Some((Meaning::Defined(next), _)) = self.names.get(name) else { continue };
                match done.get(name) {
                    Some(true) => {}
                    Some(false) => {
                        let from = open.iter().position(|(open, _)| open.name == name).unwrap_or(0);
                        return Err(self.recursive(&open[from..]));
                    }
                    None => {
                        done.insert(name, false);
                        open.push((next, names_in(&next.body)));
                    }
                }
            }
        }
        Ok(())
    }

    fn recursive(&self, cycle: &[(&LarkDefinition<'t>, Vec<&'t str>)]) -> GrammarError {
        let mut names: Vec<String> = cycle.iter().take(MOST_SHOWN).map(|(one, _)| quoted(one.name)).collect();
        if cycle.len() > MOST_SHOWN {
            names.push("..".to_owned());
        }
        names.extend(names.first().cloned());
        let (first, _) = &cycle[0];
        let error = GrammarError::syntax(format!("the terminal {} is a part of itself", quoted(first.name)))
            .at(self.source, first.span, names.join(" -> "));
        error.with_hint("terminals are regular; what is nested is a rule, with a name of small letters")
    }

    fn start(
        &self,
        definitions: &[&'a LarkDefinition<'t>],
        at: Span,
    ) -> Result<&'a LarkDefinition<'t>, GrammarError> {
        if let Some((Meaning::Defined(start), _)) = self.names.get(START) {
            if start.parameters.is_empty() {
                return Ok(start);
            }
            return Err(GrammarError::syntax("the rule `start`, where every text starts, has parameters")
                .at(self.source, start.span, ""));
        }
        let rules: Vec<&&LarkDefinition<'_>> =
            definitions.iter().filter(|definition| !is_terminal(definition.name)).collect();
        let Some(first) = rules.first() else {
            let error = GrammarError::new(GrammarErrorKind::NoRoot, "the grammar has no rule `start`");
            return Err(error
                .at(self.source, at, "")
                .with_hint("the least grammar is a rule `start: ..`, where every text starts"));
        };
        let names: Vec<&str> = rules.iter().map(|rule| rule.name).collect();
        let meant = suggest::nearest(START, names.iter().copied()).unwrap_or(first.name);
        Err(GrammarError::new(GrammarErrorKind::NoRoot, "there is no rule `start`, where every text starts")
            .at(self.source, first.span, "the first rule")
            .with_hint(format!(
                "rename the start rule to `start`, or add a rule `start` that uses {}; the rules are {}",
                quoted(meant),
                quoted_list(names.into_iter())
            )))
    }
}

/// The names in an expression.
fn names_in<'t>(expr: &LarkExpr<'t>) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut open = vec![expr];
    while let Some(expr) = open.pop() {
        if let ExprKind::Name(name) = expr.kind {
            found.push(name);
        }
        open.extend(expr.parts());
    }
    found
}

// The terminals of `%import common` have the names and languages of Lark's library `common` as llguidance
// reads it: an `ESCAPED_STRING` may contain a line end.

/// The names of the terminals, and their expressions.
const COMMON_TERMINALS: [(&str, &str); 25] = [
    ("DIGIT", "[0-9]"),
    ("HEXDIGIT", "[0-9a-fA-F]"),
    ("INT", "[0-9]+"),
    ("SIGNED_INT", "[+-]?[0-9]+"),
    ("DECIMAL", r"[0-9]+\.[0-9]*|\.[0-9]+"),
    ("_EXP", "[eE][+-]?[0-9]+"),
    ("FLOAT", r"[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("SIGNED_FLOAT", r"[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"),
    ("NUMBER", r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("SIGNED_NUMBER", r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"),
    ("ESCAPED_STRING", r#""(?:[^"\\]|\\.)*""#),
    ("LCASE_LETTER", "[a-z]"),
    ("UCASE_LETTER", "[A-Z]"),
    ("LETTER", "[A-Za-z]"),
    ("WORD", "[A-Za-z]+"),
    ("CNAME", "[A-Za-z_][A-Za-z0-9_]*"),
    ("WS_INLINE", r"[ \t]+"),
    ("WS", r"[ \t\f\r\n]+"),
    ("CR", r"\r"),
    ("LF", r"\n"),
    ("NEWLINE", r"(?:\r?\n)+"),
    ("SH_COMMENT", "#[^\n]*"),
    ("CPP_COMMENT", "//[^\n]*"),
    ("C_COMMENT", r"/\*(?:[^*]|\*+[^*/])*\*+/"),
    ("SQL_COMMENT", "--[^\n]*"),
];

/// The expression of a terminal.
fn common_expression(name: &str) -> Option<&'static str> {
    COMMON_TERMINALS.iter().find(|(known, _)| *known == name).map(|&(_, expression)| expression)
}

/// The names of all terminals.
fn common_names() -> impl ExactSizeIterator<Item = &'static str> {
    COMMON_TERMINALS.iter().map(|&(name, _)| name)
}
