//! The order of runs: rounds, in which all methods take turns on one prompt with one seed.
//!
//! Invariant: a plan follows from the definition alone, so a run that was stopped goes on in the same order,
//! and shards of a plan are disjoint and together all of it.

use std::{fmt, str::FromStr};

use super::{
    definition::{Definition, Turns, Variant},
    row::RunId,
};

/// One part of a plan, for one of several processes: whole rounds, so that what is compared runs on one
/// machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Index of the shard, from 1.
    index: u64,
    count: u64,
}

/// An invalid shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a shard is written I/N, with I from 1 to N")]
pub struct ShardError;

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let (index, count) = text.split_once('/').ok_or(ShardError)?;
        let (index, count) = (index.parse().map_err(|_| ShardError)?, count.parse().map_err(|_| ShardError)?);
        if (1..=count).contains(&index) { Ok(Self { index, count }) } else { Err(ShardError) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// The data that the methods of a round share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PlanRound {
    /// Indices in the definition.
    pub(super) model: usize,
    pub(super) task: usize,
    pub(super) prompt: usize,
    pub(super) temperature: f64,
    pub(super) seed: u64,
    /// Number of the round in the whole plan.
    number: usize,
}

/// All runs of a definition, or of a shard of it, in order.
#[derive(Debug, Clone)]
pub struct Plan {
    definition: Definition,
    variants: Vec<Variant>,
    rounds: Vec<PlanRound>,
}

impl Plan {
    /// Creates the plan of a definition, or of one shard of it.
    #[must_use]
    pub fn new(definition: Definition, shard: Option<Shard>) -> Self {
        let mut rounds = Vec::new();
        for model in 0..definition.models.len() {
            for (task, prompts) in definition.tasks.iter().map(|task| task.prompts.len()).enumerate() {
                for &temperature in &definition.temperatures {
                    for &seed in &definition.seeds {
                        for prompt in 0..prompts {
                            let number = rounds.len();
                            rounds.push(PlanRound { model, task, prompt, temperature, seed, number });
                        }
                    }
                }
            }
        }
        if let Some(Shard { index, count }) = shard {
            // By a hash: by numbers, a shard could get the same prompts each time.
            rounds.retain(|round| round.hash(&definition) % count == index - 1);
        }
        let variants = definition.variants();
        Self { definition, variants, rounds }
    }

    /// The definition.
    #[must_use]
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.rounds.len() * self.variants.len()
    }

    /// Returns the keys of all runs, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        let runs = self.rounds.iter().flat_map(|round| self.turns(round).map(move |at| (round, at)));
        runs.map(|(round, at)| self.id(round, at).key()).collect()
    }

    pub(super) fn rounds(&self) -> &[PlanRound] {
        &self.rounds
    }

    pub(super) fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// Returns the indices of variants in the order of their turns in a round.
    pub(super) fn turns(&self, round: &PlanRound) -> impl Iterator<Item = usize> + use<> {
        let count = self.variants.len();
        let first = match self.definition.turns {
            Turns::Rotate => round.number % count.max(1),
            Turns::Fixed => 0,
        };
        (0..count).map(move |turn| (first + turn) % count)
    }

    /// Returns the run of a variant in a round.
    pub(super) fn id(&self, round: &PlanRound, variant: usize) -> RunId {
        let Variant { ref method, k, s, threshold, warm_ups, think } = self.variants[variant];
        RunId { method: method.to_string(), k, s, threshold, warm_ups, think, ..round.id(&self.definition) }
    }
}

impl PlanRound {
    /// Returns a run without a method.
    fn id(&self, definition: &Definition) -> RunId {
        RunId {
            model: definition.models[self.model].clone(),
            grammar: definition.tasks[self.task].name.clone(),
            prompt: self.prompt,
            temperature: self.temperature,
            seed: self.seed,
            method: String::new(),
            k: None,
            s: None,
            threshold: None,
            warm_ups: None,
            think: None,
        }
    }

    fn hash(&self, definition: &Definition) -> u64 {
        let hash = blake3::hash(self.id(definition).key().as_bytes());
        hash.as_bytes()[..8].iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, path::Path};

    use super::*;

    fn plan(shard: Option<&str>) -> Plan {
        let text = "name = \"a\"\ngrammars = [\"json\"]\nprompts = [\"x\", \"y\"]\n\
            warm_up_prompts = [\"w\"]\n\
            seeds = { from = 0, count = 20 }\n\
            methods = [\"unconstrained\", \"masks\", \"paper\"]\ns = [1, 2]";
        let grammar = |_: &str| Some("root ::= \"a\"");
        let definition = Definition::parse(text, "a", Path::new(""), false, &grammar).unwrap();
        Plan::new(definition, shard.map(|shard| shard.parse().unwrap()))
    }

    #[test]
    fn each_run_of_a_plan_comes_once_and_turns_rotate() {
        let plan = plan(None);
        assert_eq!(plan.runs(), 2 * 20 * 4);
        let keys: HashSet<String> = plan.keys().into_iter().collect();
        assert_eq!(keys.len(), plan.runs());
        let firsts: Vec<usize> = plan.rounds().iter().filter_map(|round| plan.turns(round).next()).collect();
        assert_eq!(&firsts[..5], [0, 1, 2, 3, 0]);
    }

    #[test]
    fn shards_are_parts_of_the_plan() {
        let whole = plan(None);
        let mut keys = Vec::new();
        for shard in ["1/3", "2/3", "3/3"] {
            let part = plan(Some(shard));
            assert!(part.runs() > 0 && part.runs() < whole.runs());
            // Turns are as in the whole plan.
            let all = whole.keys();
            let mut rest = all.iter();
            assert!(part.keys().iter().all(|key| rest.any(|other| other == key)));
            keys.extend(part.keys());
        }
        keys.sort();
        let mut all = whole.keys();
        all.sort();
        assert_eq!(keys, all);
        for wrong in ["", "1", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2"] {
            assert_eq!(wrong.parse::<Shard>(), Err(ShardError), "{wrong}");
        }
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
    }
}
