//! Vocabularies from a cache folder equal those from their files, whatever happens to the folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use domino::{Vocabulary, store::CacheFolder, vocab::VocabularyErrorKind};
use proptest::prelude::*;

const BYTE_LEVEL: &str = include_str!("../fixtures/byte_level.json");

fn built(path: &Path) -> Vocabulary {
    Vocabulary::from_tokenizer_file(path).unwrap()
}

fn cached(path: &Path, cache: &CacheFolder) -> Vocabulary {
    Vocabulary::from_tokenizer_file_cached(path, cache).unwrap()
}

/// The one file of a cache.
fn only_file(cache: &CacheFolder) -> PathBuf {
    let files = cache.files().unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(files[0].kind, "vocabulary");
    cache.path().unwrap().join(&files[0].name)
}

fn assert_same(one: &Vocabulary, other: &Vocabulary) {
    assert_eq!(one, other);
    assert_eq!((one.size(), one.token_count()), (other.size(), other.token_count()));
    assert!(one.text_tokens().eq(other.text_tokens()));
    assert!(one.special_tokens().eq(other.special_tokens()));
    assert_eq!(one.end_of_text(), other.end_of_text());
}

#[test]
fn a_loaded_vocabulary_equals_the_one_built() {
    let names = [
        "mistral-v1-32k",
        "mistral-v3-32k",
        "gpt2-50k",
        "cl100k-100k",
        "tekken-131k",
        "qwen2-152k",
        "o200k-200k",
    ];
    let shared = names
        .iter()
        .filter_map(|name| crate::support::shared_data::shared(&format!("data/tokenizers/{name}")));
    let shipped = Path::new(env!("DOMINO_ROOT")).join("models/domino-small");
    for path in shared.chain([shipped]) {
        let folder = tempfile::tempdir().unwrap();
        let cache = CacheFolder::new(folder.path());
        let want = built(&path);
        assert_same(&cached(&path, &cache), &want);
        let written = fs::metadata(only_file(&cache)).unwrap().len();
        assert_same(&cached(&path, &cache), &want);
        assert_eq!(fs::metadata(only_file(&cache)).unwrap().len(), written);
    }
}

/// The key of a cached vocabulary depends on the contents of all its files, not on their place.
#[test]
fn the_cache_key_depends_on_the_contents_of_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheFolder::new(folder.path().join("cache"));
    let model = folder.path().join("model");
    fs::create_dir(&model).unwrap();
    let write = |name: &str, text: &str| fs::write(model.join(name), text).unwrap();
    let mut files = 0;
    let mut another = |is_new: bool| {
        let want = built(&model);
        assert_same(&cached(&model, &cache), &want);
        assert_same(&cached(&model, &cache), &want);
        files += usize::from(is_new);
        assert_eq!(cache.files().unwrap().len(), files);
    };
    write("tokenizer.json", BYTE_LEVEL);
    another(true);
    write("tokenizer_config.json", r#"{"eos_token": "<|im_end|>"}"#);
    another(true);
    write("config.json", r#"{"eos_token_id": 278}"#);
    another(true);
    write("generation_config.json", r#"{"eos_token_id": 275}"#);
    another(true);
    write("README.md", "not read");
    another(false);
    write("tokenizer.json", &BYTE_LEVEL.replace("<think>", "<thunk>"));
    another(true);
    // The same file in another place, and by itself, is found as at first.
    let alone = folder.path().join("alone.json");
    fs::write(&alone, BYTE_LEVEL).unwrap();
    assert_same(&cached(&alone, &cache), &built(&alone));
    assert_eq!(cache.files().unwrap().len(), 5);
}

#[test]
fn errors_with_a_cache_are_those_without() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheFolder::new(folder.path().join("cache"));
    let kind = |path: &Path| {
        let error = Vocabulary::from_tokenizer_file_cached(path, &cache).unwrap_err();
        assert_eq!(error, Vocabulary::from_tokenizer_file(path).unwrap_err());
        error.kind().clone()
    };
    let file = folder.path().join("tokenizer.json");
    assert_eq!(kind(&file), VocabularyErrorKind::Io);
    assert_eq!(kind(folder.path()), VocabularyErrorKind::Io);
    fs::write(&file, "{").unwrap();
    assert_eq!(kind(&file), VocabularyErrorKind::NotJson);
    fs::write(&file, BYTE_LEVEL).unwrap();
    fs::write(folder.path().join("config.json"), "{").unwrap();
    assert_eq!(kind(folder.path()), VocabularyErrorKind::NotJson);
    assert_eq!(cache.files().unwrap(), []);
}

#[test]
fn a_cache_that_cannot_be_used_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokenizer.json");
    fs::write(&file, BYTE_LEVEL).unwrap();
    let want = built(&file);
    // Below a file not even an administrator can write.
    for cache in [CacheFolder::none(), CacheFolder::new(file.join("cache")), CacheFolder::new(&file)] {
        assert_same(&cached(&file, &cache), &want);
    }
    let small = CacheFolder::new(folder.path().join("small")).with_budget(1000);
    assert_same(&cached(&file, &small), &want);
    assert_eq!(small.files().unwrap(), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However a file of the cache is damaged, the vocabulary is right and the file is whole again.
    #[test]
    fn damaged_cache_files_are_repaired(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=u8::MAX), 0..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
        more in prop::collection::vec(any::<u8>(), 0..3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let tokenizer = folder.path().join("tokenizer.json");
        fs::write(&tokenizer, BYTE_LEVEL).unwrap();
        let cache = CacheFolder::new(folder.path().join("cache"));
        let want = cached(&tokenizer, &cache);
        let file = only_file(&cache);
        let whole = fs::read(&file).unwrap();
        let mut damaged = whole.clone();
        for (place, flip) in flips {
            let place = place.index(damaged.len());
            damaged[place] ^= flip;
        }
        if let Some(cut) = cut {
            damaged.truncate(cut.index(whole.len()));
        }
        damaged.extend(more);
        fs::write(&file, damaged).unwrap();
        assert_same(&cached(&tokenizer, &cache), &want);
        prop_assert_eq!(fs::read(only_file(&cache)).unwrap(), whole);
    }
}
