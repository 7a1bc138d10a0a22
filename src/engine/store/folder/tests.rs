//! The cache folder: entries, eviction, damage, and several processes.

use std::fs::OpenOptions;

use super::*;

fn key(number: u32) -> PayloadKey {
    PayloadKey::of(&[&number.to_le_bytes()])
}

fn read(cache: &CacheFolder, number: u32) -> Option<Vec<u8>> {
    cache.get(Kind::Trees, &key(number), |reader| Ok(reader.bytes()?.to_vec()))
}

fn keep(cache: &CacheFolder, number: u32, content: &[u8]) {
    let mut writer = super::super::PayloadWriter::default();
    writer.bytes(content);
    cache.put(Kind::Trees, &key(number), &writer.finish());
}

/// Returns the path of the file with this number.
fn path(cache: &CacheFolder, number: u32) -> PathBuf {
    cache.inner.as_ref().unwrap().file(Kind::Trees, &key(number))
}

#[test]
fn kept_entries_are_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheFolder::new(folder.path().join("a/b"));
    assert_eq!(cache.files().unwrap(), []);
    assert_eq!(read(&cache, 1), None);
    keep(&cache, 1, b"one");
    keep(&cache, 2, b"two");
    assert_eq!(read(&cache, 1).as_deref(), Some(&b"one"[..]));
    assert_eq!(read(&CacheFolder::new(cache.path().unwrap()), 2).as_deref(), Some(&b"two"[..]));
    assert_eq!(cache.get(Kind::Vocabulary, &key(1), |_| Ok(())), None);
    keep(&cache, 1, b"another one");
    assert_eq!(read(&cache, 1).as_deref(), Some(&b"another one"[..]));
    assert!(cache.files().unwrap().iter().all(|file| file.kind == "trees"));
    fs::write(cache.path().unwrap().join("notes.txt"), "mine").unwrap();
    assert_eq!(cache.clear().unwrap(), Cleared { files: 2, bytes: 2 * (112 + 8) + 11 + 3 });
    assert_eq!(read(&cache, 1), None);
    assert!(cache.path().unwrap().join("notes.txt").exists());
}

#[test]
fn a_cache_without_a_folder_keeps_nothing() {
    let cache = CacheFolder::none();
    keep(&cache, 1, b"one");
    assert_eq!(read(&cache, 1), None);
    assert_eq!(cache.clear().unwrap(), Cleared::default());
    assert_eq!(cache.with_budget(7).path(), None);
}

/// A folder below a file can be neither made nor read, not even by an administrator.
#[test]
fn a_folder_that_cannot_be_made_does_no_harm() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let cache = CacheFolder::new(file.path().join("cache"));
    keep(&cache, 1, b"one");
    assert_eq!(read(&cache, 1), None);
    assert!(cache.inner.as_ref().unwrap().warned.load(Ordering::Relaxed));
}

#[test]
fn entries_that_cannot_be_used_are_absent_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheFolder::new(folder.path());
    keep(&cache, 1, b"one");
    let whole = fs::read(path(&cache, 1)).unwrap();
    for damaged in [&b""[..], b"not ours", &whole[..50], &whole[..whole.len() - 1]] {
        fs::write(path(&cache, 1), damaged).unwrap();
        assert_eq!(read(&cache, 1), None);
        keep(&cache, 1, b"one");
        assert_eq!(fs::read(path(&cache, 1)).unwrap(), whole);
    }
    // The file of another key, and a payload that its reader refuses or does not finish.
    keep(&cache, 2, b"two");
    fs::copy(path(&cache, 2), path(&cache, 1)).unwrap();
    assert_eq!(read(&cache, 1), None);
    assert_eq!(cache.get(Kind::Trees, &key(2), |reader| reader.u8()), None);
    assert_eq!(cache.get(Kind::Trees, &key(2), |_| Err::<(), _>(StoreError::malformed("nothing"))), None);
    // A folder in its place cannot be replaced, and does no harm.
    fs::remove_file(path(&cache, 1)).unwrap();
    fs::create_dir(path(&cache, 1)).unwrap();
    keep(&cache, 1, b"one");
    assert_eq!(read(&cache, 1), None);
    let unfinished = cache.files().unwrap().iter().any(|file| file.kind == CacheFile::UNFINISHED);
    assert!(!unfinished);
}

