//! Damaged, incomplete or misleading model folders: each ends in an error that names the file or tensor and
//! its fault.

use std::{fs, num::NonZeroUsize, path::Path};

use domino::model::candle::{
    CandleBatch, CandleModel, LoadOptions, ModelError, ModelErrorKind, Placement, Precision, TensorModel,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model::runner::fixture;

/// A copy of a fixture, to be damaged.
fn copy(name: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

fn refusal(folder: &Path) -> ModelError {
    let error = CandleModel::load(folder, &LoadOptions::default()).unwrap_err();
    assert!(!error.to_string().is_empty());
    error
}

/// Changes `config.json`.
fn configure(folder: &Path, change: impl FnOnce(&mut Value)) {
    let path = folder.join("config.json");
    let mut config: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut config);
    fs::write(path, config.to_string()).unwrap();
}

/// Changes the header of `model.safetensors`, keeping its tensors' bytes.
fn reheader(folder: &Path, change: impl FnOnce(&mut Value)) {
    let path = folder.join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    change(&mut header);
    let header = header.to_string();
    let mut changed = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
    changed.extend(header.into_bytes());
    changed.extend(&bytes[8 + length..]);
    fs::write(path, changed).unwrap();
}

#[test]
fn missing_files_are_named() {
    let nowhere = tempfile::tempdir().unwrap();
    let missing = |folder: &Path| match refusal(folder).kind() {
        ModelErrorKind::MissingFile(path) => path.file_name().unwrap().to_str().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(nowhere.path()), "config.json");
    assert_eq!(missing(&nowhere.path().join("not-there")), "config.json");
    let folder = copy("mistral_tied");
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    assert_eq!(missing(folder.path()), "model.safetensors");
    let folder = copy("llama_f16_sharded");
    fs::remove_file(folder.path().join("model-00002-of-00003.safetensors")).unwrap();
    assert_eq!(missing(folder.path()), "model-00002-of-00003.safetensors");
}

#[test]
fn truncated_weights_are_refused_at_every_length() {
    let folder = copy("mistral_tied");
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let lengths = (0..3000).step_by(7).chain((3000..bytes.len()).step_by(4001)).chain([bytes.len() - 1]);
    for length in lengths {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = refusal(folder.path());
        assert!(matches!(error.kind(), ModelErrorKind::DamagedWeights { .. }), "{length}: {error}");
        assert!(error.to_string().contains("model.safetensors"), "{error}");
    }
    fs::write(&path, [bytes.as_slice(), b"more"].concat()).unwrap();
    assert!(matches!(refusal(folder.path()).kind(), ModelErrorKind::DamagedWeights { .. }));
    fs::write(&path, u64::MAX.to_le_bytes()).unwrap();
    assert!(matches!(refusal(folder.path()).kind(), ModelErrorKind::DamagedWeights { .. }));
}

#[test]
fn shapes_that_do_not_fit_name_the_tensor_and_both_shapes() {
    for (field, value, tensor) in [
        ("hidden_size", json!(36), "model.embed_tokens.weight"),
        ("vocab_size", json!(96), "model.embed_tokens.weight"),
        ("intermediate_size", json!(68), "mlp.gate_proj"),
        ("num_key_value_heads", json!(4), "self_attn.k_proj"),
        ("head_dim", json!(16), "self_attn.q_proj"),
        // Larger than any memory: refused before it is allocated.
        ("intermediate_size", json!(u32::MAX), "mlp.gate_proj"),
        ("vocab_size", json!(u32::MAX), "model.embed_tokens.weight"),
    ] {
        let folder = copy("mistral_tied");
        configure(folder.path(), |config| config[field] = value.clone());
        let error = refusal(folder.path());
        let ModelErrorKind::Shape { tensor: name, expected, found } = error.kind() else {
            panic!("{field} = {value}: {error}");
        };
        assert!(name.contains(tensor), "{field}: {error}");
        assert_ne!(expected, found);
        let text = error.to_string();
        assert!(text.contains(&format!("{expected:?}")) && text.contains(&format!("{found:?}")), "{text}");
    }
}

#[test]
fn missing_tensors_are_named() {
    let folder = copy("mistral_tied");
    configure(folder.path(), |config| config["num_hidden_layers"] = json!(3));
    let error = refusal(folder.path());
    let ModelErrorKind::MissingTensor(name) = error.kind() else { panic!("{error}") };
    assert!(name.starts_with("model.layers.2."), "{name}");

    let folder = copy("mistral_tied");
    configure(folder.path(), |config| config["tie_word_embeddings"] = json!(false));
    assert_eq!(*refusal(folder.path()).kind(), ModelErrorKind::MissingTensor("lm_head.weight".into()));

    let folder = copy("mistral_tied");
    configure(folder.path(), |config| config["num_hidden_layers"] = json!(u32::MAX));
    assert!(matches!(refusal(folder.path()).kind(), ModelErrorKind::MissingTensor(_)));
}

#[test]
fn other_architectures_and_number_formats_are_refused_by_name() {
    let folder = copy("mistral_tied");
    configure(folder.path(), |config| config["architectures"] = json!(["PhiForCausalLM"]));
    let error = refusal(folder.path());
    assert_eq!(*error.kind(), ModelErrorKind::UnknownArchitecture("PhiForCausalLM".into()));
    assert!(error.to_string().contains("LlamaForCausalLM"), "{error}");

    let folder = copy("mistral_tied");
    reheader(folder.path(), |header| header["model.norm.weight"]["dtype"] = json!("I32"));
    let error = refusal(folder.path());
    let expected = ModelErrorKind::NumberFormat { tensor: "model.norm.weight".into(), format: "I32".into() };
    assert_eq!(*error.kind(), expected);
    assert!(error.to_string().contains("BF16"), "{error}");
}

#[test]
fn headers_that_lie_are_refused() {
    let offsets = [json!([0, u64::MAX]), json!([8, 4]), json!([1, 129]), json!("0..128"), json!([-1, 5])];
    for value in offsets {
        let folder = copy("mistral_tied");
        reheader(folder.path(), |header| header["model.norm.weight"]["data_offsets"] = value);
        assert!(matches!(refusal(folder.path()).kind(), ModelErrorKind::DamagedWeights { .. }));
    }
    for shape in [json!([u64::MAX, 2]), json!([33]), json!([-1]), json!(32)] {
        let folder = copy("mistral_tied");
        reheader(folder.path(), |header| header["model.norm.weight"]["shape"] = shape);
        assert!(matches!(refusal(folder.path()).kind(), ModelErrorKind::DamagedWeights { .. }));
    }
}

#[test]
fn an_index_reads_nothing_outside_its_folder() {
    for name in ["../model.safetensors", "/etc/passwd", "..", "", "a/b.safetensors"] {
        let folder = copy("llama_f16_sharded");
        let index = json!({"weight_map": {"model.norm.weight": name}}).to_string();
        fs::write(folder.path().join("model.safetensors.index.json"), index).unwrap();
        let error = refusal(folder.path());
        assert!(matches!(error.kind(), ModelErrorKind::DamagedWeights { .. }), "{name:?}: {error}");
    }
    for text in ["", "{", "[]", "{\"weight_map\": {}}", "{\"weight_map\": {\"a\": 1}}"] {
        let folder = copy("llama_f16_sharded");
        fs::write(folder.path().join("model.safetensors.index.json"), text).unwrap();
        assert!(matches!(refusal(folder.path()).kind(), ModelErrorKind::DamagedWeights { .. }), "{text}");
    }
}

#[test]
fn a_context_that_cannot_be_had_is_refused() {
    for asked in [0, 65, usize::MAX] {
        let mut options = LoadOptions::default();
        options.context = Some(asked);
        let error = CandleModel::load(fixture("mistral_tied"), &options).unwrap_err();
        assert_eq!(*error.kind(), ModelErrorKind::Context { asked, supported: 64 });
    }
}

#[test]
fn a_model_larger_than_what_is_free_is_refused_before_it_is_read() {
    let folder = copy("mistral_tied");
    configure(folder.path(), |config| config["max_position_embeddings"] = json!(u32::MAX));
    let mut options = LoadOptions::default();
    options.context = Some(1 << 31);
    let error = CandleModel::load(folder.path(), &options).unwrap_err();
    let ModelErrorKind::Memory { needed, limit } = *error.kind() else { panic!("{error}") };
    // Keys and values of two layers of two heads of 8.
    assert!(needed > (4 * 2 * 2 * 2 * 8) << 31 && limit < needed, "{needed} {limit}");
    assert!(error.to_string().contains("MB"), "{error}");
}

/// Makes the model's MLP so wide that its weights are terabytes, in a sparse file of that length.
fn inflate(folder: &Path) {
    const WIDE: u64 = 1 << 31;
    configure(folder, |config| config["intermediate_size"] = json!(WIDE));
    let mut end = 0;
    reheader(folder, |header| {
        let header = header.as_object_mut().unwrap();
        header.remove("__metadata__");
        for (name, tensor) in header {
            if name.contains(".mlp.") {
                let narrow = usize::from(name.contains("down_proj"));
                tensor["shape"][narrow] = json!(WIDE);
            }
            let numbers = tensor["shape"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap());
            let start = end;
            end += 4 * numbers.product::<u64>();
            tensor["data_offsets"] = json!([start, end]);
        }
    });
    let path = folder.join("model.safetensors");
    let header = u64::from_le_bytes(fs::read(&path).unwrap()[..8].try_into().unwrap());
    fs::File::options().write(true).open(path).unwrap().set_len(8 + header + end).unwrap();
}

#[test]
fn weights_larger_than_what_is_free_are_refused_unread_by_every_runner() {
    let folder = copy("mistral_tied");
    inflate(folder.path());
    let options = LoadOptions::default();
    let estimate = CandleModel::estimate(folder.path(), &options).unwrap();
    assert!(estimate.weights > 6 << 38, "{estimate:?}");
    let refused = |error: &ModelError, needed: u64| {
        let ModelErrorKind::Memory { needed: told, limit } = *error.kind() else { panic!("{error}") };
        assert!(told >= needed && limit < needed, "{error}");
    };
    refused(&refusal(folder.path()), estimate.total());
    let batch = CandleBatch::load(folder.path(), NonZeroUsize::MIN, &options).unwrap_err();
    refused(&batch, estimate.total());
    let tensors = TensorModel::load(folder.path(), &options, Placement::CPU).unwrap_err();
    refused(&tensors, estimate.total());
    // Half the bits take half the memory.
    let halves = Placement::CPU.with_precision(Precision::F16);
    refused(&TensorModel::load(folder.path(), &options, halves).unwrap_err(), estimate.weights / 2);

    {
        let folder = folder.path().to_str().unwrap();
        let run = crate::support::program::domino(
            &["bench-model", "--model", folder, "--context", "9", "-n", "1"],
            b"",
        );
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains("MB of memory"), "{}", run.stderr);
    }
}

