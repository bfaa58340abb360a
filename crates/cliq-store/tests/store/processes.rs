//! Many processes, some of which are killed. Each is this test program, started again for one of its tests below.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use camino::Utf8PathBuf;
use cliq_gateway::{
    Claim, Filter, Finish, Inbox, NewSignal, PlanEvent, PlanRow, Signal, SignalCounts, SignalStatus, Step,
    Store,
};
use cliq_model::{Outcome, StoreError};
use cliq_store::{Location, SqlStore};

use super::queue::done;
use super::test_database::{TestDatabase, patience, signal};

/// Signals in the test of many processes; `CLIQ_TEST_SIGNALS` sets another number.
const SIGNALS: usize = 2_000;
const EMITTERS: usize = 8;
const CLAIMERS: usize = 8;
const BRIDGE_KILLS: usize = 200;

fn start(role: &str, place: &TestDatabase, detail: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "store::processes::a_process", "--ignored", "--nocapture", "--quiet"])
        .env("CLIQ_TEST_ROLE", role)
        .env("CLIQ_TEST_HOME", place.path("home"))
        .env("CLIQ_TEST_URL", place.url().unwrap_or_default())
        .env("CLIQ_TEST_DETAIL", detail)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("it starts")
}

#[tokio::test]
#[ignore = "what the processes of the other tests do"]
async fn a_process() {
    let Ok(role) = std::env::var("CLIQ_TEST_ROLE") else { return };
    let variable = |name: &str| std::env::var(name).expect("it is set");
    let (home, url, detail) = (
        Utf8PathBuf::from(variable("CLIQ_TEST_HOME")),
        variable("CLIQ_TEST_URL"),
        variable("CLIQ_TEST_DETAIL"),
    );
    let location =
        Location::choose(Some(url.as_str()).filter(|url| !url.is_empty()), &home).expect("a location");
    let store = SqlStore::open_with(&location, patience(Duration::from_secs(120))).await.expect("a database");
    match role.as_str() {
        "emit" => {
            for _ in 0..detail.parse().expect("a number") {
                store.create("p", &signal("review-changes", "fix")).await.expect("emitted");
            }
        }
        "claim" => claim(&store).await,
        "bridge" => {
            let (inbox, mode) = detail.split_once('|').expect("two");
            let store = Pausing { store, mode: mode.to_owned() };
            Inbox::new(inbox.into()).bridge(&store, "p").await.expect("bridged");
        }
        other => panic!("{other}?"),
    }
}

