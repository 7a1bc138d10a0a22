//! Definitions that can be run, and errors about those that cannot.

use super::*;
use crate::experiment::plan::Plan;

mod chats;

const WHOLE: &str = r#"
name = "all"
about = "Everything there is."
grammars = [
    "json",
    { name = "digits", file = "digits.regex", answer = "last_number", prompts = { file = "p.jsonl" } },
]
methods = ["unconstrained", "naive", "masks", "paper", "paper+adaptive"]
k = [0, "infinite"]
s = [4, 8]
threshold = [0.2]
temperatures = [0, 1]
seeds = { from = 5, count = 3 }
prompts = ["A: ", "B: "]
max_tokens = 20
warm_ups = 2
warm_up_prompts = ["W: "]

[quick]
grammars = ["json"]
seeds = [5]
prompts = 1
k = ["infinite"]
s = [8]
"#;

fn shipped(name: &str) -> Option<&'static str> {
    (name == "json").then_some("root ::= \"{}\"")
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("digits.regex"), "[0-9]+").unwrap();
    let prompts = "{\"task\": \"digits\", \"prompt\": \"7: \", \"answer\": 7}\n\
        {\"task\": \"words\", \"prompt\": \"x\"}\n\n{\"prompt\": \"8: \", \"answer\": \"8\"}\n";
    std::fs::write(folder.path().join("p.jsonl"), prompts).unwrap();
    folder
}

fn parse(text: &str, quick: bool) -> Result<Definition, (String, Option<String>)> {
    let folder = folder();
    Definition::parse(text, "d.toml", folder.path(), quick, &shipped)
        .map_err(|error| (error.to_string(), error.hint()))
}

#[test]
fn a_definition_has_one_variant_per_combination() {
    let whole = parse(WHOLE, false).unwrap();
    assert_eq!(whole.tasks[0].syntax, Syntax::Gbnf);
    assert_eq!((whole.tasks[1].syntax, whole.tasks[1].grammar.as_str()), (Syntax::Regex, "[0-9]+"));
    let answers: Vec<_> = whole.tasks[1].prompts.iter().map(|prompt| prompt.answer.as_deref()).collect();
    assert_eq!(answers, [Some("7"), Some("8")]);
    assert_eq!((&*whole.seeds, whole.max_tokens, &*whole.warm_ups), (&[5, 6, 7][..], 20, &[2][..]));
    let names: Vec<String> = whole
        .variants()
        .iter()
        .map(|Variant { method, k, s, threshold, .. }| {
            let k = k.map_or_else(String::new, |k| k.to_string());
            format!("{method} {k} {s:?} {threshold:?}")
        })
        .collect();
    assert_eq!(
        names,
        [
            "unconstrained  None None",
            "naive 0 None None",
            "masks 0 None None",
            "masks infinite None None",
            "paper 0 Some(4) Some(0.2)",
            "paper 0 Some(8) Some(0.2)",
            "paper infinite Some(4) Some(0.2)",
            "paper infinite Some(8) Some(0.2)",
            "paper+adaptive 0 None None",
            "paper+adaptive infinite None None",
        ]
    );
    assert_eq!(whole.runs(), 4 * 2 * 3 * names.len());
    let outline = Definition::outline(&whole.to_json()).unwrap();
    assert_eq!(Plan::new(outline, None).keys(), Plan::new(whole.clone(), None).keys());
    let quick = parse(WHOLE, true).unwrap();
    assert_eq!((quick.tasks.len(), quick.tasks[0].prompts.len(), quick.variants().len()), (1, 1, 5));
    assert_eq!(quick.runs(), 2 * 5);
    assert_ne!(quick.hash(), whole.hash());
    assert_eq!(parse(WHOLE, false).unwrap().hash(), whole.hash());
}

#[test]
fn a_draft_model_is_a_part_of_the_definition() {
    let with = |draft: &str| {
        let text = WHOLE.replace("\"naive\",", "\"draft_model\", \"draft_model-joint\",");
        parse(&text.replace("warm_ups = 2", &format!("warm_ups = 2\ndraft_model = {draft}")), false).unwrap()
    };
    let (plain, small) = (with("\"tiny\""), with("{ model = \"tiny\", quantize = \"q4_0\" }"));
    assert_eq!(plain.draft_model.as_ref().unwrap().model, "tiny");
    assert_eq!(small.draft_model.as_ref().unwrap().quantize.as_deref(), Some("q4_0"));
    assert_ne!(plain.hash(), small.hash());
    // Each with all `k` and `s`.
    let of = |name: &str| plain.variants().iter().filter(|one| one.method.to_string() == name).count();
    assert_eq!((of("draft_model"), of("draft_model-joint")), (4, 4));
    assert!(parse(WHOLE, false).unwrap().to_json().get("draft_model").is_none());
}

