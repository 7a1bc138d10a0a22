//! The arguments of a function, each as a text of its own, such as between XML tags.
//!
//! The schema of all arguments is expanded like any other. Its objects say which arguments there are, and the
//! set of values of each argument is split: strings are written as they are ([`raw`]), all else as JSON. A
//! text that reads as JSON of a type that the argument may have is that value ([`reading`]). A string that is
//! spelled like such JSON is written in quotes, as any string may be.

mod raw;
mod reading;

use std::rc::Rc;

pub(in crate::grammar) use super::emit::around_arguments;
pub(in crate::grammar) use raw::ArgumentMarks;
pub(in crate::grammar) use reading::{ArgumentTypes, NumberTypes, Readings, is_space};

use self::raw::RawWriter;
use super::{
    AutomataCache, SchemaError, SchemaOptions, StringSet, WrittenKeys,
    algebra::{Algebra, Depth, Formula, FormulaId},
    dfa::CharDfa,
    emit::{MemberAlternative, emit},
    error::{Checked, PendingError, SchemaErrorKind},
    leaf::LeafError,
    strings::in_utf8,
    with_algebra,
};
use crate::{
    grammar::{Automaton, Grammar, Pattern, Span},
    limits::Limits,
};

/// All arguments of a function.
#[derive(Debug)]
pub(in crate::grammar) struct Arguments {
    /// The alternative lists of arguments, each in order.
    pub(in crate::grammar) ways: Vec<Vec<Argument>>,
    /// True if strings are left out that are too long to be counted.
    pub(in crate::grammar) left_out: bool,
    /// True if an argument may come twice, or a key within one.
    pub(in crate::grammar) may_repeat: bool,
}

/// An argument.
#[derive(Debug)]
pub(in crate::grammar) struct Argument {
    pub(in crate::grammar) name: ArgumentName,
    pub(in crate::grammar) required: bool,
    /// Texts of strings, from the `>` of the opening tag to the end of the closing one.
    pub(in crate::grammar) texts: Vec<Pattern>,
    /// JSON of the values, if any value is written so.
    pub(in crate::grammar) json: Option<Grammar>,
    /// The place of its schema in the text.
    pub(in crate::grammar) span: Span,
}

/// The name of an argument, or a set of names.
#[derive(Debug)]
pub(in crate::grammar) enum ArgumentName {
    Is(Rc<str>),
    /// Any number of arguments with names of this language.
    In(Automaton),
}

/// A member of an object, before it is written.
struct ObjectMember {
    name: MemberKey,
    required: bool,
    value: FormulaId,
}

enum MemberKey {
    Is(Rc<str>),
    In(Rc<StringSet>),
}

/// Reads the schema of a function's arguments, for texts with these marks.
///
/// # Errors
/// As [`SchemaOptions::parse`]; also if no object is allowed, or if the number of arguments has bounds of its
/// own.
pub(in crate::grammar) fn arguments(
    marks: &'static ArgumentMarks,
    options: &SchemaOptions,
    text: &str,
    limits: &Limits,
    automata: &AutomataCache,
) -> Result<Arguments, SchemaError> {
    let work = |algebra: &mut Algebra<'_>, start| {
        let ways = ways(algebra, start)?;
        let readings = readings(algebra, &ways)?;
        let mut maker = Maker {
            limits,
            readings,
            writer: RawWriter::new(automata, marks, options.spaces_arguments()),
            keys: WrittenKeys::new(),
            left_out: false,
            may_repeat: ways.iter().flatten().any(|member| matches!(member.name, MemberKey::In(_))),
            missing: None,
        };
        let mut made = Vec::new();
        for way in ways {
            made.extend(maker.way(algebra, way)?);
        }
        match made.is_empty() {
            true => Err(maker.missing.unwrap_or_else(|| algebra.nothing_allowed(start))),
            false => Ok(Arguments { ways: made, left_out: maker.left_out, may_repeat: maker.may_repeat }),
        }
    };
    Ok(with_algebra(options, text, limits, automata, work)?.0)
}

