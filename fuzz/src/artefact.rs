//! Changed files of trees, with a valid seal or not, and changed vocabularies of the cache: refused, or taken
//! without harm.

use std::sync::OnceLock;

use domino::{
    CompiledGrammar, Compiler, Grammar, Limits, StepErrorKind, Syntax, TokenSet, Vocabulary, store,
};

use super::{bytes::Bytes, walk};

/// Grammars whose trees are changed.
const GRAMMARS: [&str; 4] = [
    r#"root ::= "a" | "(" root ")""#,
    r#"root ::= x ("," x)*  x ::= "(" x? ")" | [a-b]+"#,
    r#"root ::= "if(" root ")" root ("b" root)? | "a,""#,
    include_str!("../../grammars/json.gbnf"),
];
/// Changes made to one file.
const EDITS: usize = 12;
/// Numbers that readers may mishandle.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    3,
    16,
    95,
    255,
    0x7FFF_FFFF,
    0xFFFF_FFFE,
    0xFFFF_FFFF,
    0x7FFF_FFFF_FFFF_FFFF,
    0xFFFF_FFFF_FFFF_FFFF,
];

/// A grammar, the file with its trees, and its first masks.
struct Base {
    grammar: Grammar,
    compiler: Compiler,
    file: Vec<u8>,
    masks: Vec<Option<TokenSet>>,
}

impl Base {
    fn of(choice: usize) -> &'static Self {
        static BASES: [OnceLock<Base>; GRAMMARS.len()] = [const { OnceLock::new() }; GRAMMARS.len()];
        BASES[choice].get_or_init(|| {
            let grammar =
                Grammar::parse(Syntax::Gbnf, GRAMMARS[choice], &Limits::default()).expect("a grammar");
            let compiler = Compiler::new(walk::vocabulary().clone());
            let compiled = compiler.compile(&grammar).expect("it has sentences");
            let masks = masks(&compiled);
            Self { grammar, compiler, file: compiled.artefact(), masks }
        })
    }

    fn compile(&self) -> CompiledGrammar {
        self.compiler.compile(&self.grammar).expect("compiled before")
    }
}

/// Masks along some steps, without those that fail.
fn masks(compiled: &CompiledGrammar) -> Vec<Option<TokenSet>> {
    let mut constraint = compiled.constraint();
    let mut masks = Vec::new();
    for step in 0..6 {
        let mask = walk::unless_limited(constraint.mask().cloned());
        let token = mask.as_ref().and_then(|mask| mask.iter().nth(step * 5 % mask.len().max(1)));
        masks.push(mask);
        let Some(token) = token else { break };
        if let Err(error) = constraint.advance(token) {
            // Trees that were changed can allow what the grammar does not.
            assert!(matches!(error.kind(), StepErrorKind::Refused(_) | StepErrorKind::Limit(_)), "{error}");
            break;
        }
    }
    masks
}

/// Fails if a file is mishandled.
pub fn check(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let choice = bytes.byte();
    if choice >> 6 == 3 {
        return check_vocabulary(&mut bytes);
    }
    let base = Base::of(usize::from(choice) % GRAMMARS.len());
    let file = match choice >> 6 {
        0 => bytes.take(usize::MAX).to_vec(),
        1 => edited(&base.file, &mut bytes),
        _ => store::resealed(edited(&base.file, &mut bytes)),
    };
    let compiled = base.compile();
    match compiled.load_artefact(&file) {
        Ok(()) => {
            assert!(compiled.has_trees());
            let found = masks(&compiled);
            assert!(file != base.file || found == base.masks, "other masks by the same trees");
        }
        Err(error) => {
            assert!(file != base.file, "{error}");
            assert!(!error.to_string().is_empty() && !error.hint().is_empty());
            assert!(!compiled.has_trees());
            assert!(masks(&compiled) == base.masks, "a file that was refused has changed a mask");
        }
    }
}

/// Checks a vocabulary's payload with some changes: it is refused, or is that of another vocabulary, which
/// can also be built.
fn check_vocabulary(bytes: &mut Bytes<'_>) {
    let payload = edited(&walk::vocabulary().stored(), bytes);
    let Ok(read) = Vocabulary::from_stored(&payload) else { return };
    assert!(read.stored() == payload, "two payloads of one vocabulary");
    let builder =
        read.text_tokens().fold(Vocabulary::builder(), |builder, (id, text)| builder.token(id, text));
    let builder = read.special_tokens().fold(builder, |builder, (id, name)| builder.special(id, name));
    let ends = read.end_of_text().iter().copied();
    let built = ends.fold(builder, |builder, end| builder.end_of_text(end)).build().expect("it was read");
    assert_eq!(built.fingerprint(), read.fingerprint());
}

/// The file with some changes; unchanged if `bytes` are used up.
fn edited(file: &[u8], bytes: &mut Bytes<'_>) -> Vec<u8> {
    let mut file = file.to_vec();
    for _ in 0..EDITS {
        if bytes.is_empty() || file.is_empty() {
            break;
        }
        let kind = bytes.below(6);
        let at = (usize::from(bytes.byte()) << 8 | usize::from(bytes.byte())) % file.len();
        let rest = file.len() - at;
        match kind {
            0 => file[at] = bytes.byte(),
            1 | 2 => {
                let width = [4, 8][kind - 1].min(rest);
                let number = bytes.pick(&NUMBERS).to_le_bytes();
                file[at..at + width].copy_from_slice(&number[..width]);
            }
            3 => drop(file.drain(at..at + bytes.below(64).min(rest))),
            4 => {
                let (count, byte) = (bytes.below(64), bytes.byte());
                file.splice(at..at, std::iter::repeat_n(byte, count));
            }
            _ => {
                let from = (usize::from(bytes.byte()) << 8 | usize::from(bytes.byte())) % file.len();
                let count = bytes.below(64).min(file.len() - from).min(rest);
                file.copy_within(from..from + count, at);
            }
        }
    }
    file
}