/// Methods may think, each by itself; records know it, and definitions without thoughts are as they were.
#[test]
fn a_method_may_think() {
    let with = |methods: &str, rest: &str| {
        let text = format!(
            "name = \"a\"\ngrammars = [\"json\"]\nprompts = [\"x\", \"y\"]\nmethods = {methods}\n{rest}"
        );
        parse(&text, false)
    };
    let found = with("[\"unconstrained\", \"masks\", { name = \"masks\", think = 9 }]", "").unwrap();
    let thinks: Vec<Option<usize>> = found.variants().iter().map(|variant| variant.think).collect();
    assert_eq!((thinks, found.thinks()), (vec![None, None, Some(9)], true));
    let named: Vec<String> = found.methods.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["unconstrained", "masks", "masks, think 9"]);
    let json = found.to_json();
    assert_eq!(json["methods"], json!(["unconstrained", "masks", { "name": "masks", "think": 9 }]));
    let outline = Definition::outline(&json).unwrap();
    assert_eq!((&outline.methods, Plan::new(outline.clone(), None).keys()), {
        (&found.methods, Plan::new(found.clone(), None).keys())
    });
    let plain = with("[{ name = \"masks\" }]", "").unwrap();
    assert_eq!((plain.hash(), plain.thinks()), (with("[\"masks\"]", "").unwrap().hash(), false));
    // With every k and s.
    let grid = with("{ name = \"paper\", think = 1 }", "k = [0, 1]\ns = [2, 4]").unwrap();
    assert_eq!(grid.variants().iter().filter(|variant| variant.think == Some(1)).count(), 4);
    let quick = "[quick]\nmethods = [{ name = \"ours\", think = 3 }]";
    let text = format!("name = \"a\"\ngrammars = \"json\"\nprompts = \"x\"\nmethods = \"masks\"\n{quick}");
    assert_eq!(parse(&text, true).unwrap().methods[0].think, Some(3));
}

#[test]
fn a_thought_where_there_can_be_none_is_refused() {
    let with = |method: &str, rest: &str| {
        let text = format!(
            "name = \"a\"\ngrammars = [\"json\"]\nprompts = [\"x\", \"y\"]\nmax_tokens = 20\n\
             methods = [{{ name = \"{method}\", think = 9 }}]\n{rest}"
        );
        parse(&text, false).unwrap_err()
    };
    for (method, said) in [
        ("unconstrained", "unconstrained with `think`: it has no grammar"),
        ("shipped", "learnt of texts without thoughts"),
        ("rejection", "special tokens"),
        ("online", "special tokens"),
        ("canonical", "special tokens"),
        ("templates", "special tokens"),
        ("templates-flexible-unhealed", "special tokens"),
        ("llguidance", "llguidance with `think`: another engine"),
        ("mistralrs-drafts", "another engine"),
        ("conditional-8", "its weights are of whole texts"),
    ] {
        let (message, hint) = with(method, "");
        assert!(message.contains(said) && message.starts_with("d.toml: "), "{method}: {message}");
        assert!(hint.unwrap().contains("leave `think` out"));
    }
    let (message, _) = with("them", "programs.them.command = [\"./them\"]");
    assert!(message.contains("them with `think`: another engine"), "{message}");
    for (rest, said) in [
        ("enumerate = 10", "`enumerate` with `think`"),
        ("retokenize = true", "`retokenize` with `think`"),
        ("[quick]\nmax_tokens = 9", "`max_tokens` of 9 leave nothing for the answer"),
    ] {
        let (message, _) = with("masks", rest);
        assert!(message.contains(said), "{rest}: {message}");
    }
}

