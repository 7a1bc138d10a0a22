//! Runs `domino_fuzz::artefact`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| domino_fuzz::artefact::check(data));
