//! An object shape as members: keys given by name, keys given by language, and the values of each.

use std::rc::Rc;

use super::super::{
    StringSet,
    algebra::{Algebra, FormulaId, Formulas, Keys, KeysId, ObjectShape},
    error::Checked,
    options::DuplicateKeys,
};
use crate::limits::KEY_BYTES;

/// Limit on the languages of keys that one object tells apart.
const MOST_REGIONS: usize = 256;
/// Limit on the keys of a language that are written one by one.
pub(super) const MOST_LISTED: usize = 64;
/// Limit on the keys of open objects that a session can store: each takes at least two bytes.
pub(super) const MOST_KEYS: usize = KEY_BYTES / 2;
/// Limit on the wanted members of one object, which must be there under one of several keys.
pub(super) const MOST_SOME: usize = 8;

/// A member under one key.
#[derive(Debug)]
pub(in super::super) struct PlannedMember {
    pub(in super::super) key: Rc<str>,
    pub(in super::super) required: bool,
    pub(in super::super) ways: Vec<MemberAlternative>,
}

/// Members under the keys of a language.
#[derive(Debug)]
pub(in super::super) struct Region {
    pub(in super::super) keys: Rc<StringSet>,
    pub(in super::super) ways: Vec<MemberAlternative>,
}

/// An alternative for the value of a member, and the bits of the wanted members that it then is.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct MemberAlternative {
    pub(in super::super) value: FormulaId,
    pub(in super::super) found: u64,
}

/// An object that is ready to be written.
#[derive(Debug)]
pub(in super::super) struct ObjectPlan {
    pub(in super::super) members: Vec<PlannedMember>,
    pub(in super::super) regions: Vec<Region>,
    /// Members whose keys the schema gives as a language with few strings. They are written where those of
    /// regions are, and each comes at most once.
    pub(in super::super) listed: Vec<PlannedMember>,
    /// The bits of all wanted members.
    pub(in super::super) wanted: u64,
    pub(in super::super) min: u64,
    pub(in super::super) max: Option<u64>,
}

