//! JSON Schemas whose patterns count: time from the schema's text to the first mask. `cargo measure counts`.
//!
//! `--passes N` is how often each schema is done (default 9), each time with a new compiler, which is *cold*,
//! or with one that is *prepared* for schemas, as those of the server are. Printed are medians in
//! milliseconds of processor time of this process, with that of the schema's text to a grammar and of the
//! grammar to a compiled one beside them, and the median over all schemas below. The vocabulary is that of
//! 131k tokens where `DOMINO_SHARED` has it, else the shipped one.

use std::{env, path::Path, time::Duration};

use domino::{Compiler, Limits, Vocabulary, grammar::json_schema::SchemaOptions};
use rustix::time::{ClockId, clock_gettime};

/// Schemas of published tools and services whose patterns count, with further keywords.
const SCHEMAS: [(&str, &str); 17] = [
    (r"^x[^\\n]{0,1000}$", ""),
    (r"^x[^\\n]{0,10000}$", ""),
    (r"^\\p{L}{1,10} \\p{L}{1,50}$", ""),
    (r"^(?:[^,]{1,64},){0,49}$", ""),
    (r"^\\S.{0,500}\\S$", ""),
    (r"^[A-Za-z_]{1,64}=[^\\n]{0,1024}$", ""),
    (r"^(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$", ""),
    (r"^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$", ""),
    (r"^(?=.*[A-Z])(?=.*\\d)(?=.*[^\\w]).{8,128}$", ""),
    (r"^(?!__.*__$)[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}.]{1,200}$", ""),
    (r"^[a-z]{1,10000}-[a-z]{1,10000}$", ""),
    (r"^(?:.{1,64}\\n){1,10}$", ""),
    (r"^(\\d{1,3},){0,3000}\\d{1,3}$", ""),
    (r"^(?:(?:[a-z]{1,20}-){1,20}/){1,20}$", ""),
    (
        r"^arn:aws[a-zA-Z-]*:[a-z0-9-]+:[a-z0-9-]*:\\d{12}:[a-zA-Z0-9/_+=.@-]{1,1024}$",
        r#", "maxLength": 2048"#,
    ),
    ("^[a-z]+:[a-z]{1,1024}$", r#", "minLength": 100, "maxLength": 4000"#),
    (r"^(?=.*[A-Z])(?=.*[a-z])(?=.*\\d)(?=.*\\W).{8,4000}$", ""),
];

/// Processor time of this process so far.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().expect("seconds"), time.tv_nsec.try_into().expect("nanoseconds"))
}

/// The vocabulary of 131k tokens, or the shipped one.
fn vocabulary() -> Vocabulary {
    let large = env::var_os("DOMINO_SHARED")
        .map(|shared| Path::new(&shared).join("data/tokenizers/tekken-131k"))
        .filter(|folder| folder.is_dir());
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/domino-small");
    Vocabulary::from_tokenizer_file(large.unwrap_or(shipped)).expect("a vocabulary")
}

/// Milliseconds to the grammar, to the compiled grammar, and to the first mask.
fn first_mask(compiler: &Compiler, schema: &str) -> [f64; 3] {
    let (begun, limits) = (now(), Limits::default());
    let since = || (now() - begun).as_secs_f64() * 1e3;
    let options = SchemaOptions::default();
    let grammar = options.parse_with(schema, &limits, compiler.automata()).expect("a schema").grammar;
    let parsed = since();
    let compiled = compiler.compile(&grammar).expect("a grammar");
    let compiling = since();
    std::hint::black_box(compiled.constraint().mask().expect("a mask"));
    [parsed, compiling, since()]
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Number of times that each schema is measured.
fn passes() -> usize {
    let mut args = env::args().skip_while(|arg| arg != "--passes").skip(1);
    args.next().map_or(9, |passes| passes.parse().expect("a number of passes"))
}

fn main() {
    let (vocabulary, passes) = (vocabulary(), passes().max(1));
    println!("{} tokens, medians of {passes}, milliseconds", vocabulary.text_tokens().count());
    println!("    cold  prepared  of it grammar  compiled  pattern");
    let mut all = [Vec::new(), Vec::new()];
    for (pattern, beside) in SCHEMAS {
        let string = format!(r#"{{"type": "string", "pattern": "{pattern}"{beside}}}"#);
        let schema = format!(r#"{{"type": "object", "properties": {{"a": {string}}}, "required": ["a"]}}"#);
        let mut rounds: [Vec<[f64; 3]>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..passes {
            rounds[0].push(first_mask(&Compiler::new(vocabulary.clone()), &schema));
            let compiler = Compiler::new(vocabulary.clone());
            let options = SchemaOptions::default();
            let kinds = options.kinds_of_values_with(&Limits::default(), compiler.automata());
            compiler.prepare(&kinds.expect("a schema").grammar).expect("a grammar");
            rounds[1].push(first_mask(&compiler, &schema));
        }
        let of = |round: usize, what: usize| median(rounds[round].iter().map(|took| took[what]).collect());
        let figures = [of(0, 2), of(1, 2)];
        all.iter_mut().zip(figures).for_each(|(all, figure)| all.push(figure));
        let [cold, prepared] = figures;
        println!("{cold:8.2}  {prepared:8.2}  {:13.2}  {:8.2}  {pattern}{beside}", of(1, 0), of(1, 1));
    }
    let [cold, prepared] = all.map(median);
    println!("{cold:8.2}  {prepared:8.2}  {:13}  {:8}  median", "", "");
}
