//! Tests of counts that are kept between runs.

use std::sync::Mutex;

use domino::proposer::{Learning, Propose, Seen, Site};
use domino::{Compiler, Grammar, Limits, Syntax, TokenId};

use super::*;
use crate::grammar::compiler::byte_vocabulary;

const LONG: Duration = Duration::from_secs(60);
const NEVER: Duration = Duration::from_secs(1 << 20);

fn grammar(regex: &str) -> CompiledGrammar {
    let grammar = Grammar::parse(Syntax::Regex, regex, &Limits::default()).unwrap();
    Compiler::new(byte_vocabulary().unwrap()).compile(&grammar).unwrap()
}

/// A proposer that begins with this prior, or with nothing.
fn learner(grammar: &CompiledGrammar, prior: Option<Prior>) -> Learner {
    let prior = prior.unwrap_or_else(|| Prior::new(grammar));
    Arc::new(Mutex::new(CountProposer::new(prior, Learning::Online)))
}

/// Has it learn from a text.
fn teach(learner: &Learner, grammar: &CompiledGrammar, text: &[u8]) {
    let (mut constraint, mut tokens) = (grammar.constraint(), Vec::new());
    for &byte in text {
        let token = TokenId::new(u32::from(byte));
        let mut site = Site::new(Some(&constraint), &mut tokens, 0.0, &|_, _| 0.0);
        held(learner).observe(&mut site, Seen::new(token, None));
        drop(site);
        constraint.advance(token).unwrap();
        tokens.push(token);
    }
}

fn observed(prior: Option<&Prior>) -> Option<u64> {
    prior.map(Prior::observed)
}

#[test]
fn kept_counts_belong_to_their_client_grammar_and_model() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (grammar("[ab]+"), grammar("[abc]+"));
    let keeper = PriorKeeper::with_rounds(folder.path(), "model", NEVER).unwrap();
    assert_eq!(observed(keeper.read("alice", &one).as_ref()), None);
    let counts = learner(&one, None);
    let keeping = keeper.keep("alice", &counts);
    teach(&counts, &one, b"abab");
    assert!(keeper.write_all(LONG));
    assert_eq!(observed(keeper.read("alice", &one).as_ref()), Some(4));
    assert_eq!(keeper.read("alice", &one).unwrap().summary().label, LABEL);
    for (client, grammar) in [("bob", &one), ("alice", &other)] {
        assert!(keeper.read(client, grammar).is_none(), "{client}");
    }
    let another = PriorKeeper::with_rounds(folder.path(), "model two", NEVER).unwrap();
    assert!(another.read("alice", &one).is_none());
    // The next run goes on from there.
    drop((keeping, keeper));
    let keeper = PriorKeeper::with_rounds(folder.path(), "model", NEVER).unwrap();
    let counts = learner(&one, keeper.read("alice", &one));
    let _keeping = keeper.keep("alice", &counts);
    teach(&counts, &one, b"ba");
    assert!(keeper.write_all(LONG));
    assert_eq!(observed(keeper.read("alice", &one).as_ref()), Some(6));
}

#[test]
fn counts_are_written_when_nobody_uses_them_any_more_and_every_round() {
    let folder = tempfile::tempdir().unwrap();
    let grammar = grammar("[ab]+");
    let until = |keeper: &PriorKeeper, client: &str, tokens: u64| {
        let begun = Instant::now();
        while observed(keeper.read(client, &grammar).as_ref()) != Some(tokens) {
            assert!(begun.elapsed() < LONG, "the counts of {client} are not written");
            thread::sleep(Duration::from_millis(5));
        }
    };
    let keeper = PriorKeeper::with_rounds(folder.path(), "model", NEVER).unwrap();
    let counts = learner(&grammar, None);
    let keeping = keeper.keep("alice", &counts);
    teach(&counts, &grammar, b"aba");
    drop(keeping);
    until(&keeper, "alice", 3);
    let keeper = PriorKeeper::with_rounds(folder.path(), "model", Duration::from_millis(5)).unwrap();
    let counts = learner(&grammar, None);
    let _keeping = keeper.keep("bob", &counts);
    for text in [b"ab", b"ba"] {
        teach(&counts, &grammar, text);
    }
    until(&keeper, "bob", 4);
}

