//! Archives and digests of any files: what goes in comes out, and nothing else does.

use std::fs;
use std::os::unix::fs::symlink;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_packages::{Content, ContentError, File};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

fn file(bytes: &[u8]) -> File {
    File { executable: false, bytes: bytes.to_vec() }
}

/// Files in two levels of directories, whose names differ in more than the case of letters.
fn contents() -> impl Strategy<Value = Content> {
    let path = prop_oneof!["d[0-9]{1,3}/f[0-9]{1,3}", "f[0-9]{1,3}", "d[0-9]/e[0-9]/long-[a-z]{60,120}"];
    btree_map(path, (any::<bool>(), vec(any::<u8>(), 0..300)), 0..20).prop_map(|files| {
        let mut content = Content::default();
        for (path, (executable, bytes)) in files {
            content.add(path.into(), File { executable, bytes }).unwrap();
        }
        content
    })
}

proptest! {
    #[test]
    fn an_archive_has_the_files_that_went_in(content in contents()) {
        let archive = content.to_archive().unwrap();
        prop_assert_eq!(&Content::from_archive(&archive).unwrap(), &content);
        prop_assert_eq!(content.to_archive().unwrap(), archive, "the same files give the same bytes");
    }

    #[test]
    fn a_folder_has_the_files_that_went_in(content in contents()) {
        let dir = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(dir.path()).unwrap();
        content.write(dir).unwrap();
        prop_assert_eq!(Content::read(dir).unwrap().digest(), content.digest());
    }

    #[test]
    fn no_bytes_make_a_panic(bytes in vec(any::<u8>(), 0..2000)) {
        let _ = Content::from_archive(&bytes);
    }

    #[test]
    fn a_damaged_archive_has_no_other_files(content in contents(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut archive = content.to_archive().unwrap();
        let at = at.index(archive.len());
        archive[at] ^= 1 << bit;
        // Some bits are of no file: those of the gzip header, and the padding of a block.
        if let Ok(read) = Content::from_archive(&archive) {
            prop_assert_eq!(read, content);
        }
    }

    #[test]
    fn no_path_leaves_the_folder(path in "[a./]{0,12}") {
        let mut content = Content::default();
        if content.add(Utf8PathBuf::from(&path), file(b"x")).is_ok() {
            let within = Utf8Path::new("/team").join(&path);
            prop_assert!(!path.starts_with('/') && within.components().all(|part| part.as_str() != ".."));
        }
    }
}

#[test]
fn bytes_behind_an_archive_are_refused() {
    let mut archive = Content::default().to_archive().unwrap();
    assert_eq!(Content::from_archive(&archive).unwrap(), Content::default());
    archive.extend_from_slice(b"more");
    assert!(
        matches!(Content::from_archive(&archive), Err(ContentError::Archive(why)) if why.contains("behind its end"))
    );
}

#[test]
fn the_digest_can_be_computed_by_others() {
    let mut content = Content::default();
    content.add("b/run.sh".into(), File { executable: true, bytes: b"#!/bin/sh\n".to_vec() }).unwrap();
    content.add("a.txt".into(), file(b"hello\n")).unwrap();
    // printf '%s - a.txt\n%s x b/run.sh\n' $(sha256sum <a.txt) $(sha256sum <b/run.sh) | sha256sum
    let text = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03 - a.txt\n\
                a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf x b/run.sh\n";
    assert_eq!(content.digest(), cliq_packages::Digest::of(text.as_bytes()));
}

#[test]
fn links_stay_within_the_folder() {
    let place = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(place.path()).unwrap();
    let team = root.join("team");
    fs::create_dir_all(team.join("roles")).unwrap();
    fs::write(team.join("roles/a.md"), "a").unwrap();
    fs::write(root.join("private"), "secret").unwrap();
    symlink("roles/a.md", team.join("b.md")).unwrap();
    let content = Content::read(&team).unwrap();
    assert_eq!(content.text("b.md"), Some("a"), "a link is replaced by its file");

    symlink("../private", team.join("c.md")).unwrap();
    assert!(matches!(Content::read(&team), Err(ContentError::Leaves(path)) if path.ends_with("c.md")));
    fs::remove_file(team.join("c.md")).unwrap();
    symlink(".", team.join("loop")).unwrap();
    assert!(matches!(Content::read(&team), Err(ContentError::TooDeep(_) | ContentError::Path { .. })));
}
