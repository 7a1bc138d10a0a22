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

#[test]
fn tokens_around_a_text_are_added_where_wanted() {
    let model = load("llama_q8_0");
    let (bare, special) = (model.tokenize("a JSON file", false), model.tokenize("a JSON file", true));
    assert!(special.ends_with(&bare) && special.len() == bare.len() + 1, "{bare:?} {special:?}");
    let text = model.vocabulary().unwrap().concat(&bare);
    assert_eq!(String::from_utf8_lossy(&text).trim_start(), "a JSON file");
}