#[test]
fn a_thought_is_a_number_that_leaves_room_for_the_answer() {
    for (methods, said) in [
        ("[{ name = \"masks\", think = 0 }]", "`think` of masks is 0"),
        ("[{ name = \"masks\", think = 20 }]", "`max_tokens` of 20 leave nothing"),
        ("[{ name = \"masks\", think = -1 }]", "invalid value: integer `-1`"),
        ("[{ name = \"masks\", think = \"long\" }]", "invalid type: string"),
        ("[{ name = \"masks\", thinks = 4 }]", "unknown field `thinks`"),
        ("[{ think = 4 }]", "missing field `name`"),
        ("[{ name = \"mask\", think = 4 }]", "there is no method \"mask\""),
        ("[{ name = \"masks\", think = 4 }, { name = \"masks\", think = 4 }]", "\"masks, think 4\" twice"),
    ] {
        let text = format!(
            "name = \"a\"\ngrammars = [\"json\"]\nprompts = [\"x\"]\nmax_tokens = 20\nmethods = {methods}"
        );
        let (message, _) = parse(&text, false).unwrap_err();
        assert!(message.contains(said), "{methods}: {message}");
    }
}

#[test]
fn calls_that_have_their_own_thoughts_take_no_other() {
    let harmony = |spelling: &str| {
        let folder = folder();
        let tools = "[{\"name\": \"find\", \"parameters\": {\"type\": \"object\"}}]";
        std::fs::write(folder.path().join("t.json"), tools).unwrap();
        let text = format!(
            "name = \"a\"\nprompts = [\"x\"]\nmethods = [{{ name = \"masks\", think = 4 }}]\n\
             grammars = {{ name = \"calls\", tools = \"t.json\", spelling = \"{spelling}\" }}"
        );
        Definition::parse(&text, "d.toml", folder.path(), false, &shipped).map_err(|error| error.to_string())
    };
    assert!(harmony("hermes").unwrap().thinks());
    assert!(harmony("harmony").unwrap_err().contains("have their own thoughts"));
}

/// The prior that comes with a model was learnt at unbounded lookahead, so it is of no use at another.
#[test]
fn shipped_priors_know_no_lookahead() {
    let text = "name = \"a\"\ngrammars = [\"json\"]\nprompts = [\"x\"]\nk = [1, \"infinite\"]\n\
        methods = [\"shipped\", \"ours\"]";
    let found = parse(text, false).unwrap();
    let of = |name: &str| -> Vec<Option<K>> {
        let named = found.variants().into_iter().filter(|one| one.method.to_string() == name);
        named.map(|one| one.k).collect()
    };
    assert_eq!(of("shipped"), [Some(K::Infinite)]);
    assert_eq!(of("ours"), [Some(K::Terminals(1)), Some(K::Infinite)]);
}

/// Warm-ups go on from prompts that are never measured, unless the definition says otherwise by name.
#[test]
fn warm_ups_have_prompts_of_their_own() {
    let with = |prompts: usize, rest: &str| {
        let prompts: Vec<String> = (0..prompts).map(|number| format!("\"{number}\"")).collect();
        let text = format!(
            "name = \"a\"\ngrammars = [\"json\"]\nmethods = [\"paper\"]\nprompts = [{}]\n{rest}",
            prompts.join(", ")
        );
        parse(&text, false)
    };
    for (prompts, rest, measured, apart) in [
        (2, "", 1, 1),
        (5, "", 4, 1),
        (6, "", 4, 2),
        (50, "", 40, 10),
        (100, "", 90, 10),
        (50, "warm_ups = 3", 47, 3),
        (50, "warm_ups = [3, 20]", 40, 10),
        (100, "warm_ups = [3, 20]", 80, 20),
        (50, "temperatures = [0]", 40, 10),
        (5, "warm_up_prompts = \"apart\"", 4, 1),
        (5, "warm_up_prompts = [\"w\", \"v\"]", 5, 2),
        (5, "warm_up_prompts = { file = \"p.jsonl\", form = \"digits\" }", 5, 2),
        (5, "warm_up_prompts = \"measured\"", 5, 0),
        (1, "", 1, 0),
        (1, "warm_up_prompts = [\"w\"]\ntemperatures = [0]", 1, 1),
        (1, "warm_up_prompts = \"measured\"\ntemperatures = [0]", 1, 0),
    ] {
        let found = with(prompts, rest).unwrap();
        let task = &found.tasks[0];
        assert_eq!((task.prompts.len(), task.warm_up_prompts.len()), (measured, apart), "{prompts} {rest}");
        assert!(task.prompts.iter().all(|prompt| !task.warm_up_prompts.contains(&prompt.text)), "{rest}");
        let way = if apart == 0 { WarmUpPrompts::Measured } else { WarmUpPrompts::Apart };
        assert_eq!(found.warm_up_prompts, way, "{prompts} {rest}");
        // Records know it, and those from before there was a choice did it the other way.
        let mut json = found.to_json();
        assert_eq!(Definition::outline(&json).unwrap().warm_up_prompts, way);
        json.as_object_mut().unwrap().remove("warm_up_prompts");
        assert_eq!(Definition::outline(&json).unwrap().warm_up_prompts, WarmUpPrompts::Measured);
    }
    // Where nothing learns nothing is set apart.
    let plain = "name = \"a\"\ngrammars = [\"json\"]\nmethods = [\"masks\"]\nprompts = [\"1\", \"2\"]";
    assert_eq!(parse(plain, false).unwrap().tasks[0].prompts.len(), 2);
    for (prompts, rest, said) in [
        (1, "temperatures = [0]", "at temperature 0 warm-ups on it are the measured text"),
        (1, "temperatures = [1, 0]", "at temperature 0"),
        (3, "warm_up_prompts = \"theirs\"", "unknown variant `theirs`"),
        (3, "warm_up_prompts = []", "`warm_up_prompts` of grammar \"json\" is empty"),
        (3, "warm_up_prompts = 4", "a list of prompts"),
    ] {
        let (message, hint) = with(prompts, rest).unwrap_err();
        assert!(message.contains(said), "{rest}: {message}");
        assert!(hint.is_none_or(|hint| !hint.contains('\n')));
    }
    let (message, _) = parse(&format!("{plain}\nwarm_up_prompts = [\"w\"]"), false).unwrap_err();
    assert!(message.contains("no method heeds `warm_up_prompts`"), "{message}");
}

