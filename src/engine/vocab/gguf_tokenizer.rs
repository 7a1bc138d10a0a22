//! Converts the tokenizer in a GGUF file to the text of a `tokenizer.json`, and the tokens that end a text.
//!
//! So there is one way from a tokenizer to tokens and their bytes, whatever file it came in. A GGUF file
//! names its way of splitting text before merging, which llama.cpp knows by name; it is looked up here. The
//! merges of a SentencePiece tokenizer are made from its scores as `transformers` does.

use std::{cmp::Ordering, collections::HashMap, path::Path};

use serde_json::{Value, json};

use super::error::{VocabularyError, VocabularyErrorKind};
use crate::gguf::{Gguf, GgufError, GgufErrorKind};
use crate::ids::TokenId;

/// Kinds of tokens that are unknown, control or user-defined, as files have them.
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;

/// Patterns that split text: GPT-2's, and those of other families.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
    r"|\s+(?!\S)|\s+"
);
const QWEN2: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+",
    r"|\s+(?!\S)|\s+"
);
const QWEN35: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const TEKKEN: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const GPT4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
const DEEPSEEK3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Ways to split text, by llama.cpp's names for them: patterns, one after the other.
const SPLITS: [(&str, &[&str]); 10] = [
    (WHOLE, &[LLAMA3]),
    ("smaug-bpe dbrx glm4 chatglm-bpe", &[LLAMA3]),
    ("qwen2 deepseek-r1-qwen stablelm2 hunyuan solar-open", &[QWEN2]),
    ("qwen35", &[QWEN35]),
    ("tekken", &[TEKKEN]),
    ("gpt-4o llama4 minimax-m2", &[GPT4O]),
    ("deepseek-v3 hunyuan-dense", &[r"\p{N}{1,3}", "[一-龥\u{3040}-ゟ゠-ヿ]+", DEEPSEEK3]),
    ("deepseek-coder", &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u{800}-一가-\u{d7ff}]+", r"\p{N}"]),
    ("smollm starcoder refact command-r codeshell exaone", &[r"\p{N}", GPT2]),
    ("gpt-2 phi-2 olmo mpt granite-docling", &[GPT2]),
];

/// The names of ways in which a piece that is a token is not put together from others.
const WHOLE: &str = "llama-bpe llama3 llama-v3 falcon3 falcon-h1 lfm2 pixtral";

fn names(all: &str, name: &str) -> bool {
    all.split(' ').any(|one| one == name)
}

/// A tokenizer as a `tokenizer.json`.
pub(super) struct GgufTokenizer {
    pub(super) json: String,
    /// The tokens that the file says end a text or a turn.
    pub(super) ends: Vec<TokenId>,
}

/// Reads the tokenizer in the GGUF file at `path`. With `for_prompts` also its way of splitting text;
/// without, an unknown way is no error.
///
/// # Errors
/// If the file cannot be read or is damaged, or has no tokenizer or one of an unsupported kind.
pub(super) fn read(path: &Path, for_prompts: bool) -> Result<GgufTokenizer, VocabularyError> {
    let gguf = Gguf::open(path).map_err(|error| file_error(&error))?;
    let metadata = Metadata { gguf: &gguf };
    let tokenizer = metadata.tokenizer(for_prompts);
    tokenizer.map_err(|error| error.at(&path.display()))
}

fn file_error(error: &GgufError) -> VocabularyError {
    let kind = match error.kind {
        GgufErrorKind::Missing | GgufErrorKind::Unreadable => VocabularyErrorKind::Io,
        GgufErrorKind::Damaged => VocabularyErrorKind::Malformed,
    };
    VocabularyError::new(kind, error.to_string())
}

fn malformed(message: impl Into<String>) -> VocabularyError {
    VocabularyError::new(VocabularyErrorKind::Malformed, message)
}

fn unsupported(message: impl Into<String>) -> VocabularyError {
    VocabularyError::new(VocabularyErrorKind::Unsupported, message)
}

/// The keys `tokenizer.ggml.…` of a file.
struct Metadata<'a> {
    gguf: &'a Gguf,
}

