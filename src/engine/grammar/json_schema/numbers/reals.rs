//! Sets of numbers by value: the number line, cut at some numbers, with a Boolean function between the cuts
//! of which of some divisors divide a number.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::decimal::Decimal;
use crate::grammar::json_schema::leaf::LeafError;

/// Limit on the multiples looked at to find one that no other divisor divides.
const MAX_TRIES: usize = 10_000;
/// Limit on the numbers at which a set is cut.
const MAX_CUTS: usize = 200_000;

/// A set of numbers.
///
/// Invariant: cuts ascend; each is needed (its sides differ, or it differs from them); functions that hold
/// for no number of their gap are constant false, and those that hold for all of them constant true.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Reals {
    /// The cuts; true if the cut itself is in the set.
    cuts: Vec<(Decimal, bool)>,
    /// The numbers in the set before the first cut, between cuts, and after the last.
    gaps: Vec<Residues>,
}

/// A gap: the numbers strictly between two cuts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gap<'a> {
    pub(super) after: Option<&'a Decimal>,
    pub(super) before: Option<&'a Decimal>,
    pub(super) residues: &'a Residues,
}

impl Reals {
    /// Memory of the set, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let cuts: usize = self.cuts.iter().map(|(cut, _)| cut.bytes()).sum();
        let gaps: usize = self.gaps.iter().map(Residues::bytes).sum();
        let cells = self.cuts.capacity() * size_of::<(Decimal, bool)>();
        cuts + gaps + cells + self.gaps.capacity() * size_of::<Residues>()
    }

    pub(super) fn always(value: bool) -> Self {
        Self { cuts: Vec::new(), gaps: vec![Residues::always(value)] }
    }

    pub(super) fn multiples(divisor: Decimal) -> Self {
        Self { cuts: Vec::new(), gaps: vec![Residues::multiples(divisor)] }
    }

    /// The set of exactly these numbers.
    pub(super) fn of(mut numbers: Vec<Decimal>) -> Self {
        numbers.sort_unstable();
        numbers.dedup();
        let gaps = vec![Residues::always(false); numbers.len() + 1];
        Self { cuts: numbers.into_iter().map(|number| (number, true)).collect(), gaps }
    }

    /// The set with one cut; the flags say whether the numbers below it, the cut, and those above it are in
    /// the set.
    pub(super) fn cut(cut: Decimal, below: bool, at: bool, above: bool) -> Self {
        Self { cuts: vec![(cut, at)], gaps: vec![Residues::always(below), Residues::always(above)] }
    }

    pub(super) fn is(&self, value: bool) -> bool {
        self.cuts.is_empty() && self.gaps[0].is(value)
    }

    pub(super) fn contains(&self, number: &Decimal) -> bool {
        match self.cuts.binary_search_by(|(cut, _)| cut.cmp(number)) {
            Ok(place) => self.cuts[place].1,
            Err(place) => self.gaps[place].of(number),
        }
    }

    pub(super) fn cuts(&self) -> &[(Decimal, bool)] {
        &self.cuts
    }

    pub(super) fn gaps(&self) -> impl Iterator<Item = Gap<'_>> {
        self.gaps.iter().enumerate().map(|(place, residues)| Gap {
            after: place.checked_sub(1).map(|before| &self.cuts[before].0),
            before: self.cuts.get(place).map(|(cut, _)| cut),
            residues,
        })
    }

    /// The isolated numbers of the set, with no others of it up to the next cuts, in ascending order, and the
    /// set without them.
    pub(super) fn alone(&self) -> Result<(Vec<Decimal>, Self), LeafError> {
        let is_alone = |place: usize| self.gaps[place].is(false) && self.gaps[place + 1].is(false);
        let mut others = self.clone();
        let mut alone = Vec::new();
        for (place, (cut, inside)) in others.cuts.iter_mut().enumerate() {
            if *inside && is_alone(place) {
                *inside = false;
                alone.push(cut.clone());
            }
        }
        Ok((alone, others.simplified()?))
    }

    /// True if remainders matter in any gap.
    pub(super) fn has_divisors(&self) -> bool {
        self.gaps.iter().any(|residues| !residues.divisors().is_empty())
    }

    /// True if all numbers are known to be whole. False also if that takes too long to find out.
    pub(super) fn is_whole(&self) -> bool {
        if self.cuts.iter().any(|(cut, inside)| *inside && !cut.is_integer()) {
            return false;
        }
        let mut is_sure = true;
        for gap in self.gaps() {
            for row in gap.residues.true_rows() {
                match gap.residues.unit(&row) {
                    // Numbers that none of the divisors divides are dense, so some are not whole.
                    None => return false,
                    Some(unit) => is_sure &= unit.is_integer(),
                }
            }
        }
        let others = || self.combine(&self.whole()?, |left, right| left && !right);
        is_sure || others().is_ok_and(|others| others.is(false))
    }

    /// The whole numbers of the set.
    pub(super) fn whole(&self) -> Result<Self, LeafError> {
        self.combine(&Self::multiples(Decimal::from(1)), |left, right| left && right)
    }

    pub(super) fn not(&self) -> Result<Self, LeafError> {
        let cuts = self.cuts.iter().map(|(cut, inside)| (cut.clone(), !inside)).collect();
        Self { cuts, gaps: self.gaps.iter().map(Residues::not).collect() }.simplified()
    }

    /// Combines both sets by a Boolean function of membership.
    pub(super) fn combine(&self, other: &Self, op: fn(bool, bool) -> bool) -> Result<Self, LeafError> {
        let (mut cuts, mut gaps) = (Vec::new(), vec![self.gaps[0].combine(&other.gaps[0], op)?]);
        let (mut left, mut right) = (0, 0);
        loop {
            let cut = match (self.cuts.get(left), other.cuts.get(right)) {
                (None, None) => break,
                (Some((cut, _)), None) | (None, Some((cut, _))) => cut,
                (Some((one, _)), Some((two, _))) => one.min(two),
            };
            cuts.push((cut.clone(), op(self.contains(cut), other.contains(cut))));
            let passes =
                |cuts: &[(Decimal, bool)], at: usize| cuts.get(at).is_some_and(|(here, _)| here == cut);
            let (passed_left, passed_right) = (passes(&self.cuts, left), passes(&other.cuts, right));
            left += usize::from(passed_left);
            right += usize::from(passed_right);
            gaps.push(self.gaps[left].combine(&other.gaps[right], op)?);
            if cuts.len() > MAX_CUTS {
                return Err(LeafError::Budget { what: "bounds of a set of numbers", limit: MAX_CUTS });
            }
        }
        Self { cuts, gaps }.simplified()
    }

    fn simplified(self) -> Result<Self, LeafError> {
        if self.cuts.is_empty() {
            return Ok(self);
        }
        let mut decided = Vec::with_capacity(self.gaps.len());
        for gap in self.gaps() {
            decided.push(gap.decided()?);
        }
        let mut simple = Self { cuts: Vec::new(), gaps: Vec::new() };
        let mut gaps = decided.into_iter();
        simple.gaps.extend(gaps.next());
        for ((cut, inside), gap) in self.cuts.into_iter().zip(gaps) {
            let goes_on = simple.gaps.last().is_some_and(|last| *last == gap && gap.of(&cut) == inside);
            if !goes_on {
                simple.cuts.push((cut, inside));
                simple.gaps.push(gap);
            }
        }
        // The function of a gap that became wider may now be constant on it only if it was already, and
        // functions of joined gaps were equal, so the invariant holds.
        Ok(simple)
    }

    /// The set of all numbers from `least` to `most`.
    pub(super) fn range(least: Decimal, most: Decimal) -> Self {
        let gaps = vec![Residues::always(false), Residues::always(true), Residues::always(false)];
        Self { cuts: vec![(least, true), (most, true)], gaps }
    }

    /// True if all numbers are known to be in `other`.
    pub(super) fn are_in(&self, other: &Self) -> bool {
        self.combine(other, |one, other| one && !other).is_ok_and(|others| others.is(false))
    }

    /// The numbers of the set in ascending order, if there are at most `limit`.
    pub(super) fn finite(&self, limit: usize) -> Option<Vec<Decimal>> {
        let inside = |(cut, inside): &(Decimal, bool)| inside.then(|| cut.clone());
        let mut found: Vec<Decimal> = self.cuts.iter().filter_map(inside).collect();
        for gap in self.gaps().filter(|gap| !gap.residues.is(false)) {
            let room = limit.checked_sub(found.len())?;
            let mut here = Vec::new();
            for row in gap.residues.true_rows() {
                let (first, last) = gap.multiples(&gap.residues.unit(&row)?)?;
                let count = (&last - &first + 1_u32).to_usize()?;
                let unit = gap.residues.unit(&row)?;
                // Some of them may belong to other rows.
                if count > room.saturating_add(MAX_TRIES) {
                    return None;
                }
                let numbers = (0..count).map(|at| unit.times(&(&first + at)));
                here.extend(numbers.filter(|number| gap.residues.of(number)));
            }
            // A stable sort merges runs; each row is a run, and so are the cuts, and the gaps.
            here.sort();
            here.dedup();
            found.extend(here);
        }
        found.sort();
        (found.len() <= limit).then_some(found)
    }
}

