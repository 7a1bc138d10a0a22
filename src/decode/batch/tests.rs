//! Hundreds of batches whose sequences join and leave at random, against the decoder of one text.

use std::collections::BTreeMap;

use proptest::{prelude::*, test_runner::TestCaseError};

use super::super::{
    BatchDecoder, BatchEvent, DecodeOptions, Decoder, Generation, Penalties, Sampling, SequenceId,
    SequenceTurn,
};
use crate::{
    CompiledGrammar, Compiler, Grammar, Limits, Syntax,
    ids::TokenId,
    model::{BatchInput, BatchModel, KvCopy, Logits, OneByOne, OneByOneError, ScriptedError, ScriptedModel},
    proposer::{DraftLength, Drafter, Lookup},
    vocab::Vocabulary,
};

const WORDS: [&str; 12] = ["a", "b", "ab", "ba", "{", "}", ",", "1", "12", " ", "[", "]"];
const CONTEXT: usize = 48;
const BLOCK: usize = 4;

fn vocabulary() -> Vocabulary {
    let words = WORDS.iter().zip(0..);
    let builder =
        words.fold(Vocabulary::builder(), |builder, (word, id)| builder.token(TokenId::new(id), *word));
    builder.end_of_text(TokenId::new(12)).build().unwrap()
}

fn grammar(vocabulary: &Vocabulary) -> CompiledGrammar {
    let text = r#"root ::= "{" item ("," item)* "}"   item ::= [ab]+ | "[" item "]" | [0-9]{1,3}"#;
    let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap();
    Compiler::new(vocabulary.clone()).compile(&grammar).unwrap()
}

/// Scripted models with blocks that can be copied: what is copied of tokens is these tokens.
struct Copying {
    models: OneByOne<ScriptedModel>,
    held: Vec<Vec<TokenId>>,
    /// Tokens whose memory is taken at a time.
    piece: usize,
}

impl Copying {
    fn new(model: &ScriptedModel, sequences: usize) -> Self {
        let models = OneByOne::new(vec![model.clone(); sequences]);
        Self { models, held: vec![Vec::new(); sequences], piece: 1 }
    }
}

impl BatchModel for Copying {
    type Error = OneByOneError<ScriptedError>;

    fn sequences(&self) -> usize {
        self.models.sequences()
    }

    fn position(&self, sequence: usize) -> usize {
        self.models.position(sequence)
    }

    fn context(&self) -> usize {
        self.models.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.models.vocabulary_size()
    }