#[test]
fn files_that_are_damaged_or_cannot_be_written_fail_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let grammar = grammar("[ab]+");
    let keeper = PriorKeeper::with_rounds(folder.path(), "model", NEVER).unwrap();
    let counts = learner(&grammar, None);
    let _keeping = keeper.keep("alice", &counts);
    teach(&counts, &grammar, b"ab");
    assert!(keeper.write_all(LONG));
    let file = keeper.folder.file("alice", &Prior::new(&grammar));
    let whole = fs::read(&file).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"", b"not counts at all"] {
        fs::write(&file, damaged).unwrap();
        assert!(keeper.read("alice", &grammar).is_none());
    }
    // The next counts replace the damaged file.
    teach(&counts, &grammar, b"ab");
    assert!(keeper.write_all(LONG));
    assert_eq!(observed(keeper.read("alice", &grammar).as_ref()), Some(4));
    // A file stands where the folder of a client would be.
    fs::write(folder.path().join("bob"), b"").unwrap();
    let others = learner(&grammar, None);
    let _bob = keeper.keep("bob", &others);
    teach(&others, &grammar, b"ab");
    assert!(keeper.write_all(LONG) && keeper.read("bob", &grammar).is_none());
    fs::remove_file(folder.path().join("bob")).unwrap();
    assert!(keeper.write_all(LONG));
    assert_eq!(observed(keeper.read("bob", &grammar).as_ref()), Some(2));
    assert!(PriorKeeper::with_rounds(&file.join("inside"), "model", NEVER).is_err());
}

fn write(folder: &Path, path: &str, bytes: usize) -> PathBuf {
    let file = folder.join(path);
    make_folder(file.parent().unwrap()).unwrap();
    write_whole(&file, &vec![b'x'; bytes]).unwrap();
    file
}

#[test]
fn file_names_are_plain_and_distinct() {
    for text in ["", ".", "..", "../../etc/passwd", "a b", "key \u{e4}", "a\0b", &"x".repeat(300)] {
        let name = plain(text);
        assert!(name.len() <= 49 && !name.contains(['/', '\0', ' ']), "{name}");
        assert!(Path::new(&name).components().count() == 1 && name != "." && name != "..", "{name}");
    }
    assert_ne!(plain("a b"), plain("a_b"));
    assert!(plain("alice").starts_with("alice-"));
}

#[test]
fn trimming_removes_only_files_of_counts_the_oldest_first() {
    let folder = tempfile::tempdir().unwrap();
    let name = |letter: &str| format!("key/model/{}.prior", letter.repeat(NAME_LENGTH));
    let kept = [
        write(folder.path(), "notes.txt", 500),
        write(folder.path(), "key/model/notes.prior", 500),
        write(folder.path(), &name("g"), 500),
        write(folder.path(), &name("a").replace("model/", ""), 500),
        write(folder.path(), &name("a").replace("model/", "model/more/"), 500),
    ];
    let counts: Vec<PathBuf> =
        ["a", "b", "c"].map(|letter| write(folder.path(), &name(letter), 100)).to_vec();
    for (file, seconds) in counts.iter().zip([2, 1, 3]) {
        let age = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::options().write(true).open(file).unwrap().set_modified(age).unwrap();
    }
    let there = || counts.iter().map(|file| file.is_file()).collect::<Vec<_>>();
    trim(folder.path(), 300);
    assert_eq!(there(), [true, true, true]);
    trim(folder.path(), 299);
    assert_eq!(there(), [true, false, true]);
    trim(folder.path(), 0);
    assert_eq!(there(), [false, false, false]);
    assert!(kept.iter().all(|file| file.is_file()));
}

#[cfg(unix)]
#[test]
fn files_and_folders_are_for_one_user() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "a/b/c.prior", 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    // A folder that cannot be written leaves nothing behind.
    assert!(write_whole(&folder.path().join("none/file"), b"x").is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn only_old_unfinished_files_of_counts_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let name = "0123456789abcdef".repeat(2);
    let old = |path: &str| {
        let file = write(folder.path(), path, 1);
        let opened = fs::File::options().write(true).open(&file).unwrap();
        opened.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        file
    };
    let gone = [old(&format!("a/b/.{name}.prior.1-0-5.part")), old(".README.txt.77-0-5.part")];
    let stay = [
        write(folder.path(), &format!("a/b/.{name}.prior.2-0-5.part"), 1),
        old("a/b/video.part"),
        old("a/b/.video.1-0-5.part"),
        old(&format!("a/b/.{name}.prior.x-0-5.part")),
        old(&format!("a/b/{name}.prior")),
        old("README.txt"),
    ];
    tell_of_others(folder.path());
    assert!(gone.iter().all(|file| !file.exists()) && stay.iter().all(|file| file.exists()));
}
