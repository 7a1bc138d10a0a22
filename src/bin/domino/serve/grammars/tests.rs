//! Tests of grammars that several callers ask for.

use proptest::prelude::*;

use super::*;
use crate::grammar::compiler::byte_vocabulary;
use crate::serve::asked::{grammar::GrammarWhat, schemas::OptionsAsked};

const LONG: Duration = Duration::from_secs(60);

fn registry(most_bytes: usize) -> Arc<Registry> {
    patient(most_bytes, LONG)
}

fn patient(most_bytes: usize, patience: Duration) -> Arc<Registry> {
    let compiler = Compiler::new(byte_vocabulary().unwrap());
    let shop = Shop { compiler, guessing: None, schemas: Arc::default() };
    let named = NamedGrammars::new(None, Arc::default()).unwrap();
    let metrics = Arc::new(Metrics::default());
    Registry::new(shop, named, metrics, Pool::new(2), most_bytes, patience)
}

fn me() -> Caller {
    Caller::Key("me".into())
}

/// Keeps all workers of two callers busy until what is returned is dropped.
fn busy(registry: &Registry) -> [std::sync::mpsc::Sender<()>; 2] {
    ["x", "y"].map(|name| {
        let (end, ended) = std::sync::mpsc::channel();
        let (begin, begun) = std::sync::mpsc::channel();
        let job = move || {
            let _ = begin.send(());
            let _ = ended.recv();
        };
        registry.pool.submit(&Caller::Key(name.into()), job).unwrap();
        // The trees of a grammar from before may still have the worker.
        begun.recv_timeout(LONG).unwrap();
        end
    })
}

fn asked(what: GrammarWhat, param: &'static str, options: &SchemaOptions) -> GrammarAsked {
    GrammarAsked::new(what, param, &OptionsAsked::default().with(options.clone()))
}

fn regex(text: &str) -> GrammarAsked {
    asked(GrammarWhat::Text(Notation::Regex, text.to_owned()), "grammar", &SchemaOptions::default())
}

