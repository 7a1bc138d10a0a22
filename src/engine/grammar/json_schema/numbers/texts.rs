//! Sets of numbers -> regular languages of their JSON texts.
//!
//! Each interval becomes an automaton that compares (`bounds`), each function of divisors one of remainders
//! (`multiples`), and Boolean operations combine them. A complement is taken within the texts that these
//! automata understand. So texts too odd to be understood are in neither a language nor its complement.

use std::cmp::Ordering;

use super::{
    bounds::{Mark, WantedComparison, compared, marks},
    decimal::Decimal,
    multiples::{fraction_digits, multiples},
    reals::{Gap, Reals, Residues},
};
use crate::{
    grammar::json_schema::{
        automata::{AutomataCache, recipe},
        dfa::{Alphabet, CharDfa, DfaRow, explore},
        leaf::LeafError,
        strings::pattern,
    },
    ids::{saturating_i64, saturating_usize},
};

/// Sets of at most this many numbers are written number by number.
const FEW_NUMBERS: usize = 32;
/// Limit on the numbers of a set that is written number by number because automata of intervals are too
/// large.
const MAX_LISTED: usize = 10_000;
/// Number of numbers above which only the usual texts of each are given.
const MANY_NUMBERS: usize = 400;
/// Limit on the length of a text without exponent that is given for a single number.
const LONG_TEXT: usize = 1_100;
/// Limit on the intervals of a set.
const MAX_RUNS: usize = 64;

/// Names of languages that many sets share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SharedLanguage {
    /// The language of a regular expression.
    Expression(&'static str),
    /// The unsigned texts of whole numbers.
    Integers,
}
recipe!(SharedLanguage, |_| 0, |_| true);

/// The language of a regular expression, from the cache.
fn of(expression: &'static str, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    automata.language(SharedLanguage::Expression(expression), || pattern::language(expression))
}

/// All texts of numbers.
pub(super) fn all(automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    of(r"^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$", automata)
}

/// All texts without fraction and exponent.
pub(super) fn plain_integers(automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    of(r"^-?(?:0|[1-9]\d*)$", automata)
}

/// All texts without fraction and exponent but `-0`, which many parsers do not read as an integer.
pub(super) fn digits(automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    of(r"^(?:0|-?[1-9]\d*)$", automata)
}

/// All texts of whole numbers with the fraction `.0`.
pub(super) fn point_zero(automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    of(r"^(?:0|-?[1-9]\d*)\.0$", automata)
}

/// Bounds on the digits of texts in the [usual] form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct DigitBounds {
    /// The most digits before the point of a text without exponent, of positive and of negative numbers.
    pub(super) whole: [Option<u32>; 2],
    /// The most digits behind the point, but for zeros at the beginning of a number less than 1.
    pub(super) fraction: Option<u32>,
    /// The most of these zeros.
    pub(super) zeros: Option<u32>,
}

impl DigitBounds {
    /// Any number of digits.
    pub(super) const NONE: Self = Self { whole: [None; 2], fraction: None, zeros: None };
}

/// All texts in normal form without redundant zeros but those of a fraction of one or two digits, without
/// `-0`, and without an exponent of 0, whose digits are within the bounds.
pub(super) fn usual(bounds: DigitBounds) -> Result<CharDfa, LeafError> {
    let most = |digit: &str, most: Option<u32>| match most {
        Some(most) => format!("{digit}{{0,{most}}}"),
        None => format!("{digit}*"),
    };
    let less = |count: Option<u32>, by: u32| count.map(|count| count.saturating_sub(by));
    let (inner, small) = (most(r"\d", less(bounds.fraction, 1)), most(r"\d", less(bounds.fraction, 2)));
    let fraction = format!("{inner}[1-9]");
    let below_one = format!(r"0\.{}[1-9](?:{small}[1-9])?", most("0", bounds.zeros));
    let exponent = format!(r"[1-9](?:\.{fraction})?[eE][+-]?[1-9]\d*");
    let unsigned = |digits: Option<u32>, zero: &str| {
        let whole = format!("[1-9]{}", most(r"\d", less(digits, 1)));
        let fractions = format!(r"{whole}(?:\.(?:\d?0|{fraction}))?|{below_one}");
        pattern::language(&format!("^(?:{fractions}|{exponent}|{zero})$"))
    };
    let [positive, negative] = bounds.whole;
    signed(&unsigned(positive, r"0(?:\.\d?0)?")?, &unsigned(negative, r"0\.[1-9]0")?)
}

/// Unsigned texts without exponent.
pub(super) fn fixed(automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    of(r"^(?:0|[1-9]\d*)(?:\.\d+)?$", automata)
}

/// Unsigned texts of zero.
fn zeros(automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    of(r"^0(?:\.0+)?(?:[eE][+-]?\d+)?$", automata)
}