impl Algebra<'_> {
    /// Turns an object shape into a plan.
    pub(in super::super) fn plan(&mut self, shape: &ObjectShape) -> Checked<ObjectPlan> {
        if shape.some.len() > MOST_SOME {
            return Err(
                self.too_large(&format!("more than {MOST_SOME} members wanted under keys of some kind"))
            );
        }
        let mut members: Vec<PlannedMember> = Vec::new();
        let required: hashbrown::HashSet<Rc<str>> = shape.required.iter().cloned().collect();
        let mut known: hashbrown::HashSet<Rc<str>> = hashbrown::HashSet::new();
        // Keys with a name: declared, required, or left out of the sets of other keys.
        let declared = shape.properties.iter().cloned();
        let others = shape.required.iter().map(|name| (name.clone(), Formulas::ANY));
        let left_out =
            shape.every.iter().chain(&shape.some).filter_map(|&(keys, _)| match self.keys.get(keys) {
                Keys::Rest { names, .. } => Some(names.clone()),
                Keys::Strings(_) => None,
            });
        let left_out: Vec<_> =
            left_out.flat_map(|names| names.to_vec()).map(|name| (name, Formulas::ANY)).collect();
        for (key, value) in declared.chain(others).chain(left_out) {
            if known.insert(key.clone()) {
                let value = self.narrowed_by_keys(shape, &key, value);
                let ways = self.ways(shape, value, |algebra, keys| algebra.keys.contains(keys, &key));
                members.push(PlannedMember { required: required.contains(&key), key, ways });
            }
        }
        // A member without a value is left out; a required one stays, and makes the object empty.
        members
            .retain(|member| member.required || member.ways.iter().any(|way| way.value != Formulas::NEVER));
        let regions = self.regions(shape, known)?;
        // Bounds on the number of members that nothing can break are dropped.
        let least = members.iter().filter(|member| member.required).count() as u64;
        let (regions, listed, others) = self.split(regions);
        let most = others.map(|others| (members.len() + listed.len() + others) as u64);
        let max = if regions.is_empty() {
            // Each member comes at most once, so a bound that they cannot exceed is none.
            shape.max.filter(|&max| most.is_none_or(|most| max < most))
        } else {
            // When all keys have come there is no comma that leads on.
            shape.max.into_iter().chain(most).min()
        };
        Ok(ObjectPlan {
            listed,
            min: if shape.min <= least { 0 } else { shape.min },
            max,
            members,
            regions,
            wanted: (1 << shape.some.len()) - 1,
        })
    }

    /// Splits off regions with few keys as members of their own. Returns the other regions, these members,
    /// and the number of keys of the other regions; `None` if keys may repeat, or if there are more than
    /// [`MOST_KEYS`].
    fn split(&self, regions: Vec<Region>) -> (Vec<Region>, Vec<PlannedMember>, Option<usize>) {
        let (mut many, mut listed, mut others) = (Vec::new(), Vec::new(), Some(0));
        for region in regions {
            let count = match self.options.duplicate_keys {
                DuplicateKeys::Refuse => region.keys.count(MOST_KEYS),
                DuplicateKeys::Allow => None,
            };
            let few = count.filter(|&count| count <= MOST_LISTED);
            let Some(keys) = few.and_then(|count| region.keys.as_finite(count)) else {
                others = others.zip(count).map(|(others, count)| others + count);
                many.push(region);
                continue;
            };
            let member =
                |key: String| PlannedMember { key: key.into(), required: false, ways: region.ways.clone() };
            listed.extend(keys.into_iter().map(member));
        }
        (many, listed, others)
    }

    /// The alternatives of a member's value: for each subset of the wanted members that its key may be, the
    /// value with which it is them.
    fn ways(
        &mut self,
        shape: &ObjectShape,
        value: FormulaId,
        has_key: impl Fn(&Self, KeysId) -> bool,
    ) -> Vec<MemberAlternative> {
        let mut ways = vec![MemberAlternative { value, found: 0 }];
        for (index, &(keys, wanted)) in shape.some.iter().enumerate() {
            if !has_key(self, keys) {
                continue;
            }
            for way in ways.clone() {
                let value = self.formulas.and([way.value, wanted]);
                if value != Formulas::NEVER {
                    ways.push(MemberAlternative { value, found: way.found | 1 << index });
                }
            }
        }
        ways
    }

    /// The language of all keys but some. Cached, since the alternatives of one schema mostly exclude the
    /// same.
    fn all_keys_but(&mut self, sorted: Vec<Rc<str>>) -> Checked<Rc<StringSet>> {
        if let Some(known) = self.other_keys.get(&sorted) {
            return Ok(known.clone());
        }
        let others = Rc::new(self.fitting(StringSet::all_but(&sorted))?);
        self.other_keys.insert(sorted, others.clone());
        Ok(others)
    }

    /// Partitions the keys without a name of their own by the languages that the shape mentions. A region's
    /// value is the conjunction of what the shape says of the languages that it lies in.
    fn regions(&mut self, shape: &ObjectShape, named: hashbrown::HashSet<Rc<str>>) -> Checked<Vec<Region>> {
        let sets: Vec<KeysId> = shape.every.iter().chain(&shape.some).map(|&(keys, _)| keys).collect();
        let mut regions = Vec::new();
        for (keys, inside) in self.key_languages(&sets, named)? {
            let has = |algebra: &Self, set: KeysId| algebra.covers(set, &inside);
            let parts: Vec<FormulaId> =
                shape.every.iter().filter(|&&(set, _)| has(self, set)).map(|&(_, value)| value).collect();
            let value = self.formulas.and(parts);
            // A closed object has only the members that the schema mentions.
            let unspoken = value == Formulas::ANY && inside.is_empty();
            if value == Formulas::NEVER || self.options.is_closed() && unspoken && shape.is_closed() {
                continue;
            }
            regions.push(Region { keys, ways: self.ways(shape, value, has) });
        }
        Ok(regions)
    }

    /// True if a set of keys has the keys of a region, which lies inside of these languages and no others.
    pub(super) fn covers(&self, set: KeysId, inside: &[KeysId]) -> bool {
        match self.keys.get(set) {
            Keys::Strings(_) => inside.contains(&set),
            Keys::Rest { sets, .. } => sets.iter().all(|set| !inside.contains(set)),
        }
    }

    /// Partitions the keys without a name of their own by the languages that sets of keys are made of: each
    /// splits every region into the keys within it and those without. Returns the languages of each too.
    pub(super) fn key_languages(
        &mut self,
        sets: &[KeysId],
        named: hashbrown::HashSet<Rc<str>>,
    ) -> Checked<Vec<(Rc<StringSet>, Vec<KeysId>)>> {
        let mut languages: Vec<(KeysId, Rc<StringSet>)> = Vec::new();
        let mut add = |algebra: &Self, keys: KeysId| {
            if let Keys::Strings(strings) = algebra.keys.get(keys)
                && languages.iter().all(|&(known, _)| known != keys)
            {
                languages.push((keys, strings.clone()));
            }
        };
        for &keys in sets {
            add(self, keys);
            if let Keys::Rest { sets, .. } = self.keys.get(keys) {
                sets.iter().for_each(|&set| add(self, set));
            }
        }
        let mut left: Vec<(Rc<StringSet>, Vec<KeysId>)> = Vec::new();
        let free = if named.is_empty() {
            self.ends.any.strings.clone()
        } else {
            let mut named: Vec<Rc<str>> = named.into_iter().collect();
            named.sort();
            self.all_keys_but(named)?
        };
        left.push((free, Vec::new()));
        for (id, language) in languages {
            let other = self.fitting_strings(language.complement())?;
            let mut split = Vec::new();
            for (keys, inside) in left {
                let within = self.fitting_strings(keys.intersect(&language))?;
                let without = self.fitting_strings(keys.intersect(&other))?;
                if !without.is_empty() {
                    split.push((Rc::new(without), inside.clone()));
                }
                if !within.is_empty() {
                    let inside = inside.iter().copied().chain([id]).collect();
                    split.push((Rc::new(within), inside));
                }
            }
            if split.len() > MOST_REGIONS {
                return Err(self.too_large("the patterns of keys overlap in too many ways"));
            }
            left = split;
        }
        Ok(left)
    }
}
