//! Names, pages and content types that the server serves or refuses.

use axum::body::Body;

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
