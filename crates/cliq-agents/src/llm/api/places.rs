//! Places for requests of an agent, shared by all processes of this machine (docs/models.md): how many at a time, how many a minute, and a
//! pause for all after a server has asked for one.
//!
//! Each request has a ticket, a file that its process keeps locked. The lock of a process that dies is free, so that its place is.
//! Decisions are made from the list of tickets, under one lock.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};

/// Polling interval while all places are taken.
const POLL: Duration = Duration::from_millis(10);
/// Period of the limit of requests.
const MINUTE: u64 = 60_000;
/// The longest pause that one answer of a server leads to, in milliseconds.
const MAX_PAUSE: u64 = 60_000;

/// Limits of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Directory with the tickets of the agent.
    dir: Utf8PathBuf,
    /// Name of the run, for fairness between runs.
    run: String,
    limits: PlaceLimits,
}

/// Limits that the settings choose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PlaceLimits {
    pub(crate) max_concurrent: Option<usize>,
    pub(crate) per_minute: Option<usize>,
}

/// Place of a request. Free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    ticket: Option<Ticket>,
}

#[derive(Debug)]
struct Ticket {
    path: Utf8PathBuf,
    /// Locked as long as the process lives.
    _lock: File,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let _ = std::fs::remove_file(&ticket.path);
        }
    }
}

/// Ticket as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Queued {
    number: u64,
    run: String,
    is_running: bool,
}

/// Reason for waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// All places are taken.
    Turn,
    /// The requests of this minute are used up.
    Minute,
    /// A server asked for a pause.
    Pause,
}

impl Places {
    /// Makes the places of an agent below the directory of a person.
    pub(crate) fn new(home: &Utf8Path, agent: &str, run: &str, limits: PlaceLimits) -> Self {
        let plain = |text: &str| -> String {
            text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
        };
        Self { dir: home.join("limits").join(plain(agent)), run: plain(run), limits }
    }

    /// Waits for a place. `on_wait` is called while it waits. Once `is_over`, no place is taken, not even a free one: `None`.
    ///
    /// # Errors
    /// Returns an error if the files cannot be used.
    pub(crate) fn take(
        &self,
        is_over: impl Fn() -> bool,
        mut on_wait: impl FnMut(Wait),
    ) -> io::Result<Option<Place>> {
        if self.limits == PlaceLimits::default() {
            // Only the pause of others counts.
            while !is_over() {
                if self.pause_ends() <= now() {
                    return Ok(Some(Place { ticket: None }));
                }
                on_wait(Wait::Pause);
                std::thread::sleep(POLL);
            }
            return Ok(None);
        }
        std::fs::create_dir_all(&self.dir)?;
        let mut ticket = self.draw()?;
        loop {
            let wait = {
                let _guard = self.guard()?;
                // A cancellation ends all agents of a run. The first to end frees its place, which the others must not take.
                if is_over() {
                    drop(Place { ticket: Some(ticket) });
                    return Ok(None);
                }
                match self.decide(&ticket)? {
                    None => {
                        let path = Utf8PathBuf::from(ticket.path.as_str().replace(".waiting", ".running"));
                        std::fs::rename(&ticket.path, &path)?;
                        ticket.path = path;
                        self.count_start()?;
                        return Ok(Some(Place { ticket: Some(ticket) }));
                    }
                    Some(wait) => wait,
                }
            };
            on_wait(wait);
            std::thread::sleep(POLL);
        }
    }

    /// Lets all requests of the agent wait, since its server asked for a pause.
    pub(crate) fn pause(&self, pause: Duration) {
        let pause = u64::try_from(pause.as_millis()).unwrap_or(MAX_PAUSE).min(MAX_PAUSE);
        let until = now().saturating_add(pause);
        if pause > 0 && until > self.pause_ends() {
            let _ = std::fs::create_dir_all(&self.dir);
            // Without the file, the others find out by themselves.
            let _ = cliq_fs::write_atomic(&self.dir.join("pause"), until.to_string().as_bytes());
        }
    }

    /// Returns the end of the pause, in milliseconds. A clock that was set back does not make it longer.
    fn pause_ends(&self) -> u64 {
        let text = std::fs::read_to_string(self.dir.join("pause")).unwrap_or_default();
        text.trim().parse::<u64>().ok().filter(|until| *until <= now().saturating_add(MAX_PAUSE)).unwrap_or(0)
    }

