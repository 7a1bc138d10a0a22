//! The paper's printed figures (arXiv 2403.06988), beside ours, method by method.

use super::table::{Cell, LineGroup, Table, best, paced, table, text};
use crate::experiment::row::{K, UNCONSTRAINED};
use crate::experiment::summary::Line;

/// The differences between the paper's figures and ours.
pub(super) const DIFFERS: &str = "Paper: its figures are of 7B and 13B models on a GPU, ours of the model \
    and machine above: neither ratios nor absolute numbers are comparable in hardware, and a small model's \
    passes gain more from masks that are known before.";

/// Models and cards of the paper's numbers.
const CARD: &str = "Mistral 7B and Llama-2 13B on an NVIDIA A100 40 GB or H100 80 GB (the paper does not say \
    which of the two for a number)";
/// The paper's models, as heads of columns.
const MODELS: [&str; 2] = ["paper: Mistral 7B", "paper: Llama-2 13B"];

/// A row of the paper's table 3: the grammar by its name here, the method by its name there, our equal or
/// nearest method, and throughput relative to unconstrained by model.
type Throughput = (&'static str, &'static str, Option<&'static str>, [f64; 2]);

const LLAMA_CPP: &str = "llama.cpp (grammar)";
const TEMPLATE: &str = "Guidance (template)";
const GUIDANCE: &str = "Guidance (grammar)";
const DOMINO: &str = "Domino";
const OPPORTUNISTIC: &str = "Domino (opportunistic)";
const DRAFTS: &str = "Domino (s = 10)";

/// The paper's table 3. Its column "accelerated" is of two methods, the better one of each cell:
/// opportunistic masking or drafts of 10 tokens.
const THROUGHPUT: [Throughput; 22] = [
    ("json", LLAMA_CPP, None, [0.79, 0.83]),
    ("json", TEMPLATE, Some("templates"), [1.03, 1.03]),
    ("json", GUIDANCE, None, [0.81, 0.86]),
    ("json", DOMINO, Some("always"), [0.88, 0.95]),
    ("json", OPPORTUNISTIC, Some("opportunistic"), [0.96, f64::NAN]),
    ("json", DRAFTS, Some("paper"), [f64::NAN, 1.12]),
    ("gsm8k", LLAMA_CPP, None, [0.80, 0.86]),
    ("gsm8k", TEMPLATE, Some("templates"), [0.77, 0.94]),
    ("gsm8k", GUIDANCE, None, [0.59, 0.74]),
    ("gsm8k", DOMINO, Some("always"), [0.99, 0.99]),
    ("gsm8k", DRAFTS, Some("paper"), [1.77, 1.66]),
    ("c", LLAMA_CPP, None, [0.74, 0.81]),
    ("c", DOMINO, Some("always"), [0.41, 0.54]),
    ("c", OPPORTUNISTIC, Some("opportunistic"), [0.78, 0.85]),
    ("xml_person", LLAMA_CPP, None, [0.80, 0.87]),
    ("xml_person", DOMINO, Some("always"), [0.94, 0.98]),
    ("xml_person", DRAFTS, Some("paper"), [1.52, 1.84]),
    ("rpg", LLAMA_CPP, None, [0.55, 0.69]),
    ("rpg", TEMPLATE, Some("templates"), [1.95, 2.05]),
    ("rpg", GUIDANCE, None, [0.92, 1.06]),
    ("rpg", DOMINO, Some("always"), [0.97, 0.99]),
    ("rpg", DRAFTS, Some("paper"), [1.30, 1.91]),
];

/// A row of the paper's table 2: task, model (an index of [`MODELS`]), method there and here, and accuracy,
/// well-formed, perplexity and throughput.
type Quality = (&'static str, usize, &'static str, Option<&'static str>, [f64; 4]);

const SPACES: &str = "Guidance (white space)";

/// The paper's table 2: GSM8K, and named entities of CoNLL-2003, five examples in the prompt, 400 questions.
const QUALITY: [Quality; 20] = [
    ("gsm8k", 0, UNCONSTRAINED, Some(UNCONSTRAINED), [0.415, 0.952, 1.636, 1.0]),
    ("gsm8k", 0, TEMPLATE, Some("templates"), [0.345, 0.960, 1.624, 0.98]),
    ("gsm8k", 0, SPACES, Some("templates-flexible"), [0.403, 0.976, 1.737, 0.54]),
    ("gsm8k", 0, LLAMA_CPP, None, [0.375, 0.973, 1.751, 0.80]),
    ("gsm8k", 0, DRAFTS, Some("paper"), [0.418, 0.968, 1.739, 1.77]),
    ("gsm8k", 1, UNCONSTRAINED, Some(UNCONSTRAINED), [0.262, 0.904, 1.650, 1.0]),
    ("gsm8k", 1, TEMPLATE, Some("templates"), [0.152, 0.947, 1.659, 1.12]),
    ("gsm8k", 1, SPACES, Some("templates-flexible"), [0.259, 0.977, 1.760, 0.73]),
    ("gsm8k", 1, LLAMA_CPP, None, [0.237, 0.978, 1.780, 0.86]),
    ("gsm8k", 1, DRAFTS, Some("paper"), [0.262, 0.920, 1.750, 1.66]),
    ("ner", 0, UNCONSTRAINED, Some(UNCONSTRAINED), [0.21, 0.988, 1.573, 1.0]),
    ("ner", 0, TEMPLATE, Some("templates"), [0.098, 0.998, 1.780, 2.02]),
    ("ner", 0, SPACES, Some("templates-flexible"), [0.19, 0.998, 1.896, 0.82]),
    ("ner", 0, LLAMA_CPP, None, [0.117, 0.995, 1.560, 0.80]),
    ("ner", 0, DRAFTS, Some("paper"), [0.21, 0.988, 1.902, 2.66]),
    ("ner", 1, UNCONSTRAINED, Some(UNCONSTRAINED), [0.09, 0.897, 1.579, 1.0]),
    ("ner", 1, TEMPLATE, Some("templates"), [0.062, 1.000, 1.820, 2.18]),
    ("ner", 1, SPACES, Some("templates-flexible"), [0.087, 0.980, 1.767, 0.90]),
    ("ner", 1, LLAMA_CPP, None, [0.080, 0.922, 1.786, 0.86]),
    ("ner", 1, DRAFTS, Some("paper"), [0.09, 0.897, 1.812, 2.71]),
];

/// The paper's table 4: accuracy on GSM8K by lookahead; no lookahead is unconstrained.
const LOOKAHEAD: [(Option<K>, [f64; 2]); 4] = [
    (None, [0.415, 0.155]),
    (Some(K::Terminals(0)), [0.308, 0.0]),
    (Some(K::Terminals(1)), [0.1, 0.036]),
    (Some(K::Infinite), [0.418, 0.157]),
];

/// Makes the paper's tables beside ours, for the grammars and tasks that both have. The paper has no
/// thoughts.
pub(super) fn tables(group: &LineGroup<'_>) -> Vec<Table> {
    let lines = group.lines.iter().filter(|line| line.think.is_none()).copied().collect();
    let group = &LineGroup { suffix: group.suffix.clone(), title: group.title.clone(), lines };
    [throughput(group), quality(group), lookahead(group)].into_iter().flatten().collect()
}

/// Formats a number of the paper, if it has one.
fn printed(number: f64, figures: usize) -> Cell {
    if number.is_nan() { Cell::None } else { Cell::Number(number, figures) }
}

/// Returns the line of one of our methods.
fn line_of<'a>(lines: &[&'a Line], grammar: &str, method: Option<&str>) -> Option<&'a Line> {
    lines.iter().find(|line| line.grammar == grammar && Some(line.method.as_str()) == method).copied()
}