/// Works out how the values of a function's arguments are to be read back from text.
///
/// # Errors
/// As [`arguments`].
pub(in crate::grammar) fn readings_of(
    options: &SchemaOptions,
    text: &str,
    limits: &Limits,
) -> Result<Readings, SchemaError> {
    let work = |algebra: &mut Algebra<'_>, start| {
        let ways = ways(algebra, start)?;
        readings(algebra, &ways)
    };
    Ok(with_algebra(options, text, limits, &AutomataCache::of_one_call(), work)?.0)
}

/// The members of each alternative object that a schema allows.
fn ways(algebra: &mut Algebra<'_>, start: FormulaId) -> Checked<Vec<Vec<ObjectMember>>> {
    let shape = algebra.expand(start)?;
    let here = algebra.here();
    if shape.objects.is_empty() {
        if algebra.is_surely_empty(start, Depth::ITEM) {
            return Err(algebra.nothing_allowed(start));
        }
        let reason = "the arguments of a function are an object, which this schema does not allow";
        return Err(PendingError::new(SchemaErrorKind::Unsupported, here, None, reason));
    }
    let mut ways = Vec::new();
    for object in &shape.objects {
        let plan = algebra.plan(object)?;
        if plan.max.is_some_and(|max| max < plan.min) {
            continue;
        }
        let keyword = match (plan.min, object.max) {
            (1.., _) => Some("minProperties"),
            (_, Some(_)) if plan.max.is_some() => Some("maxProperties"),
            _ => None,
        };
        if let Some(keyword) = keyword {
            let reason = "the number of arguments between tags cannot be bounded";
            return Err(PendingError::unsupported(here, keyword, reason));
        }
        if plan.wanted != 0 {
            let reason = "arguments between tags cannot be asked for under one of several names";
            return Err(PendingError::new(SchemaErrorKind::Unsupported, here, None, reason));
        }
        let either = |algebra: &mut Algebra<'_>, ways: &[MemberAlternative]| {
            algebra.formulas.or(ways.iter().map(|way| way.value))
        };
        let mut members = Vec::new();
        for member in plan.members.iter().chain(&plan.listed) {
            let value = either(algebra, &member.ways);
            members.push(ObjectMember {
                name: MemberKey::Is(member.key.clone()),
                required: member.required,
                value,
            });
        }
        for region in &plan.regions {
            let value = either(algebra, &region.ways);
            members.push(ObjectMember { name: MemberKey::In(region.keys.clone()), required: false, value });
        }
        ways.push(members);
    }
    Ok(ways)
}

/// The reading of each argument, over all alternatives.
fn readings(algebra: &mut Algebra<'_>, ways: &[Vec<ObjectMember>]) -> Checked<Readings> {
    let mut readings = Readings::default();
    let mut all = ArgumentTypes::default();
    for member in ways.iter().flatten() {
        let reading = ArgumentTypes::of(&*algebra.expand(member.value)?);
        all = all.or(reading);
        match &member.name {
            MemberKey::Is(name) => {
                let known = readings.named.entry(name.as_ref().into()).or_default();
                *known = known.or(reading);
            }
            MemberKey::In(_) => readings.others = Some(readings.others.unwrap_or_default().or(reading)),
        }
    }
    // A name that one alternative lists may be any other argument in another alternative.
    if ways.len() > 1 && readings.others.is_some() {
        readings.named.values_mut().for_each(|reading| *reading = all);
        readings.others = Some(all);
    }
    Ok(readings)
}

/// A writer of the patterns and grammars of arguments.
struct Maker<'l> {
    limits: &'l Limits,
    readings: Readings,
    writer: RawWriter<'l>,
    keys: WrittenKeys,
    left_out: bool,
    may_repeat: bool,
    /// The reason why the first alternative that could not be written could not.
    missing: Option<Box<PendingError>>,
}

