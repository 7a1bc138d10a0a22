//! llama.cpp as an engine for Domino: the models, quantisations and cards that it knows, behind Domino's
//! traits of models.
//!
//! * [`LlamaCppModel`]: one text at a time.
//! * [`LlamaCppBatch`]: several texts at once, in common passes.
//!
//! Masks are Domino's and exact, whichever engine runs the model. Logits are llama.cpp's: a pass over n
//! tokens gives the rows of n passes over one only up to rounding, since its products are added up in another
//! order for other numbers of tokens. So drafts leave the distribution of texts as it is up to that rounding,
//! but can change the text of a seed.
//!
//! A build without flags is for processors with AVX2. `GGML_AVX512=ON GGML_AVX512_VNNI=ON` in the
//! environment of the build, or `RUSTFLAGS="-C target-cpu=native"`, is for newer ones.
//!
//! Threads of a pass wait for one another busily. Where other programs want the same cores, set
//! `OMP_WAIT_POLICY=passive` in the environment of the program, or ask for fewer threads: passes take several
//! times as long otherwise.
//!
//! Rooms, each of which uses only those before it: `backend`, `sequences` (a model with its caches, and
//! options for loading it), `model`, `batch`.

mod backend;
mod batch;
mod model;
mod sequences;

pub use batch::LlamaCppBatch;
pub use model::LlamaCppModel;
pub use sequences::{LlamaCppOptions, has_cards};