/// Unsigned texts in normal form: with an exponent, one digit before the point, which is 0 only if all are.
fn normal(automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    of(r"^(?:(?:0|[1-9]\d*)(?:\.\d+)?|(?:0(?:\.0+)?|[1-9](?:\.\d+)?)[eE][+-]?\d+)$", automata)
}

/// The texts of [`normal`] whose remainders are computed. Before an exponent they have a fraction that ends
/// in a digit other than 0, or zeros only.
fn with_remainders(fraction: u64, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    const FRACTIONS: &str =
        r"^(?:(?:0|[1-9]\d*)(?:\.\d+)?|(?:0(?:\.0+)?|[1-9](?:\.0+|\.\d{0,19}[1-9])?)[eE][+-]?\d+)$";
    const ZEROS: &str = r"^(?:(?:0|[1-9]\d*)(?:\.\d+)?|\d(?:\.0+)?[eE][+-]?\d+)$";
    of(if fraction == 0 { ZEROS } else { FRACTIONS }, automata)
}

/// A set as a list of numbers, if they are few or too much for automata of intervals; otherwise as its texts.
pub(super) enum NumberLanguage {
    Listed(Vec<Decimal>),
    Texts(CharDfa),
}

/// The texts of a set's numbers. The set of all numbers has all texts; others have those in normal form, with
/// at most 20 digits of a fraction before an exponent where multiples matter.
pub(super) fn texts(reals: &Reals, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    match language(reals, automata)? {
        NumberLanguage::Listed(numbers) => numbers_texts(&numbers, false),
        NumberLanguage::Texts(texts) => Ok(texts),
    }
}

/// Makes the texts as [`texts`] does, but leaves a set that is listed as numbers.
pub(super) fn language(reals: &Reals, automata: &AutomataCache) -> Result<NumberLanguage, LeafError> {
    if reals.is(true) {
        return all(automata).map(NumberLanguage::Texts);
    }
    if let Some(numbers) = reals.finite(FEW_NUMBERS) {
        return Ok(NumberLanguage::Listed(numbers));
    }
    let by_intervals = intervals(reals, automata);
    // For example, the multiples of a large number in a small interval are a list.
    match by_intervals.is_err().then(|| reals.finite(MAX_LISTED)).flatten() {
        Some(numbers) => Ok(NumberLanguage::Listed(numbers)),
        None => by_intervals.map(NumberLanguage::Texts),
    }
}

/// The texts of a set's numbers, interval by interval.
fn intervals(reals: &Reals, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    let mut sum = CharDfa::none();
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    let gaps: Vec<Gap<'_>> = reals.gaps().collect();
    let cuts = reals.cuts();
    let (mut first, mut runs) = (0, 0);
    while first < gaps.len() {
        // Gaps with the same function, and the cuts between them, make one interval with exceptions.
        let residues = gaps[first].residues;
        let same = gaps[first..].iter().take_while(|gap| gap.residues == residues).count();
        let last = first + same - 1;
        for (cut, inside) in &cuts[first..last] {
            match (residues.of(cut), *inside) {
                (true, false) => removed.push(cut.clone()),
                (false, true) => added.push(cut.clone()),
                _ => {}
            }
        }
        added.extend(cuts.get(last).filter(|(_, inside)| *inside).map(|(cut, _)| cut.clone()));
        if !residues.is(false) {
            runs += 1;
            let run = interval((gaps[first].after, gaps[last].before), residues, automata)?;
            sum = sum.or(&run)?;
        }
        first = last + 1;
        if runs > MAX_RUNS {
            return Err(LeafError::Budget { what: "intervals of a set of numbers", limit: MAX_RUNS });
        }
    }
    let sum = sum.minus(&numbers_texts(&removed, true)?)?;
    sum.or(&numbers_texts(&added, false)?)
}

/// The texts of the numbers strictly between two bounds for which a function is true.
fn interval(
    (after, before): (Option<&Decimal>, Option<&Decimal>),
    residues: &Residues,
    automata: &AutomataCache,
) -> Result<CharDfa, LeafError> {
    let zero = Decimal::from(0);
    let inside = residues_texts(residues, automata)?;
    // Numbers of one sign, by their absolute values.
    let side = |low: Option<&Decimal>, high: Option<Decimal>| -> Result<CharDfa, LeafError> {
        let mut texts = inside.clone();
        match low.map(|low| (low, low.cmp(&zero))) {
            Some((low, Ordering::Greater)) => {
                let above = WantedComparison { less: false, equal: false, greater: true };
                texts = texts.and(&compared(low, above)?)?;
            }
            Some((_, Ordering::Equal)) => texts = texts.minus(&zeros(automata)?)?,
            _ => {}
        }
        match high {
            Some(high) if high <= zero => Ok(CharDfa::none()),
            Some(high) => {
                let below = WantedComparison { less: true, equal: false, greater: false };
                texts.and(&compared(&high, below)?)
            }
            None => Ok(texts),
        }
    };
    let minus = |number: &Decimal| number.times(&(-1).into());
    let positive = side(after, before.cloned())?;
    let negative = side(before.map(minus).as_ref(), after.map(minus))?;
    signed(&positive, &negative)
}