#[test]
fn the_least_recently_used_entry_is_evicted_first() {
    let folder = tempfile::tempdir().unwrap();
    let one = 112 + 8 + 3;
    let cache = CacheFolder::new(folder.path()).with_budget(3 * one);
    let age = |number: u32, seconds| {
        let file = OpenOptions::new().write(true).open(path(&cache, number)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    };
    for (number, seconds) in [(1, 400), (2, 300), (3, 200)] {
        keep(&cache, number, b"abc");
        age(number, seconds);
    }
    // Reading is use, replacing needs no room.
    assert!(read(&cache, 1).is_some());
    keep(&cache, 3, b"xyz");
    keep(&cache, 4, b"abc");
    let left: Vec<u32> = (1..=4).filter(|&number| read(&cache, number).is_some()).collect();
    assert_eq!(left, [1, 3, 4]);
    keep(&cache, 5, &vec![0; usize::try_from(2 * one).unwrap()]);
    assert!(cache.files().unwrap().iter().map(|file| file.bytes).sum::<u64>() <= 3 * one);
    assert!(read(&cache, 5).is_some());
    // What is larger than the whole budget is not kept, and drives nothing out.
    keep(&cache, 6, &[0; 1000]);
    assert!(read(&cache, 6).is_none() && read(&cache, 5).is_some());
}

#[test]
fn unfinished_files_stay_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheFolder::new(folder.path());
    let [fresh, stale] = [1, 2].map(|number| {
        let name = path(&cache, number).file_name().unwrap().to_string_lossy().into_owned();
        folder.path().join(format!(".{name}.12-0-99.part"))
    });
    for part in [&fresh, &stale] {
        fs::write(part, "half").unwrap();
    }
    let file = OpenOptions::new().write(true).open(&stale).unwrap();
    file.set_modified(SystemTime::now() - 2 * STALE).unwrap();
    keep(&cache, 3, b"abc");
    assert!(fresh.exists() && !stale.exists());
    assert_eq!(cache.clear().unwrap().files, 2);
}

#[test]
fn only_files_with_names_of_the_cache_belong_to_it() {
    let hex = key(1).hex();
    assert_eq!(kind_of(&format!("terminal-tables-{hex}.domino")), Some("terminal-tables"));
    assert_eq!(kind_of(&format!(".trees-{hex}.domino.7-0-1.part")), Some(CacheFile::UNFINISHED));
    for name in ["notes.txt", "a.domino", "-.domino", ".part", "..part", "trees-12.domino"] {
        assert_eq!(kind_of(name), None, "{name}");
    }
    assert_eq!(kind_of(&format!("trees-{hex}.domino~")), None);
    assert_eq!(kind_of(&format!("../trees-{hex}.domino")), None);
}

#[test]
fn several_threads_share_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let cache = CacheFolder::new(folder.path()).with_budget(2000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..100 {
                    let number = round % 5;
                    keep(&cache, number, &[u8::try_from(number).unwrap(); 300]);
                    if let Some(content) = read(&cache, number) {
                        assert_eq!(content, [u8::try_from(number).unwrap(); 300]);
                    }
                }
            });
        }
    });
    assert!(!cache.inner.as_ref().unwrap().warned.load(Ordering::Relaxed));
    for file in cache.files().unwrap() {
        let bytes = fs::read(folder.path().join(&file.name)).unwrap();
        assert!((0..5).any(|number| open(&bytes, Kind::Trees, &key(number)).is_ok()), "{}", file.name);
    }
}
