//! Tests of pages and names, keys and callers.

use axum::{body::Body, http::HeaderValue};

use super::*;

fn visitors(address: &str, origins: &[&str]) -> Visitors {
    let origins: Vec<String> = origins.iter().map(|&origin| origin.to_owned()).collect();
    Visitors::new(address.parse().unwrap(), &origins).unwrap()
}

/// The code of the refusal, if a request with these headers is refused.
fn refused(visitors: &Visitors, uri: &str, headers: &[(&str, &str)]) -> Option<String> {
    let mut request = Request::builder().uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let problem = visitors.admit(&request.body(Body::empty()).unwrap()).err()?;
    Some(problem.to_json()["error"]["code"].as_str().unwrap().to_owned())
}

#[test]
fn on_loopback_only_names_of_loopback_are_served() {
    for address in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
        let visitors = visitors(address, &[]);
        for host in
            ["localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "127.1.2.3", "[::1]", "[::1]:80"]
        {
            assert_eq!(refused(&visitors, "/", &[("host", host)]), None, "{address} {host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil@localhost",
            "localhost@evil",
            "192.168.0.1",
            "0.0.0.0",
            "[::2]",
            "localhost:80:80",
            "",
        ] {
            let code = refused(&visitors, "/", &[("host", host)]);
            assert_eq!(code.as_deref(), Some("forbidden_host"), "{address} {host}");
        }
        let target = refused(&visitors, "http://evil.example/", &[("host", "localhost")]);
        assert_eq!(target.as_deref(), Some("forbidden_host"));
        for hosts in [&[][..], &[("host", "localhost"), ("host", "localhost")]] {
            assert_eq!(refused(&visitors, "/", hosts).as_deref(), Some("invalid_host"));
        }
    }
}

#[test]
fn on_loopback_only_pages_of_loopback_and_those_named_are_served() {
    let visitors = visitors("127.0.0.1", &["https://Chat.example:8443", "app://obsidian.md"]);
    let refused = |origin| refused(&visitors, "/", &[("host", "localhost"), ("origin", origin)]);
    for origin in [
        "http://localhost",
        "http://localhost:3000",
        "https://127.0.0.1:1",
        "http://[::1]:9",
        "app://obsidian.md",
        "https://chat.example:8443",
    ] {
        assert_eq!(refused(origin), None, "{origin}");
        assert!(visitors.allows(&HeaderValue::from_static(origin)), "{origin}");
    }
    for origin in [
        "null",
        "http://evil.example",
        "https://chat.example",
        "http://chat.example:8443",
        "http://localhost@evil.example",
        "http://localhost.evil.example",
        "file://localhost",
        "http://localhost/",
        "app://other",
        "",
    ] {
        assert_eq!(refused(origin).as_deref(), Some("forbidden_origin"), "{origin}");
    }
    // A proxy in front of the server passes these on.
    assert!(visitors.answers_to("chat.example") && !visitors.answers_to("chat.other"));
}

#[test]
fn a_server_of_the_network_has_any_name() {
    let visitors = visitors("0.0.0.0", &[]);
    let headers = [("host", "llm.example"), ("origin", "https://evil.example")];
    assert_eq!(refused(&visitors, "/", &headers), None);
    // But no page can read its answers.
    assert!(!visitors.allows(&HeaderValue::from_static("https://evil.example")));
}

#[test]
fn allowed_origins_must_be_origins() {
    for origin in
        ["", "*", "https://*.example", "example.com", "https://example.com/", "https://example.com/chat"]
    {
        let origins = [origin.to_owned()];
        assert!(Visitors::new([127, 0, 0, 1].into(), &origins).is_err(), "{origin}");
    }
}

#[test]
fn the_content_type_of_json_may_have_parameters() {
    let is_json =
        |kind: &'static str| is_json(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]));
    assert!(is_json("application/json") && is_json("Application/JSON ; charset=utf-8"));
    for kind in [
        "",
        "text/plain",
        "application/jsonl",
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
    ] {
        assert!(!is_json(kind), "{kind}");
    }
    assert!(!super::is_json(&HeaderMap::new()));
}

fn name(keys: &ApiKeys, value: &str) -> Option<String> {
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())]);
    keys.admit(&headers).ok().flatten().map(|name| name.to_string())
}

fn of_file(path: &Path) -> ApiKeys {
    ApiKeys { fixed: None, file: Some(KeyFile::open(path, Duration::ZERO).unwrap()) }
}

