//! What would trees of drafts gain over chains? A simulation on real runs.
//!
//! The counts rank the candidates of every token of plain runs, and it is noted which of them was drawn. From that a
//! chain's and a tree's passes follow without being made: the best tree by what the ranks' chances are (best first, as
//! far as pays by the curve of costs), and how far the text goes in it. Two things are assumed, both in favour of trees:
//! off the text's path chances are those on it, and a pass over a tree costs what one over a chain of as many tokens does.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context;
use domino::{
    decode::Decoder,
    model::candle::CandleModel,
    proposer::{
        CountProposer, DraftLength, Drafter, Guess, Learning, Pass, PassCost, Prior, Propose, Seen, Site,
    },
};

use crate::measure::{Cell, Protocol};

/// Candidates of a token that are ranked.
const RANKS: usize = 4;
/// Most tokens of a tree.
const MOST: usize = 64;

/// One token of a text.
#[derive(Debug, Clone, Default)]
struct Place {
    /// Which candidate was drawn, if it was one of the first.
    drawn: Option<usize>,
    /// By rank: how likely it was to be drawn.
    chances: Vec<f64>,
    /// Is the row wanted whole?
    wide: bool,
}

/// Kind of a candidate past the first: rank, chance of the first, and by how much it is behind.
type Kind = (usize, usize, usize);

/// Looks at each token before and after it is drawn; drafts nothing.
#[derive(Debug)]
struct Watcher {
    counts: CountProposer,
    /// Candidates of the next token and their kinds.
    next: Option<(Vec<domino::TokenId>, Vec<Kind>, Place)>,
    /// Candidates of a kind, and those that were drawn.
    tallies: HashMap<Kind, (f64, f64)>,
    run: Vec<Place>,
}

impl Propose for Watcher {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let wide = site.is_wide();
        let first = self.counts.guess(site).map_or(0.0, |guess| guess.acceptance);
        let ranked = self.counts.ranked(site, RANKS);
        let kind = |(rank, &(_, behind)): (usize, &(domino::TokenId, f64))| {
            (rank, (10.0 * first) as usize, (4.0 * behind).min(24.0) as usize)
        };
        let kinds: Vec<Kind> = ranked.iter().enumerate().map(kind).collect();
        let chances = kinds.iter().map(|kind| match kind.0 {
            0 => first,
            _ => {
                let (tried, right) = self.tallies.get(kind).copied().unwrap_or_default();
                (right + 0.2) / (tried + 4.0)
            }
        });
        let place = Place { drawn: None, chances: chances.collect(), wide };
        self.next = Some((ranked.into_iter().map(|(token, _)| token).collect(), kinds, place));
        None
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        if let Some((tokens, kinds, mut place)) = self.next.take() {
            place.drawn = tokens.iter().position(|&token| token == seen.token);
            for kind in kinds {
                let (tried, right) = self.tallies.entry(kind).or_default();
                *tried += 1.0;
                *right += f64::from(u8::from(place.drawn == Some(kind.0)));
            }
            self.run.push(place);
        }
        self.counts.observe(site, seen);
    }

    fn learns(&self) -> bool {
        true
    }

    fn wants_likely(&self) -> bool {
        true
    }
}

/// What passes cost.
enum Curve {
    /// As measured.
    Here(PassCost),
    /// Each token so much of the first.
    Slope(f64),
}

impl Curve {
    fn cost(&self, pass: Pass) -> f64 {
        match self {
            Self::Here(cost) => cost.relative(pass),
            Self::Slope(slope) => 1.0 + slope * (pass.tokens as f64 - 1.0),
        }
    }
}

/// Sums over passes.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    tokens: f64,
    passes: f64,
    drafted: f64,
    cost: f64,
}

/// The passes of these runs with trees of so many candidates a token; one makes chains.
fn simulate(runs: &[Vec<Place>], curve: &Curve, ranks: usize) -> Sums {
    let mut sums = Sums::default();
    let (mut tokens, mut cost) = (4.0, 4.0 * curve.cost(Pass::whole(1)));
    for run in runs {
        let mut at = 0;
        while at < run.len() {
            let rest = &run[at..];
            let (tree, pass) = tree(rest, curve, ranks, tokens / cost);
            let mut path = Vec::new();
            while let Some(rank) = rest.get(path.len()).and_then(|place| place.drawn) {
                path.push(rank);
                if path.len() == rest.len() || !tree.contains(&path) {
                    path.pop();
                    break;
                }
            }
            let (gone, took) = (path.len() + 1, curve.cost(pass));
            (tokens, cost) = (0.98 * tokens + gone as f64, 0.98 * cost + took);
            sums.tokens += gone as f64;
            sums.passes += 1.0;
            sums.drafted += tree.len() as f64;
            sums.cost += took;
            at += gone;
        }
    }
    sums
}

