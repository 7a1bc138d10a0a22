//! The walk along texts with an engine; `walks.py` describes arguments and output of the programs.

use std::{env, fs, time::Instant};

/// A compiled grammar, and a text that is being written on it.
pub trait Engine {
    /// Starts a text, with what the grammar has learned from others.
    fn start(&mut self);
    /// Makes the mask of the whole vocabulary available.
    fn mask(&mut self);
    /// The tokens of the mask that was made last.
    fn allowed(&self) -> Vec<usize>;
    /// True if the mask that was made last has the token.
    fn holds(&self, token: u32) -> bool;
    /// Takes a token; `false` if it is refused.
    fn commit(&mut self, token: u32) -> bool;
}

/// Bytes of the tokens. Special tokens have none.
pub struct Tokens {
    pub spelt: Vec<Option<Vec<u8>>>,
    pub eos: u32,
}

/// Times of one walk, and its masks if they were asked for.
#[derive(Default)]
struct Walk {
    start: u128,
    masks: Vec<u128>,
    commits: Vec<u128>,
    rejected: Option<usize>,
    digests: Vec<(usize, u64, u8)>,
}

/// Measures the engine that the two functions make: tables of a vocabulary, and with those the compiled
/// grammar of a text, with the nanoseconds it took.
pub fn run<V, E: Engine>(
    version: &str,
    tables: impl FnOnce(&Tokens) -> V,
    compile: impl Fn(&V, &str) -> (E, u128),
) {
    let args: Vec<String> = env::args().skip(1).collect();
    let [vocabulary, grammar, traces, passes, fresh, seconds] = &args[..] else {
        panic!("VOCAB GRAMMAR TRACES PASSES FRESH SECONDS")
    };
    let read = |path: &String| fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (tokens, grammar) = (Tokens::parse(&read(vocabulary)), read(grammar));
    let traces: Vec<Vec<u32>> =
        read(traces).lines().map(|line| line.split(' ').map(number).collect()).collect();
    let (passes, fresh, seconds): (usize, usize, f64) = (number(passes), number(fresh), number(seconds));

    let (tables, time) = timed(|| tables(&tokens));
    println!(r#"{{"kind": "setup", "version": "{version}", "vocab": {time}}}"#);
    let begun = Instant::now();
    let spent = || begun.elapsed().as_secs_f64();
    let compile = || compile(&tables, &grammar);
    let mut done = 0;
    for (number, text) in traces.iter().enumerate() {
        if done > 0 && spent() > seconds / 2.0 {
            break;
        }
        done += 1;
        walk(&mut compile().0, text, Some(&tokens)).print("look", number, None);
        for time in 0..fresh {
            if time > 0 && spent() > seconds / 2.0 {
                break;
            }
            let (mut engine, compiled) = compile();
            walk(&mut engine, text, None).print("fresh", number, Some(compiled));
        }
    }
    let (mut engine, _) = compile();
    for text in &traces[..done] {
        walk(&mut engine, text, None);
    }
    for pass in 0..passes {
        if pass > 0 && spent() > seconds {
            break;
        }
        for (number, text) in traces[..done].iter().enumerate() {
            walk(&mut engine, text, None).print("warm", number, None);
        }
    }
}

/// Walks along a text, with a mask before each token and one at the end.
fn walk(engine: &mut impl Engine, text: &[u32], look: Option<&Tokens>) -> Walk {
    let mut walk = Walk { start: timed(|| engine.start()).1, ..Walk::default() };
    for step in 0..=text.len() {
        walk.masks.push(timed(|| engine.mask()).1);
        walk.digests.extend(look.map(|tokens| tokens.digest(&engine.allowed())));
        let Some(&token) = text.get(step) else { break };
        if !engine.holds(token) {
            walk.rejected = Some(step);
            break;
        }
        let (accepted, time) = timed(|| engine.commit(token));
        if !accepted {
            walk.rejected = Some(step);
            break;
        }
        walk.commits.push(time);
    }
    walk
}

impl Tokens {
    fn parse(text: &str) -> Self {
        let (head, lines) = text.split_once('\n').expect("a head");
        let (size, eos) = head.split_once(' ').expect("size and end of text");
        let mut spelt = vec![None; number(size)];
        for line in lines.lines() {
            let (id, hex) = line.split_once(' ').expect("id and bytes");
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
            spelt[number::<usize>(id)] = Some((0..hex.len()).step_by(2).map(byte).collect());
        }
        Self { spelt, eos: number(eos) }
    }

    /// Digest of a mask: number of ones, FNV-1a hash, and whether it has the end of text.
    fn digest(&self, allowed: &[usize]) -> (usize, u64, u8) {
        let mut bytes = vec![0_u8; self.spelt.len().div_ceil(32) * 4];
        let (mut ones, mut ends) = (0, 0);
        for &id in allowed {
            if id == self.eos as usize {
                ends = 1;
            } else {
                bytes[id / 8] |= 1 << (id % 8);
                ones += 1;
            }
        }
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        (ones, hash, ends)
    }
}

impl Walk {
    fn print(&self, kind: &str, number: usize, compile: Option<u128>) {
        let compile = compile.map_or_else(String::new, |time| format!(r#""compile": {time}, "#));
        let rejected = self.rejected.map_or_else(|| "null".to_owned(), |step| step.to_string());
        let digests =
            self.digests.iter().map(|(ones, hash, ends)| format!(r#"[{ones}, "{hash:016x}", {ends}]"#));
        print!(
            r#"{{"kind": "{kind}", "text": {number}, {compile}"start": {}, "masks": {:?}, "#,
            self.start, self.masks
        );
        println!(
            r#""commits": {:?}, "rejected": {rejected}, "digests": [{}]}}"#,
            self.commits,
            digests.collect::<Vec<_>>().join(", "),
        );
    }
}

fn number<T: std::str::FromStr>(text: impl AsRef<str>) -> T {
    text.as_ref().parse().unwrap_or_else(|_| panic!("{:?} is not a number", text.as_ref()))
}

/// Runs `work`; also returns its time in nanoseconds.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, u128) {
    let begun = Instant::now();
    let result = work();
    let time = begun.elapsed();
    (result, time.as_nanos())
}