impl<'a> Metadata<'a> {
    fn get(&self, key: &str) -> Option<&'a crate::gguf::MetadataValue> {
        self.gguf.get(&format!("tokenizer.ggml.{key}"))
    }

    fn flag(&self, key: &str, default: bool) -> bool {
        self.get(key).and_then(crate::gguf::MetadataValue::as_bool).unwrap_or(default)
    }

    fn token(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(crate::gguf::MetadataValue::as_u64)
    }

    /// Converts the tokenizer to `tokenizer.json`.
    fn tokenizer(&self, for_prompts: bool) -> Result<GgufTokenizer, VocabularyError> {
        let model = self.get("model").and_then(|model| model.as_str());
        let names = self.get("tokens").and_then(|tokens| tokens.as_strings());
        let (Some(model), Some(names)) = (model, names) else {
            return Err(malformed(
                "no tokenizer.ggml.model or no tokenizer.ggml.tokens: it has no tokenizer",
            ));
        };
        let kinds = self.get("token_type").and_then(|kinds| kinds.as_integers()).unwrap_or_default();
        if !kinds.is_empty() && kinds.len() != names.len() {
            return Err(malformed(format!("{} tokens have {} kinds", names.len(), kinds.len())));
        }
        let mut json = match model {
            "llama" => {
                let scores = self.get("scores").and_then(|scores| scores.as_floats());
                let scores = scores
                    .filter(|scores| scores.len() == names.len())
                    .ok_or_else(|| malformed("not every token has a score in tokenizer.ggml.scores"))?;
                self.sentencepiece(names, kinds, merges(names, kinds, scores), true)
            }
            "gemma4" => self.sentencepiece(names, kinds, json!(self.merges()?), false),
            "gpt2" => self.byte_level(names, for_prompts)?,
            other => return Err(unsupported(format!("tokenizers of kind {other:?} are not supported"))),
        };
        json["version"] = json!("1.0");
        let sentencepiece = model != "gpt2";
        json["added_tokens"] = added(names, kinds, sentencepiece);
        if let Some(around) = self.around(names, sentencepiece) {
            json["post_processor"] = around;
        }
        let ends =
            ["eos_token_id", "eot_token_id", "eom_token_id"].into_iter().filter_map(|key| self.token(key));
        let ends = ends.filter_map(|id| u32::try_from(id).ok()).map(TokenId::new).collect();
        Ok(GgufTokenizer { json: json.to_string(), ends })
    }

    /// Converts SentencePiece's BPE: names in which a space is `▁`. Whether a space is put before a text is
    /// `prefix` where the file does not say.
    fn sentencepiece(&self, names: &[String], kinds: &[i64], merges: Value, prefix: bool) -> Value {
        let unknown = kinds.iter().position(|&kind| kind == UNKNOWN).and_then(|index| names.get(index));
        let space = json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
        let before = json!({"type": "Prepend", "prepend": "\u{2581}"});
        let prefix = self.flag("add_space_prefix", prefix);
        let normalizers = if prefix { vec![before, space] } else { vec![space] };
        let mut decoders = vec![
            json!({"type": "Replace", "pattern": {"String": "\u{2581}"}, "content": " "}),
            json!({"type": "ByteFallback"}),
            json!({"type": "Fuse"}),
        ];
        if prefix {
            decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
        }
        json!({
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "pre_tokenizer": null,
            "decoder": {"type": "Sequence", "decoders": decoders},
            "model": {
                "type": "BPE", "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true,
                "vocab": vocab(names), "merges": merges,
            },
        })
    }

    /// Converts byte-level BPE: names in which every byte is a character of its own.
    fn byte_level(&self, tokens: &[String], for_prompts: bool) -> Result<Value, VocabularyError> {
        let pre = self.get("pre").and_then(|pre| pre.as_str()).unwrap_or("default");
        let patterns = match SPLITS.iter().find(|(all, _)| names(all, pre)) {
            Some(&(_, patterns)) => patterns,
            None if !for_prompts => &[GPT2],
            None => {
                return Err(unsupported(format!(
                    "tokenizer.ggml.pre = {pre:?} is not a way to split text that is known here"
                )));
            }
        };
        let split = patterns.iter().map(|pattern| {
            json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false})
        });
        let bytes =
            json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
        let split: Vec<Value> = split.chain([bytes.clone()]).collect();
        Ok(json!({
            "normalizer": pre.contains("qwen").then(|| json!({"type": "NFC"})),
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": split},
            "decoder": bytes,
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                "ignore_merges": names(WHOLE, pre), "vocab": vocab(tokens), "merges": self.merges()?,
            },
        }))
    }

    /// Returns the merges that the file has.
    fn merges(&self) -> Result<Vec<(&'a str, &'a str)>, VocabularyError> {
        let merges = self.get("merges").and_then(|merges| merges.as_strings());
        let merges = merges.ok_or_else(|| malformed("no tokenizer.ggml.merges"))?;
        let pairs = merges.iter().map(|pair| pair.split_once(' ')).collect::<Option<_>>();
        pairs.ok_or_else(|| malformed("a merge in tokenizer.ggml.merges is not two tokens"))
    }

    /// Returns the tokens put around a text.
    fn around(&self, names: &[String], sentencepiece: bool) -> Option<Value> {
        let name = |key: &str| {
            let id = usize::try_from(self.token(key)?).ok()?;
            names.get(id).map(|name| (id, name))
        };
        let begin = self.flag("add_bos_token", sentencepiece).then(|| name("bos_token_id")).flatten();
        let end = self.flag("add_eos_token", false).then(|| name("eos_token_id")).flatten();
        let special = |token: &(usize, &String)| json!({"SpecialToken": {"id": token.1, "type_id": 0}});
        let text = |id: &str| json!({"Sequence": {"id": id, "type_id": 0}});
        let around = |parts: Vec<Value>| {
            begin.iter().map(special).chain(parts).chain(end.iter().map(special)).collect::<Vec<_>>()
        };
        let tokens: serde_json::Map<String, Value> = begin
            .iter()
            .chain(&end)
            .map(|(id, name)| ((*name).clone(), json!({"id": name, "ids": [id], "tokens": [name]})))
            .collect();
        (!tokens.is_empty()).then(|| {
            json!({
                "type": "TemplateProcessing", "single": around(vec![text("A")]),
                "pair": around(vec![text("A"), text("B")]), "special_tokens": tokens,
            })
        })
    }
}

