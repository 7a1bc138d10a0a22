//! Times of other engines, measured elsewhere: for orientation, not results of this run.

/// Date and machine of the measurements.
pub(crate) const MEASURED: &str = "as measured 2026-11-20 elsewhere, on another machine of two cores";

/// The grammars of the columns.
pub(crate) const GRAMMARS: [&str; 5] = ["json_basic", "gsm8k", "xml_person", "rpg_template", "c_simple"];

/// One engine on the five grammars: a warm mask and one on the first visit in us, compiling in ms; `None`
/// where it is unknown.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) cells: [(f64, Option<f64>, Option<f64>); 5],
}

const fn full(warm: f64, first: f64, compile: f64) -> (f64, Option<f64>, Option<f64>) {
    (warm, Some(first), Some(compile))
}

const fn warm(warm: f64) -> (f64, Option<f64>, Option<f64>) {
    (warm, None, None)
}

/// Engines with a vocabulary of 32k tokens.
pub(crate) const SMALL: [Peer; 5] = [
    Peer {
        name: "llguidance 1.9.1",
        cells: [
            full(3.1, 5.1, 1.3),
            full(2.6, 4.7, 1.3),
            full(24.0, 25.0, 1.2),
            full(3.1, 5.8, 1.4),
            full(77.0, 82.0, 1.7),
        ],
    },
    Peer {
        name: "XGrammar 0.2.8, its own best spelling",
        cells: [
            full(5.0, 5.1, 4.4),
            full(2.6, 2.7, 3.5),
            full(2.0, 2.1, 4.0),
            full(2.5, 2.7, 2.2),
            full(15.0, 15.0, 204.0),
        ],
    },
    Peer {
        name: "XGrammar 0.2.8, the paper's spelling",
        cells: [warm(4594.0), warm(3355.0), warm(2.6), warm(4.5), warm(3207.0)],
    },
    Peer {
        name: "kbnf 0.5.7 (warm: replay; wrong on c_simple)",
        cells: [
            full(3.6, 33.0, 29.0),
            full(0.3, 6.2, 41.0),
            full(0.4, 4.4, 41.0),
            full(0.3, 4.9, 51.0),
            full(179.0, 2584.0, 77.0),
        ],
    },
    Peer {
        name: "llama.cpp 0.5.0",
        cells: [warm(3124.0), warm(2591.0), warm(2194.0), warm(3023.0), warm(4071.0)],
    },
];

/// Engines with a vocabulary of 131k tokens.
pub(crate) const LARGE: [Peer; 2] = [
    Peer { name: "llguidance 1.9.1", cells: [warm(7.0), warm(4.1), warm(120.0), warm(5.7), warm(216.0)] },
    Peer {
        name: "XGrammar 0.2.8, its own best spelling",
        cells: [warm(14.0), warm(7.6), warm(5.2), warm(5.3), (144.0, None, Some(680.0))],
    },
];
