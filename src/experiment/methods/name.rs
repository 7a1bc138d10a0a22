//! The names of methods, as definitions write them.
//!
//! `paper` is Domino as we read the paper, and `paper+gumbel+lookup` the same with two of our refinements: so
//! a definition can add them one by one. `ours-gumbel` has all of them but one (leave-one-out).
//!
//! The key of `paper`'s counts (alpha) is the scanner's states, and at a border of terminals those that may
//! come next. The paper takes the subterminal that was read last, which tells less at borders and more about
//! the path that led there; and it does not print its threshold, so the threshold is ours.

use std::{fmt, num::NonZeroU8, str::FromStr, sync::Arc};

use super::ExternalWay;
use crate::{experiment::ExternalProgram, grammar::suggest, proposer::Counting};

/// A way to generate a text of a grammar.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MethodName {
    /// The model without a grammar.
    Unconstrained,
    /// Masks made before the pass, no drafts.
    Masks,
    /// Masks made after every pass, no drafts.
    Always,
    /// Masks made only where the model's own choice is refused (paper, 3.5), no drafts.
    Opportunistic,
    /// Drafts by counts (paper, 3.6), with these refinements.
    Paper(Refinements),
    /// All refinements, after the same warm-ups as `paper`.
    Ours,
    /// All refinements, with the prior that comes with the model.
    Shipped,
    /// Drafts of forced text only.
    Forced,
    /// Terminals cut at the borders of tokens: `k = 0` over written terminals, with masks after every pass.
    Naive,
    /// Draws again until a token is allowed.
    Rejection,
    /// Asks for every token of the vocabulary at every step whether it may follow.
    Online,
    /// Text that the grammar forces goes in without a draw.
    Templates {
        /// White space that the grammar leaves free is drawn, in place of what was there before.
        flexible: bool,
        /// Tokens are healed at the ends of what goes in: the last one is drawn again, with what follows.
        healed: bool,
    },
    /// Masks of llguidance, after every pass; in programs that have it.
    Llguidance,
    /// mistral.rs, in programs that have it.
    Mistralrs(ExternalWay),
    /// Masks over canonical tokenisations only: the text is cut into tokens as the tokenizer cuts it.
    Canonical,
    /// The model conditioned on the language, by sequential importance resampling.
    Conditional {
        /// Texts that are written side by side.
        particles: NonZeroU8,
    },
    /// Drafts of `s` tokens by a second model.
    DraftModel(Second),
    /// A program of the definition, by its name there.
    Program(Arc<str>),
    /// Drafts by counts with a refinement that has left the program: only records have it.
    Retired(Arc<str>),
}

/// The way a second model drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Second {
    /// Alone, kept to the grammar by a mask.
    Masked,
    /// Alone, without a mask.
    Unmasked,
    /// Masked, beside all proposers of `ours`: the more confident one wins.
    Joint,
}

/// Prefix of the names of methods that have all refinements but one.
const BUT: &str = "ours-";
/// Prefix of the names of methods with particles.
const CONDITIONAL: &str = "conditional-";
/// Refinements that have left the program, since they brought nothing beyond noise. Records name them.
const RETIRED: [&str; 2] = ["forced", "effort"];

/// One of our refinements of the paper's drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Refinement {
    /// The largest regular parts of the grammar are terminals, in place of those of a lexer.
    Folded,
    /// Contexts of earlier tokens, besides the place in the grammar (n-grams).
    Ngrams,
    /// The model's probabilities are counted, not the token that came.
    Soft,
    /// Guesses have the noise of the draw, and a calibrated acceptance.
    Gumbel,
    /// The text at hand is counted too, until it ends.
    Text,
    /// Text that occurred before in prompt or text is guessed (prompt lookup).
    Lookup,
    /// Drafts as long as pays, in place of `s`.
    Adaptive,
    /// Masks are made before the pass, which computes no rows that do not count.
    Rows,
}

/// A set of refinements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Refinements(u16);

impl Refinement {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Folded, "folded"),
        (Self::Ngrams, "ngrams"),
        (Self::Soft, "soft"),
        (Self::Gumbel, "gumbel"),
        (Self::Text, "text"),
        (Self::Lookup, "lookup"),
        (Self::Adaptive, "adaptive"),
        (Self::Rows, "rows"),
    ];

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

impl Refinements {
    /// All refinements.
    #[must_use]
    pub fn all() -> Self {
        Refinement::ALL.iter().fold(Self::default(), |all, (one, _)| all.with(*one))
    }