/// The tree that gains most at this pace, as paths of ranks, and its pass.
fn tree(places: &[Place], curve: &Curve, ranks: usize, pace: f64) -> (Vec<Vec<usize>>, Pass) {
    /// Chances of being reached below which a token is left out.
    const LEAST: f64 = 0.01;
    let below = |chance: f64, path: &[usize]| {
        let chances = places.get(path.len()).map_or(&[][..], |place| &place.chances);
        let below = chances.iter().take(ranks).enumerate();
        below.map(|(rank, other)| (chance * other, [path, &[rank]].concat())).collect::<Vec<_>>()
    };
    let mut pass = Pass { tokens: 1, whole: usize::from(places[0].wide) };
    let mut expected = 1.0;
    let (mut best, mut most) = ((0, pass), expected - pace * curve.cost(pass));
    let mut paths: Vec<Vec<usize>> = Vec::new();
    let mut open = below(1.0, &[]);
    while paths.len() < MOST
        && let Some(likeliest) = (0..open.len()).max_by(|&one, &other| open[one].0.total_cmp(&open[other].0))
    {
        let (chance, path) = open.swap_remove(likeliest);
        if chance < LEAST {
            break;
        }
        let wide = places.get(path.len()).is_some_and(|place| place.wide);
        pass = pass + Pass { tokens: 1, whole: usize::from(wide) };
        expected += chance;
        open.extend(below(chance, &path));
        paths.push(path);
        let gain = expected - pace * curve.cost(pass);
        if gain > most {
            (best, most) = ((paths.len(), pass), gain);
        }
    }
    paths.truncate(best.0);
    (paths, best.1)
}

impl Cell<'_> {
    /// Estimates what trees gain, and prints it: a line for each curve.
    pub(crate) fn trees(
        &self,
        name: &str,
        decoder: &mut Decoder<CandleModel>,
        protocol: &Protocol,
    ) -> anyhow::Result<()> {
        let prior = self.prior(decoder, protocol)?;
        let counts = CountProposer::new(prior.clone(), Learning::Text);
        let watcher = Watcher { counts, next: None, tallies: HashMap::new(), run: Vec::new() };
        let watcher = Arc::new(Mutex::new(watcher));
        // A length that is not weighed: else it would rest, as it never drafts.
        let length = DraftLength::up_to(1, 0.0)?;
        decoder.set_drafter(Some(Drafter::new(Box::new(Arc::clone(&watcher)), length)));
        decoder.set_constraint(Some(self.grammar.constraint()))?;
        let mut runs = Vec::new();
        for run in 0..protocol.runs {
            decoder.options_mut().seed = run as u64;
            decoder.generate(&self.prompts[run % self.prompts.len()])?;
            runs.push(std::mem::take(&mut watcher.lock().unwrap_or_else(PoisonError::into_inner).run));
        }
        let cost = self.cost(decoder, &prior)?;
        // The first half has shown how often which rank is drawn.
        let runs = runs.split_off(runs.len() / 2);
        let all = runs.iter().map(Vec::len).sum::<usize>() as f64;
        let drawn = |rank| runs.iter().flatten().filter(|place| place.drawn == Some(rank)).count() as f64;
        let shares: Vec<String> = (0..RANKS).map(|rank| format!("{:.3}", drawn(rank) / all)).collect();
        println!("{name}: drawn by rank {}", shares.join(" "));
        for (what, rows) in [("whole rows", 1), ("none", 0)] {
            let here = (1..=8).map(|n| format!("{:.2}", cost.relative(Pass { tokens: n, whole: n * rows })));
            println!("  passes with {what}: {}", here.collect::<Vec<_>>().join(" "));
        }
        let slopes = [0.05, 0.02, 0.005].map(|slope| (format!("1 + {slope} (n - 1)"), Curve::Slope(slope)));
        for (what, curve) in [("here".to_owned(), Curve::Here(cost))].into_iter().chain(slopes) {
            let chain = simulate(&runs, &curve, 1);
            print!("  {what}: chain {:.2} tokens/pass", chain.tokens / chain.passes);
            for ranks in 2..=RANKS {
                let tree = simulate(&runs, &curve, ranks);
                let gain = tree.tokens / tree.cost / (chain.tokens / chain.cost) - 1.0;
                print!(
                    ", {ranks} ranks {:.2} ({:.1} drafted) {:+.1}%",
                    tree.tokens / tree.passes,
                    tree.drafted / tree.passes,
                    100.0 * gain
                );
            }
            println!();
        }
        Ok(())
    }

    /// What passes cost in use: with drafts of each length on some texts. Passes that are measured idle tell too little.
    fn cost(&self, decoder: &mut Decoder<CandleModel>, prior: &Prior) -> anyhow::Result<PassCost> {
        let drafter =
            |length| Drafter::new(Box::new(CountProposer::new(prior.clone(), Learning::Text)), length);
        let noted = |drafter: Option<Drafter>| {
            drafter.map(|drafter| drafter.pass_cost().clone()).context("a drafter")
        };
        decoder.set_drafter(Some(drafter(DraftLength::Auto)));
        decoder.calibrate()?;
        let mut cost = noted(decoder.set_drafter(None))?;
        for tokens in [1, 2, 3, 4, 5, 6, 7, 8, 12, 16] {
            for (seed, prompt) in (2_000_000..2_000_003).zip(&self.prompts) {
                decoder.set_drafter(Some(drafter(DraftLength::up_to(tokens, 0.0)?).cost(cost)));
                decoder.options_mut().seed = seed;
                decoder.generate(prompt)?;
                cost = noted(decoder.set_drafter(None))?;
            }
        }
        Ok(cost)
    }
}