/// Lists names and ids. A name that occurs twice keeps its first id: the other can never be made from text.
fn vocab(names: &[String]) -> Value {
    let mut vocab = serde_json::Map::with_capacity(names.len());
    for (id, name) in names.iter().enumerate() {
        vocab.entry(name.as_str()).or_insert_with(|| json!(id));
    }
    Value::Object(vocab)
}

/// Lists the tokens that are found in text before it is split.
fn added(names: &[String], kinds: &[i64], sentencepiece: bool) -> Value {
    let token = |(id, (name, kind)): (usize, (&String, &i64))| {
        let special = match *kind {
            CONTROL => true,
            UNKNOWN if sentencepiece => true,
            USER_DEFINED => false,
            _ => return None,
        };
        Some(json!({
            "id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": special,
        }))
    };
    names.iter().zip(kinds).enumerate().filter_map(token).collect()
}

/// Lists the merges of a SentencePiece tokenizer: every way to put a token together from two others, the best
/// token first.
fn merges(names: &[String], kinds: &[i64], scores: &[f32]) -> Value {
    let ids: HashMap<&str, usize> =
        names.iter().enumerate().rev().map(|(id, name)| (name.as_str(), id)).collect();
    let mergeable = |id: usize| !matches!(kinds.get(id), Some(&(CONTROL | UNKNOWN | USER_DEFINED | 6)));
    let mut merges: Vec<(usize, usize, usize)> = Vec::new();
    for (id, name) in names.iter().enumerate().filter(|&(id, _)| mergeable(id)) {
        let mut own: Vec<(usize, usize, usize)> = name
            .char_indices()
            .skip(1)
            .filter_map(|(at, _)| {
                let (left, right) = name.split_at(at);
                Some((*ids.get(left)?, *ids.get(right)?, id))
            })
            .collect();
        own.sort_unstable();
        merges.extend(own);
    }
    let score = |id: usize| scores.get(id).copied().unwrap_or(f32::NEG_INFINITY);
    let length = |id: usize| names.get(id).map_or(0, |name| name.chars().count());
    merges.sort_by(|a, b| {
        let by_score = score(b.2).partial_cmp(&score(a.2)).unwrap_or(Ordering::Equal);
        // Stable, so that equals stay in the order of their tokens.
        by_score.then_with(|| length(b.0).cmp(&length(a.0))).then_with(|| length(b.1).cmp(&length(a.1)))
    });
    let name = |id: usize| names.get(id).map(String::as_str).unwrap_or_default();
    merges.into_iter().map(|(left, right, _)| json!([name(left), name(right)])).collect()
}
