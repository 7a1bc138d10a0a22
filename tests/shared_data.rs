//! Where test data that is not part of the repository lies.
//!
//! Such data is in the folder named by `DOMINO_SHARED`, or else in `shared` beside the repository. A test
//! whose data is missing says so and passes.

use std::path::{Path, PathBuf};

/// The file or folder `path` of the shared data, or `None` after saying what is missing.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("DOMINO_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let file = root.join(path);
    if file.exists() {
        return Some(file);
    }
    eprintln!("SKIPPED: {} is not there (set DOMINO_SHARED to the folder with the data)", file.display());
    None
}
