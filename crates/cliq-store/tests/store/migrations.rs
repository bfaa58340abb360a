//! Databases of earlier formats.

use std::fs;

use cliq_gateway::{Filter, Store};
use cliq_model::RunStore;
use cliq_store::SqlStore;
use rusqlite::Connection;

use super::test_database::{TestDatabase, signal};

pub(crate) async fn opening_again_changes_nothing(place: &TestDatabase) {
    let store = place.store().await;
    store.create("p", &signal("plan_start", "")).await.unwrap();
    drop(store);
    // Many at once, as processes begin at the same moment.
    let location = place.location();
    let opened = (0..8).map(|_| {
        let location = location.clone();
        tokio::spawn(async move { SqlStore::open(&location).await.map(drop) })
    });
    for task in opened.collect::<Vec<_>>() {
        task.await.unwrap().unwrap();
    }
    assert_eq!(place.store().await.signals(&Filter::default()).await.unwrap().len(), 1);
}

/// `fixtures/store/1.db` was made by the release before runs were stored: 35 signals, plans and their events.
#[tokio::test]
async fn a_database_of_format_1_keeps_every_row() {
    let place = TestDatabase::sqlite();
    fs::create_dir_all(place.path("home")).unwrap();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/store/1.db");
    fs::copy(fixture, place.database()).unwrap();
    let store = place.store().await;
    let signals = store.signals(&Filter::default()).await.unwrap();
    assert_eq!(signals.len(), 35);
    let count = |status: &str| signals.iter().filter(|signal| signal.status.as_str() == status).count();
    assert_eq!((count("pending"), count("failed")), (15, 20));
    let plans = store.plans(None).await.unwrap();
    assert_eq!(plans.iter().map(|plan| plan.name.as_str()).collect::<Vec<_>>(), ["search", "upload"]);
    assert_eq!(store.events("/project", "search", 0).await.unwrap().len(), 2);
    assert!(store.runs(&cliq_model::RunFilter { limit: 9, ..Default::default() }).await.unwrap().is_empty());
    // And it goes on to work.
    assert_eq!(store.create("/project", &signal("plan_start", "")).await.unwrap(), 36);
}

/// `fixtures/store/3.db` was made by the statements of format 3 as they were published, with three tasks. What is published is not changed: a
/// database that was brought to the newest format is the same as a new one.
#[tokio::test]
async fn a_database_of_format_3_becomes_as_a_new_one() {
    let (old, new) = (TestDatabase::sqlite(), TestDatabase::sqlite());
    fs::create_dir_all(old.path("home")).unwrap();
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/store/3.db"), old.database()).unwrap();
    for place in [&old, &new] {
        drop(place.store().await);
    }
    assert_eq!(schema(&old), schema(&new));
    let tasks: i64 = connect(&old).query_one("SELECT COUNT(*) FROM a2a_tasks", [], |row| row.get(0)).unwrap();
    assert_eq!(tasks, 3);
}

fn connect(place: &TestDatabase) -> Connection {
    Connection::open(place.database()).unwrap()
}

/// The statements of the tables and indexes of a database, by name.
fn schema(place: &TestDatabase) -> Vec<(String, String)> {
    let connection = connect(place);
    let sql = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn many_that_create_a_database_at_once() {
    let Some(server) = cliq_testkit::PostgresServer::start() else { return };
    for place in [TestDatabase::sqlite(), TestDatabase::postgres(&server)] {
        let location = place.location();
        let opened: Vec<_> = (0..12)
            .map(|_| {
                let location = location.clone();
                tokio::spawn(async move { SqlStore::open(&location).await.map(drop) })
            })
            .collect();
        for task in opened {
            task.await.unwrap().unwrap();
        }
    }
}