/// The unsigned texts of numbers for which a function is true.
fn residues_texts(residues: &Residues, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    if residues.divisors().is_empty() {
        return if residues.is(true) { normal(automata) } else { Ok(CharDfa::none()) };
    }
    if *residues == Residues::multiples(Decimal::from(1)) {
        return automata.language(SharedLanguage::Integers, || with_divisors(residues, automata));
    }
    with_divisors(residues, automata)
}

/// The texts for a function with divisors.
fn with_divisors(residues: &Residues, automata: &AutomataCache) -> Result<CharDfa, LeafError> {
    let fraction = residues.divisors().iter().map(fraction_digits).min().unwrap_or(0);
    let known = with_remainders(fraction, automata)?;
    let parts: Vec<CharDfa> =
        residues.divisors().iter().map(|divisor| multiples(divisor, fraction)).collect::<Result<_, _>>()?;
    let mut sum = CharDfa::none();
    for row in residues.true_rows() {
        let mut texts = known.clone();
        for (part, divides) in parts.iter().zip(row) {
            texts = if divides { texts.and(part)? } else { texts.minus(part)? };
        }
        sum = sum.or(&texts)?;
    }
    Ok(sum)
}

/// The texts of `positive`, and those of `negative` after a minus.
pub(super) fn signed(positive: &CharDfa, negative: &CharDfa) -> Result<CharDfa, LeafError> {
    /// The start, or a state of either language.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    enum At {
        Start,
        Positive(u32),
        Negative(u32),
    }
    let (alphabet, classes) = marks();
    let representative = representatives(&alphabet);
    let step = |dfa: &CharDfa, state: u32, class: usize| {
        let character = representative[class].filter(|_| !dfa.is_empty())?;
        dfa.next(state, character)
    };
    explore(alphabet, At::Start, |at| {
        let accepts = match *at {
            At::Start => false,
            At::Positive(state) => positive.accepts(state),
            At::Negative(state) => negative.accepts(state),
        };
        let to = classes.iter().enumerate().map(|(class, mark)| match *at {
            At::Start if *mark == Some(Mark::Minus) => (!negative.is_empty()).then_some(At::Negative(0)),
            At::Start => step(positive, 0, class).map(At::Positive),
            At::Positive(state) => step(positive, state, class).map(At::Positive),
            At::Negative(state) => step(negative, state, class).map(At::Negative),
        });
        Ok(DfaRow { accepts, to: to.collect() })
    })
}

/// Removes the texts whose part before the exponent begins no text without exponent: the product of the
/// automaton with itself, restricted to texts without exponent. Unless `always`, only texts with a negative
/// exponent are removed. Linear in the states.
pub(super) fn without_needed_exponents(texts: &CharDfa, always: bool) -> Result<CharDfa, LeafError> {
    /// A state of the texts, after the part of a text that it has in its name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    enum At {
        /// With the state of the texts without exponent, if one of them goes on from here or ends.
        Mantissa(u32, Option<u32>),
        /// The letter of an exponent that may not be negative.
        Letter(u32),
        Exponent(u32),
    }
    let (alphabet, classes) = marks();
    let characters: Vec<_> = representatives(&alphabet).into_iter().zip(&classes).collect();
    let fixed = explore(alphabet.clone(), 0, |state| {
        let step = |(character, mark): &(Option<u32>, &Option<Mark>)| match mark {
            Some(Mark::Exponent) => None,
            _ => texts.next(*state, (*character)?),
        };
        Ok(DfaRow { accepts: texts.accepts(*state), to: characters.iter().map(step).collect() })
    })?;
    explore(alphabet, At::Mantissa(0, (!fixed.is_empty()).then_some(0)), |at| {
        let (At::Mantissa(state, _) | At::Letter(state) | At::Exponent(state)) = *at;
        let step = |(character, mark): &(Option<u32>, &Option<Mark>)| {
            let next = texts.next(state, (*character)?)?;
            match (*at, mark) {
                (At::Mantissa(_, Some(_)), Some(Mark::Exponent)) => Some(At::Exponent(next)),
                (At::Mantissa(_, None), Some(Mark::Exponent)) => (!always).then_some(At::Letter(next)),
                (At::Mantissa(_, ends), _) => {
                    Some(At::Mantissa(next, ends.and_then(|ends| fixed.next(ends, (*character)?))))
                }
                (At::Letter(_), Some(Mark::Minus)) => None,
                (At::Letter(_) | At::Exponent(_), _) => Some(At::Exponent(next)),
            }
        };
        Ok(DfaRow { accepts: texts.accepts(state), to: characters.iter().map(step).collect() })
    })
}

