//! Runs `domino_fuzz::grammar_text`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| domino_fuzz::grammar_text::check(data));
