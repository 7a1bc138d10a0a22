//! Keys of the server: their forms, and files of them that change.

use axum::http::HeaderValue;

use super::*;

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