    /// All refinements but one.
    #[must_use]
    pub fn but(one: Refinement) -> Self {
        Self(Self::all().0 & !one.bit())
    }

    /// Returns the name of the missing refinement, if exactly one is missing.
    fn missing(self) -> Option<&'static str> {
        let is_it = |one: &&(Refinement, &str)| Self::but(one.0) == self;
        Refinement::ALL.iter().find(is_it).map(|(_, name)| *name)
    }

    /// Adds a refinement.
    #[must_use]
    pub fn with(self, one: Refinement) -> Self {
        Self(self.0 | one.bit())
    }

    /// Has the set this refinement?
    #[must_use]
    pub fn has(self, one: Refinement) -> bool {
        self.0 & one.bit() != 0
    }

    /// Returns the refinements that decide what is counted, and over which terminals: methods that agree in
    /// them share their priors.
    #[must_use]
    pub(super) fn of_counting(self) -> Self {
        let of_counting = [Refinement::Folded, Refinement::Ngrams, Refinement::Soft, Refinement::Gumbel];
        let kept = of_counting.into_iter().filter(|one| self.has(*one));
        kept.fold(Self::default(), Self::with)
    }

    /// Returns what is counted, and how guesses are made of it.
    #[must_use]
    pub fn counting(self) -> Counting {
        Counting {
            tokens_before: self.has(Refinement::Ngrams),
            soft: self.has(Refinement::Soft),
            coupled: self.has(Refinement::Gumbel),
        }
    }
}

/// The names of methods without refinements.
static NAMES: [(MethodName, &str); 24] = [
    (MethodName::Unconstrained, super::super::row::UNCONSTRAINED),
    (MethodName::Masks, "masks"),
    (MethodName::Always, "always"),
    (MethodName::Opportunistic, "opportunistic"),
    (MethodName::Paper(Refinements(0)), "paper"),
    (MethodName::Ours, "ours"),
    (MethodName::Shipped, "shipped"),
    (MethodName::Forced, "forced"),
    (MethodName::Naive, "naive"),
    (MethodName::Rejection, "rejection"),
    (MethodName::Online, "online"),
    (MethodName::Llguidance, "llguidance"),
    (MethodName::Mistralrs(ExternalWay::Free), "mistralrs"),
    (MethodName::Mistralrs(ExternalWay::Own), "mistralrs-llguidance"),
    (MethodName::Mistralrs(ExternalWay::Masks), "mistralrs-masks"),
    (MethodName::Mistralrs(ExternalWay::Drafts), "mistralrs-drafts"),
    (MethodName::Canonical, "canonical"),
    (MethodName::Templates { flexible: false, healed: true }, "templates"),
    (MethodName::Templates { flexible: true, healed: true }, "templates-flexible"),
    (MethodName::Templates { flexible: false, healed: false }, "templates-unhealed"),
    (MethodName::Templates { flexible: true, healed: false }, "templates-flexible-unhealed"),
    (MethodName::DraftModel(Second::Masked), "draft_model"),
    (MethodName::DraftModel(Second::Unmasked), "draft_model-unmasked"),
    (MethodName::DraftModel(Second::Joint), "draft_model-joint"),
];

impl MethodName {
    /// Resolves the name of a method, or of one of these programs.
    pub(in crate::experiment) fn of(name: &str, programs: &[ExternalProgram]) -> Result<Self, UnknownMethod> {
        match programs.iter().find(|program| program.name == name) {
            Some(program) => Ok(Self::Program(program.name.as_str().into())),
            None => name.parse(),
        }
    }

    /// Resolves the name of a method in a record, which may have a refinement that has left the program.
    pub(in crate::experiment) fn of_record(
        name: &str,
        programs: &[ExternalProgram],
    ) -> Result<Self, UnknownMethod> {
        let known = Self::of(name, programs);
        known.or_else(|unknown| retired(name).map(|_| Self::Retired(name.into())).ok_or(unknown))
    }

    /// Does another engine constrain its texts?
    #[must_use]
    pub fn is_constrained_elsewhere(&self) -> bool {
        matches!(self, Self::Llguidance | Self::Mistralrs(ExternalWay::Own) | Self::Program(_))
    }

    /// The refinements of a method that drafts by counts.
    #[must_use]
    pub fn refinements(&self) -> Option<Refinements> {
        match self {
            Self::Paper(refinements) => Some(*refinements),
            Self::Ours | Self::Shipped | Self::DraftModel(Second::Joint) => Some(Refinements::all()),
            _ => None,
        }
    }

