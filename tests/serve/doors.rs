//! Closed doors: addresses, fields, pages of other sites, and bodies and heads that are too large or never
//! end.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Answer, JSON, Server, completion};

/// Sends `text` as it is; returns the answer.
fn raw(server: &Server, text: &str) -> Answer {
    let mut stream = connect(server);
    stream.write_all(text.as_bytes()).unwrap();
    answered(stream)
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream
}

fn answered(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    Answer::read(&text)
}

fn refusal(answer: &Answer) -> (u16, String) {
    (answer.status, answer.error()["code"].as_str().unwrap().to_owned())
}

/// Addresses of the engine are closed, except the list of models. Each took requests once, and `unload` ended
/// the service.
#[test]
fn addresses_of_the_engine_are_closed_but_the_list_of_models() {
    let server = Server::start(&[]);
    let model = json!({ "model_id": "domino-small", "ggml_type": "Q4K" });
    for (method, path) in [
        ("POST", "/v1/models/unload"),
        ("POST", "/v1/models/reload"),
        ("POST", "/v1/models/status"),
        ("POST", "/v1/models/tune"),
        ("GET", "/v1/system/info"),
        ("POST", "/v1/system/doctor"),
        ("POST", "/re_isq"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1/images/generations"),
        ("POST", "/v1/audio/speech"),
        ("GET", "/v1/responses/1"),
        ("DELETE", "/v1/responses/1"),
        ("POST", "/v1/responses/1/cancel"),
        ("GET", "/docs"),
        ("GET", "/api-doc/openapi.json"),
        ("OPTIONS", "/v1/models/unload"),
        ("POST", "/v1/models/"),
        ("POST", "//v1/models/unload"),
        ("POST", "/v1/models/%75nload"),
    ] {
        let answer = server.send(method, path, JSON, &model.to_string());
        assert_eq!(refusal(&answer), (404, "no_such_address".to_owned()), "{method} {path}");
    }
    assert_eq!(refusal(&server.post("/v1/models", &model)), (405, "no_such_method".to_owned()));
    let models = server.get("/v1/models").json();
    assert!(models["data"].as_array().unwrap().iter().any(|model| model["id"] == "domino-small"), "{models}");
    for (index, id) in ["domino-small", "default"].into_iter().enumerate() {
        let path = format!("/v1/models/{id}");
        assert_eq!(server.get(&path).json(), models["data"][index]);
        assert_eq!(refusal(&server.post(&path, &model)), (405, "no_such_method".to_owned()));
    }
    assert_eq!(refusal(&server.get("/v1/models/gpt-9")), (404, "no_such_address".to_owned()));
    assert_eq!(server.get("/health").body, "OK");
    assert_eq!(server.texts(&json!({ "grammar": { "type": "regex", "value": "b" } })), ["b"]);
}

#[test]
fn harmless_fields_are_taken_and_others_refused() {
    let server = Server::start(&[]);
    let chat = |more: &Value| {
        let messages = json!([{ "role": "user", "content": "A name: " }]);
        let mut body = json!({ "messages": messages, "max_tokens": 4, "temperature": 0 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/v1/chat/completions", &body)
    };
    let plain = chat(&json!({})).json()["choices"][0]["message"]["content"].clone();
    let harmless = json!({
        "user": "u", "metadata": { "a": "b" }, "store": true, "service_tier": "auto",
        "parallel_tool_calls": true, "stream_options": null, "safety_identifier": "s",
        "prompt_cache_key": "k", "verbosity": "low", "modalities": ["text"], "web_search_options": null,
    });
    let answer = chat(&harmless);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["choices"][0]["message"]["content"], plain);

    // An address that the engine must not fetch: it would be seen here.
    let trap = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let address = format!("http://{}/", trap.local_addr().unwrap());
    let part = |kind: &str| {
        let parts = json!([{ "type": "text", "text": "a" }, { "type": kind, kind: { "url": address } }]);
        json!({ "messages": [{ "role": "user", "content": parts }] })
    };
    for (more, param) in [
        (json!({ "web_search_options": { "search_context_size": "low" } }), "web_search_options"),
        (json!({ "image_url": address }), "image_url"),
        (json!({ "audio": { "voice": "alloy", "format": "wav" } }), "audio"),
        (part("image_url"), "messages"),
        (part("audio_url"), "messages"),
        (part("video_url"), "messages"),
        (
            json!({ "messages": [{ "role": "user", "content": "a", "image_url": address }] }),
            "messages[0].image_url",
        ),
        (json!({ "prompt": "a" }), "prompt"),
        (json!({ "max_token": 3 }), "max_token"),
    ] {
        let answer = chat(&more);
        let error = answer.error();
        assert_eq!((answer.status, &error["param"]), (400, &json!(param)), "{error}");
    }
    let answer = server.complete(&json!({ "web_search_options": {} }));
    assert_eq!((answer.status, &answer.error()["param"]), (400, &json!("web_search_options")));
    assert_eq!(trap.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "an address was fetched");
}

#[test]
fn bodies_of_another_content_type_are_refused() {
    let server = Server::start(&[]);
    let body = completion(&json!({ "max_tokens": 1 })).to_string();
    for path in ["/v1/completions", "/v1/chat/completions"] {
        for headers in
            ["", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"]
        {
            let answer = server.send("POST", path, headers, &body);
            assert_eq!(refusal(&answer), (415, "unsupported_media_type".to_owned()), "{path} {headers}");
        }
    }
    let charset = "Content-Type: Application/JSON; charset=utf-8\r\n";
    assert_eq!(server.send("POST", "/v1/completions", charset, &body).status, 200);
}

#[test]
fn pages_of_other_sites_are_refused_on_loopback() {
    let server = Server::start(&["--api-key", "secret", "--allow-origin", "https://chat.example"]);
    let get = |headers: &str| {
        server.send("GET", "/v1/models", &format!("Authorization: Bearer secret\r\n{headers}"), "")
    };
    let port = server.address.rsplit(':').next().unwrap();
    for host in ["localhost", "127.0.0.1:1", "[::1]", "chat.example", &format!("LOCALHOST:{port}")] {
        assert_eq!(get(&format!("Host: {host}\r\n")).status, 200, "{host}");
    }
    for host in ["evil.example", &format!("evil.example:{port}"), "localhost.evil.example", "192.168.0.1", ""]
    {
        let answer = get(&format!("Host: {host}\r\n"));
        assert_eq!(refusal(&answer), (403, "forbidden_host".to_owned()), "{host}");
        // The check of the host comes first, also for paths without a key and for unknown ones.
        for path in ["/health", "/", "/nothing"] {
            assert_eq!(
                server.send("GET", path, &format!("Host: {host}\r\n"), "").status,
                403,
                "{host} {path}"
            );
        }
    }
    let without = raw(&server, "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(refusal(&without), (400, "invalid_host".to_owned()));
    let target = raw(
        &server,
        "GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(refusal(&target), (403, "forbidden_host".to_owned()));

    for origin in ["http://localhost:3000", "http://127.0.0.1", "https://chat.example"] {
        let answer = get(&format!("Host: localhost\r\nOrigin: {origin}\r\n"));
        let allowed = format!("access-control-allow-origin: {origin}");
        assert!(answer.status == 200 && answer.head.contains(&allowed), "{}", answer.head);
        // Browsers ask before they send JSON or a key, and have no key then.
        // What the official client sends in a browser.
        let names = "authorization,content-type,x-stainless-arch,x-stainless-lang,x-stainless-os,\
                     x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,\
                     x-stainless-runtime-version,x-stainless-timeout";
        let asked =
            format!("Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: {names}\r\n");
        let ask = format!("Origin: {origin}\r\n{asked}");
        let answer = server.send("OPTIONS", "/v1/chat/completions", &ask, "");
        assert!(answer.status == 200 && answer.head.contains(&allowed), "{}", answer.head);
        assert!(answer.head.contains(&format!("access-control-allow-headers: {names}")), "{}", answer.head);
        let answer = get(&format!("Host: localhost\r\nOrigin: {origin}\r\n"));
        assert!(
            answer.head.contains("access-control-expose-headers: retry-after,x-request-id"),
            "{}",
            answer.head
        );
    }
    for origin in ["https://evil.example", "null", "https://chat.example.evil.example"] {
        let answer = get(&format!("Host: localhost\r\nOrigin: {origin}\r\n"));
        assert_eq!(refusal(&answer), (403, "forbidden_origin".to_owned()), "{origin}");
        assert!(!answer.head.contains("access-control-allow-origin"), "{}", answer.head);
    }
}

/// Sends `drop` now and then, or nothing if it is empty, until the server closes; returns its answer.
fn dripped(server: &Server, begin: &str, drop: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(begin.as_bytes()).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let drop = drop.to_owned();
    let begun = Instant::now();
    let drips = std::thread::spawn(move || {
        let patience = Duration::from_secs(60);
        while !drop.is_empty() && begun.elapsed() < patience && writer.write_all(drop.as_bytes()).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut said = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut said);
    assert!(begun.elapsed() < Duration::from_secs(30), "it went on for {:?}", begun.elapsed());
    let _ = stream.shutdown(std::net::Shutdown::Both);
    drips.join().unwrap();
    String::from_utf8_lossy(&said).into_owned()
}

#[test]
fn slow_heads_and_bodies_are_not_waited_for() {
    let server = Server::start(&["--read-timeout", "0.5"]);
    // A head that never ends, and a connection on which nothing comes.
    assert_eq!(dripped(&server, "GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", "a"), "");
    assert_eq!(dripped(&server, "", ""), "");
    let head = format!("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{JSON}");
    for (length, drop) in [("Content-Length: 1000", " "), ("Transfer-Encoding: chunked", "1\r\n \r\n")] {
        let said = dripped(&server, &format!("{head}{length}\r\n\r\n"), drop);
        assert_eq!(refusal(&Answer::read(&said)), (408, "body_timeout".to_owned()), "{length}");
    }
    assert!(server.metric("domino_requests_total{endpoint=\"completions\",code=\"408\"}") >= 2.0);
    // Texts may take longer than that.
    assert_eq!(server.complete(&json!({ "max_tokens": 300 })).status, 200);
}

#[test]
fn bodies_without_a_length_are_bounded() {
    let server = Server::start(&["--max-body", "8"]);
    let head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let head = format!("{head}{JSON}Transfer-Encoding: chunked\r\n\r\n");
    let body = completion(&json!({ "grammar": { "type": "regex", "value": "b" } })).to_string();
    let (one, other) = body.split_at(10);
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let answer = raw(&server, &format!("{head}{}{}0\r\n\r\n", chunk(one), chunk(other)));
    assert_eq!(answer.status, 200, "{}", answer.body);
    // The body has no end: the answer comes as soon as there is a byte too many.
    let large = format!("{head}{}", chunk(&" ".repeat(1024)).repeat(8) + &chunk(" "));
    assert_eq!(refusal(&raw(&server, &large)), (413, "body_too_large".to_owned()));
}
