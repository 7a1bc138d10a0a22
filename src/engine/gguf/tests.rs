//! Heads written by hand, whole and damaged.

use std::path::Path;

use super::*;

fn string(text: &str) -> Vec<u8> {
    let mut bytes = u64::try_from(text.len()).unwrap().to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

/// Returns a file with two keys and two tensors, of 4 and 2 floats.
fn whole() -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0".to_vec();
    bytes.extend([string("a.names"), vec![9, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]].concat());
    bytes.extend([string("x"), string("yz")].concat());
    bytes.extend([string("a.count"), vec![4, 0, 0, 0, 7, 0, 0, 0]].concat());
    for (name, columns, start) in [("first", 2_u64, 0_u64), ("second", 1, 32)] {
        bytes.extend(string(name));
        bytes.extend([2, 0, 0, 0]);
        bytes.extend([columns.to_le_bytes(), 2_u64.to_le_bytes()].concat());
        bytes.extend([0, 0, 0, 0]);
        bytes.extend(start.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(32) + 40, 1);
    bytes
}

fn open(folder: &Path, bytes: &[u8]) -> Result<Gguf, GgufError> {
    let path = folder.join("a.gguf");
    std::fs::write(&path, bytes).unwrap();
    Gguf::open(&path)
}

#[test]
fn metadata_and_tensors_are_read_as_written() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = whole();
    let gguf = open(folder.path(), &bytes).unwrap();
    assert_eq!(gguf.get("a.count").unwrap().as_u64(), Some(7));
    assert_eq!(gguf.get("a.names").unwrap().as_strings().unwrap(), ["x", "yz"]);
    let first = gguf.tensor("first").unwrap();
    let start = u64::try_from(bytes.len()).unwrap() - 40;
    assert_eq!(*first, Tensor { shape: vec![2, 2], format: 0, file: 0, start, room: 32 });
    let second = gguf.tensor("second").unwrap();
    assert_eq!((second.start, second.room), (start + 32, 8));
}

#[test]
fn every_cut_and_every_flipped_bit_is_an_error_or_a_value() {
    let folder = tempfile::tempdir().unwrap();
    let whole = whole();
    for length in 0..whole.len() - 40 {
        let error = open(folder.path(), &whole[..length]).unwrap_err();
        assert_eq!(error.kind, GgufErrorKind::Damaged, "{length}");
    }
    for index in 0..whole.len() - 40 {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[index] ^= 1 << bit;
            if let Err(error) = open(folder.path(), &bytes) {
                assert_eq!(error.kind, GgufErrorKind::Damaged, "{index} {bit}");
            }
        }
    }
}

#[test]
fn files_in_several_parts_are_read_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("m-00001-of-00002.gguf");
    std::fs::write(&first, whole()).unwrap();
    let error = Gguf::open(&first).unwrap_err();
    assert_eq!(error.kind, GgufErrorKind::Missing);
    assert!(error.file.ends_with("m-00002-of-00002.gguf"));
    // The same tensors again.
    std::fs::write(folder.path().join("m-00002-of-00002.gguf"), whole()).unwrap();
    assert_eq!(Gguf::open(&first).unwrap_err().kind, GgufErrorKind::Damaged);
    let renamed: Vec<u8> = {
        let mut bytes = whole();
        for name in [&b"first"[..], b"second"] {
            let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
            bytes[at] = b'x';
        }
        bytes
    };
    std::fs::write(folder.path().join("m-00002-of-00002.gguf"), renamed).unwrap();
    let gguf = Gguf::open(&first).unwrap();
    assert_eq!(gguf.files().len(), 2);
    assert_eq!(gguf.tensor("xirst").unwrap().file, 1);
}

/// Tensors begin at the next multiple of the file's alignment, or of 32.
#[test]
fn tensor_data_is_aligned_as_the_file_says() {
    let folder = tempfile::tempdir().unwrap();
    for (alignment, said) in [(1_u32, true), (8, true), (32, true), (32, false), (64, true), (4096, true)] {
        let mut bytes = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
        bytes.extend(u64::from(said).to_le_bytes());
        if said {
            bytes.extend(
                [string("general.alignment"), vec![4, 0, 0, 0], alignment.to_le_bytes().to_vec()].concat(),
            );
        }
        // The head ends at 33 more than a multiple of 64, so that every alignment tells.
        let rest = 8 + 4 + 8 + 4 + 8;
        let name = "t".repeat((33 + 640 - rest - bytes.len() % 64) % 64 + 64);
        bytes.extend(
            [string(&name), vec![1, 0, 0, 0], 2_u64.to_le_bytes().to_vec(), vec![0; 4], vec![0; 8]].concat(),
        );
        assert_eq!(bytes.len() % 64, 33);
        let start = bytes.len().next_multiple_of(usize::try_from(alignment).unwrap());
        bytes.resize(start + 8, 1);
        let gguf = open(folder.path(), &bytes).unwrap();
        let found = gguf.tensor(&name).unwrap();
        assert_eq!((found.start, found.room), (u64::try_from(start).unwrap(), 8), "{alignment} {said}");
    }
}