#[test]
fn stop_and_first_value_choose_the_part_that_is_judged() {
    let with = |rest: &str| {
        let text =
            format!("name = \"a\"\ngrammars = [\"json\"]\nmethods = [\"masks\"]\nprompts = [\"1\"]\n{rest}");
        parse(&text, false)
    };
    let plain = with("").unwrap();
    assert!(plain.stop.is_empty() && !plain.first_value);
    let found = with("stop = [\"\\n\\n\", \"Q:\"]\nfirst_value = true").unwrap();
    assert_eq!((&found.stop[..], found.first_value), (&["\n\n".to_owned(), "Q:".to_owned()][..], true));
    assert_ne!(found.hash(), plain.hash());
    let outline = Definition::outline(&found.to_json()).unwrap();
    assert_eq!((outline.stop, outline.first_value), (found.stop, true));
    for (rest, said) in [
        ("stop = [\"\"]", "`stop` has an empty text"),
        ("stop = [\"a\", \"\"]", "`stop` has an empty text"),
        ("stop = \"a\"", "stop"),
        ("first_value = 1", "first_value"),
        ("first_values = true", "unknown field `first_values`"),
    ] {
        let (message, _) = with(rest).unwrap_err();
        assert!(message.contains(said) || message.contains("expected"), "{rest}: {message}");
    }
}

#[test]
fn a_short_definition_gets_its_defaults() {
    let small = parse("name = \"a\"\ngrammars = [\"json\"]\nprompts = [\"x\"]\nmethods = [\"paper\"]", false);
    let small = small.unwrap();
    assert_eq!((small.runs(), small.k[0], small.s[0], small.models.len()), (1, K::Infinite, 10, 1));
    assert_eq!((small.max_tokens, &*small.warm_ups, small.turns), (128, &[10][..], Turns::Rotate));
    assert!(!small.retokenize);
    let cut = parse(&WHOLE.replacen("warm_ups = 2", "warm_ups = 2\nretokenize = true", 1), false).unwrap();
    assert!(Definition::outline(&cut.to_json()).unwrap().retokenize);
    assert_ne!(cut.hash(), parse(WHOLE, false).unwrap().hash());
}

