//! Tells tests where the repository is: their files are there, not in this package.

use std::{env, path::Path};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let package = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&package).ancestors().nth(3).unwrap_or(Path::new(&package));
    println!("cargo::rustc-env=DOMINO_ROOT={}", root.display());
}