#[tokio::test]
async fn a_grammar_is_compiled_once_for_all_who_ask_at_once() {
    let registry = registry(1 << 30);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let registry = Arc::clone(&registry);
            tokio::spawn(async move {
                let json = GrammarWhat::Named("json".to_owned());
                registry.get(&me(), asked(json, "grammar", &SchemaOptions::default())).await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(registry.size().0, 1);
    let text = registry.metrics.text(|_| ());
    assert!(text.contains("\ndomino_grammar_misses_total 1\n"), "{text}");
    assert!(text.contains("\ndomino_grammar_hits_total 19\n"), "{text}");
}

#[tokio::test]
async fn grammar_errors_have_a_place_and_are_not_kept() {
    let registry = registry(1 << 30);
    for _ in 0..2 {
        let problem = registry.get(&me(), regex("a(")).await.unwrap_err();
        let error = &problem.to_json()["error"];
        assert_eq!(
            (error["code"].as_str(), error["param"].as_str()),
            (Some("invalid_grammar"), Some("grammar"))
        );
        assert!(error["line"] == 1 && error["column"].is_u64(), "{error}");
    }
    let empty = GrammarWhat::Text(Notation::Gbnf, "root ::= root".to_owned());
    let empty = asked(empty, "grammar", &SchemaOptions::default());
    assert_eq!(registry.get(&me(), empty).await.unwrap_err().to_json()["error"]["code"], "invalid_grammar");
    assert_eq!(registry.size().0, 0);
}

#[tokio::test]
async fn schemas_are_cached_by_options_and_errors_name_the_field() {
    let registry = registry(1 << 30);
    let array = r#"{"type": "array", "contains": {"const": 1}, "maxContains": 1, "uniqueItems": true}"#;
    let text = format!(r#"{{"type": "object", "properties": {{"a": {array}}}}}"#);
    let what = || GrammarWhat::Text(Notation::JsonSchema, text.to_owned());
    let schema = |options: &SchemaOptions| asked(what(), "grammar", options);
    let lenient = SchemaOptions::default().with_lenient(true);
    let prepared = registry.get(&me(), schema(&lenient)).await.unwrap();
    assert!(prepared.relaxed[0].pointer.starts_with("#/properties/a"), "{:?}", prepared.relaxed);
    registry.get(&me(), schema(&lenient.clone().with_closed(true))).await.unwrap();
    assert_eq!(registry.size().0, 2);
    let format = asked(what(), "response_format", &SchemaOptions::default());
    for (asked, param) in [(schema(&SchemaOptions::default()), "grammar"), (format, "response_format")] {
        let error = registry.get(&me(), asked).await.unwrap_err().to_json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{param}: #/properties/a")), "{error}");
        assert_eq!((&error["param"], &error["code"]), (&param.into(), &"invalid_json_schema".into()));
        assert_eq!(error["keyword"], "uniqueItems");
    }
}

#[tokio::test]
async fn the_registry_is_trimmed_to_its_last_grammar() {
    let registry = registry(1);
    for text in ["a+", "b+", "c+"] {
        let grammar = registry.get(&me(), regex(text)).await.unwrap();
        grammar.grammar.constraint().mask().unwrap();
        registry.trim();
    }
    assert_eq!(registry.size().0, 1);
}

#[tokio::test]
async fn a_caller_who_waits_too_long_gets_an_error_and_loses_the_turn() {
    let registry = patient(1 << 30, Duration::from_millis(10));
    let held = busy(&registry);
    for number in 1..50 {
        let problem = registry.get(&me(), regex(&format!("a{{{number}}}"))).await.unwrap_err();
        let error = &problem.to_json()["error"];
        assert_eq!((&error["code"], &error["param"]), (&"grammar_timeout".into(), &"grammar".into()));
        // It leaves its place, so that this never ends in a full queue.
        assert_eq!((registry.pool.waiting(), registry.size().0), (0, 0));
    }
    drop(held);
}

#[tokio::test]
async fn a_grammar_is_withdrawn_once_nobody_waits_for_it() {
    let registry = registry(1 << 30);
    let held = busy(&registry);
    let ask = |name: &str| {
        let (registry, caller) = (Arc::clone(&registry), Caller::Key(name.into()));
        tokio::spawn(async move { registry.get(&caller, regex("[ab]+")).await })
    };
    let (one, other) = (ask("me"), ask("you"));
    let begun = Instant::now();
    // In the turns of both.
    while registry.pool.waiting() < 2 {
        assert!(begun.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    one.abort();
    assert!(one.await.unwrap_err().is_cancelled());
    assert_eq!(registry.size().0, 1);
    drop(held);
    assert!(other.await.unwrap().is_ok());
    // A grammar that nobody waits for is withdrawn.
    let held = busy(&registry);
    let alone = {
        let registry = Arc::clone(&registry);
        tokio::spawn(async move { registry.get(&me(), regex("c+")).await })
    };
    while registry.pool.waiting() < 1 {
        assert!(begun.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    alone.abort();
    assert!(alone.await.unwrap_err().is_cancelled());
    assert_eq!((registry.pool.waiting(), registry.size().0), (0, 1));
    drop(held);
    // And it can be asked for again.
    registry.get(&me(), regex("c+")).await.unwrap();
}

/// A schema that takes seconds.
fn slow(salt: usize) -> GrammarAsked {
    let property = |at: usize| format!(r#""p{at}": {{"type": "number", "multipleOf": {}}}"#, at + 2);
    let properties: Vec<String> = (0..1000).map(property).collect();
    let text = format!(r#"{{"title": "{salt}", "properties": {{{}}}}}"#, properties.join(", "));
    asked(GrammarWhat::Text(Notation::JsonSchema, text), "grammar", &SchemaOptions::default())
}

/// Work ends where it is, not when it is done: its own error says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_grammar_that_nobody_waits_for_frees_its_worker() {
    let registry = registry(1 << 30);
    for salt in 0..3 {
        let source = registry.named().find(&slow(salt)).unwrap();
        let waiting = registry.wait(&me(), source).unwrap();
        let mut outcome = waiting.slot.outcome.clone();
        let begun = Instant::now();
        while waiting.slot.wanted.task.waits() {
            assert!(begun.elapsed() < LONG);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(outcome.borrow().is_none(), "the schema was not slow enough to tell");
        drop(waiting);
        let ended = tokio::time::timeout(LONG, outcome.wait_for(Option::is_some)).await.unwrap();
        let problem = ended.unwrap().clone().unwrap().unwrap_err().to_json();
        assert_eq!(problem["error"]["code"], "grammar_given_up");
        assert!(problem["error"]["message"].as_str().unwrap().contains("was cancelled"), "{problem}");
        assert_eq!(registry.size().0, 0);
    }
    // The worker of this caller is free, and a grammar that was given up can be asked for again.
    registry.get(&me(), regex("a+")).await.unwrap();
}

/// Clients who ask for the same one by one, each of whom goes away.
#[tokio::test(flavor = "multi_thread")]
async fn a_grammar_goes_on_while_anybody_waits() {
    let registry = registry(1 << 30);
    let find = || registry.named().find(&slow(7)).unwrap();
    let [first, second] = ["a", "b"].map(|name| registry.wait(&Caller::Key(name.into()), find()).unwrap());
    assert!(Arc::ptr_eq(&first.slot.wanted, &second.slot.wanted));
    drop(first);
    assert!(!second.slot.wanted.given_up.is_cancelled());
    let cancel = second.slot.wanted.given_up.clone();
    drop(second);
    assert!(cancel.is_cancelled());
    // Whoever comes now has nothing of what was cancelled.
    let third = registry.wait(&me(), find()).unwrap();
    assert!(!third.slot.wanted.given_up.is_cancelled() && third.slot.outcome.borrow().is_none());
}

/// A schema that takes seconds, of one client, and grammars of another.
#[tokio::test(flavor = "multi_thread")]
async fn one_client_does_not_stop_grammars_of_others() {
    let registry = registry(1 << 30);
    let hogs: Vec<_> = (0..8)
        .map(|salt| {
            let (registry, asked) = (Arc::clone(&registry), slow(salt));
            tokio::spawn(async move { registry.get(&Caller::Key("hog".into()), asked).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    for text in ["a+", "b+", "c+"] {
        registry.get(&me(), regex(text)).await.unwrap();
        assert!(hogs.iter().any(|hog| !hog.is_finished()), "the schemas were not slow enough to tell");
    }
    hogs.iter().for_each(tokio::task::JoinHandle::abort);
}

#[test]
fn the_most_recently_used_value_stays_whatever_it_weighs() {
    let mut shelf = LastUsed::new();
    shelf.insert("a", 100);
    assert_eq!(shelf.trim(10, |&weight| weight), 0);
    shelf.insert("b", 1);
    shelf.get(&"a");
    assert_eq!(shelf.trim(10, |&weight| weight), 1);
    assert!(shelf.get(&"b").is_none() && shelf.get(&"a").is_some());
}

proptest! {
    /// Holds the cache to a plain list in the order of use.
    #[test]
    fn the_cache_agrees_with_a_list_in_order_of_use(
        uses in prop::collection::vec((0_u8..8, 0_usize..5), 1..60),
        most in 0_usize..20,
    ) {
        let mut shelf = LastUsed::new();
        let mut list: Vec<(u8, usize)> = Vec::new();
        for (key, weight) in uses {
            let known = shelf.get(&key).copied();
            let place = list.iter().position(|&(other, _)| other == key);
            prop_assert_eq!(known, place.map(|place| list[place].1));
            match place {
                Some(place) => {
                    let entry = list.remove(place);
                    list.push(entry);
                }
                None => {
                    shelf.insert(key, weight);
                    list.push((key, weight));
                }
            }
            shelf.trim(most, |&weight| weight);
            while list.len() > 1 && list.iter().map(|&(_, weight)| weight).sum::<usize>() > most {
                list.remove(0);
            }
            prop_assert_eq!(shelf.values().len(), list.len());
        }
    }
}
