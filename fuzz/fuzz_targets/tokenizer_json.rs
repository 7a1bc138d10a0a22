//! Runs `domino_fuzz::tokenizer_json`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| domino_fuzz::tokenizer_json::check(data));
