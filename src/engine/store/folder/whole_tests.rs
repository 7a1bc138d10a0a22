//! Files that are whole or not there.

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn files_are_made_and_replaced_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b.json");
    let file = WholeFile::new(&path);
    for file in [file.clone(), file.clone().synced(), file.private(), WholeFile::new(&path)] {
        for content in [&b"a long content"[..], b"", b"short"] {
            file.write(content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
            file.try_out().unwrap();
            assert_eq!(names(folder.path()), ["a.b.json"]);
        }
    }
}

#[test]
fn what_cannot_be_written_is_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("file"), b"x").unwrap();
    // A folder is in its place; there is no folder; a file is in the folder's place; no file is named.
    assert!(WholeFile::new(&taken).write(b"content").is_err());
    for path in ["none/file", "taken/file/file"].map(|path| folder.path().join(path)) {
        let file = WholeFile::new(path);
        assert!(file.write(b"content").is_err() && file.try_out().is_err());
    }
    for path in ["", "/", ".."] {
        let error = WholeFile::new(path).write(b"content").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{path}");
    }
    assert_eq!((names(folder.path()), names(&taken)), (vec!["taken".to_owned()], vec!["file".to_owned()]));
    assert_eq!(fs::read(taken.join("file")).unwrap(), b"x");
}

/// Files that a killed process left behind disturb nobody.
#[test]
fn parts_are_recognised_and_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["file", "a.b.json", "-1-2.prior", ".hidden", "\u{e4}"] {
        let file = WholeFile::new(folder.path().join(name));
        let part = file.part().unwrap();
        fs::write(&part, b"half").unwrap();
        assert_eq!(WholeFile::of_part(part.file_name().unwrap().to_str().unwrap()), Some(name));
        file.write(b"whole").unwrap();
        assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"whole");
    }
    for name in [
        "file",
        "",
        ".part",
        "..part",
        "...part",
        ".file.part",
        "file.1-2-3.part",
        ".1-2-3.part",
        "..1-2-3.part",
        ".file.1-2.part",
        ".file.1-2-3-4.part",
        ".file.1--3.part",
        ".file.x-2-3.part",
        ".file.1-2-3.part~",
    ] {
        assert_eq!(WholeFile::of_part(name), None, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn private_files_are_for_one_user_and_others_as_any() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |name: &str| {
        let path = folder.path().join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    fs::write(folder.path().join("any"), b"").unwrap();
    WholeFile::new(folder.path().join("plain")).write(b"").unwrap();
    WholeFile::new(folder.path().join("own")).private().write(b"").unwrap();
    assert_eq!((mode("plain"), mode("own")), (mode("any"), 0o600));
}

/// Readers see the content of one of many writers, all of it.
#[test]
fn many_write_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    WholeFile::new(&path).write(&[9; 5000]).unwrap();
    std::thread::scope(|scope| {
        for letter in 0..4_u8 {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..50 {
                    WholeFile::new(path).write(&[letter; 5000]).unwrap();
                    let found = fs::read(path).unwrap();
                    assert!(found.len() == 5000 && found.iter().all(|byte| *byte == found[0]));
                }
            });
        }
    });
    assert_eq!(names(folder.path()), ["file"]);
}
