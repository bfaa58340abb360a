//! Processes of this system: from `/proc` on Linux, by the program `ps` elsewhere (docs/platforms.md).

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;

use std::io;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use portable as system;

/// Whether a process of the group lives. Zombies do not count: in a container whose first
/// process reaps no children they would count for ever.
///
/// `None` where the system does not say.
#[must_use]
pub fn process_group_is_alive(group: i32) -> Option<bool> {
    system::process_group_is_alive(group)
}

/// The session that a living process belongs to. `None` if there is no such process, or the system does not say.
#[must_use]
pub fn session_of(pid: i32) -> Option<i32> {
    system::session_of(pid)
}

/// The parent of a living process. `None` if there is no such process, or the system does not say.
#[must_use]
pub fn parent_of(pid: i32) -> Option<i32> {
    system::parent_of(pid)
}

/// The numbers of the processes with a variable, `NAME=VALUE`, for which `is_wanted` is true. Zombies have no variables. With
/// `candidates`, only these processes are looked at.
///
/// Outside of Linux a variable with a blank is not found, and a word of a command line counts as a variable.
///
/// # Errors
/// The system does not list its processes.
pub fn processes_with(candidates: Option<&[i32]>, is_wanted: impl Fn(&[u8]) -> bool) -> io::Result<Vec<i32>> {
    system::processes_with(candidates, is_wanted)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn processes_are_found_by_their_variables() {
        let mark = format!("cliq-fs-{}", std::process::id());
        let mut sleeper = Command::new("sleep")
            .arg("60")
            .env("CLIQ_TEST_MARK", &mark)
            .stdin(Stdio::null())
            .spawn()
            .expect("sleep");
        let pid = i32::try_from(sleeper.id()).expect("a number");
        let wanted = format!("CLIQ_TEST_MARK={mark}");
        let find = |candidates: Option<&[i32]>| {
            processes_with(candidates, |found| found == wanted.as_bytes()).expect("a list")
        };
        // Until it has become `sleep`, the child has the environment of this process.
        while find(None).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(find(None), [pid]);
        assert_eq!(find(Some(&[pid, 1])), [pid]);
        assert_eq!(find(Some(&[1])), [0; 0]);
        let me = i32::try_from(std::process::id()).expect("a number");
        assert_eq!((parent_of(pid), session_of(pid)), (Some(me), session_of(me)));
        assert!(session_of(me).is_some());
        sleeper.kill().expect("killed");
        // Dead and not yet waited for.
        while process_group_is_alive(pid) == Some(true) || !find(None).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(parent_of(pid), None);
        sleeper.wait().expect("gone");
    }
}
