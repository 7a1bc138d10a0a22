//! Replays every input of the fuzz corpus and every regression, by the same checks as in `fuzz/`.

use std::{fs, panic::catch_unwind, path::Path};

#[path = "../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "a crate of its own")]
mod checks;

/// Replays the files of one target in `corpus` and `regressions`.
fn replay(target: &str, check: fn(&[u8])) {
    let mut wrong = Vec::new();
    let mut replayed = 0;
    for folder in ["corpus", "regressions"] {
        let folder = Path::new(env!("DOMINO_ROOT")).join("fuzz").join(folder).join(target);
        // A target without a finding has no regressions.
        let Ok(files) = fs::read_dir(&folder) else { continue };
        for file in files.map(|file| file.expect("an entry").path()) {
            let data = fs::read(&file).expect("a file");
            replayed += 1;
            if catch_unwind(|| check(&data)).is_err() {
                wrong.push(file.display().to_string());
            }
        }
    }
    assert!(replayed >= 10, "{target}: only {replayed} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn inputs_for_regex_pass_their_checks() {
    replay("regex", checks::regex::check);
}

#[test]
fn inputs_for_grammar_text_pass_their_checks() {
    replay("grammar_text", checks::grammar_text::check);
}

#[test]
fn inputs_for_lark_pass_their_checks() {
    replay("lark", checks::lark::check);
}

#[test]
fn inputs_for_tokenizer_json_pass_their_checks() {
    replay("tokenizer_json", checks::tokenizer_json::check);
}

#[test]
fn inputs_for_artefact_pass_their_checks() {
    replay("artefact", checks::artefact::check);
}

#[test]
fn inputs_for_token_trace_pass_their_checks() {
    replay("token_trace", checks::token_trace::check);
}

#[test]
fn inputs_for_chat_template_pass_their_checks() {
    replay("chat_template", checks::chat_template::check);
}

#[test]
fn inputs_for_json_schema_pass_their_checks() {
    replay("json_schema", checks::json_schema::check);
}