    fn forward(&mut self, inputs: &[BatchInput<'_>]) -> Result<Vec<Logits>, Self::Error> {
        let rows = self.models.forward(inputs)?;
        inputs.iter().for_each(|input| self.held[input.sequence].extend(input.tokens));
        Ok(rows)
    }

    fn truncate(&mut self, sequence: usize, position: usize) -> Result<(), Self::Error> {
        self.models.truncate(sequence, position)?;
        self.held[sequence].truncate(position);
        Ok(())
    }

    fn reserved(&self, tokens: usize) -> usize {
        tokens.next_multiple_of(self.piece)
    }

    fn copied_block(&self) -> Option<usize> {
        Some(BLOCK)
    }

    fn copy_out(&self, sequence: usize, positions: std::ops::Range<usize>) -> Option<KvCopy> {
        let tokens = self.held[sequence].get(positions)?;
        let bytes = tokens.iter().flat_map(|token| token.raw().to_le_bytes()).collect();
        Some(KvCopy::new(tokens.len(), bytes))
    }

    fn copy_in(&mut self, sequence: usize, copy: &KvCopy) -> bool {
        let (words, _) = copy.content().as_chunks::<4>();
        let tokens: Vec<TokenId> = words.iter().map(|word| TokenId::new(u32::from_le_bytes(*word))).collect();
        let rows = crate::model::Rows::Among(&[]);
        self.forward(&[BatchInput { sequence, tokens: &tokens, rows }]).is_ok()
    }
}

/// A text to be written, and when it comes and goes.
#[derive(Debug, Clone)]
struct WantedText {
    prompt: Vec<TokenId>,
    options: DecodeOptions,
    constrained: bool,
    drafted: bool,
    turn: SequenceTurn,
    /// Steps of the batch before it comes.
    comes: usize,
    /// Steps after which it is cancelled.
    goes: Option<usize>,
}

fn wanted() -> impl Strategy<Value = WantedText> {
    // Prompts that begin alike.
    let prompt = (0..3_u32, 1..30_usize).prop_map(|(kind, length)| {
        (0..length).map(|at| TokenId::new((kind + u32::try_from(at).unwrap()) % 12)).collect::<Vec<_>>()
    });
    let drawn = (0..4_u64, prop::sample::select(vec![0.0, 0.7, 1.0]), 1..16_usize, any::<bool>());
    let turn = (0..3_u64, 0..4_u64).prop_map(|(client, request)| SequenceTurn {
        client,
        request,
        scope: client % 2,
    });
    let goes = prop::option::weighted(0.2, 0..12_usize);
    (prompt, drawn, any::<[bool; 2]>(), turn, 0..12_usize, goes).prop_map(
        |(prompt, (seed, temperature, most, penalised), [constrained, drafted], turn, comes, goes)| {
            let sampling = Sampling::with_temperature(temperature).unwrap();
            let mut options =
                DecodeOptions { sampling, seed, max_new_tokens: most, ..DecodeOptions::default() };
            if penalised {
                options.penalties = Penalties::none().presence(1.0).unwrap();
            }
            options.logprobs = (seed == 0).then_some(2);
            options.prompt_logprobs = penalised;
            WantedText { prompt, options, constrained, drafted, turn, comes, goes }
        },
    )
}

fn drafter() -> Drafter {
    Drafter::new(Box::new(Lookup::default()), DraftLength::up_to(3, 0.0).unwrap())
}

/// The text as it is alone.
fn alone(
    model: &ScriptedModel,
    vocabulary: &Vocabulary,
    grammar: &CompiledGrammar,
    one: &WantedText,
) -> Generation {
    let mut builder =
        Decoder::builder(model.clone()).vocabulary(vocabulary.clone()).options(one.options.clone());
    if one.constrained {
        builder = builder.constraint(grammar.constraint());
    }
    builder.build().unwrap().generate(&one.prompt).unwrap()
}

/// Has all of them written as they come, and gives what ended by itself, and how far the cancelled ones came.
fn together(
    decoder: &mut BatchDecoder<Copying>,
    grammar: &CompiledGrammar,
    all: &[WantedText],
) -> (BTreeMap<usize, Generation>, BTreeMap<usize, Generation>) {
    let mut names: BTreeMap<SequenceId, usize> = BTreeMap::new();
    let (mut ended, mut cancelled) = (BTreeMap::new(), BTreeMap::new());
    for step in 0..2_000 {
        for (index, one) in all.iter().enumerate().filter(|(_, one)| one.comes == step) {
            let constraint = one.constrained.then(|| grammar.constraint());
            let drafter = (one.drafted && one.constrained).then(drafter);
            let added = decoder.add_in_turn(&one.prompt, constraint, &one.options, drafter, one.turn);
            names.insert(added.unwrap(), index);
        }
        let gone = names
            .iter()
            .filter(|&(_, &index)| all[index].goes.is_some_and(|after| all[index].comes + after == step));
        for (name, index) in gone.map(|(&name, &index)| (name, index)).collect::<Vec<_>>() {
            cancelled.extend(decoder.cancel(name).map(|generation| (index, generation)));
        }
        for event in decoder.step() {
            match event {
                BatchEvent::Finished { sequence, generation } => {
                    ended.insert(names[&sequence], generation);
                }
                BatchEvent::Failed { error, .. } => panic!("{error}"),
                BatchEvent::Prompt { sequence, logprobs } => {
                    assert_eq!(logprobs.len(), all[names[&sequence]].prompt.len() - 1);
                }
                BatchEvent::Token { .. } => {}
            }
        }
        if decoder.is_empty() && all.iter().all(|one| one.comes < step) {
            return (ended, cancelled);
        }
    }
    panic!("the batch does not end");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Whatever shares its passes, in whatever chunks its prompt is read, whatever is kept of other
    /// prompts, and however often it gives its place up: a text is the one that it is alone, with and
    /// without a grammar.
    #[test]
    fn texts_of_a_batch_are_those_decoded_alone(
        all in prop::collection::vec(wanted(), 1..10), sequences in 1..5_usize, chunk in 1..40_usize,
        kept in prop::sample::select(vec![0, 40, 400, 1 << 20]), room in 20..200_usize, seed in 0..50_u64,
    ) {
        let vocabulary = vocabulary();
        let grammar = grammar(&vocabulary);
        let model = ScriptedModel::new(13, CONTEXT, seed);
        let batch = BatchDecoder::new(Copying::new(&model, sequences), vocabulary.clone()).unwrap();
        let mut batch = batch.prompt_chunk(chunk).prefix_cache(kept).most_tokens(room);
        // Twice: the second time prefixes are known.
        for _ in 0..2 {
            let (ended, cancelled) = together(&mut batch, &grammar, &all);
            for (index, one) in all.iter().enumerate() {
                let alone = alone(&model, &vocabulary, &grammar, one);
                match (ended.get(&index), cancelled.get(&index)) {
                    (Some(found), None) => {
                        prop_assert_eq!(&found.tokens, &alone.tokens);
                        prop_assert_eq!(&found.text, &alone.text);
                        prop_assert_eq!((found.finish, found.complete), (alone.finish, alone.complete));
                        prop_assert_eq!(&found.logprobs, &alone.logprobs);
                    }
                    (None, Some(part)) => prop_assert!(alone.tokens.starts_with(&part.tokens)),
                    _ => return Err(TestCaseError::fail(format!("text {index} is lost or there twice"))),
                }
            }
            prop_assert!(batch.prefix_bytes() <= kept);
        }
    }
}

/// Texts wait by the memory that they take, which may be that of more tokens than they have. A text that
/// needs more than there is has it alone.
#[test]
fn texts_wait_while_their_memory_would_exceed_what_there_is() {
    let model = ScriptedModel::new(13, CONTEXT, 1).script(0, vec![TokenId::new(0); CONTEXT]);
    let options = DecodeOptions { max_new_tokens: 9, ..DecodeOptions::default() };
    // Each text may have ten tokens.
    for (piece, room, together) in
        [(1, 40, 4), (1, 39, 3), (10, 30, 3), (16, 64, 4), (16, 63, 3), (16, 40, 2), (64, 40, 1)]
    {
        let copying = Copying { piece, ..Copying::new(&model, 4) };
        let mut batch = BatchDecoder::new(copying, vocabulary()).unwrap().most_tokens(room);
        for _ in 0..4 {
            let turn = SequenceTurn::default();
            batch.add_in_turn(&[TokenId::new(0)], None, &options, None, turn).unwrap();
        }
        let mut most = 0;
        while !batch.is_empty() {
            let events = batch.step();
            let written = events.iter().filter_map(|event| match event {
                BatchEvent::Token { sequence, .. } => Some(*sequence),
                _ => None,
            });
            most = most.max(written.collect::<std::collections::BTreeSet<_>>().len());
        }
        assert_eq!(most, together, "{piece} {room}");
    }
}

/// One request for many texts does not hold another one: it gives a place up within two steps.
#[test]
fn a_large_request_does_not_hold_others() {
    let vocabulary = vocabulary();
    for other in [
        SequenceTurn { request: 1, ..SequenceTurn::default() },
        SequenceTurn { client: 1, request: 1, scope: 0 },
    ] {
        let model = ScriptedModel::new(13, CONTEXT, 1).script(0, vec![TokenId::new(0); CONTEXT]);
        let mut batch = BatchDecoder::new(Copying::new(&model, 4), vocabulary.clone()).unwrap();
        let options = DecodeOptions { max_new_tokens: 40, ..DecodeOptions::default() };
        let prompt = [TokenId::new(0)];
        let large = SequenceTurn::default();
        for _ in 0..16 {
            batch.add_in_turn(&prompt, None, &options, None, large).unwrap();
        }
        batch.step();
        let name = batch.add_in_turn(&prompt, None, &options, None, other).unwrap();
        let mut tokens = 0;
        for _ in 0..2 {
            let own =
                |event: &BatchEvent| matches!(event, BatchEvent::Token { sequence, .. } if *sequence == name);
            tokens += batch.step().iter().filter(|event| own(event)).count();
        }
        assert!(tokens >= 1, "{other:?}");
    }
}

/// Writes texts of these clients and requests at one place; `again` says of one that has ended what is sent
/// then. Returns whose they are in the order of their ends.
fn at_one_place(
    sent: &[(u64, u64)],
    mut again: impl FnMut((u64, u64)) -> Option<(u64, u64)>,
) -> Vec<(u64, u64)> {
    let model = ScriptedModel::new(13, CONTEXT, 1);
    let mut batch = BatchDecoder::new(Copying::new(&model, 1), vocabulary()).unwrap();
    let options = DecodeOptions { max_new_tokens: 2, ..DecodeOptions::default() };
    let (mut names, mut ended, mut waiting) = (BTreeMap::new(), Vec::new(), sent.to_vec());
    while !waiting.is_empty() || !batch.is_empty() {
        for (client, request) in waiting.drain(..) {
            let turn = SequenceTurn { client, request, scope: 0 };
            let name = batch.add_in_turn(&[TokenId::new(0)], None, &options, None, turn).unwrap();
            names.insert(name, (client, request));
        }
        for event in batch.step() {
            if let BatchEvent::Finished { sequence, .. } = event {
                ended.push(names[&sequence]);
                waiting.extend(again(names[&sequence]));
            }
        }
    }
    ended
}

/// A regression test: a request for sixteen texts once had the only place until all were written.
#[test]
fn turns_go_round_where_there_is_one_place() {
    let (a, b, c) = ((0, 0), (1, 1), (2, 2));
    let order = |sent: &[(u64, u64)]| at_one_place(sent, |_| None);
    assert_eq!(order(&[a, a, a, a, b]), [a, b, a, a, a]);
    assert_eq!(order(&[a, a, b, b, c, c]), [a, b, c, a, b, c]);
    assert_eq!(order(&[a, b, b, b, c]), [a, b, c, b, b]);
    // Requests of one client.
    let other = (0, 7);
    assert_eq!(order(&[a, a, a, other, other]), [a, other, a, other, a]);
    // They have one turn together.
    assert_eq!(order(&[a, a, other, other, b, b]), [a, b, other, b, a, other]);
}

/// Texts of clients that ask anew each time do not overtake those that wait.
#[test]
fn nobody_waits_for_ever() {
    let (many, one, two) = ((0, 0), (1, 1), (2, 2));
    let mut left = 6_i32;
    let again = |ended: (u64, u64)| {
        left -= i32::from(ended != many);
        (ended != many && left > 0).then_some(ended)
    };
    let ended = at_one_place(&[many, many, many, one, two], again);
    let turns: Vec<usize> = (0..ended.len()).filter(|&at| ended[at] == many).collect();
    assert_eq!(turns, [0, 3, 6], "{ended:?}");
}

/// Prefixes are known in the scope whose prompt had them, and nowhere else.
#[test]
fn cached_prefixes_are_kept_apart_by_scope() {
    let vocabulary = vocabulary();
    let model = ScriptedModel::new(13, CONTEXT, 1);
    let batch = BatchDecoder::new(Copying::new(&model, 2), vocabulary).unwrap();
    let mut batch = batch.prefix_cache(1 << 20);
    let prompt: Vec<TokenId> = (0..22).map(|id| TokenId::new(id % 12)).collect();
    let mut cached = |prompt: &[TokenId], scope| {
        let options = DecodeOptions { max_new_tokens: 1, ..DecodeOptions::default() };
        let turn = SequenceTurn { scope, ..SequenceTurn::default() };
        batch.add_in_turn(prompt, None, &options, None, turn).unwrap();
        let ended = std::iter::repeat_with(|| batch.step()).flatten().find_map(|event| match event {
            BatchEvent::Finished { generation, .. } => Some(generation.stats.cached_tokens),
            _ => None,
        });
        ended.unwrap()
    };
    assert_eq!(cached(&prompt, 1), 0);
    assert_eq!(cached(&prompt, 2), 0);
    assert_eq!(cached(&prompt, 1), 20);
    assert_eq!(cached(&prompt[..20], 1), 16, "the last token is read again, for its row");
    assert_eq!(cached(&prompt[2..], 1), 0);
    let other: Vec<TokenId> = prompt[..9].iter().copied().chain([TokenId::new(3); 9]).collect();
    assert_eq!(cached(&other, 1), 8);
}

/// Long prompts are read beside texts that have begun, which go on at every pass.
#[test]
fn a_long_prompt_does_not_hold_others() {
    let vocabulary = vocabulary();
    let model = ScriptedModel::new(13, CONTEXT, 1).script(0, vec![TokenId::new(0); CONTEXT]);
    let batch = BatchDecoder::new(Copying::new(&model, 2), vocabulary).unwrap();
    let mut batch = batch.prompt_chunk(4);
    let options = DecodeOptions { max_new_tokens: 12, ..DecodeOptions::default() };
    let short = batch.add(&[TokenId::new(0)], None, &options).unwrap();
    batch.step();
    let long = batch.add(&[TokenId::new(1); 20], None, &options).unwrap();
    for step in 0..5 {
        let events = batch.step();
        let of = |name| {
            events
                .iter()
                .any(|event| matches!(event, BatchEvent::Token { sequence, .. } if *sequence == name))
        };
        assert_eq!((of(short), of(long)), (true, step == 4), "{step}");
    }
    // One that is cancelled while it is read leaves at once.
    let gone = batch.add(&[TokenId::new(1); 20], None, &options).unwrap();
    batch.cancel(long);
    batch.step();
    assert!(batch.cancel(gone).is_some_and(|part| part.tokens.is_empty()));
    assert_eq!(batch.len(), 1);
}

/// Sequences of the runner on Candle, whose keys and values are copied, in each format of the cache.
#[cfg(feature = "candle")]
#[test]
fn copied_keys_and_values_give_the_same_bits() {
    use crate::model::candle::{CandleBatch, Format, KvFormat, LoadOptions, RandomModel};

    let mut model = RandomModel::preset("13m", Format::Q8_0).unwrap();
    (model.hidden, model.intermediate, model.layers) = (128, 64, 2);
    (model.heads, model.kv_heads, model.vocabulary) = (4, 2, 32);
    for kv in [KvFormat::F32, KvFormat::F16, KvFormat::Q8_0] {
        let options = LoadOptions { kv, ..LoadOptions::default() };
        let mut batch =
            CandleBatch::random(&model, std::num::NonZeroUsize::new(2).unwrap(), &options).unwrap();
        let tokens: Vec<TokenId> = (0..50).map(|id| TokenId::new(id % 20)).collect();
        let row = |batch: &mut CandleBatch, sequence, tokens: &[TokenId]| {
            let input = BatchInput { sequence, tokens, rows: crate::model::Rows::Last };
            batch.forward(&[input]).unwrap().remove(0)
        };
        let whole = row(&mut batch, 0, &tokens);
        let size = batch.copied_block().unwrap();
        for block in 0..3 {
            let copy = batch.copy_out(0, block * size..(block + 1) * size).unwrap();
            assert!(batch.copy_in(1, &copy));
        }
        assert_eq!(batch.position(1), 48);
        assert_eq!(row(&mut batch, 1, &tokens[48..]), whole);
        assert!(batch.copy_out(0, 48..64).is_none() && batch.copy_out(0, 1..17).is_none());
        let copy = batch.copy_out(0, 0..16).unwrap();
        assert!(!batch.copy_in(1, &copy), "behind a block that is not whole");
    }
}