impl Gap<'_> {
    /// The least and greatest multiples of `unit` in the gap, in units; `None` if the gap is unbounded. There
    /// are none if the greatest is less than the least.
    fn multiples(&self, unit: &Decimal) -> Option<(BigInt, BigInt)> {
        let (first, _) = self.after?.units(unit);
        let (last, whole) = self.before?.units(unit);
        Some((first + 1_u32, if whole { last - 1_u32 } else { last }))
    }

    /// The function of the gap, made constant if it is the same for all numbers of the gap.
    fn decided(&self) -> Result<Residues, LeafError> {
        let residues = self.residues;
        if residues.divisors().is_empty() {
            return Ok(residues.clone());
        }
        if !self.has_any(residues)? {
            return Ok(Residues::always(false));
        }
        if !self.has_any(&residues.not())? {
            return Ok(Residues::always(true));
        }
        Ok(residues.clone())
    }

    /// True if the function is true of any number of the gap.
    fn has_any(&self, residues: &Residues) -> Result<bool, LeafError> {
        for row in residues.true_rows() {
            // Numbers that none of the divisors divides are dense.
            let Some(unit) = residues.unit(&row) else { return Ok(true) };
            // A row that is possible at all has a number in every period, so in an unbounded gap.
            let Some((first, last)) = self.multiples(&unit) else { return Ok(true) };
            if last < first {
                continue;
            }
            let period = residues.divisors().iter().fold(unit.clone(), |sum, divisor| sum.lcm(divisor));
            let (period, _) = period.units(&unit);
            let count: BigInt = &last - &first + 1_u32;
            if count >= period {
                return Ok(true);
            }
            for at in 0..count.to_usize().unwrap_or(usize::MAX).min(MAX_TRIES) {
                if residues.of(&unit.times(&(&first + at))) {
                    return Ok(true);
                }
            }
            if count > BigInt::from(MAX_TRIES) {
                return Err(LeafError::Budget {
                    what: "multiples looked at in an interval",
                    limit: MAX_TRIES,
                });
            }
        }
        Ok(false)
    }
}

