//! Templates: each use with other arguments becomes a rule of its own.

use std::rc::Rc;

use crate::{
    grammar::{errors::quoted, source::Span},
    limits::{Budget, LimitExceeded},
};

use super::{
    scope::Meaning,
    syntax::{ExprKind, LarkDefinition, LarkExpr},
    translate::{ExprSite, LarkResult, LarkTranslator},
};

/// Limit on the bytes of a use of a template, with the values of its parameters. It stops templates that use
/// each other with ever longer arguments.
const LONGEST_USE: usize = 2_000;

/// The values of a template's parameters.
#[derive(Debug)]
pub(super) struct TemplateArguments<'a, 't> {
    values: Vec<(&'t str, TemplateArgument<'a, 't>)>,
}

/// An argument, and the place where it was written.
#[derive(Debug, Clone)]
pub(super) struct TemplateArgument<'a, 't> {
    pub(super) expr: &'a LarkExpr<'t>,
    pub(super) place: ExprSite<'a, 't>,
}

impl<'a, 't> TemplateArguments<'a, 't> {
    /// The value of a parameter; `None` if the name is not one.
    pub(super) fn get(&self, name: &str) -> Option<&TemplateArgument<'a, 't>> {
        self.values.iter().find(|(parameter, _)| *parameter == name).map(|(_, argument)| argument)
    }
}

/// A use of a template that has no rule yet.
#[derive(Debug)]
pub(super) struct Instance<'a, 't> {
    pub(super) name: String,
    pub(super) template: &'a LarkDefinition<'t>,
    pub(super) arguments: Rc<TemplateArguments<'a, 't>>,
    pub(super) place: ExprSite<'a, 't>,
}

impl<'a, 't> LarkTranslator<'a, 't, '_> {
    /// The name of the rule for a template with these arguments.
    pub(super) fn instance(
        &mut self,
        name: &str,
        arguments: &'a [LarkExpr<'t>],
        place: &ExprSite<'a, 't>,
        span: Span,
    ) -> LarkResult<String> {
        let Some(Meaning::Defined(template)) = place.scope.meaning(name) else {
            return Err(crate::grammar::GrammarError::syntax(format!("{} is no template", quoted(name))).at(
                self.source(),
                span,
                "",
            ));
        };
        // The use itself is the name of the rule, so that equal uses share one rule.
        let mut written = place.scope.name(name);
        written.push('{');
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, &parameter) in arguments.iter().zip(&template.parameters) {
            if !values.is_empty() {
                written.push_str(", ");
            }
            write(self.text, argument, place, &mut written);
            if written.len() > LONGEST_USE {
                let limit = LimitExceeded::new(
                    Budget::Expressions,
                    "bytes of a template with its arguments",
                    LONGEST_USE,
                );
                return Err(self
                    .limit(limit, span)
                    .with_hint("templates that use each other with ever longer arguments have no end"));
            }
            // An argument that is itself a parameter has that parameter's value.
            let known = match argument.kind {
                ExprKind::Name(name) => place.arguments.as_ref().and_then(|all| all.get(name)).cloned(),
                _ => None,
            };
            let place = ExprSite { lexeme: false, ..place.clone() };
            values.push((parameter, known.unwrap_or(TemplateArgument { expr: argument, place })));
        }
        written.push('}');
        if self.instances.insert(written.clone(), ()).is_none() {
            self.builder.declare(&written);
            let place = ExprSite { scope: Rc::clone(&place.scope), arguments: None, lexeme: false };
            let arguments = Rc::new(TemplateArguments { values });
            self.waiting.push(Instance { name: written.clone(), template, arguments, place });
        }
        Ok(written)
    }
}

/// Writes an argument so that equal texts are equal arguments. Stops soon after [`LONGEST_USE`] bytes.
fn write<'t>(text: &'t str, expr: &LarkExpr<'t>, place: &ExprSite<'_, 't>, out: &mut String) {
    if out.len() > LONGEST_USE {
        return;
    }
    match &expr.kind {
        ExprKind::Name(name) => match place.arguments.as_ref().and_then(|arguments| arguments.get(name)) {
            Some(argument) => write(text, argument.expr, &argument.place, out),
            None => out.push_str(name),
        },
        ExprKind::Sequence(parts) => list(text, parts, " ", place, out),
        ExprKind::Choice(parts) => list(text, parts, " | ", place, out),
        ExprKind::Both(parts) => list(text, parts, " & ", place, out),
        ExprKind::Template(name, parts) => {
            out.push_str(name);
            list(text, parts, ", ", place, out);
        }
        ExprKind::Not(part) => {
            out.push('~');
            write(text, part, place, out);
        }
        ExprKind::Repeat(part, least, most) => {
            write(text, part, place, out);
            let most = most.map_or_else(String::new, |most| most.to_string());
            out.push_str(&format!("~{least}..{most}"));
        }
        _ => out.push_str(&text[expr.span.range()]),
    }
}

fn list<'t>(
    text: &'t str,
    parts: &[LarkExpr<'t>],
    between: &str,
    place: &ExprSite<'_, 't>,
    out: &mut String,
) {
    out.push('(');
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push_str(between);
        }
        write(text, part, place, out);
    }
    out.push(')');
}
