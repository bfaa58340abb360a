//! Throughput of the queue: signals emitted, and claimed and finished, per second. `benches/queue` runs it beside the same
//! statements in a bare loop.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark, for whoever runs it")]

use std::time::Instant;

use camino::Utf8PathBuf;
use cliq_gateway::{Finish, NewSignal, Store};
use cliq_store::{Location, SqlStore};

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let (Some(path), Some(count)) = (arguments.next(), arguments.next()) else { return };
    let count: u32 = count.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let location = if path.contains("://") {
        Location::choose(Some(&path), "".into()).unwrap()
    } else {
        Location::Sqlite(Utf8PathBuf::from(path))
    };
    runtime.block_on(async {
        let store = SqlStore::open(&location).await.unwrap();
        let signal = NewSignal::parse("review_changes_requested", "plan", "fix it").unwrap();
        let started = Instant::now();
        for _ in 0..count {
            store.create("p", &signal).await.unwrap();
        }
        let emit = started.elapsed().as_secs_f64();
        let started = Instant::now();
        while let Some((claim, _)) = store.claim("p", "w").await.unwrap() {
            let _ = store.finish(&claim, &Finish::Done("ok".to_owned())).await.unwrap();
        }
        let claim = started.elapsed().as_secs_f64();
        println!("{{\"emit\":{:.0},\"claim\":{:.0}}}", f64::from(count) / emit, f64::from(count) / claim);
    });
}