impl Maker<'_> {
    /// The arguments of an alternative; `None` if a required one has no text.
    fn way(&mut self, algebra: &mut Algebra<'_>, way: Vec<ObjectMember>) -> Checked<Option<Vec<Argument>>> {
        let mut made = Vec::with_capacity(way.len());
        for member in way {
            let required = member.required;
            match self.argument(algebra, member)? {
                Ok(argument) => made.push(argument),
                Err(problem) if required => {
                    self.missing.get_or_insert(problem);
                    return Ok(None);
                }
                // Optional arguments without a text are left out.
                Err(_) => {}
            }
        }
        Ok(Some(made))
    }

    /// Writes an argument, or says why it has no text.
    fn argument(
        &mut self,
        algebra: &mut Algebra<'_>,
        member: ObjectMember,
    ) -> Checked<Result<Argument, Box<PendingError>>> {
        let span = algebra.stand_before(member.value);
        let none = |algebra: &Algebra<'_>, reason: &str| {
            Ok(Err(PendingError::new(SchemaErrorKind::NoInstance, algebra.here(), None, reason)))
        };
        // The name must not end its own tag.
        let marks = self.writer.marks;
        let end = marks.name_end();
        let (name, reading) = match &member.name {
            MemberKey::Is(name) if name.contains(end) => {
                return none(algebra, &format!("a name with `{end}` cannot stand between tags"));
            }
            MemberKey::Is(name) => (ArgumentName::Is(name.clone()), self.readings.of(name)),
            MemberKey::In(keys) => {
                let names = names(keys, end);
                let Some(names) = algebra.fitting(names)? else {
                    return none(algebra, &format!("names with `{end}` cannot stand between tags"));
                };
                (ArgumentName::In(names), self.readings.others)
            }
        };
        let reading = reading.unwrap_or_default();
        // Strings stand as they are between the tags, values of other types as JSON.
        let shape = algebra.expand(member.value)?;
        let texts = self.writer.texts(&shape.strings, &reading);
        let texts = algebra.fitting_strings(texts)?;
        let json = if reading.has_others() {
            match emit(algebra, member.value, &mut self.keys, self.limits) {
                Ok((grammar, _)) => Some(grammar),
                Err(problem) if problem.kind != SchemaErrorKind::NoInstance => return Err(problem),
                Err(problem) if texts.patterns.is_empty() => return Ok(Err(problem)),
                Err(_) => None,
            }
        } else {
            None
        };
        // Nothing can stand there: say whether the schema or the spelling is to blame.
        if texts.patterns.is_empty() && json.is_none() {
            if shape.strings.is_empty() {
                return Ok(Err(algebra.nothing_allowed(member.value)));
            }
            let reason = format!("every string has `{}` in it, which ends an argument", marks.end);
            return none(algebra, &reason);
        }
        self.left_out |= texts.left_out;
        self.may_repeat |= json.as_ref().is_some_and(|grammar| grammar.distinct_keys().is_some());
        let ObjectMember { required, .. } = member;
        Ok(Ok(Argument { name, required, texts: texts.patterns, json, span }))
    }
}

/// The names of a set as bytes, without those that contain the character that ends a name; `None` if none is
/// left.
fn names(keys: &StringSet, end: char) -> Result<Option<Automaton>, LeafError> {
    let names = keys.subtract(&StringSet::from_pattern(end.encode_utf8(&mut [0; 4]))?)?;
    let mut all = CharDfa::none();
    for (min, max, dfa) in names.windows() {
        all = all.or(&dfa.within(min, max)?)?;
    }
    if all.is_empty() { Ok(None) } else { in_utf8(&all).map(Some) }
}

impl Algebra<'_> {
    /// Makes the first schema of a formula the place of later problems, and returns its span.
    fn stand_before(&mut self, id: FormulaId) -> Span {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            match self.formulas.get(id) {
                &Formula::Schema { node, .. } | &Formula::Value { node, .. } => {
                    self.stand_at(node);
                    break;
                }
                Formula::And(parts) | Formula::Or(parts) | Formula::One { of: parts, .. } => {
                    open.extend(parts.iter().rev());
                }
                Formula::Any | Formula::Never | Formula::Leaf { .. } => {}
            }
        }
        let documents = &self.resolver.documents;
        if documents.document(self.here()) == 0 { documents.span(self.here()) } else { Span::default() }
    }
}