/// A character of each class, if it has any.
fn representatives(alphabet: &Alphabet) -> Vec<Option<u32>> {
    let mut first = vec![None; alphabet.classes()];
    for (start, _, class) in alphabet.intervals() {
        first[class].get_or_insert(start);
    }
    first
}

/// The texts of some numbers: all in normal form if there are few or if `complete`; otherwise those that
/// writers use.
fn numbers_texts(numbers: &[Decimal], complete: bool) -> Result<CharDfa, LeafError> {
    if numbers.is_empty() {
        return Ok(CharDfa::none());
    }
    if numbers.len() > MANY_NUMBERS {
        if complete {
            return Err(LeafError::Budget { what: "numbers left out of an interval", limit: MANY_NUMBERS });
        }
        return CharDfa::of(numbers.iter().flat_map(usual_texts));
    }
    let texts: Vec<String> = numbers.iter().flat_map(|number| expressions(number, complete)).collect();
    pattern::language(&format!("^(?:{})$", texts.join("|")))
}

/// The sign of a number, its digits, and its decade.
pub(super) fn parts(number: &Decimal) -> (&'static str, String, i64) {
    let digits: String = number.digits().into_iter().map(|digit| char::from(b'0' + digit)).collect();
    let decade = number.exponent().saturating_add(saturating_i64(digits.len())) - 1;
    (if number.is_negative() { "-" } else { "" }, digits, decade)
}

/// The whole part and the fraction of a number without exponent; `None` if they are long.
fn without_exponent(digits: &str, decade: i64) -> Option<(String, String)> {
    let count = saturating_usize(decade.unsigned_abs());
    if count > LONG_TEXT * 10 {
        return None;
    }
    Some(if decade < 0 {
        ("0".to_owned(), format!("{}{digits}", "0".repeat(count - 1)))
    } else if count + 1 >= digits.len() {
        (format!("{digits}{}", "0".repeat(count + 1 - digits.len())), String::new())
    } else {
        (digits[..=count].to_owned(), digits[count + 1..].to_owned())
    })
}

/// Regular expressions for the texts of a number in normal form; long texts without exponent only if
/// `complete`.
fn expressions(number: &Decimal, complete: bool) -> Vec<String> {
    if number.is_zero() {
        return vec![r"-?0(?:\.0+)?(?:[eE][+-]?\d+)?".to_owned()];
    }
    let (sign, digits, decade) = parts(number);
    let mut found = Vec::new();
    let plain = without_exponent(&digits, decade);
    if let Some((whole, fraction)) =
        plain.filter(|(whole, fraction)| complete || whole.len() + fraction.len() <= LONG_TEXT)
    {
        found.push(match &*fraction {
            "" => format!(r"{sign}{whole}(?:\.0+)?"),
            fraction => format!(r"{sign}{whole}\.{fraction}0*"),
        });
    }
    let (first, rest) = digits.split_at(1);
    let mantissa = match rest {
        "" => format!(r"{first}(?:\.0+)?"),
        rest => format!(r"{first}\.{rest}0*"),
    };
    let size = decade.unsigned_abs();
    let power = match decade.cmp(&0) {
        Ordering::Less => format!("-0*{size}"),
        Ordering::Equal => "[+-]?0+".to_owned(),
        Ordering::Greater => format!(r"\+?0*{size}"),
    };
    found.push(format!("{sign}{mantissa}[eE]{power}"));
    found
}

/// The texts that writers use for a number.
fn usual_texts(number: &Decimal) -> Vec<String> {
    let (sign, digits, decade) = parts(number);
    let mut found = Vec::new();
    if number.is_zero() {
        found.extend(["-0", "-0.0"].map(str::to_owned));
    }
    if let Some((whole, fraction)) = without_exponent(&digits, decade)
        && whole.len() + fraction.len() <= LONG_TEXT
    {
        if fraction.is_empty() {
            found.push(format!("{sign}{whole}"));
            found.push(format!("{sign}{whole}.0"));
        } else {
            found.push(format!("{sign}{whole}.{fraction}"));
        }
    }
    let (first, rest) = digits.split_at(1);
    let mantissas = match rest {
        "" => vec![first.to_owned(), format!("{first}.0")],
        rest => vec![format!("{first}.{rest}")],
    };
    for mantissa in mantissas {
        for letter in ['e', 'E'] {
            found.push(format!("{sign}{mantissa}{letter}{decade}"));
            // Python writes at least two digits.
            found.push(format!("{sign}{mantissa}{letter}{decade:+03}"));
            found.push(format!("{sign}{mantissa}{letter}{decade:+}"));
        }
    }
    found
}