    fn guard(&self) -> io::Result<File> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(self.dir.join("lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// Draws a ticket with the next number.
    fn draw(&self) -> io::Result<Ticket> {
        let _guard = self.guard()?;
        let number = self.queued()?.into_keys().last().unwrap_or(0) + 1;
        let path = self.dir.join(format!("{number:012}.{}.waiting", self.run));
        let lock = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
        lock.lock()?;
        Ok(Ticket { path, _lock: lock })
    }

    /// Returns the reason why a ticket has to wait, or `None` if it is its turn.
    fn decide(&self, ticket: &Ticket) -> io::Result<Option<Wait>> {
        let time = now();
        if self.pause_ends() > time {
            return Ok(Some(Wait::Pause));
        }
        if let Some(most) = self.limits.per_minute
            && self.starts(time).len() >= most
        {
            return Ok(Some(Wait::Minute));
        }
        let own = ticket.path.file_name().and_then(parse).map_or(0, |own| own.number);
        let queued: Vec<Queued> = self.queued()?.into_values().collect();
        let most = self.limits.max_concurrent.unwrap_or(usize::MAX);
        Ok((next(&queued, most) != Some(own)).then_some(Wait::Turn))
    }

    /// Returns the tickets whose processes live, by their numbers, and removes the others.
    fn queued(&self) -> io::Result<BTreeMap<u64, Queued>> {
        let mut all = BTreeMap::new();
        for entry in self.dir.read_dir_utf8()? {
            let entry = entry?;
            let Some(queued) = parse(entry.file_name()) else { continue };
            let Ok(file) = File::open(entry.path()) else { continue };
            match file.try_lock_shared() {
                Err(TryLockError::WouldBlock) => {
                    all.insert(queued.number, queued);
                }
                Err(TryLockError::Error(error)) => return Err(error),
                // Nobody holds it: its process has ended.
                Ok(()) => drop(std::fs::remove_file(entry.path())),
            }
        }
        Ok(all)
    }

    /// Times of the requests of the last minute, in milliseconds.
    fn starts(&self, time: u64) -> Vec<u64> {
        let text = std::fs::read_to_string(self.dir.join("starts")).unwrap_or_default();
        let is_recent = |start: &u64| *start <= time && time - start < MINUTE;
        text.lines().filter_map(|line| line.parse().ok()).filter(is_recent).collect()
    }

    fn count_start(&self) -> io::Result<()> {
        if self.limits.per_minute.is_none() {
            return Ok(());
        }
        let time = now();
        let mut text = Vec::new();
        for start in self.starts(time).into_iter().chain([time]) {
            writeln!(text, "{start}")?;
        }
        std::fs::write(self.dir.join("starts"), text)
    }
}

fn parse(name: &str) -> Option<Queued> {
    let mut parts = name.splitn(3, '.');
    let (number, run, state) = (parts.next()?, parts.next()?, parts.next()?);
    let is_running = match state {
        "running" => true,
        "waiting" => false,
        _ => return None,
    };
    Some(Queued { number: number.parse().ok()?, run: run.to_owned(), is_running })
}

/// Returns the number of the ticket whose turn it is: of the run with the fewest requests under way, the oldest. `None` if all places are
/// taken, or nobody waits.
fn next(queued: &[Queued], most: usize) -> Option<u64> {
    if queued.iter().filter(|ticket| ticket.is_running).count() >= most {
        return None;
    }
    let running = |run: &str| queued.iter().filter(|ticket| ticket.is_running && ticket.run == run).count();
    let waiting = queued.iter().filter(|ticket| !ticket.is_running);
    waiting.min_by_key(|ticket| (running(&ticket.run), ticket.number)).map(|ticket| ticket.number)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    fn places(dir: &Utf8Path, run: &str, most: usize) -> Places {
        Places::new(dir, "an agent/x", run, PlaceLimits { max_concurrent: Some(most), per_minute: None })
    }

    fn free_now(places: &Places) -> bool {
        places.take(|| false, |wait| panic!("waits: {wait:?}")).unwrap().is_some()
    }

    #[test]
    fn no_more_than_the_limit_are_under_way() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temp.path()).unwrap();
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for run in ["a", "b"] {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let places = places(dir, run, 2);
                        for _ in 0..3 {
                            let place = places.take(|| false, |_| ()).unwrap();
                            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            std::thread::sleep(Duration::from_millis(2));
                            now.fetch_sub(1, Ordering::SeqCst);
                            drop(place);
                        }
                    });
                }
            }
        });
        assert_eq!(most.into_inner(), 2);
        let left = dir.join("limits/an_agent_x").read_dir_utf8().unwrap().flatten();
        assert!(left.into_iter().all(|entry| parse(entry.file_name()).is_none()), "no ticket is left");
    }

    #[test]
    fn ticket_of_a_dead_process_is_removed_and_a_wait_can_be_ended() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temp.path()).unwrap();
        let places = places(dir, "a", 1);
        std::fs::create_dir_all(&places.dir).unwrap();
        std::fs::write(places.dir.join("000000000001.b.running"), "").unwrap();
        let first = places.take(|| false, |_| panic!("the place is free")).unwrap();
        let waits = Cell::new(0);
        let second = places.take(
            || waits.get() == 3,
            |wait| {
                waits.set(waits.get() + 1);
                assert_eq!(wait, Wait::Turn);
            },
        );
        assert!(second.unwrap().is_none() && first.is_some());
    }

    #[test]
    fn place_that_becomes_free_once_all_end_is_not_taken() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temp.path()).unwrap();
        let places = places(dir, "a", 1);
        let first = Cell::new(places.take(|| false, |_| ()).unwrap());
        let is_over = Cell::new(false);
        let second = places.take(
            || is_over.get(),
            |_| {
                drop(first.take());
                is_over.set(true);
            },
        );
        assert!(second.unwrap().is_none());
        let third = places.take(|| false, |_| panic!("the second has left nothing"));
        assert!(third.unwrap().is_some());
    }

    #[test]
    fn pause_and_minute_hold_for_all() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Utf8Path::from_path(temp.path()).unwrap();
        let limits = PlaceLimits { max_concurrent: None, per_minute: Some(2) };
        let places = Places::new(dir, "x", "a", limits);
        assert!(free_now(&places) && free_now(&places));
        let waits = RefCell::new(Vec::new());
        let wait_once = |places: &Places| {
            waits.take();
            places.take(|| !waits.borrow().is_empty(), |wait| waits.borrow_mut().push(wait)).unwrap()
        };
        assert!(wait_once(&places).is_none());
        assert_eq!(waits.take(), [Wait::Minute]);
        let free = Places::new(dir, "x", "b", PlaceLimits::default());
        free.pause(Duration::from_secs(60));
        for all in [&free, &places] {
            assert!(wait_once(all).is_none());
            assert_eq!(waits.take(), [Wait::Pause]);
        }
        std::fs::write(places.dir.join("pause"), "1").unwrap();
        assert!(free_now(&free), "the pause is over");
        std::fs::write(places.dir.join("pause"), u64::MAX.to_string()).unwrap();
        assert!(free_now(&free), "a clock that was set back");
    }

    proptest! {
        #[test]
        fn runs_take_turns(runs in proptest::collection::vec(0u8..3, 1..20), most in 1usize..5) {
            let mut queued: Vec<Queued> = runs
                .iter()
                .enumerate()
                .map(|(n, run)| Queued { number: n as u64 + 1, run: run.to_string(), is_running: false })
                .collect();
            while let Some(number) = next(&queued, most) {
                let ticket = queued.iter_mut().find(|ticket| ticket.number == number).unwrap();
                prop_assert!(!ticket.is_running);
                ticket.is_running = true;
            }
            let count = |run: &str| queued.iter().filter(|ticket| ticket.is_running && ticket.run == run).count();
            prop_assert_eq!(queued.iter().filter(|ticket| ticket.is_running).count(), most.min(queued.len()));
            // No run has two places more than another that waits.
            for waiting in queued.iter().filter(|ticket| !ticket.is_running) {
                prop_assert!(runs.iter().all(|run| count(&run.to_string()) <= count(&waiting.run) + 1));
            }
        }
    }
}