#[test]
fn scalings_of_the_rope_that_make_no_sense_are_refused() {
    for scaling in [
        json!({"rope_type": "dynamic", "factor": 2.0}),
        json!({"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}),
        json!({"rope_type": "linear"}),
        json!({"rope_type": "linear", "factor": 0.0}),
        json!({"rope_type": "linear", "factor": "2"}),
        json!({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0}),
        json!({"rope_type": 3}),
        json!(["linear"]),
    ] {
        let folder = copy("mistral_tied");
        configure(folder.path(), |config| config["rope_scaling"] = scaling.clone());
        let kind = refusal(folder.path()).kind().clone();
        let refused = matches!(kind, ModelErrorKind::Unsupported { .. } | ModelErrorKind::InvalidConfig(_));
        assert!(refused, "{scaling}: {kind:?}");
    }
}

#[test]
fn a_folder_in_place_of_a_file_is_unreadable() {
    let folder = copy("mistral_tied");
    fs::remove_file(folder.path().join("config.json")).unwrap();
    fs::create_dir(folder.path().join("config.json")).unwrap();
    assert!(matches!(refusal(folder.path()).kind(), ModelErrorKind::Unreadable(_)));
    let folder = copy("mistral_tied");
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    fs::create_dir(folder.path().join("model.safetensors")).unwrap();
    let kind = refusal(folder.path()).kind().clone();
    assert!(
        matches!(kind, ModelErrorKind::Unreadable(_) | ModelErrorKind::DamagedWeights { .. }),
        "{kind:?}"
    );
}
