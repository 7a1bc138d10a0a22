//! Intersects several unions of objects, as `allOf` of many `if`s or `oneOf` of many tagged schemas needs.
//!
//! Multiplying the unions out pair by pair would make alternatives that a later union decides. So this is a
//! search like DPLL for clauses: a union with one alternative left is no choice (unit propagation); a union
//! of which an alternative holds anyway is dropped; and the next decision is about the *tag*, the member that
//! most unions ask the value of. It takes each class of values that the unions tell apart, then another
//! value, then no value at all. The objects found are disjoint wherever a tag decided.

use std::rc::Rc;

use hashbrown::HashMap;

use super::{
    super::{StringSet, error::Checked},
    Algebra, Depth, Formula, FormulaId, Formulas, ObjectShape, Shape,
};

/// Limit on the strings of one tag's set.
const MOST_TAGS: usize = 64;
/// Limit on the strings by which the tags of one member are told apart.
const MOST_STRINGS: usize = 1_024;

/// A set of values that holds some strings and nothing else, or all values but those strings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct StringTag {
    pub(super) strings: Rc<[String]>,
    /// True if the set is these strings; false if it is all other values.
    pub(super) inside: bool,
}

impl StringTag {
    fn contains(&self, string: &str) -> bool {
        self.strings.iter().any(|known| known == string) == self.inside
    }
}

/// The alternatives that are left of a union.
type Union = Vec<Rc<ObjectShape>>;

/// A node of the search: the objects of a shape that are in each of these unions.
type UnionBranch = (Rc<ObjectShape>, Vec<Union>);

/// A decision about the value of a member.
enum Decision<'a> {
    /// One of the strings of a class; every tag holds all strings of the class or none.
    Is(&'a str),
    /// A value that is none of the strings of the tags.
    Other,
    Absent,
}

