//! Models from the hub, against a small server that answers like it.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use domino::model::hub::{HubErrorKind, HubModel, HubOptions};
use serde_json::json;

/// A server that has these files as repository `someone/model`, and counts requests.
struct Server {
    endpoint: String,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn start(files: &[(&str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let files: BTreeMap<String, String> =
            files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                counter.fetch_add(1, Ordering::SeqCst);
                answer(stream, &files);
            }
        });
        Self { endpoint, requests }
    }

    fn options(&self, cache: &Path) -> HubOptions {
        let mut options = HubOptions::from_env();
        options.cache = cache.to_owned();
        options.endpoint = self.endpoint.clone();
        options.offline = false;
        options
    }
}

/// Reads one request and answers it.
fn answer(mut stream: TcpStream, files: &BTreeMap<String, String>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(request) = lines.next() else { return };
    let path = request.split(' ').nth(1).unwrap().to_owned();
    let mut from = 0;
    let mut whole = true;
    for line in lines.take_while(|line| !line.is_empty()) {
        let Some(range) = line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned) else {
            continue;
        };
        let (first, last) = range.split_once('-').unwrap();
        from = first.parse().unwrap();
        whole = last.is_empty();
    }
    let resolved = path.strip_prefix("/someone/model/resolve/main/").and_then(|name| files.get(name));
    let (status, headers, body) = if path.starts_with("/api/models/someone/model") {
        let siblings: Vec<_> = files.keys().map(|name| json!({"rfilename": name})).collect();
        ("200 OK", String::new(), json!({"siblings": siblings, "sha": "c0ffee"}).to_string())
    } else if let Some(text) = resolved {
        let part = if whole { &text[from..] } else { &text[..1] };
        let headers = format!(
            "x-repo-commit: c0ffee\r\netag: \"{}-{}\"\r\ncontent-range: bytes {from}-{}/{}\r\n",
            path.rsplit('/').next().unwrap(),
            text.len(),
            text.len() - 1,
            text.len()
        );
        ("206 Partial Content", headers, part.to_owned())
    } else {
        ("404 Not Found", String::new(), String::new())
    };
    let head =
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

const CONFIG: (&str, &str) = ("config.json", "{\"hidden_size\": 8}");
const TOKENIZER: (&str, &str) = ("tokenizer.json", "{}");

fn model(text: &str) -> HubModel {
    text.parse().unwrap()
}

#[test]
fn ids_of_the_hub_are_recognised() {
    for text in ["a/b", "Qwen/Qwen2.5-0.5B", "a/b@v1.0", "a/b:x-q4_0.gguf", "a/b@refs/pr/1:sub/x.gguf"] {
        assert_eq!(model(text).to_string(), text);
    }
    let wrong = [
        "",
        "a",
        "a/b/c",
        "../b",
        "a/..",
        "a/b@",
        "a/b:x",
        "a/b:../x.gguf",
        "/a/b",
        "a b/c",
        "a/b@../x",
        "./m",
    ];
    for text in wrong {
        let error = text.parse::<HubModel>().unwrap_err();
        assert_eq!(*error.kind(), HubErrorKind::InvalidId, "{text}");
    }
}

#[test]
fn fetched_files_are_kept() {
    let index = json!({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}).to_string();
    let server = Server::start(&[
        CONFIG,
        TOKENIZER,
        ("generation_config.json", "{}"),
        ("pytorch_model.bin", "not this"),
        ("model.safetensors.index.json", &index),
        ("one.safetensors", "first weights"),
        ("two.safetensors", "other weights"),
    ]);
    let cache = tempfile::tempdir().unwrap();
    let options = server.options(cache.path());
    let model = model("someone/model");
    assert_eq!(model.cached(&options), None);
    let mut seen = BTreeMap::new();
    let folder = model
        .fetch(&options, &mut |progress| drop(seen.insert(progress.file.clone(), progress.clone())))
        .unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("two.safetensors")).unwrap(), "other weights");
    assert_eq!(std::fs::read_to_string(folder.join("config.json")).unwrap(), CONFIG.1);
    assert!(folder.join("generation_config.json").exists() && !folder.join("pytorch_model.bin").exists());
    let last = &seen["one.safetensors"];
    assert_eq!((last.done, last.total), (13, 13));

    let before = server.requests.load(Ordering::SeqCst);
    assert_eq!(model.fetch(&options, &mut |_| ()).unwrap(), folder);
    assert_eq!(model.cached(&options), Some(folder.clone()));
    assert_eq!(server.requests.load(Ordering::SeqCst), before, "the network was asked again");
    // A shard that is gone is fetched again.
    std::fs::remove_file(folder.join("two.safetensors")).unwrap();
    assert_eq!(model.cached(&options), None);
    model.fetch(&options, &mut |_| ()).unwrap();
    assert!(folder.join("two.safetensors").exists());
}

