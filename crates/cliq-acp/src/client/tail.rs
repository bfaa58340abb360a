//! End of an agent's error output, without secrets.

use std::io;
use std::process::Command;

use tokio::net::unix::pipe;

/// Number of trailing bytes kept.
const KEPT: usize = 4096;
/// Minimum length of a secret. Shorter values would take ordinary words out of messages.
const SHORTEST: usize = 6;
/// Parts of the names of variables with secrets.
const NAMES: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// Returns the secrets of a command: those that are given, and the values of its variables with the name of a secret.
pub(super) fn secrets(command: &Command, given: Vec<String>) -> Vec<String> {
    let named = command.get_envs().filter_map(|(name, value)| {
        let name = name.to_string_lossy().to_ascii_uppercase();
        let value = value?.to_str()?;
        NAMES.iter().any(|part| name.contains(part)).then(|| value.to_owned())
    });
    let mut secrets: Vec<String> =
        given.into_iter().chain(named).filter(|secret| secret.len() >= SHORTEST).collect();
    // A secret that contains another one is replaced first.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    secrets
}

/// Last bytes of an error output.
pub(super) struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
    secrets: Vec<String>,
}

impl std::fmt::Debug for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tail").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Tail {
    pub(super) fn new(secrets: Vec<String>) -> Self {
        Self { bytes: Vec::new(), is_cut: false, secrets }
    }

    /// Reads once from a pipe. Returns `false` at its end. Never returns if there is no pipe.
    pub(super) async fn read(&mut self, pipe: &mut Option<pipe::Receiver>) -> bool {
        let Some(pipe) = pipe else { return std::future::pending().await };
        let mut buffer = [0; 4096];
        loop {
            if pipe.readable().await.is_err() {
                return false;
            }
            match pipe.try_read(&mut buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    self.push(&buffer[..n]);
                    return true;
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => return false,
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * KEPT {
            self.bytes.drain(..self.bytes.len() - KEPT);
            self.is_cut = true;
        }
    }

    /// Returns the text without secrets. A first line that is incomplete is left out, as it may begin inside a secret.
    pub(super) fn text(&self) -> String {
        let excess = self.bytes.len().saturating_sub(KEPT);
        let kept = &self.bytes[excess..];
        let is_cut = self.is_cut || excess > 0;
        let start = match kept.iter().position(|byte| *byte == b'\n') {
            Some(end) if is_cut => end + 1,
            None if is_cut => kept.len(),
            Some(_) | None => 0,
        };
        self.masked(String::from_utf8_lossy(&kept[start..]).trim())
    }

    /// Returns a text without secrets.
    pub(super) fn masked(&self, text: &str) -> String {
        let replace = |text: String, secret: &String| text.replace(secret.as_str(), "[secret]");
        self.secrets.iter().fold(text.to_owned(), replace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_and_incomplete_lines_left_out() {
        let mut command = Command::new("agent");
        command.env("API_KEY", "s3cr3t-long").env("DEBUG", "verbose").env("MY_TOKEN", "ab");
        let mut tail = Tail::new(secrets(&command, vec!["s3cr3t".into()]));
        tail.push(b"no s3cr3t-long, s3cr3t, verbose, ab\n");
        assert_eq!(tail.text(), "no [secret], [secret], verbose, ab");
        tail.push("x".repeat(3 * KEPT).as_bytes());
        assert_eq!(tail.text(), "");
        tail.push(b"\nlast line");
        assert_eq!(tail.text(), "last line");
        assert!(tail.bytes.len() <= 2 * KEPT);
    }
}