#[test]
fn a_single_value_stands_for_a_list_of_one() {
    let listed = "name = \"a\"\ngrammars = [\"json\"]\nmethods = [\"paper\"]\nprompts = [\"x\"]\nk = [1]\n\
        s = [4]\nthreshold = [0.5]\ntemperatures = [1]\nmodels = [\"m\"]\nwarm_ups = [3]\n[quick]\nk = [0]\n\
        methods = [\"paper\"]\ngrammars = [\"json\"]\n";
    let alone = listed.replace(['[', ']'], "").replace("quick\n", "[quick]\n");
    for quick in [false, true] {
        let (listed, alone) = (parse(listed, quick).unwrap(), parse(&alone, quick).unwrap());
        assert_eq!(listed, alone);
        assert_eq!(listed.hash(), alone.hash());
    }
    let infinite = |k: &str| parse(&listed.replace("k = [1]", k), false).unwrap().k;
    for k in ["k = inf", "k = \"infinite\"", "k = [inf]", "k = [\"inf\"]"] {
        assert_eq!(infinite(k), [K::Infinite], "{k}");
    }
    let table = "name = \"a\"\ngrammars = { name = \"digits\", file = \"digits.regex\" }\n\
        methods = \"masks\"\nprompts = \"x\"";
    assert_eq!(parse(table, false).unwrap().tasks[0].name, "digits");
    for (old, new, said) in [
        ("k = [1]", "k = true", "a number of terminals"),
        ("k = [1]", "k = -inf", "a number of terminals"),
        ("k = [1]", "k = nan", "a number of terminals"),
        ("s = [4]", "s = \"4\"", "invalid type: string"),
        ("s = [4]", "s = 1.5", "invalid type: floating point"),
        ("temperatures = [1]", "temperatures = \"hot\"", "invalid type: string"),
        ("methods = [\"paper\"]\np", "methods = 3\np", "invalid type: integer"),
    ] {
        let (message, _) = parse(&listed.replacen(old, new, 1), false).unwrap_err();
        assert!(message.contains(said), "{new}: {message}");
    }
}

#[test]
fn errors_suggest_the_nearest_key_or_name() {
    let names = Named;
    let folder = folder();
    let hint = |old: &str, new: &str| {
        let text = WHOLE.replacen(old, new, 1);
        assert_ne!(text, WHOLE, "{old}");
        let read = Definition::parse(&text, "d.toml", folder.path(), false, &names);
        let error = read.unwrap_err();
        (error.to_string(), error.hint().unwrap_or_default())
    };
    for (old, new, meant) in [
        ("max_tokens = 20", "max_token = 20", "max_tokens"),
        ("max_tokens = 20", "max-tokens = 20", "max_tokens"),
        ("temperatures = [0, 1]", "temperature = [0, 1]", "temperatures"),
        ("threshold = [0.2]", "treshold = [0.2]", "threshold"),
        ("warm_ups = 2", "warmups = 2", "warm_ups"),
        ("seeds = { from = 5, count = 3 }", "seeds = { form = 5, count = 3 }", "from"),
        ("[quick]\n", "[quick]\nmodles = [\"a\"]\n", "models"),
    ] {
        let (message, hint) = hint(old, new);
        assert_eq!(hint, format!("did you mean `{meant}`?"), "{message}");
        // The list of all keys is not in the way.
        assert!(message.len() < 80, "{message}");
    }
    assert!(hint("max_tokens = 20", "colour = 20").1.starts_with("the keys here are `name`, "));
    assert_eq!(hint("\"paper\",", "\"papr\",").1, "did you mean `paper`?");
    let grammar = |name: &str| hint("    \"json\",", &format!("    \"{name}\",")).1;
    assert_eq!(grammar("jsn"), "did you mean `json`?");
    assert!(grammar("my.gbnf").contains("file = \"my.gbnf\""));
    assert!(grammar("nothing").contains("domino grammars"));
}

/// Grammars whose names can be listed.
struct Named;

impl super::GrammarTexts for Named {
    fn text(&self, name: &str) -> Option<&'static str> {
        shipped(name)
    }

    fn names(&self) -> Vec<&str> {
        vec!["c", "json"]
    }
}

