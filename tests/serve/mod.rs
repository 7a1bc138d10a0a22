//! `domino serve` as its clients see it: plain HTTP against a running server with the shipped model.

mod apis;
mod bad_input;
mod bounds;
mod captures;
mod device;
mod doors;
mod ends;
mod engine;
mod heads;
mod operators;
mod options;
mod priors;
mod reasoning;
mod schemas;
mod starting;
mod tools;

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::program::{Run, domino, program, tested};

const MODEL: &str = concat!(env!("DOMINO_ROOT"), "/models/domino-small");
const JSON: &str = "Content-Type: application/json\r\n";
const PERSON: &str = "A JSON file describing a person: ";

/// Is the engine of all servers our own? The program under test may have mistral.rs.
fn own() -> bool {
    tested().file_stem().is_none_or(|name| name != "domino-mistralrs")
}

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        Self::of(MODEL, arguments)
    }

    fn of(model: &str, arguments: &[&str]) -> Self {
        let mut child = program()
            .args(["serve", "--port", "0", "--json", "--model", model])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("the server says where it listens");
        assert_eq!(ready["model"].as_str(), Path::new(model).file_stem().unwrap().to_str());
        Self { child, address: ready["address"].as_str().unwrap().to_owned() }
    }

    fn open(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        // HTTP 1.0 has no chunked bodies.
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.0\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
            .unwrap();
        stream
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut text = String::new();
        self.open(method, path, headers, body).read_to_string(&mut text).unwrap();
        Answer::read(&text)
    }

    fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "")
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, JSON, &body.to_string())
    }

    fn complete(&self, more: &Value) -> Answer {
        self.post("/v1/completions", &completion(more))
    }

    /// The texts of a request, which must succeed.
    fn texts(&self, more: &Value) -> Vec<String> {
        let answer = self.complete(more);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let choices = answer.json()["choices"].as_array().unwrap().clone();
        choices.iter().map(|choice| choice["text"].as_str().unwrap().to_owned()).collect()
    }

    /// The value of a metric.
    fn metric(&self, name: &str) -> f64 {
        let page = self.get("/metrics").body;
        let line = page.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in\n{page}")).rsplit(' ').next().unwrap().parse().unwrap()
    }

    fn signal(&self, signal: &str) {
        assert!(
            Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success()
        );
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn completion(more: &Value) -> Value {
    let mut body = json!({ "model": "default", "prompt": PERSON, "max_tokens": 48, "temperature": 0 });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// A request whose text ends at its last token: no token of the model has more than two of its letters.
fn endless() -> Value {
    let grammar = json!({ "type": "regex", "value": "[qz]{3000,}" });
    json!({ "grammar": grammar, "max_tokens": 1500, "stream": true, "temperature": 1 })
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {text:?}")).parse().unwrap();
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The objects of a stream, which must have ended.
    fn events(&self) -> Vec<Value> {
        assert!(self.head.contains("text/event-stream"), "{}", self.head);
        let mut data: Vec<&str> = self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(data.pop(), Some("[DONE]"), "{}", self.body);
        data.iter().map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// The error object of a refusal.
    fn error(&self) -> Value {
        let error = self.json()["error"].clone();
        assert!(error["message"].is_string() && error["type"].is_string(), "{}", self.body);
        error
    }
}

/// The texts of a stream of completions, by choice.
fn streamed(events: &[Value], choices: usize) -> Vec<String> {
    let mut texts = vec![String::new(); choices];
    for choice in events.iter().flat_map(|event| event["choices"].as_array().unwrap()) {
        let text = choice["text"].as_str().or(choice["delta"]["content"].as_str()).unwrap_or_default();
        texts[usize::try_from(choice["index"].as_u64().unwrap()).unwrap()] += text;
    }
    texts
}

/// Checks that the text is in the language, or is a prefix of a text in it.
fn check(flags: &[&str], text: &str, whole: bool) -> Run {
    let prefix: &[&str] = if whole { &[] } else { &["--prefix"] };
    domino(&[&["check"], flags, prefix, &["-"]].concat(), text.as_bytes())
}

#[test]
fn answered_texts_are_of_the_grammar() {
    let server = Server::start(&[]);
    let dates = r"[0-9]{4}-[0-9]{2}-[0-9]{2}";
    let spaced = "root ::= \" \" [\\n]+ \"\u{2581}\" [a-z]{1,9} \"\u{2581}\"";
    let file = tempfile::Builder::new().suffix(".gbnf").tempfile().unwrap();
    fs::write(file.path(), spaced).unwrap();
    let spaced_file = file.path().to_str().unwrap().to_owned();
    for (grammar, flags) in [
        (json!({ "type": "named", "value": "json" }), &["-g", "json"][..]),
        (json!({ "type": "named", "value": "c" }), &["-g", "c"]),
        (json!({ "type": "regex", "value": dates }), &["-r", dates]),
        // The engine's own text would lack the white space and the other character.
        (json!({ "type": "gbnf", "value": spaced }), &["-g", &spaced_file]),
    ] {
        for (temperature, seed) in [(0.0, 1), (1.0, 2), (1.0, 3)] {
            let body = json!({ "grammar": grammar, "temperature": temperature, "seed": seed });
            let answer = server.complete(&body).json();
            let choice = &answer["choices"][0];
            let text = choice["text"].as_str().unwrap();
            let whole = choice["finish_reason"] == "stop";
            assert_eq!(check(flags, text, whole).code, Some(0), "{grammar} {text:?}");
            let usage = &answer["usage"];
            let tokens = usage["completion_tokens"].as_u64().unwrap();
            // End of text takes one too.
            let passes = usage["domino"]["passes"].as_u64().unwrap();
            assert!(passes <= tokens + 1 && (passes >= tokens || own()), "{usage}");
            assert!(whole && tokens > 0 || tokens == 48, "{answer}");
            // The same again, and in a stream.
            assert_eq!(server.texts(&body), [text]);
            let mut stream = body.clone();
            stream["stream"] = true.into();
            stream["stream_options"] = json!({ "include_usage": true });
            let events = server.complete(&stream).events();
            assert_eq!(streamed(&events, 1), [text]);
            let last = events.last().unwrap();
            assert_eq!((&last["choices"], &last["usage"]["completion_tokens"]), (&json!([]), &json!(tokens)));
        }
    }
}

#[test]
fn chats_answer_with_several_texts() {
    let server = Server::start(&[]);
    let mut chat = json!({
        "model": "domino-small", "max_tokens": 64, "seed": 5, "response_format": { "type": "json_object" },
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": PERSON }] }], "n": 3,
    });
    let answer = server.post("/v1/chat/completions", &chat).json();
    assert_eq!(answer["object"], "chat.completion", "{answer}");
    let choices = answer["choices"].as_array().unwrap();
    let texts: Vec<&str> =
        choices.iter().map(|choice| choice["message"]["content"].as_str().unwrap()).collect();
    assert_eq!(texts.len(), 3);
    assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
    for (choice, text) in choices.iter().zip(&texts) {
        assert!(text.trim_start().starts_with('{'), "{text}");
        assert_eq!(
            check(&["-g", "rfc8259"], text, choice["finish_reason"] == "stop").code,
            Some(0),
            "{text}"
        );
    }
    chat["stream"] = true.into();
    let events = server.post("/v1/chat/completions", &chat).events();
    assert_eq!(streamed(&events, 3), texts);
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    // Text number i is that of seed + i.
    chat["n"] = 1.into();
    for (index, text) in texts.iter().enumerate() {
        chat["seed"] = (5 + index).into();
        assert_eq!(streamed(&server.post("/v1/chat/completions", &chat).events(), 1), [*text], "{index}");
    }

    // Without a grammar.
    let plain = server.texts(&json!({ "n": 2 }));
    assert_eq!((plain.len(), plain[0] == plain[1]), (2, true), "{plain:?}");
    let events = server.complete(&json!({ "stream": true })).events();
    assert_eq!(streamed(&events, 1), plain[..1]);
    let stop = &plain[0][3..6];
    let cut = server.texts(&json!({ "stop": stop, "grammar": { "type": "regex", "value": "(?s).*" } }));
    assert!(!cut[0].contains(stop) && plain[0].starts_with(&cut[0]), "{cut:?} {plain:?}");
    let models = server.get("/v1/models").json();
    assert!(models["data"].as_array().unwrap().iter().any(|model| model["id"] == "domino-small"), "{models}");
}

#[test]
fn refused_requests_get_an_error_and_the_server_goes_on() {
    let server = Server::start(&["--max-body", "8", "--max-grammar", "1"]);
    let gbnf = |text: &str| json!({ "grammar": { "type": "gbnf", "value": text } });
    let regex = json!({ "type": "regex", "value": "a+" });
    for (more, status, code, param) in [
        (gbnf("root ::= a\nb ::= ]"), 400, "invalid_grammar", "grammar"),
        (gbnf("root ::= root"), 400, "invalid_grammar", "grammar"),
        (gbnf(&"a".repeat(1025)), 400, "grammar_too_large", "grammar"),
        (json!({ "grammar": { "type": "named", "value": "klingon" } }), 404, "grammar_not_found", "grammar"),
        (json!({ "grammar": { "type": "lark", "value": "start: A" } }), 400, "invalid_grammar", "grammar"),
        (json!({ "grammar": { "type": "llguidance", "value": "{}" } }), 400, "unsupported", "grammar"),
        (json!({ "response_format": { "type": "xml" } }), 400, "unsupported", "response_format"),
        (
            json!({ "response_format": { "type": "structural_tag" } }),
            400,
            "invalid_grammar",
            "response_format",
        ),
        (json!({ "grammar": { "type": "structural_tag", "value": [] } }), 400, "invalid_value", "grammar"),
        (
            json!({ "grammar": regex, "response_format": { "type": "json_object" } }),
            400,
            "invalid_value",
            "response_format",
        ),
        (json!({ "grammar": regex, "tools": [{ "type": "function" }] }), 400, "unsupported", "tools"),
        (json!({ "grammar": regex, "logprobs": 21 }), 400, "invalid_value", "logprobs"),
        (json!({ "n": 99 }), 400, "invalid_value", "n"),
        (json!({ "model": "gpt-9" }), 404, "model_not_found", "model"),
        (json!({ "stop": "" }), 400, "invalid_value", "stop"),
    ] {
        let answer = server.complete(&more);
        let error = answer.error();
        assert_eq!(
            (answer.status, &error["code"], &error["param"]),
            (status, &json!(code), &json!(param)),
            "{error}"
        );
    }
    let error = server.complete(&gbnf("root ::= a\nb ::= ]")).error();
    assert_eq!((&error["line"], &error["column"]), (&json!(2), &json!(7)), "{error}");
    let long = server.complete(&json!({ "prompt": "a ".repeat(3000) }));
    assert_eq!((long.status, &long.error()["code"]), (400, &json!("context_length_exceeded")));
    let large = server.complete(&json!({ "prompt": "a".repeat(9000) }));
    assert_eq!((large.status, &large.error()["code"]), (413, &json!("body_too_large")));
    assert_eq!(server.send("POST", "/v1/completions", JSON, "{").error()["code"], "invalid_json");
    assert_eq!(server.get("/v1/nothing").error()["code"], "no_such_address");
    assert_eq!(server.get("/v1/completions").error()["code"], "no_such_method");

    assert_eq!(server.get("/health").body, "OK");
    assert_eq!(server.texts(&json!({ "grammar": { "type": "regex", "value": "b" } })), ["b"]);
    assert!(server.metric("domino_requests_total{endpoint=\"completions\",code=\"400\"}") >= 8.0);
    assert!(server.metric("domino_grammar_failures_total") >= 2.0);
}

#[test]
fn structural_tags_are_taken_in_both_fields_and_from_folders() {
    let content = json!({ "type": "regex", "pattern": "b" });
    let tag = json!({ "type": "tag", "begin": "<a>", "content": content, "end": "</a>" });
    let tags = json!({ "type": "structural_tag", "format": tag });
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.tags.json"), tags.to_string()).unwrap();
    let server = Server::start(&["--grammar-dir", folder.path().to_str().unwrap()]);
    for body in [
        json!({ "response_format": tags }),
        json!({ "grammar": { "type": "structural_tag", "value": tags } }),
        json!({ "grammar": { "type": "structural_tag", "value": tags.to_string() } }),
        json!({ "grammar": { "type": "named", "value": "mine" } }),
    ] {
        assert_eq!(server.texts(&body), ["<a>b</a>"], "{body}");
    }
}

#[test]
fn grammars_of_a_folder_are_seen_when_they_change() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.gbnf");
    fs::write(&file, "root ::= \"one\"").unwrap();
    let server = Server::start(&["--grammar-dir", folder.path().to_str().unwrap()]);
    let mine = json!({ "grammar": { "type": "named", "value": "mine" } });
    assert_eq!(server.texts(&mine), ["one"]);
    fs::write(&file, "root ::= \"two\"").unwrap();
    assert_eq!(server.texts(&mine), ["two"]);
    let listed = server.get("/v1/grammars").json();
    let names: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert!(names.contains(&"mine") && names.contains(&"rfc8259"), "{names:?}");
}

/// Prompts of equal length, which mistral.rs would put into one batch.
#[test]
fn texts_asked_for_at_once_are_those_asked_for_alone() {
    let server = Server::start(&[]);
    let body =
        |what: &str| json!({ "prompt": format!("A JSON file describing a {what}: "), "max_tokens": 24 });
    let bodies = ["person", "house", "school"].map(body);
    let alone = bodies.each_ref().map(|body| server.texts(body));
    let together = std::thread::scope(|scope| {
        let asked = bodies.each_ref().map(|body| scope.spawn(|| server.texts(body)));
        asked.map(|text| text.join().unwrap())
    });
    assert_eq!(together, alone);
}

#[test]
fn speculation_changes_no_text_of_the_server() {
    let exact: &[&str] = if own() { &[] } else { &["--dtype", "f32"] };
    let start = |flags: &[&str]| Server::start(&[exact, flags].concat());
    let plain = start(&["--grammar-speculate=off"]);
    let speculative = start(&["--grammar-speculate"]);
    // Whether drafts pay hangs on how busy the machine is; drafts of a fixed length are made all the same.
    let drafting = start(&["--grammar-speculate", "--s", "8"]);
    let (mut drafted, mut accepted) = (0, 0);
    let (mut bodies, mut expected, mut found) = (Vec::new(), Vec::new(), Vec::new());
    for name in ["json", "gsm8k", "xml_person", "rpg", "c"] {
        for (temperature, seed) in [(0.0, 1), (0.8, 2)] {
            let grammar = json!({ "type": "named", "value": name });
            let body =
                json!({ "grammar": grammar, "temperature": temperature, "seed": seed, "max_tokens": 32 });
            let answer = drafting.complete(&body).json();
            expected.push(plain.texts(&body).remove(0));
            found.push(answer["choices"][0]["text"].as_str().unwrap().to_owned());
            bodies.push(body);
            let usage = &answer["usage"]["domino"];
            drafted += usage["drafted"].as_u64().unwrap();
            accepted += usage["accepted"].as_u64().unwrap();
        }
    }
    assert!(0 < accepted && accepted <= drafted, "{accepted} of {drafted}");
    // The schema is new to the server.
    let schema = json!({ "enum": ["a person of this town", "a person of that other town"] });
    let grammar = json!({ "type": "json_schema", "value": schema, "escapes": "minimal" });
    let body = json!({ "grammar": grammar, "max_tokens": 32 });
    let answer = drafting.complete(&body).json();
    expected.push(plain.texts(&body).remove(0));
    found.push(answer["choices"][0]["text"].as_str().unwrap().to_owned());
    assert!(answer["usage"]["domino"]["drafted"].as_u64() > Some(0), "{answer}");
    // Eight at once, as streams.
    let streams: Vec<String> = std::thread::scope(|scope| {
        let asked: Vec<_> = bodies
            .iter()
            .take(8)
            .map(|body| {
                let mut body = body.clone();
                body["stream"] = true.into();
                let speculative = &speculative;
                scope.spawn(move || streamed(&speculative.complete(&body).events(), 1).remove(0))
            })
            .collect();
        asked.into_iter().map(|text| text.join().unwrap()).collect()
    });
    assert_eq!(found, expected);
    assert_eq!(streams, expected[..streams.len()]);
    assert_eq!(plain.texts(&json!({})), speculative.texts(&json!({})));
}
