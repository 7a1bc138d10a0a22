//! Runs `domino_fuzz::chat_template`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| domino_fuzz::chat_template::check(data));
