//! The licences are where readers and tools look for them.

use std::fs;

use super::source::root;

#[test]
fn licences_stand_in_the_root() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect("a file of the root");
    for (file, words) in [
        ("LICENSE-MIT", &["MIT License", "The Domino developers", "THE SOFTWARE IS PROVIDED \"AS IS\""][..]),
        (
            "LICENSE-APACHE",
            &["Version 2.0, January 2004", "9. Accepting Warranty", "END OF TERMS AND CONDITIONS"],
        ),
        (
            "NOTICE",
            &["The Domino developers", "models/domino-small", "Mistral AI", "Apache License, Version 2.0"],
        ),
        ("README.md", &["LICENSE-MIT", "LICENSE-APACHE", "NOTICE"]),
        ("Cargo.toml", &["license = \"MIT OR Apache-2.0\""]),
    ] {
        let text = read(file);
        let missing: Vec<_> = words.iter().filter(|words| !text.contains(**words)).collect();
        assert!(missing.is_empty(), "{file} lacks {missing:?}");
    }
}
