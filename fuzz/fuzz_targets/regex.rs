//! Runs `domino_fuzz::regex`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| domino_fuzz::regex::check(data));