#[test]
fn gguf_files_are_named_and_come_with_all_their_parts() {
    let server = Server::start(&[
        ("small-q4_0.gguf", "GGUF"),
        ("large-00001-of-00002.gguf", "GGUF one"),
        ("large-00002-of-00002.gguf", "GGUF two"),
    ]);
    let cache = tempfile::tempdir().unwrap();
    let options = server.options(cache.path());
    let fetch = |text: &str| model(text).fetch(&options, &mut |_| ());
    let small = fetch("someone/model:small-q4_0.gguf").unwrap();
    assert_eq!(std::fs::read_to_string(small).unwrap(), "GGUF");
    let large = fetch("someone/model:large-00001-of-00002.gguf").unwrap();
    assert_eq!(
        std::fs::read_to_string(large.with_file_name("large-00002-of-00002.gguf")).unwrap(),
        "GGUF two"
    );
    let error = fetch("someone/model").unwrap_err();
    assert_eq!(*error.kind(), HubErrorKind::MissingFile("config.json".into()));
    assert!(error.hint().unwrap().contains("someone/model:small-q4_0.gguf"), "{:?}", error.hint());
    let error = fetch("someone/model:other.gguf").unwrap_err();
    assert_eq!(*error.kind(), HubErrorKind::MissingFile("other.gguf".into()));
}

#[test]
fn a_hub_that_cannot_be_asked_says_which_files_to_put_where() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(&[CONFIG]);
    let mut options = server.options(cache.path());
    let missing = model("someone/other").fetch(&options, &mut |_| ()).unwrap_err();
    assert_eq!(*missing.kind(), HubErrorKind::NoSuchModel, "{missing}");
    let incomplete = model("someone/model").fetch(&options, &mut |_| ()).unwrap_err();
    assert_eq!(*incomplete.kind(), HubErrorKind::MissingFile("tokenizer.json".into()));

    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    options.endpoint = format!("http://{closed}");
    let mut offline = options.clone();
    offline.offline = true;
    for options in [options, offline] {
        let error = model("someone/model").fetch(&options, &mut |_| ()).unwrap_err();
        assert_eq!(*error.kind(), HubErrorKind::Unreachable, "{error}");
        assert!(error.to_string().contains(&options.cache.display().to_string()), "{error}");
        let hint = error.hint().unwrap();
        for word in ["config.json", "tokenizer.json", "model.safetensors", "--model", "HF_HOME"] {
            assert!(hint.contains(word), "{hint}");
        }
        let error = model("someone/model:x.gguf").fetch(&options, &mut |_| ()).unwrap_err();
        assert!(error.hint().unwrap().contains("x.gguf"), "{error}");
    }
}

#[test]
fn answers_that_no_hub_gives_are_errors() {
    // Every request is answered by a redirection to nowhere, or by nothing.
    for answer in [
        "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        "",
        "HTTP/1.1 200 OK\r\n\r\nhello",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let cache = tempfile::tempdir().unwrap();
        let mut options = HubOptions::from_env();
        (options.cache, options.endpoint, options.offline) = (cache.path().to_owned(), endpoint, false);
        let error = model("someone/model").fetch(&options, &mut |_| ()).unwrap_err();
        assert_eq!(*error.kind(), HubErrorKind::Unreachable, "{error}");
    }
}