    /// Does the definition's `k` apply to it? Otherwise it has none, or one of its own.
    #[must_use]
    pub fn takes_k(&self) -> bool {
        !matches!(
            self,
            Self::Unconstrained
                | Self::Naive
                | Self::Shipped
                | Self::Llguidance
                | Self::Mistralrs(_)
                | Self::Program(_)
        )
    }

    /// Do the definition's `s` and `threshold` apply to it?
    #[must_use]
    pub fn takes_s(&self) -> bool {
        match self {
            Self::Paper(refinements) => !refinements.has(Refinement::Adaptive),
            Self::DraftModel(_) => true,
            Self::Retired(name) => !name.starts_with(BUT) && name.split('+').all(|part| part != "adaptive"),
            _ => false,
        }
    }

    /// Does it learn from warm-ups?
    #[must_use]
    pub fn warms_up(&self) -> bool {
        let drafts = Self::Mistralrs(ExternalWay::Drafts);
        let learns =
            matches!(self, Self::Paper(_) | Self::Ours | Self::Retired(_) | Self::DraftModel(Second::Joint));
        learns || *self == drafts
    }

    /// Returns why its texts cannot come after a thought, in words; `None` if they can.
    #[must_use]
    pub fn never_thinks(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unconstrained => "it has no grammar whose texts could come after a thought",
            Self::Shipped => "the prior of the model was learnt of texts without thoughts",
            Self::Rejection | Self::Online | Self::Canonical => {
                "it draws tokens of texts alone, and the marks of thoughts may be special tokens"
            }
            Self::Templates { .. } => "it puts in what is forced as text, and marks may be special tokens",
            Self::Llguidance | Self::Mistralrs(_) | Self::Program(_) => {
                "another engine writes its texts, and does not tell thoughts from answers"
            }
            Self::Conditional { .. } => "its weights are of whole texts, and the end of a thought is forced",
            Self::Retired(_) => "it has left the program",
            Self::Masks
            | Self::Always
            | Self::Opportunistic
            | Self::Paper(_)
            | Self::Ours
            | Self::Forced
            | Self::Naive
            | Self::DraftModel(_) => return None,
        })
    }

    /// Returns how a second model drafts, if one does.
    #[must_use]
    pub fn second(&self) -> Option<Second> {
        match self {
            Self::DraftModel(second) => Some(*second),
            _ => None,
        }
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = match self {
            Self::Conditional { particles } => return write!(f, "{CONDITIONAL}{particles}"),
            Self::Program(name) | Self::Retired(name) => return f.write_str(name),
            Self::Paper(refinements) if let Some(missing) = refinements.missing() => {
                return write!(f, "{BUT}{missing}");
            }
            Self::Paper(_) => &Self::Paper(Refinements::default()),
            other => other,
        };
        let name = NAMES.iter().find(|(method, _)| method == plain).map_or("?", |(_, name)| name);
        f.write_str(name)?;
        if let Self::Paper(refinements) = self {
            for (_, name) in Refinement::ALL.iter().filter(|(one, _)| refinements.has(*one)) {
                write!(f, "+{name}")?;
            }
        }
        Ok(())
    }
}

/// Returns the refinement of a method's name that has left the program, if it has one.
fn retired(name: &str) -> Option<&'static str> {
    let refinements = name.strip_prefix(BUT).or_else(|| name.strip_prefix("paper+"))?;
    refinements.split('+').find_map(|part| RETIRED.into_iter().find(|retired| *retired == part))
}

/// A name that no method has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no method {0:?}")]
pub struct UnknownMethod(String);

impl UnknownMethod {
    /// Lists the names.
    #[must_use]
    pub fn hint(&self) -> String {
        if let Some(retired) = retired(&self.0) {
            return format!(
                "`{retired}` has left the program, since it brought nothing beyond noise: see \
                 docs/speculation-results.md"
            );
        }
        let names: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
        if let Some(near) = suggest::did_you_mean(&self.0, names.iter().copied()) {
            return near;
        }
        let refinements: Vec<&str> = Refinement::ALL.iter().map(|(_, name)| *name).collect();
        format!(
            "the methods are {}, and {CONDITIONAL}8 for 8 particles, up to 255; paper takes refinements, as \
             in paper+gumbel, and {BUT}gumbel is ours without it: {}",
            names.join(", "),
            refinements.join(", ")
        )
    }
}

