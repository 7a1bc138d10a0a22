//! `domino bench-model`, and `--device` where there is no card.

use domino::model::candle::Instructions;
use serde_json::Value;

use crate::{model::runner::fixture, support::program::domino};

#[test]
fn the_curve_has_a_time_for_every_n() {
    let folder = fixture("mistral_tied");
    let folder = folder.to_str().unwrap();
    let flags = ["bench-model", "--model", folder, "-n", "3", "--repeats", "2", "--context", "9"];
    let run = domino(&flags, b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.stdout.lines().count(), 5, "{}", run.stdout);
    let run = domino(&[&flags[..], &["--json"]].concat(), b"");
    let object: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((object["context"].as_u64(), object["device"].as_str()), (Some(9), Some("cpu")));
    let curve = object["curve"].as_array().unwrap();
    assert_eq!(curve.iter().map(|entry| entry["n"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    for entry in curve {
        let [median, least] = ["median_seconds", "least_seconds"].map(|key| entry[key].as_f64().unwrap());
        assert!(least > 0.0 && median >= least, "{entry}");
    }
    assert_eq!(curve[0]["ratio"], 1.0);
}

#[test]
fn a_prompt_is_measured_and_threads_are_reported() {
    let folder = fixture("mistral_tied");
    let folder = folder.to_str().unwrap();
    for threads in [1, 3] {
        let count = threads.to_string();
        let flags = ["bench-model", "--model", folder, "-n", "2", "--repeats", "2", "--context", "5"];
        let run = domino(&[&flags[..], &["--prompt", "12", "--threads", &count, "--json"]].concat(), b"");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let object: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            (object["threads"].as_u64(), object["prompt"]["tokens"].as_u64()),
            (Some(threads), Some(12))
        );
        let [median, least] =
            ["median_seconds", "least_seconds"].map(|key| object["prompt"][key].as_f64().unwrap());
        assert!(least > 0.0 && median >= least, "{object}");
    }
    let run = domino(&["bench-model", "--model", folder, "--threads", "0"], b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
}

#[test]
fn bench_model_prints_that_products_are_exact() {
    let flags = [
        "bench-model",
        "--random",
        "13m",
        "--format",
        "q8_0",
        "-n",
        "1",
        "--repeats",
        "1",
        "--exact-products",
    ];
    let run = domino(&flags, b"");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("exact products"), "{}", run.stdout);
}

#[test]
fn chosen_instructions_are_used_and_reported() {
    let all = ["avx512-vnni", "avx-vnni", "avx2"];
    let available: Vec<String> = Instructions::available().iter().map(ToString::to_string).collect();
    for name in all {
        let flags = ["bench-model", "--random", "13m", "--format", "q4_k", "-n", "1", "--repeats", "1"];
        let run = domino(&[&flags[..], &["--instructions", name]].concat(), b"");
        if available.iter().any(|own| own == name) {
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            assert!(run.stdout.contains(&format!("on cpu with {name}")), "{}", run.stdout);
        } else {
            println!("LEFT OUT: the processor has no {name}");
            assert_eq!(run.code, Some(2), "{}", run.stdout);
            assert!(run.stderr.contains(&format!("does not have {name}")), "{}", run.stderr);
        }
    }
}

#[test]
fn unknown_shapes_and_formats_are_refused_with_a_hint() {
    for (flags, hint) in [
        (["--random", "13", "-n", "1"], "13m, 110m, 1b, 7b"),
        (["--random", "13m", "--format", "q3"], "q4_0"),
        (["--random", "13m", "-n", "0"], "at least 1"),
        (["--device", "gpu", "-n", "1"], "cuda:INDEX"),
        (["--precision", "f8", "-n", "1"], "bf16"),
        (["--quantize", "q3", "-n", "1"], "q4_0"),
        (["--quantize", "bf16", "-n", "1"], "q8_0 or q4_k"),
        (["--quantize", "q8_0", "--device", "cuda"], "only on the CPU"),
        (["--quantize", "q8_0", "--precision", "f32"], "cannot be used with"),
        (["--instructions", "sse", "-n", "1"], "avx512-vnni, avx-vnni, avx2"),
        (["--instructions", "avx2", "--device", "cuda"], "only where the CPU"),
        (["--kv", "bf16", "-n", "1"], "f32, f16, q8_0"),
        (["--kv", "f16", "--device", "cuda"], "only on the CPU"),
        (["--kv", "q8_0", "--precision", "f32"], "cannot be used with"),
    ] {
        let run = domino(&[&["bench-model"], &flags[..]].concat(), b"");
        assert_eq!(run.code, Some(2), "{flags:?}");
        assert!(run.stderr.contains(hint), "{flags:?}: {}", run.stderr);
    }
}

#[test]
fn a_missing_card_is_bad_input() {
    let folder = fixture("mistral_tied");
    let folder = folder.to_str().unwrap();
    // No machine has so many, so that this holds in every build that starts.
    let run = domino(&["bench-model", "--model", folder, "--device", "cuda:9999"], b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("cuda:9999 cannot be used"), "{}", run.stderr);
    let small = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
    let run = domino(&["generate", "--model", small, "--batch", "-", "--device", "cuda:9999"], b"");
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("cuda:9999 cannot be used"), "{}", run.stderr);
}

#[test]
fn on_the_cpu_a_precision_asks_for_what_a_card_would_do() {
    let folder = fixture("mistral_tied");
    let folder = folder.to_str().unwrap();
    for precision in ["f32", "f16", "bf16"] {
        let flags = ["--precision", precision, "-n", "2", "--repeats", "1", "--context", "5", "--json"];
        let run = domino(&[&["bench-model", "--model", folder], &flags[..]].concat(), b"");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let object: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(object["device"], format!("cpu in {precision}"));
    }
}
