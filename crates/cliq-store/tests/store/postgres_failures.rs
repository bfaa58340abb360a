//! A PostgreSQL that is not as it should be: a clear error, nothing lost, and the store goes on when it is back.

use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::time::Duration;

use cliq_gateway::{Filter, Store};
use cliq_model::StoreError;
use cliq_store::{Location, SqlStore};
use cliq_testkit::PostgresServer;

use super::test_database::{TestDatabase, patience, signal};

#[tokio::test]
async fn a_server_that_dies_and_comes_back() {
    let Some(server) = PostgresServer::start().map(Arc::new) else { return };
    let place = TestDatabase::postgres(&server);
    let store = SqlStore::open_with(&place.location(), patience(Duration::from_secs(3))).await.unwrap();
    let mut stored = vec![store.create("p", &signal("plan_start", "")).await.unwrap()];
    for _ in 0..5 {
        // Signals are emitted while the server dies, and goes on to be down.
        let faults = std::thread::spawn({
            let server = Arc::clone(&server);
            move || {
                let pause = || std::thread::sleep(Duration::from_millis(60));
                pause();
                server.stop();
                pause();
                server.begin();
                pause();
            }
        });
        let (before, mut refused) = (stored.len(), 0);
        while !faults.is_finished() {
            match store.create("p", &signal("plan_start", "")).await {
                Ok(id) => stored.push(id),
                Err(error) => {
                    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
                    assert!(error.to_string().contains("database.url"), "{error}");
                    refused += 1;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
        faults.join().unwrap();
        assert!(refused > 0 && stored.len() > before);
    }
    let found: Vec<i64> =
        store.signals(&Filter::default()).await.unwrap().into_iter().map(|signal| signal.id).collect();
    assert!(stored.iter().all(|id| found.contains(id)), "what was confirmed is there");
    assert!(
        found.len() <= stored.len() + 5,
        "at most the one that was under way was stored without an answer"
    );
}

#[tokio::test]
async fn each_fault_has_its_own_error() {
    let Some(server) = PostgresServer::start() else { return };
    let place = TestDatabase::postgres(&server);
    let store = SqlStore::open_with(&place.location(), patience(Duration::from_secs(1))).await.unwrap();
    let url = place.url().unwrap().to_owned();

    server.sql(&url, "UPDATE cliq_format SET format = 13");
    let error = SqlStore::open(&place.location()).await.unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 13, known: cliq_store::FORMAT, .. }), "{error}");
    assert_eq!(SqlStore::format_of(&place.location()).await.unwrap(), Some(13));
    server.sql(&url, &format!("UPDATE cliq_format SET format = {}", cliq_store::FORMAT));
    assert_eq!(SqlStore::format_of(&TestDatabase::postgres(&server).location()).await.unwrap(), None);

    let missing = url.replace("/test0", "/nowhere");
    let error = SqlStore::open(&Location::choose(Some(&missing), "".into()).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");

    // Read only, as a replica is.
    server.sql("postgres", "ALTER DATABASE test0 SET default_transaction_read_only = on");
    let read_only = SqlStore::open(&place.location()).await.unwrap();
    let error = read_only.create("p", &signal("plan_start", "")).await.unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    server.sql("postgres", "ALTER DATABASE test0 RESET default_transaction_read_only");

    // Locked by another for longer than the patience.
    let (port, name) = (server.port().to_string(), url.rsplit('/').next().unwrap().to_owned());
    let mut holder = std::process::Command::new("psql")
        .args(["-h", "127.0.0.1", "-p", &port, "-U", "cliq", "-q", &name])
        .args(["-c", "BEGIN", "-c", "LOCK TABLE signals IN ACCESS EXCLUSIVE MODE"])
        .args(["-c", r"\! echo locked", "-c", "SELECT pg_sleep(20)"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "locked\n");
    let error = store.create("p", &signal("plan_start", "")).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    server.sql(&url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()");
    store.create("p", &signal("plan_start", "")).await.expect("it is free");

    // A server that accepts and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("postgresql://me:hush@{}/x", silent.local_addr().unwrap());
    let location = Location::choose(Some(&address), "".into()).unwrap();
    let error = SqlStore::open_with(&location, patience(Duration::from_millis(300))).await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("hush"));
}