/// Replacements in a definition, and the errors that follow.
#[test]
fn wrong_definitions_are_refused() {
    for (old, new, said) in [
        ("max_tokens = 20", "max_token = 20", "d.toml:15:1: unknown field `max_token`"),
        ("seeds = { from = 5, count = 3 }", "seeds = { from = 5, most = 3 }", "unknown field `most`"),
        ("seeds = { from = 5, count = 3 }", "seeds = 5", "expected a list of seeds"),
        ("seeds = { from = 5, count = 3 }", "seeds = []", "`seeds` is empty"),
        ("k = [0, \"infinite\"]", "k = [0, \"many\"]", "d.toml:9:9: invalid value"),
        ("k = [0, \"infinite\"]", "k = [\"inf\", \"infinite\"]", "twice"),
        ("k = [0, \"infinite\"]", "k = [0, 0]", "`k` has Terminals(0) twice"),
        ("temperatures = [0, 1]", "temperatures = [-1]", "`temperatures`: the temperature is -1"),
        ("threshold = [0.2]", "threshold = [2.0]", "the threshold of drafts is 2"),
        ("s = [4, 8]", "s = [0]", "the length of drafts is 0"),
        ("\"paper\",", "\"papers\",", "there is no method \"papers\""),
        ("\"paper\",", "\"paper+folded\",", "finite `k`"),
        ("warm_ups = 2", "warm_ups = 0", "`warm_ups` is 0"),
        ("warm_ups = 2", "warm_ups = [1, 0]", "`warm_ups` is 0"),
        ("warm_ups = 2", "warm_ups = []", "`warm_ups` is empty"),
        ("warm_ups = 2", "warm_ups = [3, 3]", "twice"),
        ("warm_ups = 2", "warm_ups = \"many\"", "a number, or a list of numbers"),
        ("warm_ups = 2", "warm_ups = 2\npasses = 0", "`passes` is 0"),
        ("warm_ups = 2", "warm_ups = 2\npasses = 4\nprompts_once = true", "leave one out"),
        ("warm_ups = 2", "warm_ups = 2\nenumerate = 0", "`enumerate` is 0"),
        ("\"masks\"", "\"conditional-4\"", "conditional-4 with temperature 0"),
        ("max_tokens = 20", "max_tokens = 0", "`max_tokens` is 0"),
        ("\"json\",\n", "\"jsn\",\n", "there is no grammar \"jsn\""),
        ("\"json\",\n", "\"digits\",\n", "there is no grammar \"digits\""),
        ("name = \"digits\", file", "name = \"json\", file", "two of the same name"),
        ("file = \"digits.regex\",", "syntax = \"regex\",", "has a `syntax`, and no `file`"),
        ("\"digits.regex\"", "\"none.regex\"", "cannot read"),
        ("\"last_number\"", "\"last\"", "`answer` of grammar \"digits\""),
        ("{ file = \"p.jsonl\" }", "[\"x\"]", "its prompts have none"),
        ("{ file = \"p.jsonl\" }", "{ file = \"p.jsonl\", form = \"w\", most = 0 }", "has no prompts"),
        ("prompts = [\"A: \", \"B: \"]", "", "grammar \"json\" has no prompts"),
        ("name = \"all\"", "name = \"../all\"", "cannot name a folder"),
        ("[quick]\ngrammars = [\"json\"]", "[quick]\ngrammars = [\"c\"]", "`quick.grammars` names \"c\""),
        ("[quick]\n", "[quick]\nmethods = [\"x\"]\n", "there is no method \"x\""),
        (
            "[\"unconstrained\", \"naive\", \"masks\", \"paper\", \"paper+adaptive\"]",
            "[\"unconstrained\"]",
            "no method heeds `k`",
        ),
        (
            "[\"unconstrained\", \"naive\", \"masks\", \"paper\", \"paper+adaptive\"]",
            "[\"masks\"]",
            "no method heeds `s` or `threshold`",
        ),
        ("\"naive\",", "\"draft_model\",", "draft_model has no model to draft with"),
        ("warm_ups = 2", "warm_ups = 2\ndraft_model = \"small\"", "no method heeds `draft_model`"),
        ("warm_ups = 2", "warm_ups = 2\ndraft_model = { file = \"small\" }", "unknown field `file`"),
        ("warm_ups = 2", "warm_ups = 2\ndraft_model = 1", "expected a model"),
    ] {
        assert!(WHOLE.contains(old), "{old}");
        let (message, hint) = parse(&WHOLE.replacen(old, new, 1), false).unwrap_err();
        assert!(message.contains(said), "{new}: {message}");
        assert!(!message.contains('\n') && hint.is_none_or(|hint| !hint.contains('\n')), "{message}");
    }
    let (message, _) = parse(WHOLE.split("[quick]").next().unwrap(), true).unwrap_err();
    assert!(message.contains("no table [quick]"), "{message}");
}