impl Algebra<'_> {
    /// True if several shapes have more than one alternative of objects. Their product should then be
    /// searched, not multiplied out.
    pub(super) fn has_choices(shapes: &[Rc<Shape>]) -> bool {
        shapes.iter().filter(|shape| shape.objects.len() > 1).count() > 1
    }

    /// Intersects the objects of all shapes, with members in the order in which the shapes first mention
    /// them.
    pub(super) fn objects_in_all(&mut self, shapes: &[Rc<Shape>]) -> Checked<Vec<Rc<ObjectShape>>> {
        let mut branch: UnionBranch = (Rc::new(ObjectShape::default()), Vec::new());
        for shape in shapes {
            match &shape.objects[..] {
                [] => return Ok(Vec::new()),
                [one] => match self.object_in_both(&branch.0, one)? {
                    Some(both) => branch.0 = both,
                    None => return Ok(Vec::new()),
                },
                several => branch.1.push(several.to_vec()),
            }
        }
        let most = branch.1.iter().map(Vec::len).max().unwrap_or(1);
        let (mut found, mut open) = (Vec::new(), vec![branch]);
        while let Some(branch) = open.pop() {
            let Some((known, unions)) = self.propagated(branch)? else { continue };
            if unions.is_empty() {
                self.add_product(&mut found, Some(known), most)?;
                continue;
            }
            let mut branches = match self.most_asked_for(&unions)? {
                Some(name) => self.decided(&known, &unions, &name)?,
                None => self.chosen(&known, unions)?,
            };
            branches.reverse();
            open.append(&mut branches);
        }
        let places = places(shapes);
        Ok(found.into_iter().map(|object| in_order(object, &places)).collect())
    }

    /// Unit propagation: moves unions with one alternative into the shape, and drops those that hold. `None`
    /// if no object is left.
    fn propagated(&mut self, (mut known, mut unions): UnionBranch) -> Checked<Option<UnionBranch>> {
        loop {
            let (mut left, mut changed) = (Vec::with_capacity(unions.len()), false);
            for union in unions {
                let mut ways = Vec::with_capacity(union.len());
                let mut holds = false;
                for way in union {
                    self.spend(2 + way.properties.len())?;
                    if self.implies(&known, &way)? {
                        holds = true;
                        break;
                    }
                    if self.meet(&known, &way)? {
                        ways.push(way);
                    }
                }
                if holds {
                    continue;
                }
                if let [one, other] = &ways[..]
                    && let Some(optional) = self.present_or_not(&known, one, other)?
                {
                    ways = vec![optional];
                }
                match &ways[..] {
                    [] => return Ok(None),
                    [only] => {
                        self.spend(known.properties.len())?;
                        let Some(both) = self.object_in_both(&known, only)? else { return Ok(None) };
                        changed |= both != known;
                        known = both;
                    }
                    _ => left.push(ways),
                }
            }
            unions = left;
            if !changed || unions.is_empty() {
                return Ok(Some((known, unions)));
            }
        }
    }

    /// True if an object may be in both, as far as [`object_in_both`](Self::object_in_both) sees. Mostly this
    /// compares a few members only.
    fn meet(&mut self, known: &Rc<ObjectShape>, way: &Rc<ObjectShape>) -> Checked<bool> {
        let only_members = way.every.is_empty()
            && way.some.is_empty()
            && way.min == 0
            && way.max.is_none()
            && way.condition.is_none();
        if !only_members || known.max.is_some() || !known.some.is_empty() {
            return Ok(self.object_in_both(known, way)?.is_some());
        }
        let declared = |shape: &ObjectShape, name: &Rc<str>| {
            let found = shape.properties.iter().find(|(declared, _)| declared == name);
            found.map_or(Formulas::ANY, |&(_, value)| value)
        };
        let both = way.properties.iter().map(|(name, _)| name).filter(|name| known.required.contains(name));
        for name in both.chain(&way.required) {
            let held = self.narrowed_by_keys(known, name, declared(known, name));
            let value = self.formulas.and([held, declared(way, name)]);
            if self.is_surely_empty(value, Depth::ITEM) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Merges "the member is absent" and "it is present, with such a value" into one optional member.
    fn present_or_not(
        &mut self,
        known: &ObjectShape,
        one: &ObjectShape,
        other: &ObjectShape,
    ) -> Checked<Option<Rc<ObjectShape>>> {
        for (without, with) in [(one, other), (other, one)] {
            let [(name, Formulas::NEVER)] = &without.properties[..] else { continue };
            let alone = ObjectShape { properties: without.properties.clone(), ..ObjectShape::default() };
            if *without != alone || !with.required.contains(name) {
                continue;
            }
            let mut rest = with.clone();
            rest.required.retain(|required| required != name);
            rest.properties.retain(|(declared, _)| declared != name);
            if self.implies(known, &rest)? {
                let declared = with.properties.iter().filter(|(declared, _)| declared == name);
                let properties = declared.cloned().collect();
                return Ok(Some(Rc::new(ObjectShape { properties, ..ObjectShape::default() })));
            }
        }
        Ok(None)
    }

    /// The member that most unions ask tags of, if at least two unions do.
    fn most_asked_for(&mut self, unions: &[Union]) -> Checked<Option<Rc<str>>> {
        let (mut counts, mut names) = (HashMap::<Rc<str>, usize>::new(), Vec::<Rc<str>>::new());
        for union in unions {
            let mut here: Vec<Rc<str>> = Vec::new();
            for (name, value) in union.iter().flat_map(|way| &way.properties) {
                if *value != Formulas::NEVER && !here.contains(name) && self.tag(*value)?.is_some() {
                    here.push(name.clone());
                }
            }
            for name in here {
                let count = counts.entry(name.clone()).or_insert(0);
                *count += 1;
                if *count == 1 {
                    names.push(name);
                }
            }
        }
        // The first of those with equal counts.
        let most = names.into_iter().rev().max_by_key(|name| counts[name]);
        Ok(most.filter(|name| counts[name] > 1))
    }

    /// Branches on a member: one branch for each class of values that its tags tell apart.
    fn decided(
        &mut self,
        known: &Rc<ObjectShape>,
        unions: &[Union],
        name: &Rc<str>,
    ) -> Checked<Vec<UnionBranch>> {
        let mut tags: Vec<StringTag> = Vec::new();
        for (asked, value) in unions.iter().flatten().flat_map(|way| &way.properties) {
            if asked == name
                && let Some(tag) = self.tag(*value)?
                && !tags.contains(&tag)
            {
                tags.push(tag);
            }
        }
        let (mut classes, mut places) = (Vec::<Vec<String>>::new(), HashMap::<Vec<bool>, usize>::new());
        let mut all: Vec<String> = Vec::new();
        for string in tags.iter().flat_map(|tag| tag.strings.iter()) {
            let signature = tags.iter().map(|tag| tag.contains(string)).collect();
            let place = *places.entry(signature).or_insert_with(|| {
                classes.push(Vec::new());
                classes.len() - 1
            });
            if !classes[place].contains(string) {
                classes[place].push(string.clone());
                all.push(string.clone());
            }
        }
        if all.len() > MOST_STRINGS {
            return Err(self.too_large(&format!("more than {MOST_STRINGS} values tell schemas apart")));
        }
        let mut branches = Vec::with_capacity(classes.len() + 2);
        for class in &classes {
            let value = self.strings_alone(class)?;
            branches.extend(self.branch(known, unions, name, (value, &Decision::Is(&class[0])))?);
        }
        let listed = self.strings_alone(&all)?;
        let other = self.formulas.not(listed);
        branches.extend(self.branch(known, unions, name, (other, &Decision::Other))?);
        branches.extend(self.branch(known, unions, name, (Formulas::NEVER, &Decision::Absent))?);
        Ok(branches)
    }

    /// The branch in which a member is decided, with the value that it then has; `None` if it has no object.
    fn branch(
        &mut self,
        known: &Rc<ObjectShape>,
        unions: &[Union],
        name: &Rc<str>,
        (value, decision): (FormulaId, &Decision<'_>),
    ) -> Checked<Option<UnionBranch>> {
        let present = !matches!(decision, Decision::Absent);
        let required = if present { vec![name.clone()] } else { Vec::new() };
        let member =
            ObjectShape { properties: vec![(name.clone(), value)], required, ..ObjectShape::default() };
        let Some(known) = self.object_in_both(known, &Rc::new(member))? else { return Ok(None) };
        let mut left = Vec::with_capacity(unions.len());
        'unions: for union in unions {
            let mut ways = Vec::with_capacity(union.len());
            for way in union {
                self.spend(2 + way.properties.len())?;
                let Some(way) = self.once_decided(way, name, decision)? else { continue };
                if *way == ObjectShape::default() {
                    continue 'unions;
                }
                ways.push(way);
            }
            if ways.is_empty() {
                return Ok(None);
            }
            left.push(ways);
        }
        Ok(Some((known, left)))
    }

    /// Reduces an alternative by a decision about a member; `None` if the decision rules it out.
    fn once_decided(
        &mut self,
        way: &Rc<ObjectShape>,
        name: &Rc<str>,
        decision: &Decision<'_>,
    ) -> Checked<Option<Rc<ObjectShape>>> {
        let required = way.required.contains(name);
        let declared = way.properties.iter().position(|(declared, _)| declared == name);
        if !required && declared.is_none() {
            return Ok(Some(way.clone()));
        }
        let mut left = (**way).clone();
        left.required.retain(|other| other != name);
        let Some(declared) = declared else {
            return Ok((!matches!(decision, Decision::Absent)).then(|| Rc::new(left)));
        };
        let held = match decision {
            Decision::Absent => Some(!required),
            Decision::Is(string) => self.tag(way.properties[declared].1)?.map(|tag| tag.contains(string)),
            Decision::Other => self.tag(way.properties[declared].1)?.map(|tag| !tag.inside),
        };
        if held == Some(true) {
            left.properties.remove(declared);
        }
        Ok((held != Some(false)).then(|| Rc::new(left)))
    }

    /// Branches on the union with the fewest alternatives: one branch for each.
    fn chosen(&mut self, known: &Rc<ObjectShape>, mut unions: Vec<Union>) -> Checked<Vec<UnionBranch>> {
        let least = (0..unions.len()).min_by_key(|&union| unions[union].len());
        let Some(union) = least.map(|union| unions.remove(union)) else { return Ok(Vec::new()) };
        let mut branches = Vec::with_capacity(union.len());
        for way in union {
            self.spend(2 + unions.iter().map(Vec::len).sum::<usize>())?;
            if let Some(both) = self.object_in_both(known, &way)? {
                branches.push((both, unions.clone()));
            }
        }
        Ok(branches)
    }

    /// The set as a tag, if it is few strings, or all values but few strings.
    pub(super) fn tag(&mut self, value: FormulaId) -> Checked<Option<StringTag>> {
        if let Some(known) = self.tags.get(&value) {
            return Ok(known.clone());
        }
        // What is being expanded now, or is too large, tells nothing apart.
        let Some(shape) = self.may_be_tag(value).then(|| self.expand(value).ok()).flatten() else {
            return Ok(None);
        };
        let (all, none) = (&self.ends.any, &self.ends.never);
        let other_than = |ends: &Shape| {
            shape.null == ends.null
                && shape.booleans == ends.booleans
                && shape.numbers == ends.numbers
                && shape.arrays == ends.arrays
                && shape.objects == ends.objects
        };
        let strings = if other_than(none) {
            shape.strings.as_finite(MOST_TAGS).map(|strings| (strings, true))
        } else if other_than(all) && !shape.strings.is_all() {
            let left_out = self.fitting(shape.strings.complement())?;
            left_out.as_finite(MOST_TAGS).map(|strings| (strings, false))
        } else {
            None
        };
        let tag = strings.map(|(strings, inside)| StringTag { strings: strings.into(), inside });
        self.tags.insert(value, tag.clone());
        Ok(tag)
    }

    /// True if the set looks like a tag. It is not expanded for that, as members mostly hold whole schemas.
    fn may_be_tag(&self, value: FormulaId) -> bool {
        let documents = &self.resolver.documents;
        let lists = |node| ["enum", "const"].iter().any(|list| documents.member(node, list).is_some());
        match self.formulas.get(value) {
            Formula::Leaf { .. } | Formula::Value { .. } => true,
            Formula::And(parts) => parts.iter().any(|&part| self.may_be_tag(part)),
            Formula::Or(parts) => parts.iter().all(|&part| self.may_be_tag(part)),
            Formula::Schema { node, scope, .. } => {
                lists(*node)
                    || documents.member(*node, "not").is_some_and(lists)
                    || documents.member(*node, "$ref").is_some()
                        && self.resolver.reference(*node, "$ref", *scope).is_ok_and(lists)
            }
            Formula::Any | Formula::Never | Formula::One { .. } => false,
        }
    }

    /// The set of these strings alone.
    pub(super) fn strings_alone(&mut self, strings: &[String]) -> Checked<FormulaId> {
        let mut shape = (*self.ends.never).clone();
        shape.strings = Rc::new(self.fitting(StringSet::of(strings))?);
        Ok(self.leaf(shape))
    }
}

/// The position at which the shapes first mention each member, by its name.
fn places(shapes: &[Rc<Shape>]) -> HashMap<Rc<str>, usize> {
    let mut places = HashMap::new();
    let objects = || shapes.iter().flat_map(|shape| &shape.objects);
    let declared = objects().flat_map(|object| object.properties.iter().map(|(name, _)| name));
    for name in declared.chain(objects().flat_map(|object| &object.required)) {
        let next = places.len();
        places.entry(name.clone()).or_insert(next);
    }
    places
}

/// Reorders the members of an object as in `places`.
fn in_order(object: Rc<ObjectShape>, places: &HashMap<Rc<str>, usize>) -> Rc<ObjectShape> {
    let mut object = Rc::unwrap_or_clone(object);
    object.properties.sort_by_key(|(name, _)| places.get(name));
    object.required.sort_by_key(|name| places.get(name));
    Rc::new(object)
}
