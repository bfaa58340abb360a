//! A clock that is wrong, for the programs of a test.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// Another clock, by libfaketime, for programs that get [`Clock::environment`].
///
/// The library keeps its state in shared memory, which the first program of a family creates and removes at its end. Programs that outlive the first
/// would find none and fail. Here a program that lives as long as this value is the first.
pub struct Clock {
    first: Child,
    variables: Vec<(&'static str, String)>,
}

impl Clock {
    /// Starts a clock with variables of libfaketime, such as `("FAKETIME", "-7m")`. `None` without the library.
    #[must_use]
    pub fn start(variables: &[(&'static str, &str)]) -> Option<Self> {
        if !Path::new(LIBRARY).exists() {
            return None;
        }
        let mut variables: Vec<(&'static str, String)> =
            variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        variables.push(("LD_PRELOAD", LIBRARY.to_owned()));
        let mut command = Command::new("sleep");
        command
            .arg("3600")
            .envs(variables.iter().map(|(name, value)| (*name, value.as_str())))
            .stdin(Stdio::null());
        let first = command.spawn().expect("sleep starts");
        let this = Self {
            variables: [
                variables,
                vec![("FAKETIME_SHARED", names(first.id()).map(|name| format!("/{name}")).join(" "))],
            ]
            .concat(),
            first,
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !this.files().iter().all(|file| Path::new(file).exists()) {
            assert!(Instant::now() < deadline, "libfaketime creates its shared memory");
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(this)
    }

    /// Returns the variables that give a program this clock.
    pub fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (*name, value.as_str()))
    }

    fn files(&self) -> [String; 2] {
        let [semaphore, memory] = names(self.first.id());
        [format!("/dev/shm/sem.{semaphore}"), format!("/dev/shm/{memory}")]
    }
}

/// Returns the names of the semaphore and of the shared memory of the family of a process.
fn names(pid: u32) -> [String; 2] {
    [format!("faketime_sem_{pid}"), format!("faketime_shm_{pid}")]
}

impl Drop for Clock {
    fn drop(&mut self) {
        let _ = self.first.kill();
        let _ = self.first.wait();
        for file in self.files() {
            let _ = std::fs::remove_file(file);
        }
    }
}
