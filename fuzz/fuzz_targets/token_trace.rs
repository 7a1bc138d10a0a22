//! Runs `domino_fuzz::token_trace`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| domino_fuzz::token_trace::check(data));
