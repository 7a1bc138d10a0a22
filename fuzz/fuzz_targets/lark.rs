//! Runs `domino_fuzz::lark`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| domino_fuzz::lark::check(data));