/// Claims until there has been nothing for a while. Says of each signal when it is claimed and when it is finished.
async fn claim(store: &SqlStore) {
    let mut idle = Instant::now();
    while idle.elapsed() < Duration::from_secs(5) {
        let Some((claim, signal)) = store.claim("p", "w").await.expect("claimed") else {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        say(&format!("claimed {}", signal.id));
        if store.finish(&claim, &done()).await.expect("finished") == Outcome::Applied {
            say(&format!("done {}", signal.id));
        }
        idle = Instant::now();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}").and_then(|()| out.flush()).expect("the parent listens");
}

pub(crate) async fn each_signal_is_processed_exactly_once(place: &TestDatabase) {
    let store = place.store().await;
    let total: usize =
        std::env::var("CLIQ_TEST_SIGNALS").ok().and_then(|n| n.parse().ok()).unwrap_or(SIGNALS);
    let began = Instant::now();
    let mut emitters: Vec<Child> =
        (0..EMITTERS).map(|_| start("emit", place, &(total / EMITTERS).to_string())).collect();
    let (lines, heard) = mpsc::channel();
    let claimer = || {
        let mut child = start("claim", place, "");
        let (out, lines) = (child.stdout.take().expect("piped"), lines.clone());
        std::thread::spawn(move || {
            BufReader::new(out).lines().map_while(Result::ok).for_each(|l| drop(lines.send(l)))
        });
        child
    };
    let mut claimers: Vec<Child> = (0..CLAIMERS).map(|_| claimer()).collect();
    let (mut finished, mut claims, mut killed) = (HashMap::<i64, usize>::new(), 0_usize, 0_usize);
    let deadline = Instant::now() + Duration::from_secs(600);
    let none = async |status| {
        let filter = Filter { status: Some(status), limit: Some(1), ..Filter::default() };
        store.signals(&filter).await.expect("listed").is_empty()
    };
    let mut looked = Instant::now();
    loop {
        while let Ok(line) = heard.recv_timeout(Duration::from_millis(20)) {
            if let Some(id) = line.strip_prefix("done ") {
                *finished.entry(id.parse().expect("a number")).or_default() += 1;
            } else if line.starts_with("claimed ") {
                claims += 1;
                // One that most probably holds a claim just now: after it said so it has to wait for the database.
                if claims % (total / 40).max(1) == 0 && killed < 30 {
                    killed += 1;
                    let mut old = std::mem::replace(&mut claimers[killed % CLAIMERS], claimer());
                    old.kill().expect("killed");
                    old.wait().expect("reaped");
                }
            }
            if looked.elapsed() > Duration::from_millis(500) {
                break;
            }
        }
        looked = Instant::now();
        store.reset_stuck(Duration::from_secs(2)).await.expect("reset");
        let emitted = emitters.iter_mut().all(|child| child.try_wait().is_ok_and(|status| status.is_some()));
        if emitted && none(SignalStatus::Pending).await && none(SignalStatus::Processing).await {
            break;
        }
        assert!(Instant::now() < deadline, "they are not done");
    }
    println!(
        "{total} signals, {EMITTERS} emitters, {CLAIMERS} claimers, {killed} killed: {:?}",
        began.elapsed()
    );
    for child in emitters.iter_mut().chain(&mut claimers) {
        let _ = child.kill();
        child.wait().expect("reaped");
    }
    drop(lines);
    for line in &heard {
        if let Some(id) = line.strip_prefix("done ") {
            *finished.entry(id.parse().expect("a number")).or_default() += 1;
        }
    }
    let stored = store.signals(&Filter::default()).await.expect("listed");
    assert_eq!(stored.len(), total);
    assert!(stored.iter().all(|signal| signal.status == SignalStatus::Done));
    assert!(killed > 5, "{killed}");
    assert!(finished.values().all(|times| *times == 1), "{finished:?}");
    // Who was killed may have finished one without saying so.
    assert!(finished.len() + killed >= total, "{} of {total}", finished.len());
}

/// A store that stops before or after it commits the row of a file, to be killed there.
#[derive(Debug)]
struct Pausing {
    store: SqlStore,
    mode: String,
}

#[tokio::test]
async fn the_bridge_may_be_killed_between_row_and_file() {
    let place = &TestDatabase::sqlite();
    let store = place.store().await;
    let inbox = Inbox::new(place.path("inbox"));
    inbox.ensure().unwrap();
    for n in 0..BRIDGE_KILLS {
        // The same name again and again: each is another signal.
        inbox.put(&format!("review-changes-plan{}", n % 3), &format!("change {n}")).unwrap();
        let mode = if n % 4 == 0 { "before" } else { "after" };
        let mut bridge = start("bridge", place, &format!("{}|{mode}", inbox.root()));
        let mut lines = BufReader::new(bridge.stdout.take().expect("piped")).lines();
        assert!(lines.by_ref().map_while(Result::ok).any(|line| line == mode), "it says when it is there");
        bridge.kill().unwrap();
        bridge.wait().unwrap();
        assert_eq!(inbox.recover().unwrap().moved.len(), 1);
        inbox.bridge(&store, "p").await.unwrap();
    }
    let mut bodies: Vec<String> = store
        .signals(&Filter::default())
        .await
        .unwrap()
        .iter()
        .map(|signal| signal.payload()["body"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(bodies.len(), BRIDGE_KILLS);
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), BRIDGE_KILLS, "none is lost, none is doubled");
    assert!(inbox.recover().unwrap().moved.is_empty());
}

#[async_trait]
impl Store for Pausing {
    async fn create_from_file(
        &self,
        project: &str,
        signal: &NewSignal,
        identity: &str,
    ) -> Result<i64, StoreError> {
        if self.mode == "before" {
            say("before");
            std::future::pending::<()>().await;
        }
        let id = self.store.create_from_file(project, signal, identity).await;
        say("after");
        std::future::pending::<()>().await;
        id
    }

    async fn forget_file(&self, _: &str) -> Result<(), StoreError> {
        unreachable!("it never gets there")
    }
    async fn create(&self, _: &str, _: &NewSignal) -> Result<i64, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn claim(&self, _: &str, _: &str) -> Result<Option<(Claim, Signal)>, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn finish(&self, _: &Claim, _: &Finish) -> Result<Outcome, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn reset_stuck(&self, _: Duration) -> Result<Vec<i64>, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn reset_claims(&self, _: &str) -> Result<Vec<i64>, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn retry(&self, _: i64) -> Result<bool, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn signals(&self, _: &Filter) -> Result<Vec<Signal>, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn signal_counts(&self) -> Result<SignalCounts, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn signal(&self, _: i64) -> Result<Option<Signal>, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn projects(&self) -> Result<Vec<String>, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn plans(&self, _: Option<&str>) -> Result<Vec<PlanRow>, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn plan(&self, _: &str, _: &str) -> Result<Option<PlanRow>, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn apply(&self, _: &Step) -> Result<Outcome, StoreError> {
        unreachable!("the bridge does not")
    }
    async fn events(&self, _: &str, _: &str, _: i64) -> Result<Vec<PlanEvent>, StoreError> {
        unreachable!("the bridge does not")
    }
}

/// A new database is made by the program that comes first; the others wait for it.
#[test]
fn many_open_a_new_database_at_the_same_moment() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(dir.path().join("new.db")).unwrap();
        let barrier = std::sync::Barrier::new(12);
        std::thread::scope(|scope| {
            let open = || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                barrier.wait();
                runtime.block_on(async {
                    let store = SqlStore::open(&Location::Sqlite(path.clone()))
                        .await
                        .expect("it waits for the others");
                    store.signals(&Filter::default()).await.expect("it waits for the others");
                });
            };
            for _ in 0..12 {
                scope.spawn(open);
            }
        });
    }
}