/// Limit on the different divisors of one function.
const MAX_DIVISORS: usize = 6;

/// A Boolean function of which divisors divide a number, as a truth table. Row `bits` is about the numbers
/// that exactly the divisors at the positions of its set bits divide.
///
/// Invariant: divisors ascend, the function depends on each of them, and rows without a number are false.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Residues {
    divisors: Vec<Decimal>,
    rows: Vec<bool>,
}

impl Residues {
    /// Memory of the function, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let divisors: usize = self.divisors.iter().map(Decimal::bytes).sum();
        divisors + self.divisors.capacity() * size_of::<Decimal>() + self.rows.capacity()
    }

    /// The function that is true of all numbers, or of none.
    pub(super) fn always(value: bool) -> Self {
        Self { divisors: Vec::new(), rows: vec![value] }
    }

    /// The function that is true of the multiples of a positive number.
    pub(super) fn multiples(divisor: Decimal) -> Self {
        Self { divisors: vec![divisor], rows: vec![false, true] }
    }

    pub(super) fn is(&self, value: bool) -> bool {
        self.divisors.is_empty() && self.rows == [value]
    }

    pub(super) fn divisors(&self) -> &[Decimal] {
        &self.divisors
    }

    pub(super) fn of(&self, number: &Decimal) -> bool {
        let row = self
            .divisors
            .iter()
            .rev()
            .fold(0, |row, divisor| row << 1 | usize::from(number.is_multiple_of(divisor)));
        self.rows[row]
    }

    /// The rows of which the function is true, each as a flag for each divisor that it divides.
    pub(super) fn true_rows(&self) -> impl Iterator<Item = Vec<bool>> {
        let count = self.divisors.len();
        let rows = self.rows.iter().enumerate().filter(|(_, value)| **value);
        rows.map(move |(row, _)| (0..count).map(|place| row >> place & 1 == 1).collect())
    }

    /// Combines two functions by a Boolean operation.
    ///
    /// # Errors
    /// If there are too many divisors.
    pub(super) fn combine(&self, other: &Self, op: fn(bool, bool) -> bool) -> Result<Self, LeafError> {
        let mut divisors: Vec<Decimal> = self.divisors.iter().chain(&other.divisors).cloned().collect();
        divisors.sort_unstable();
        divisors.dedup();
        if divisors.len() > MAX_DIVISORS {
            return Err(LeafError::Budget {
                what: "different multiples in one set of numbers",
                limit: MAX_DIVISORS,
            });
        }
        let row_of = |part: &Self, row: usize| {
            let bit = |divisor: &Decimal| divisors.iter().position(|known| known == divisor).unwrap_or(0);
            part.divisors
                .iter()
                .enumerate()
                .fold(0, |sum, (place, divisor)| sum | (row >> bit(divisor) & 1) << place)
        };
        let rows = (0..1_usize << divisors.len())
            .map(|row| op(self.rows[row_of(self, row)], other.rows[row_of(other, row)]))
            .collect();
        Ok(Self { divisors, rows }.reduced())
    }

    pub(super) fn not(&self) -> Self {
        Self { divisors: self.divisors.clone(), rows: self.rows.iter().map(|value| !value).collect() }
            .reduced()
    }

    /// The least common multiple of the divisors of a row: all its numbers are multiples. `None` without a
    /// divisor.
    pub(super) fn unit(&self, row: &[bool]) -> Option<Decimal> {
        let of = self.divisors.iter().zip(row).filter(|(_, divides)| **divides).map(|(divisor, _)| divisor);
        of.cloned().reduce(|left, right| left.lcm(&right))
    }

    /// True if the row has a number. A number that its divisors divide is a multiple of their least common
    /// multiple, and so of everything that divides that.
    fn is_possible(&self, row: usize) -> bool {
        let bits: Vec<bool> = (0..self.divisors.len()).map(|place| row >> place & 1 == 1).collect();
        let Some(unit) = self.unit(&bits) else { return true };
        let mut others = self.divisors.iter().zip(&bits).filter(|(_, divides)| !**divides);
        !others.any(|(divisor, _)| unit.is_multiple_of(divisor))
    }

    fn reduced(mut self) -> Self {
        let mut possible: Vec<bool> = (0..self.rows.len()).map(|row| self.is_possible(row)).collect();
        let mut place = 0;
        while place < self.divisors.len() {
            let bit = 1 << place;
            let low = |row: usize| (row & (bit - 1)) | (row & !(bit - 1)) << 1;
            let half = self.rows.len() / 2;
            let depends = (0..half)
                .map(low)
                .any(|row| possible[row] && possible[row | bit] && self.rows[row] != self.rows[row | bit]);
            if depends {
                place += 1;
                continue;
            }
            let value = |row: usize| if possible[row] { self.rows[row] } else { self.rows[row | bit] };
            self.rows = (0..half).map(|row| value(low(row))).collect();
            possible = (0..half).map(|row| possible[low(row)] || possible[low(row) | bit]).collect();
            self.divisors.remove(place);
        }
        for (value, possible) in self.rows.iter_mut().zip(possible) {
            *value &= possible;
        }
        self
    }
}
