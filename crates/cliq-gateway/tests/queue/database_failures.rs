//! Databases and files that are not as they should be: a clear error, and nothing lost.

use std::fs;
use std::time::Duration;

use cliq_gateway::{Filter, GatewayError, Inbox, Signal, SqliteStore, Store};
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::{Place, signal};

async fn bare(place: &Place) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(place.database());
    SqliteConnection::connect_with(&options).await.expect("connected")
}

async fn all(store: &SqliteStore) -> Vec<Signal> {
    store.signals(&Filter::default()).await.expect("listed")
}

#[tokio::test]
async fn a_locked_database_is_waited_for_and_then_named() {
    let place = Place::new();
    let store = SqliteStore::open_with(&place.database(), Duration::from_millis(100)).await.unwrap();
    let mut other = bare(&place).await;
    let held = other.begin_with("BEGIN EXCLUSIVE").await.unwrap();
    let error = store.create("p", &signal("plan_start", "")).await.expect_err("it is locked");
    assert!(matches!(error, GatewayError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("cliq.db is locked by another program"), "{error}");
    held.rollback().await.unwrap();
    store.create("p", &signal("plan_start", "")).await.expect("it is free");
    assert_eq!(all(&store).await.len(), 1);
}

#[tokio::test]
async fn a_newer_format_is_left_alone() {
    let place = Place::new();
    drop(place.store().await);
    sqlx::query("PRAGMA user_version = 7").execute(&mut bare(&place).await).await.unwrap();
    let error = SqliteStore::open(&place.database()).await.expect_err("it is newer");
    assert!(matches!(error, GatewayError::Newer { found: 7, known: 1, .. }), "{error}");
}

#[tokio::test]
async fn what_is_no_database_is_left_alone() {
    let place = Place::new();
    fs::create_dir_all(place.path("home")).unwrap();
    let text = "this is somebody's diary, of more than a hundred bytes. ".repeat(20);
    fs::write(place.database(), &text).unwrap();
    let error = SqliteStore::open(&place.database()).await.expect_err("it is none");
    assert!(matches!(error, GatewayError::Corrupt { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(place.database()).unwrap(), text);
}

#[tokio::test]
async fn damage_is_named() {
    let place = Place::new();
    let store = place.store().await;
    for n in 0..200 {
        store.create("p", &signal("review-changes", &format!("{n} {}", "x".repeat(300)))).await.unwrap();
    }
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut bare(&place).await).await.unwrap();
    drop(store);
    let mut bytes = fs::read(place.database()).unwrap();
    for page in bytes.chunks_mut(4096).skip(3) {
        page.fill(0xee);
    }
    fs::write(place.database(), bytes).unwrap();
    let store = SqliteStore::open(&place.database()).await.expect("its first pages are fine");
    let error = store.signals(&Filter::default()).await.expect_err("the others are not");
    assert!(matches!(error, GatewayError::Corrupt { .. }), "{error:?}");
}

#[tokio::test]
async fn a_place_that_cannot_be() {
    let place = Place::new();
    fs::write(place.path("home"), "a file").unwrap();
    let error = SqliteStore::open(&place.database()).await.expect_err("its directory is a file");
    assert!(error.to_string().contains("home"), "{error}");
    let error = SqliteStore::open(&place.path("")).await.expect_err("it is a directory");
    assert!(matches!(error, GatewayError::Open { .. }), "{error:?}");
}

#[tokio::test]
async fn files_come_in_whole_and_in_order() {
    let place = Place::new();
    let store = place.store().await;
    let inbox = Inbox::new(place.path("w/.cliq/signals/inbox"));
    assert_eq!(inbox.bridge(&store, "p").await.unwrap().signals, [0_i64; 0], "there is none yet");
    inbox.put("verify-failed-a", "no").unwrap();
    // The clock of a file system is coarse.
    tokio::time::sleep(Duration::from_millis(20)).await;
    inbox.put("planner-finished-a.md", "").unwrap();
    fs::write(inbox.root().join("staging/review-approved-a"), "half").unwrap();
    fs::write(inbox.root().join(".review-approved-a.swp"), "an editor's").unwrap();
    fs::write(inbox.root().join("notes"), "what is this").unwrap();
    fs::write(inbox.root().join("implement-wave-0-a"), "").unwrap();
    fs::write(inbox.root().join("review-changes-a"), [0xff, 0xfe]).unwrap();
    let bridged = inbox.bridge(&store, "p").await.unwrap();
    assert_eq!(bridged.signals.len(), 2);
    let kinds: Vec<_> =
        all(&store).await.iter().map(|s| (s.kind.clone(), s.plan.clone(), s.payload.clone())).collect();
    let row = |kind: &str, payload: &str| (kind.to_owned(), "a".to_owned(), payload.to_owned());
    assert_eq!(kinds, [row("verify_failed", "{\"body\":\"no\"}"), row("planner_finished", "")]);
    let failed = |name: &str| inbox.root().join("failed").join(name);
    assert_eq!(fs::read_to_string(failed("notes")).unwrap(), "what is this");
    let reason = fs::read_to_string(failed("notes.reason")).unwrap();
    assert!(reason.contains("Z \"notes\" is no name of a signal file"), "{reason}");
    assert!(fs::read_to_string(failed("implement-wave-0-a.reason")).unwrap().contains("whole number"));
    assert!(fs::read_to_string(failed("review-changes-a.reason")).unwrap().contains("not UTF-8"));
    // The same again: what failed before stays.
    fs::write(inbox.root().join("notes"), "and this").unwrap();
    inbox.bridge(&store, "p").await.unwrap();
    assert_eq!(fs::read_to_string(failed("notes.2")).unwrap(), "and this");
    assert!(
        inbox.root().join("staging/review-approved-a").exists()
            && inbox.root().join(".review-approved-a.swp").exists()
    );
}

/// Each is a signal, however alike and however soon after one another.
#[tokio::test]
async fn files_that_are_alike() {
    let place = Place::new();
    let store = place.store().await;
    let inbox = Inbox::new(place.path("inbox"));
    for n in 1..=200 {
        inbox.put("review-changes-a", "same").unwrap();
        assert_eq!(inbox.bridge(&store, "p").await.unwrap().signals, [n]);
    }
}

#[tokio::test]
async fn a_newer_file_replaces_what_a_crash_left() {
    let place = Place::new();
    let store = place.store().await;
    let inbox = Inbox::new(place.path("inbox"));
    inbox.ensure().unwrap();
    fs::write(inbox.root().join("processing/review-changes-a"), "old").unwrap();
    fs::write(inbox.root().join("processing/review-approved-a"), "").unwrap();
    inbox.put("review-changes-a", "new").unwrap();
    let recovered = inbox.recover().unwrap();
    assert_eq!(
        (recovered.moved, recovered.discarded),
        (vec!["review-approved-a".to_owned()], vec!["review-changes-a".to_owned()])
    );
    inbox.bridge(&store, "p").await.unwrap();
    let mut bodies: Vec<String> = all(&store).await.into_iter().map(|signal| signal.payload).collect();
    bodies.sort();
    assert_eq!(bodies, ["", "{\"body\":\"new\"}"]);
}