impl FromStr for MethodName {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        let unknown = || UnknownMethod(text.to_owned());
        if let Some(particles) = text.strip_prefix(CONDITIONAL) {
            let method = Self::Conditional { particles: particles.parse().map_err(|_| unknown())? };
            // One spelling of a number.
            return if method.to_string() == text { Ok(method) } else { Err(unknown()) };
        }
        if let Some(missing) = text.strip_prefix(BUT) {
            let (one, _) = Refinement::ALL.iter().find(|(_, name)| *name == missing).ok_or_else(unknown)?;
            return Ok(Self::Paper(Refinements::but(*one)));
        }
        let mut parts = text.split('+');
        let base = parts.next().unwrap_or_default();
        let (mut method, _) = NAMES.iter().find(|(_, name)| *name == base).ok_or_else(unknown)?.clone();
        for part in parts {
            let (one, _) = Refinement::ALL.iter().find(|(_, name)| *name == part).ok_or_else(unknown)?;
            method = match method {
                Self::Paper(refinements) if !refinements.has(*one) => Self::Paper(refinements.with(*one)),
                _ => return Err(unknown()),
            };
        }
        Ok(method)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_methods_are_read_back() {
        let ladder = Refinement::ALL.map(|(one, _)| MethodName::Paper(Refinements::default().with(one)));
        let conditional = [1, 255].map(|n| MethodName::Conditional { particles: NonZeroU8::new(n).unwrap() });
        for method in NAMES.iter().map(|(method, _)| method.clone()).chain(ladder).chain(conditional) {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        for (one, name) in Refinement::ALL {
            let but: MethodName = format!("{BUT}{name}").parse().unwrap();
            assert_eq!(but, MethodName::Paper(Refinements::but(one)));
            assert_eq!(but.to_string().parse(), Ok(but.clone()));
            // Only without lengths that pay does it take `s`.
            assert_eq!((but.takes_s(), but.warms_up()), (one == Refinement::Adaptive, true), "{name}");
            let listed = Refinement::ALL.iter().filter(|(other, _)| *other != one);
            let listed = listed.map(|(_, name)| format!("+{name}")).collect::<String>();
            assert_eq!(format!("paper{listed}").parse(), Ok(but), "the same method by a longer name");
        }
        let all = MethodName::Paper(Refinements::all());
        assert_eq!(all.to_string().parse(), Ok(all));
        assert_eq!("paper+gumbel+soft".parse::<MethodName>().unwrap().to_string(), "paper+soft+gumbel");
        for wrong in ["conditional", "conditional-0", "conditional-08", "conditional-256", "conditional-+8"] {
            assert!(wrong.parse::<MethodName>().is_err(), "{wrong}");
        }
        for wrong in
            ["", "our", "ours+soft", "paper+", "paper+soft+soft", "Paper", "paper soft", "ours-", "ours-all"]
        {
            let hint = wrong.parse::<MethodName>().unwrap_err().hint();
            let all = hint.contains("masks") && hint.contains("gumbel");
            assert!(all || hint.starts_with("did you mean `"), "{wrong}: {hint}");
        }
    }

    #[test]
    fn records_may_name_refinements_that_have_left() {
        for one in RETIRED {
            for (name, takes_s) in [
                (format!("ours-{one}"), false),
                (format!("paper+{one}"), true),
                (format!("paper+soft+{one}+rows"), true),
                (format!("paper+adaptive+{one}"), false),
            ] {
                let hint = name.parse::<MethodName>().unwrap_err().hint();
                assert!(hint.contains(&format!("`{one}`")) && hint.contains("has left"), "{hint}");
                let method = MethodName::of_record(&name, &[]).unwrap();
                assert_eq!(method.to_string(), name);
                let takes = (method.takes_k(), method.takes_s(), method.warms_up());
                assert_eq!(takes, (true, takes_s, true), "{name}");
            }
        }
        for wrong in ["effort", "masks+effort", "ours+effort", "paper+nothing", "ours-"] {
            assert!(MethodName::of_record(wrong, &[]).is_err(), "{wrong}");
        }
        assert_eq!(MethodName::of_record("ours", &[]), Ok(MethodName::Ours));
    }

    #[test]
    fn counting_without_refinements_is_the_papers() {
        let plain = Refinements::default().counting();
        assert_eq!(plain, Counting { tokens_before: false, soft: false, coupled: false });
        assert_eq!(Refinements::all().counting(), Counting::default());
    }
}
