//! Boolean functions of which of some divisors divide a number.

use super::decimal::Decimal;
use crate::grammar::json_schema::leaf::LeafError;

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
