//! Databases and files that are not as they should be: a clear error, and nothing lost.

use std::fs;
use std::time::Duration;

use cliq_gateway::{Filter, Signal, Store};
use cliq_model::StoreError;
use cliq_store::{Location, SqlStore};
use rusqlite::Connection;

use super::test_database::{TestDatabase, patience, signal};

fn bare(place: &TestDatabase) -> Connection {
    Connection::open(place.database()).expect("connected")
}

async fn all(store: &SqlStore) -> Vec<Signal> {
    store.signals(&Filter::default()).await.expect("listed")
}

#[tokio::test]
async fn a_locked_database_is_waited_for_and_then_named() {
    let place = TestDatabase::sqlite();
    let store = SqlStore::open_with(&place.location(), patience(Duration::from_millis(100))).await.unwrap();
    let other = bare(&place);
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = store.create("p", &signal("plan_start", "")).await.expect_err("it is locked");
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("cliq.db is locked by another program"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    store.create("p", &signal("plan_start", "")).await.expect("it is free");
    assert_eq!(all(&store).await.len(), 1);
}

#[tokio::test]
async fn a_newer_format_is_left_alone() {
    let place = TestDatabase::sqlite();
    drop(place.store().await);
    bare(&place).execute_batch("PRAGMA user_version = 13; PRAGMA journal_mode = DELETE").unwrap();
    let bytes = fs::read(place.database()).unwrap();
    let error = SqlStore::open(&place.location()).await.expect_err("it is newer");
    assert!(matches!(error, StoreError::Newer { found: 13, known: cliq_store::FORMAT, .. }), "{error}");
    assert_eq!(SqlStore::format_of(&place.location()).await.expect("read"), Some(13));
    assert!(fs::read(place.database()).unwrap() == bytes);
}

#[tokio::test]
async fn format_is_read_without_a_change() {
    let place = TestDatabase::sqlite();
    assert_eq!(SqlStore::format_of(&place.location()).await.expect("read"), None);
    assert!(!place.path("home").exists());
    drop(place.store().await);
    assert_eq!(SqlStore::format_of(&place.location()).await.expect("read"), Some(cliq_store::FORMAT));
}

#[tokio::test]
async fn database_of_another_program_is_refused_unchanged() {
    for version in [0, 5, 13] {
        let place = TestDatabase::sqlite();
        fs::create_dir_all(place.path("home")).unwrap();
        bare(&place)
            .execute_batch(&format!("CREATE TABLE recipes (name TEXT); PRAGMA user_version = {version}"))
            .unwrap();
        let bytes = fs::read(place.database()).unwrap();
        for error in [
            SqlStore::open(&place.location()).await.expect_err("it is foreign"),
            SqlStore::format_of(&place.location()).await.expect_err("it is foreign"),
        ] {
            assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
            assert!(error.to_string().contains("belongs to another program"), "{error}");
        }
        assert!(fs::read(place.database()).unwrap() == bytes, "version {version}");
        assert_eq!(fs::read_dir(place.path("home")).unwrap().count(), 1, "no log beside it");
    }
}

#[tokio::test]
async fn queue_of_another_program_is_taken_over() {
    let place = TestDatabase::sqlite();
    fs::create_dir_all(place.path("home")).unwrap();
    // The table of the protocol, without a format (docs/signals.md).
    let sql = include_str!("../../src/schema/1.sqlite.sql");
    let end = sql.find(");").unwrap() + 2;
    bare(&place).execute_batch(&sql[..end]).unwrap();
    bare(&place).execute("INSERT INTO signals (signal_type) VALUES ('plan_start')", []).unwrap();
    assert_eq!(all(&place.store().await).await.len(), 1);
}

#[tokio::test]
async fn foreign_file_is_refused_unchanged() {
    let place = TestDatabase::sqlite();
    fs::create_dir_all(place.path("home")).unwrap();
    let text = "this is somebody's diary, of more than a hundred bytes. ".repeat(20);
    fs::write(place.database(), &text).unwrap();
    let error = SqlStore::open(&place.location()).await.expect_err("it is none");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(place.database()).unwrap(), text);
}

#[tokio::test]
async fn damage_is_named() {
    let place = TestDatabase::sqlite();
    let store = place.store().await;
    for n in 0..200 {
        store.create("p", &signal("review-changes", &format!("{n} {}", "x".repeat(300)))).await.unwrap();
    }
    bare(&place).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(store);
    let mut bytes = fs::read(place.database()).unwrap();
    // The pages of the signals, and not those of the schema.
    let has_text = |page: &[u8]| page.windows(16).any(|part| part.iter().all(|byte| *byte == b'x'));
    let pages = bytes.chunks_mut(4096).filter(|page| has_text(page));
    pages.for_each(|page| page.fill(0xee));
    fs::write(place.database(), bytes).unwrap();
    let store = SqlStore::open(&place.location()).await.expect("its schema is fine");
    let error = store.signals(&Filter::default()).await.expect_err("the others are not");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

#[tokio::test]
async fn a_place_that_cannot_be() {
    let place = TestDatabase::sqlite();
    fs::write(place.path("home"), "a file").unwrap();
    let error = SqlStore::open(&place.location()).await.expect_err("its directory is a file");
    assert!(error.to_string().contains("home"), "{error}");
    let error = SqlStore::open(&Location::Sqlite(place.path(""))).await.expect_err("it is a directory");
    assert!(matches!(error, StoreError::NotAFile { kind: "a directory", .. }), "{error:?}");
}
