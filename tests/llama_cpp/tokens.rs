//! Domino's vocabularies and tokenizers against llama.cpp's.

use std::{fs, path::PathBuf};

use domino::{TokenId, Vocabulary, vocab::Tokenizer};
use domino_llama_cpp::{LlamaCppModel, LlamaCppOptions};

use crate::{FIXTURES, load, root};

/// Most differences that a file's complaint shows.
const SHOWN: usize = 5;

/// Tokens of equal bytes and the same end of text, from the file and from llama.cpp's pieces. Only padding
/// has bytes in the file and none for llama.cpp.
#[test]
fn the_vocabulary_of_pieces_is_that_of_the_file() {
    for name in FIXTURES {
        let model = load(name);
        let (file, pieces) = (model.vocabulary().unwrap(), model.vocabulary_of_pieces().unwrap());
        let tokens = |vocabulary: &Vocabulary| -> Vec<(TokenId, Vec<u8>)> {
            vocabulary.text_tokens().map(|(token, bytes)| (token, bytes.to_vec())).collect()
        };
        let (ours, theirs) = (tokens(&file), tokens(&pieces));
        let text = ours.iter().filter(|(_, bytes)| !bytes.starts_with(b"[PAD"));
        let different: Vec<_> = text.filter(|token| !theirs.contains(token)).collect();
        let further: Vec<_> = theirs.iter().filter(|token| !ours.contains(token)).collect();
        assert!(different.is_empty() && further.is_empty(), "{name}: {different:?} {further:?}");
        assert_eq!(file.end_of_text(), pieces.end_of_text(), "{name}");
    }
}

/// The lines that tokenizers are compared with.
fn lines() -> Vec<String> {
    let named = std::env::var_os("DOMINO_GGUF_LINES").map(|file| vec![PathBuf::from(file)]);
    let files = named.unwrap_or_else(|| {
        let pages = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
        pages.chain([root().join("README.md")]).collect()
    });
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    texts.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
}

/// Numbers of lines by how both tokenizers split them.
#[derive(Default)]
struct Split {
    alike: usize,
    /// Lines in which llama.cpp takes a text token for a special one, going by its name.
    renamed: usize,
    different: Vec<String>,
}

fn compare(path: &std::path::Path, lines: &[String]) -> Split {
    let model = LlamaCppModel::load(path, &LlamaCppOptions::default()).unwrap();
    let tokenizer = Tokenizer::from_tokenizer_file(path).unwrap();
    let (file, pieces) = (model.vocabulary().unwrap(), model.vocabulary_of_pieces().unwrap());
    let mut split = Split::default();
    for line in lines {
        let (ours, theirs) = (tokenizer.encode(line, true).unwrap(), model.tokenize(line, true));
        if ours == theirs {
            split.alike += 1;
        } else if theirs.iter().any(|&token| pieces.is_special(token) && !file.is_special(token)) {
            split.renamed += 1;
        } else {
            split.different.push(format!("{line:?}: {ours:?}, llama.cpp {theirs:?}"));
        }
    }
    split
}

/// Files of real models, which `DOMINO_GGUF_FILES` names, with colons between them.
#[test]
fn texts_are_split_as_llama_cpp_splits_them() {
    let Some(files) = std::env::var_os("DOMINO_GGUF_FILES") else {
        println!("LEFT OUT: tokenizers of real models (set DOMINO_GGUF_FILES to GGUF files)");
        return;
    };
    let lines = lines();
    for file in std::env::split_paths(&files) {
        let Split { alike, renamed, different } = compare(&file, &lines);
        let all = lines.len();
        println!("{}: {alike} of {all} lines alike, {renamed} by names of special tokens", file.display());
        let shown = different.len().min(SHOWN);
        assert!(different.is_empty(), "{} differ: {:#?}", different.len(), &different[..shown]);
    }
}

/// Names of ways to split text that both know.
const WAYS: [&str; 27] = [
    "llama-bpe",
    "falcon3",
    "falcon-h1",
    "lfm2",
    "pixtral",
    "smaug-bpe",
    "dbrx",
    "glm4",
    "chatglm-bpe",
    "qwen2",
    "stablelm2",
    "hunyuan",
    "solar-open",
    "qwen35",
    "tekken",
    "gpt-4o",
    "llama4",
    "minimax-m2",
    "deepseek-v3",
    "hunyuan-dense",
    "deepseek-coder",
    "smollm",
    "starcoder",
    "refact",
    "codeshell",
    "gpt-2",
    "phi-2",
];

/// A GGUF file with another text under a key, and a key more, so that its tensors stay aligned.
fn with_text(file: &[u8], key: &str, text: &str) -> Vec<u8> {
    const STRING: u32 = 8;
    let string = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let entry = |key: &str, text: &str| [&string(key)[..], &STRING.to_le_bytes(), &string(text)].concat();
    let head = [&string(key)[..], &STRING.to_le_bytes()].concat();
    let start = file.windows(head.len()).position(|window| window == head).unwrap();
    let length = file[start + head.len()..].first_chunk().unwrap();
    let end = start + head.len() + 8 + u64::from_le_bytes(*length) as usize;
    let own = entry(key, text);
    let filled = |room: usize| entry("test.room", &"-".repeat(room));
    let grows = |room: usize| own.len() + filled(room).len() + start - end;
    let room = (0..32).find(|&room| grows(room).is_multiple_of(32)).unwrap();
    let mut count = u64::from_le_bytes(*file[16..].first_chunk().unwrap());
    count += 1;
    [&file[..16], &count.to_le_bytes(), &file[24..start], &own, &filled(room), &file[end..]].concat()
}

/// Text is in the composed form (NFC), into which Qwen's tokenizers bring it and llama.cpp does not.
#[test]
fn every_way_to_split_text_is_llama_cpps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let file = fs::read(root().join("tests/fixtures/gguf/llama_q4_0.gguf")).unwrap();
    let mut lines = lines();
    lines.extend(
        [
            "It's 2026, they'VE got 12345 or 1,234.5 of 'em;DON'T",
            "na\u{ef}ve x\u{301}y \u{915}\u{93f}\u{924}\u{93e}\u{92c} 日本語かな漢字 한국어 🙂🙂",
            "  two  blanks\n\n\tand\r\n  lines  \n",
            "XMLHttpRequest iPhone's fooBar/baz//* x */ $a+=b<<2;",
        ]
        .map(str::to_owned),
    );
    let mut kinds = std::collections::BTreeSet::new();
    for way in WAYS {
        fs::write(&path, with_text(&file, "tokenizer.ggml.pre", way)).unwrap();
        let split = compare(&path, &lines);
        let shown = split.different.len().min(SHOWN);
        assert!(split.different.is_empty(), "{way}: {:#?}", &split.different[..shown]);
        let tokenizer = Tokenizer::from_tokenizer_file(&path).unwrap();
        kinds.insert(lines.iter().map(|line| tokenizer.encode(line, true).unwrap()).collect::<Vec<_>>());
    }
    assert!(kinds.len() > 4, "only {} ways differ on these lines", kinds.len());
}

#[test]
fn tokens_around_a_text_are_added_where_wanted() {
    let model = load("llama_q8_0");
    let (bare, special) = (model.tokenize("a JSON file", false), model.tokenize("a JSON file", true));
    assert!(special.ends_with(&bare) && special.len() == bare.len() + 1, "{bare:?} {special:?}");
    let text = model.vocabulary().unwrap().concat(&bare);
    assert_eq!(String::from_utf8_lossy(&text).trim_start(), "a JSON file");
}