fn ours(method: Option<&str>, line: Option<&Line>) -> [Cell; 2] {
    let throughput = line.map_or(Cell::None, |line| paced(line, line.throughput, 2));
    [Cell::shown(method), throughput]
}

/// Compares throughput with the paper's table 3.
fn throughput(group: &LineGroup<'_>) -> Option<Table> {
    let lines = best(&group.lines);
    let mut rows = Vec::new();
    for (number, &(grammar, theirs, method, [one, other])) in THROUGHPUT.iter().enumerate() {
        if !lines.iter().any(|line| line.grammar == grammar && line.method != UNCONSTRAINED) {
            continue;
        }
        let mut row = vec![text(grammar), text(theirs), printed(one, 2), printed(other, 2)];
        row.extend(ours(method, line_of(&lines, grammar, method)));
        rows.push(row);
        let is_last = THROUGHPUT.get(number + 1).is_none_or(|(next, ..)| *next != grammar);
        if let Some(line) = line_of(&lines, grammar, Some("ours")).filter(|_| is_last) {
            let mut row = vec![text(grammar), Cell::None, Cell::None, Cell::None];
            row.extend(ours(Some("ours"), Some(line)));
            rows.push(row);
        }
    }
    let about = format!(
        "What the paper's table 3 prints, tokens a second relative to unconstrained, of {CARD}; and ours, of \
         the method that is the same or nearest: what has none was not measured. Its column of accelerated \
         Domino is of opportunistic masking or of drafts of 10 tokens, whichever was faster for a cell, and \
         stands here beside the one that it is of. {DIFFERS}"
    );
    let head = ["grammar", "method in the paper", MODELS[0], MODELS[1], "ours", "over unconstrained"];
    (!rows.is_empty())
        .then(|| table(group, "paper-throughput", "Throughput in the paper and here", &about, &head, rows))
}

