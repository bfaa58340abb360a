//! Signals that cancel a run, or stop a daemon or a server.

#[cfg(target_os = "linux")]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::Read;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Bit of SIGHUP in the masks of `/proc/self/status`.
#[cfg(target_os = "linux")]
const HANGUP: u64 = 1;

/// Waits for SIGINT, SIGTERM or SIGHUP. A SIGHUP that was ignored at the start (`nohup`) stays ignored.
pub(super) async fn interrupted() {
    let hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup()));
    let [mut interrupt, mut terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    tokio::select! {
        () = received(&mut interrupt) => {}
        () = received(&mut terminate) => {}
        () = hung_up(hangup) => {}
    }
}

/// Cancels a token with SIGINT and SIGTERM. SIGHUP ends a process in the foreground likewise; one in the background, and one
/// that was started with it ignored, ignores it.
pub(super) fn stop_by_signals(stop: &CancellationToken, is_detached: bool) -> std::io::Result<()> {
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if is_detached {
        // Received and dropped: programs that it starts do not inherit that, as they would if it were ignored.
        let mut hangup = signal(SignalKind::hangup())?;
        tokio::spawn(async move { while hangup.recv().await.is_some() {} });
    } else if !ignores_hangup() {
        kinds.push(SignalKind::hangup());
    }
    for kind in kinds {
        let (mut asked, stop) = (signal(kind)?, stop.clone());
        tokio::spawn(async move {
            while asked.recv().await.is_some() {
                stop.cancel();
            }
        });
    }
    Ok(())
}

/// Whether this process ignores SIGHUP. Only before the signal is first handled.
#[cfg(not(target_os = "linux"))]
fn ignores_hangup() -> bool {
    ignores_by_trial(std::process::Command::new("/bin/sh"))
}

/// Whether a shell ignores the SIGHUP that it sends itself: it inherits which signals are ignored.
#[cfg(any(test, not(target_os = "linux")))]
fn ignores_by_trial(mut shell: std::process::Command) -> bool {
    let shell = shell.args(["-c", "kill -HUP $$"]).stdin(std::process::Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

/// Whether this process ignores SIGHUP. Only before the signal is first handled.
#[cfg(target_os = "linux")]
fn ignores_hangup() -> bool {
    // Longer than the file, so that it is read at once.
    let mut status = [0; 8 * 1024];
    let length = File::open("/proc/self/status").and_then(|mut file| file.read(&mut status)).unwrap_or(0);
    ignored_signals(&status[..length]) & HANGUP != 0
}

/// Returns the mask of ignored signals in the text of `/proc/PID/status`.
#[cfg(any(test, target_os = "linux"))]
fn ignored_signals(status: &[u8]) -> u64 {
    // The name of the process in the first line may be of any bytes.
    let mask = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"SigIgn:"));
    let mask = mask.and_then(|mask| std::str::from_utf8(mask.trim_ascii()).ok());
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0)
}

async fn hung_up(hangup: Option<std::io::Result<Signal>>) {
    match hangup {
        Some(mut hangup) => received(&mut hangup).await,
        None => std::future::pending().await,
    }
}

async fn received(signal: &mut std::io::Result<Signal>) {
    match signal {
        Ok(signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_hangups_are_inherited() {
        use std::process::Command;
        let mut ignoring = Command::new("sh");
        // The words that follow `-c TEXT NAME` are those of the trial.
        ignoring.args(["-c", "trap '' HUP; exec sh \"$@\"", "sh"]);
        assert!(ignores_by_trial(ignoring));
        let mut usual = Command::new("env");
        usual.args(["--default-signal=HUP", "sh"]);
        assert!(!ignores_by_trial(usual));
    }

    #[test]
    fn mask_of_ignored_signals_is_read() {
        let status = b"Name:\t\xff\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored_signals(status), 0x1001);
        assert_eq!(ignored_signals(b"Name:\tcliq\n"), 0);
        assert_eq!(ignored_signals(b"SigIgn:\txyz\n"), 0);
    }
}