#[test]
fn answers_are_compared_as_numbers() {
    let prompt = |answer: &str| Prompt { text: String::new(), answer: Some(answer.to_owned()) };
    let pointer = AnswerPlace::Pointer("/answer".to_owned());
    for (text, answer, right) in [
        ("{\"answer\": 3.0}", "3", true),
        ("{\"answer\": \"Bob\"}", "Bob", true),
        ("{\"answer\": 4}", "3", false),
        ("{\"other\": 3}", "3", false),
        ("{\"answer\": 3", "3", false),
    ] {
        assert_eq!(prompt(answer).is_answered(&pointer, text), Some(right), "{text}");
    }
    for (text, answer, right) in [
        ("it is 1,234 dollars.", "1234", true),
        ("3 and 4.5.", "4.5", true),
        ("from 3 to -4", "-4", true),
        ("none", "4", false),
        ("4 then 5", "4", false),
    ] {
        assert_eq!(prompt(answer).is_answered(&AnswerPlace::LastNumber, text), Some(right), "{text}");
    }
    assert_eq!(Prompt { text: String::new(), answer: None }.is_answered(&pointer, "3"), None);
}

#[test]
fn programs_can_be_methods() {
    let read = |rest: &str| {
        let text = format!("name = \"a\"\ngrammars = [\"json\"]\nprompts = [\"A\"]\n{rest}");
        Definition::parse(&text, "a", Path::new(""), false, &|_: &str| Some("root ::= \"a\""))
    };
    let whole = read(
        "methods = [\"masks\", \"them\", \"free-them\"]\nprograms.them.command = [\"./them\"]\n\
         programs.free-them = { command = [\"./them\", \"--free\"], grammar = false }",
    )
    .unwrap();
    let ks: Vec<Option<K>> = whole.variants().iter().map(|variant| variant.k).collect();
    assert_eq!(ks, [Some(K::Infinite), Some(K::Infinite), None]);
    assert_eq!(whole.elsewhere(), ["them", "free-them"]);
    let outline = Definition::outline(&whole.to_json()).unwrap();
    assert_eq!((outline.runs(), outline.elsewhere()), (whole.runs(), whole.elsewhere()));
    for (rest, says) in [
        ("methods = [\"them\"]", "no method \"them\""),
        ("methods = [\"masks\"]\nprograms.them.command = [\"x\"]", "not among `methods`"),
        ("methods = [\"masks\"]\nprograms.masks.command = [\"x\"]", "has the name of a method"),
        ("methods = [\"them\"]\nprograms.them.command = []", "has no command"),
        ("methods = [\"a b\"]\nprograms.\"a b\".command = [\"x\"]", "cannot name a method"),
        ("methods = [\"them\"]\nprograms.them = { command = [\"x\"], fast = 1 }", "unknown field"),
        ("methods = [\"masks\"]\nmistralrs_model = \"x\"", "no method heeds `mistralrs_model`"),
    ] {
        let error = read(rest).unwrap_err();
        assert!(error.to_string().contains(says), "{rest}: {error}");
    }
}

/// The grammars of the end-to-end table, in both notations, byte by byte along random texts.
#[test]
fn end_to_end_grammars_mean_the_same_in_gbnf_and_lark() {
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let vocabulary =
        crate::Vocabulary::from_tokenizer_json(include_str!("../../../tests/fixtures/byte_level.json"));
    let vocabulary = vocabulary.unwrap();
    for name in ["json", "gsm8k", "xml_person", "rpg", "c"] {
        let compiled = [
            (Syntax::Gbnf, folder.join(format!("grammars/paper/{name}.gbnf"))),
            (Syntax::Lark, folder.join(format!("experiments/peers/end_to_end/lark/{name}.lark"))),
        ]
        .map(|(syntax, path)| {
            let text = std::fs::read_to_string(path).unwrap();
            let grammar = crate::Grammar::parse(syntax, &text, &crate::Limits::default()).unwrap();
            crate::Compiler::new(vocabulary.clone()).compile(&grammar).unwrap()
        });
        let mut random = SmallRng::seed_from_u64(7);
        for _ in 0..40 {
            let [mut one, mut other] = [compiled[0].constraint(), compiled[1].constraint()];
            let mut text = Vec::new();
            while text.len() < 150 {
                let next = one.next_bytes().unwrap();
                assert_eq!(next, other.next_bytes().unwrap(), "{name}: {}", String::from_utf8_lossy(&text));
                assert_eq!(one.is_complete(), other.is_complete(), "{name}");
                let Some(last) = next.len().checked_sub(1) else { break };
                let byte = next[random.random_range(0..=last)];
                text.push(byte);
                assert_eq!((one.advance_bytes(&[byte]), other.advance_bytes(&[byte])), (Ok(1), Ok(1)));
            }
        }
    }
}