/// Compares answers with the paper's table 2.
fn quality(group: &LineGroup<'_>) -> Option<Table> {
    let lines = best(&group.lines);
    let mut rows = Vec::new();
    for &(task, model, theirs, method, printed_there) in &QUALITY {
        // Without answers there is nothing to compare with.
        let answers = |line: &&Line| line.grammar == task && line.correct.is_some();
        if !lines.iter().any(|line| answers(line) && line.method != UNCONSTRAINED) {
            continue;
        }
        let [accuracy, well_formed, perplexity, throughput] = printed_there;
        let mut row = vec![text(task), text(MODELS[model].trim_start_matches("paper: ")), text(theirs)];
        row.extend([printed(accuracy, 3), printed(well_formed, 3), printed(perplexity, 3)]);
        row.push(printed(throughput, 2));
        let line = line_of(&lines, task, method);
        row.push(Cell::shown(method));
        row.extend([
            Cell::of(line.and_then(|line| line.correct), 3),
            Cell::of(line.and_then(|line| line.well_formed), 3),
            Cell::of(line.and_then(|line| line.perplexity), 2),
            line.map_or(Cell::None, |line| paced(line, line.throughput, 2)),
        ]);
        rows.push(row);
    }
    let about = format!(
        "What the paper's table 2 prints, of {CARD}, five examples in the prompt, 400 questions; and ours, \
         of the method that is the same or nearest. The paper's named entities are of CoNLL-2003. {DIFFERS}"
    );
    let head = [
        "task",
        "paper's model",
        "method in the paper",
        "paper: accuracy",
        "paper: well-formed",
        "paper: perplexity",
        "paper: throughput",
        "ours",
        "accuracy",
        "well-formed",
        "perplexity",
        "over unconstrained",
    ];
    (!rows.is_empty())
        .then(|| table(group, "paper-texts", "Answers in the paper and here", &about, &head, rows))
}

/// Compares accuracy by `k` with the paper's table 4.
fn lookahead(group: &LineGroup<'_>) -> Option<Table> {
    let tasks = ["gsm8k", "one_step", "two_steps"];
    let mut rows = Vec::new();
    for task in tasks {
        let lines: Vec<&&Line> =
            group.lines.iter().filter(|line| line.grammar == task && line.correct.is_some()).collect();
        let has = |k: Option<K>| lines.iter().any(|line| line.k == k && line.method != UNCONSTRAINED);
        if !(has(Some(K::Terminals(0))) && has(Some(K::Infinite))) {
            continue;
        }
        for (k, [one, other]) in LOOKAHEAD {
            // Texts hang on `k` alone, so any method that has them all will do: the first.
            let line = lines.iter().find(|line| line.k == k && (k.is_some() || line.method == UNCONSTRAINED));
            let mut row =
                vec![text(task), text(&k.map_or_else(|| UNCONSTRAINED.to_owned(), |k| k.to_string()))];
            row.extend([printed(one, 3), printed(other, 3), Cell::shown(line.map(|line| &line.method))]);
            row.push(Cell::of(line.and_then(|line| line.correct), 3));
            rows.push(row);
        }
    }
    let about = format!(
        "What the paper's table 4 prints, accuracy on GSM8K of {CARD}; and ours, on the tasks of the form of \
         GSM8K. (Its table 2 has 0.262 for Llama-2 13B unconstrained, where this one has 0.155.) {DIFFERS}"
    );
    let head = ["task", "k", MODELS[0], MODELS[1], "ours", "accuracy"];
    (!rows.is_empty())
        .then(|| table(group, "paper-lookahead", "Accuracy by k in the paper and here", &about, &head, rows))
}
