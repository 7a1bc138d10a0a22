//! Keywords of values without parts: types, constants, numbers and strings.

use std::rc::Rc;

use super::{
    super::{
        Decimal, Integers, LeafError, NumberSet, StringSet,
        algebra::{Algebra, FormulaId, Formulas},
        dialect::Dialect,
        document::{NodeId, Value},
        error::{Checked, PendingError, SchemaErrorKind},
        options::{Draft, Format},
    },
    SchemaSite,
};

/// The meaning of "integer" in a schema.
fn integers(site: SchemaSite) -> Integers {
    match site.dialect {
        Dialect::Of(Draft::Draft4) => Integers::BySpelling,
        _ => Integers::ByValue,
    }
}

impl Algebra<'_> {
    /// Reads `type`, with OpenAPI's `nullable` beside it.
    pub(super) fn types(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        let documents = &self.resolver.documents;
        let named: Vec<NodeId> = match documents.value(value) {
            Value::Array(types) => types.clone(),
            _ => vec![value],
        };
        let integers = integers(site);
        let names: Vec<_> = named.into_iter().map(|node| documents.string(node)).collect();
        let any = self.ends.any.clone();
        let mut shape = (*self.ends.never).clone();
        for name in &names {
            match *name {
                Some("null") => shape.null = true,
                Some("boolean") => shape.booleans = [true; 2],
                Some("number") => shape.numbers = any.numbers.clone(),
                Some("integer") if Rc::ptr_eq(&shape.numbers, &any.numbers) => {}
                Some("integer") => shape.numbers = Rc::new(NumberSet::integers(integers)),
                Some("string") => shape.strings = any.strings.clone(),
                Some("array") => shape.arrays.clone_from(&any.arrays),
                Some("object") => shape.objects.clone_from(&any.objects),
                _ => {
                    return Err(PendingError::invalid(site.node, "type", "there is no such type").with_hint(
                        "the types are null, boolean, integer, number, string, array and object",
                    ));
                }
            }
        }
        let nullable = self.sibling(site, "nullable").filter(|_| site.dialect == Dialect::Tolerant);
        shape.null |= nullable.is_some_and(|node| self.is_true(node));
        let said = format!("{names:?} {integers:?} {}", shape.null);
        self.leaf_of("type", &said, |_| Ok(shape))
    }

    /// True if the value is the literal `true`.
    pub(super) fn is_true(&self, node: NodeId) -> bool {
        *self.resolver.documents.value(node) == Value::Bool(true)
    }

    /// The formula of Kubernetes' int-or-string.
    pub(super) fn integer_or_string(&mut self) -> FormulaId {
        let mut shape = (*self.ends.never).clone();
        shape.numbers = Rc::new(NumberSet::integers(Integers::ByValue));
        shape.strings = self.ends.any.strings.clone();
        self.leaf(shape)
    }

    /// Reads `enum`. Its numbers become one set, and so do its strings.
    pub(super) fn enumeration(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        let Value::Array(values) = self.resolver.documents.value(value).clone() else {
            return Err(PendingError::invalid(site.node, "enum", "the values must be in an array"));
        };
        if values.is_empty() {
            let reason = "an empty enum allows no value";
            return Err(PendingError::new(SchemaErrorKind::NoInstance, site.node, Some("enum"), reason));
        }
        let count = values.len();
        let mut shape = (*self.ends.never).clone();
        let (mut strings, mut numbers, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for node in values {
            match self.resolver.documents.value(node) {
                Value::Null => shape.null = true,
                Value::Bool(value) => shape.booleans[usize::from(*value)] = true,
                Value::String(text) => strings.push(&**text),
                Value::Number(text) => numbers.push(self.decimal(node, text)?),
                Value::Array(_) | Value::Object(_) => parts.push(node),
            }
        }
        if strings.len() == count {
            let said = format!("{strings:?}");
            let strings: Vec<String> = strings.into_iter().map(str::to_owned).collect();
            return self.leaf_of("enum", &said, |algebra| {
                shape.strings = Rc::new(algebra.fitting(StringSet::of(strings))?);
                Ok(shape)
            });
        }
        if !strings.is_empty() {
            shape.strings = Rc::new(self.fitting(StringSet::of(strings))?);
        }
        if !numbers.is_empty() {
            shape.numbers = Rc::new(NumberSet::of(numbers));
        }
        let mut parts: Vec<FormulaId> = parts.into_iter().map(|node| self.value(node)).collect();
        let is_nothing = !shape.null
            && shape.booleans == [false; 2]
            && shape.strings.is_empty()
            && shape.numbers.is_empty();
        if !is_nothing {
            parts.push(self.leaf(shape));
        }
        Ok(self.formulas.or(parts))
    }

    /// Reads `minimum`, `maximum`, and the exclusive bounds in both of their forms.
    pub(super) fn bounds(&mut self, site: SchemaSite) -> Checked<FormulaId> {
        let mut set = NumberSet::all();
        let mut narrow = |algebra: &Self, part: NumberSet| -> Checked<()> {
            set = algebra.fitting(set.intersect(&part))?;
            Ok(())
        };
        let lower = self.bound(site, "minimum", "exclusiveMinimum")?;
        let upper = self.bound(site, "maximum", "exclusiveMaximum")?;
        if let Some(at) = lower.0 {
            narrow(self, NumberSet::at_least(&at, false))?;
        }
        if let Some(at) = lower.1 {
            narrow(self, NumberSet::at_least(&at, true))?;
        }
        if let Some(at) = upper.0 {
            narrow(self, NumberSet::at_most(&at, false))?;
        }
        if let Some(at) = upper.1 {
            narrow(self, NumberSet::at_most(&at, true))?;
        }
        Ok(self.only_numbers(set))
    }

    /// An inclusive bound, and an exclusive one.
    fn bound(
        &self,
        site: SchemaSite,
        inclusive: &'static str,
        exclusive: &'static str,
    ) -> Checked<(Option<Decimal>, Option<Decimal>)> {
        let plain = self.number(site, inclusive)?;
        let Some(node) = self.sibling(site, exclusive) else { return Ok((plain, None)) };
        match self.resolver.documents.value(node) {
            Value::Bool(false) if site.dialect.has_boolean_bounds() => Ok((plain, None)),
            Value::Bool(true) if site.dialect.has_boolean_bounds() => Ok((None, plain)),
            Value::Number(_) if site.dialect.knows("const") => Ok((plain, self.number(site, exclusive)?)),
            _ => {
                Err(PendingError::invalid(site.node, exclusive, "the value is not what this draft has here")
                    .with_hint("draft 4 has true or false here, all others a number"))
            }
        }
    }

    /// Reads `multipleOf`.
    pub(super) fn multiples(&mut self, site: SchemaSite, _value: NodeId) -> Checked<FormulaId> {
        let step = self.number(site, "multipleOf")?;
        let Some(step) = step.filter(|step| !step.is_zero() && !step.is_negative()) else {
            return Err(PendingError::invalid(site.node, "multipleOf", "the number must be above 0"));
        };
        match NumberSet::multiples_of(&step) {
            Ok(set) => Ok(self.only_numbers(set)),
            Err(error) => Ok(self.unknown(PendingError::of_leaf(site.node, Some("multipleOf"), error))),
        }
    }

    fn only_numbers(&mut self, set: NumberSet) -> FormulaId {
        let mut shape = self.any_shape();
        shape.numbers = Rc::new(set);
        self.leaf(shape)
    }

    /// Reads `minLength` and `maxLength`.
    pub(super) fn lengths(&mut self, site: SchemaSite) -> Checked<FormulaId> {
        let (min, max) = (self.count(site, "minLength")?, self.count(site, "maxLength")?);
        let keyword = if max.is_some() { "maxLength" } else { "minLength" };
        let set = || StringSet::all().with_length(min.unwrap_or(0), max).map(Some);
        Ok(self.strings_of(site, (keyword, &format!("{min:?} {max:?}")), set)?.unwrap_or(Formulas::ANY))
    }

    /// Reads `pattern`.
    pub(super) fn pattern(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        let Some(pattern) = self.resolver.documents.string(value).map(str::to_owned) else {
            return Err(PendingError::invalid(site.node, "pattern", "a pattern is a string"));
        };
        let set = || StringSet::from_pattern(&pattern).map(Some);
        Ok(self.strings_of(site, ("pattern", &pattern), set)?.unwrap_or(Formulas::ANY))
    }

    /// Reads `format`, if formats are asserted.
    pub(super) fn format(&mut self, site: SchemaSite, value: NodeId) -> Checked<FormulaId> {
        let Some(name) = self.resolver.documents.string(value).map(str::to_owned) else {
            return Err(PendingError::invalid(site.node, "format", "a format is a string"));
        };
        let bounded = self.options.format == Format::Bounded;
        if let Some(set) = self.fitting(NumberSet::writing_type(&name, integers(site)))?.filter(|_| bounded) {
            return Ok(self.only_numbers(set));
        }
        let asserts = self.options.format != Format::Annotate;
        let automata = self.automata.common;
        let set = || if asserts { StringSet::from_format_with(automata, &name, bounded) } else { Ok(None) };
        let known = self.strings_of(site, ("format", &name), set)?;
        if known.is_none() {
            self.ignored.insert(format!("format: {name}"));
        }
        Ok(known.unwrap_or(Formulas::ANY))
    }

    /// The formula of a keyword about strings, computed when it is first met with that value; `None` if the
    /// keyword says nothing.
    fn strings_of(
        &mut self,
        site: SchemaSite,
        (keyword, value): (&'static str, &str),
        set: impl FnOnce() -> Result<Option<StringSet>, LeafError>,
    ) -> Checked<Option<FormulaId>> {
        if let Some(known) = self.known_leaf(keyword, value) {
            return Ok(Some(known));
        }
        self.look()?;
        let made = set().and_then(|set| {
            set.as_ref().map_or(Ok(()), |set| self.automata.take(set))?;
            Ok(set)
        });
        match made {
            Ok(None) => Ok(None),
            Ok(Some(set)) => {
                let mut shape = self.any_shape();
                shape.strings = Rc::new(set);
                self.leaf_of(keyword, value, |_| Ok(shape)).map(Some)
            }
            Err(error) => Ok(Some(self.unknown(PendingError::of_leaf(site.node, Some(keyword), error)))),
        }
    }
}