#[test]
fn the_scheme_has_any_case_and_the_key_its_own() {
    let keys = ApiKeys::new(Some("Secret"), None).unwrap();
    for right in ["Bearer Secret", "bearer Secret", "BEARER Secret", "bEaReR   Secret ", "Bearer\tSecret"] {
        assert_eq!(name(&keys, right).as_deref(), Some("api-key"), "{right}");
    }
    for wrong in
        ["", "Bearer", "Bearer ", "Secret", "Bearer secret", "Basic Secret", "BearerSecret", "Bearer Secret2"]
    {
        assert_eq!(name(&keys, wrong), None, "{wrong}");
    }
    assert!(keys.admit(&HeaderMap::new()).is_err());
    let open = ApiKeys::default();
    assert!(!open.are_needed() && open.admit(&HeaderMap::new()).unwrap().is_none());
}

#[test]
fn keys_of_a_file_change_while_it_is_used() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let write = |text: &str| fs::write(file.path(), text).unwrap();
    write("# who may\nalice one\n\n  bob\ttwo  \n");
    let keys = of_file(file.path());
    assert_eq!(name(&keys, "Bearer one").as_deref(), Some("alice"));
    assert_eq!(name(&keys, "Bearer two").as_deref(), Some("bob"));
    // Of the same length, at once: times and sizes of files would not tell.
    write("# who may\nalice six\n\n  bob\ttwo  \n");
    assert_eq!(name(&keys, "Bearer one"), None);
    assert_eq!(name(&keys, "Bearer six").as_deref(), Some("alice"));
    // A file that cannot be used leaves the old keys in force.
    for wrong in ["", "alice", "alice one two", "a x\na y", "a x\nb x", "api-key x", "# nobody"] {
        write(wrong);
        assert_eq!(name(&keys, "Bearer six").as_deref(), Some("alice"), "{wrong}");
    }
    fs::remove_file(file.path()).unwrap();
    assert_eq!(name(&keys, "Bearer six").as_deref(), Some("alice"));
    write("carol three");
    assert_eq!((name(&keys, "Bearer six"), name(&keys, "Bearer three")), (None, Some("carol".to_owned())));
}

#[test]
fn the_key_file_is_read_again_on_request() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "alice one").unwrap();
    let hour = Duration::from_secs(3_600);
    let keys = ApiKeys { fixed: None, file: Some(KeyFile::open(file.path(), hour).unwrap()) };
    fs::write(file.path(), "bob two").unwrap();
    assert_eq!(name(&keys, "Bearer one").as_deref(), Some("alice"));
    keys.look_now();
    assert_eq!((name(&keys, "Bearer one"), name(&keys, "Bearer two")), (None, Some("bob".to_owned())));
    ApiKeys::default().look_now();
}

#[test]
fn a_key_file_that_cannot_be_used_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    assert!(ApiKeys::new(None, Some(&path)).is_err());
    assert!(ApiKeys::new(None, Some(folder.path())).is_err());
    for (text, said) in [
        ("", "no key"),
        ("a", "line 1 has 1 words"),
        ("a b\nc d e", "line 2 has 3 words"),
        ("a b\na c", "\"a\" is taken"),
        ("a b\n# c\nc b", "line 3: \"c\" has the key of \"a\""),
    ] {
        fs::write(&path, text).unwrap();
        let told = ApiKeys::new(None, Some(&path)).unwrap_err().to_string();
        assert!(told.contains(said), "{told}");
    }
    fs::write(&path, "a b").unwrap();
    let both = ApiKeys::new(Some("c"), Some(&path)).unwrap();
    assert_eq!(
        (name(&both, "Bearer b"), name(&both, "Bearer c")),
        (Some("a".into()), Some("api-key".into()))
    );
    assert!(ApiKeys::new(Some(" "), None).is_err());
}

#[test]
fn an_address_is_one_client_however_it_is_written() {
    let at = |text: &str| Caller::at(text.parse().unwrap());
    assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
    assert_eq!(at("2001:db8:1:2:3:4:5:6"), at("2001:db8:1:2::1"));
    assert_ne!(at("2001:db8:1:2::1"), at("2001:db8:1:3::1"));
    assert_ne!(at("10.0.0.1"), at("10.0.0.2"));
    assert_eq!(at("10.0.0.1").number(), at("10.0.0.1").number());
    assert_ne!(at("10.0.0.1").number(), at("10.0.0.2").number());
    assert_eq!(Caller::of(&Extensions::new()), Caller::Unknown);
    assert_eq!(at("2001:db8:1:2::1").to_string(), "2001:db8:1:2::");
    assert_eq!(Caller::Key("10.0.0.1".into()).lasting().as_deref(), Some("key 10.0.0.1"));
    assert_eq!(at("10.0.0.1").lasting().as_deref(), Some("10.0.0.1"));
    assert_eq!(Caller::Unknown.lasting(), None);
}
