//! Runs `domino_fuzz::json_schema`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| domino_fuzz::json_schema::check(data));
