//! SSH signatures of packages, made and checked by `ssh-keygen` (docs/packages.md, "Signatures").

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, IoContext};

/// Namespace of the signatures: one that was made for something else does not count.
pub const NAMESPACE: &str = "cliq-team";

/// Name of the program.
pub const PROGRAM: &str = "ssh-keygen";

/// A public SSH key that may sign packages: `TYPE BASE64 COMMENT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    key: String,
    comment: String,
}

/// A signature cannot be made or does not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The text is not a public key.
    #[error("{0:?} is not a public SSH key: write the line of a file such as ~/.ssh/id_ed25519.pub")]
    Key(String),
    /// `ssh-keygen` is not installed.
    #[error("{PROGRAM} is not installed: signatures of packages require it")]
    NoProgram,
    /// `ssh-keygen` cannot sign.
    #[error("{PROGRAM} cannot sign with {key}: {message}")]
    Sign {
        /// File of the key.
        key: Utf8PathBuf,
        /// Message of the program.
        message: String,
    },
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FsError),
    /// `ssh-keygen` cannot be run.
    #[error("{PROGRAM} cannot be run: {0}")]
    Run(#[from] std::io::Error),
}

impl Signer {
    /// Parses the line of a public key.
    ///
    /// # Errors
    /// The line is not a key: options before it, and line breaks, are refused.
    pub fn parse(text: &str) -> Result<Self, SignatureError> {
        let text = text.trim();
        let wrong = || SignatureError::Key(text.chars().take(80).collect());
        let (kind, rest) = text.split_once(' ').ok_or_else(wrong)?;
        let (data, comment) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        let is_kind =
            ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-sha2-"].iter().any(|start| kind.starts_with(start));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '@');
        let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
        if !is_kind || !kind.chars().all(plain) || data.len() < 32 || !data.chars().all(base64) {
            return Err(wrong());
        }
        if comment.chars().any(char::is_control) {
            return Err(wrong());
        }
        Ok(Self { key: format!("{kind} {data}"), comment: comment.trim().to_owned() })
    }

    /// Name of the signer: the comment of the key, else its end.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.comment.is_empty() { &self.key[self.key.len().saturating_sub(12)..] } else { &self.comment }
    }
}

/// `ssh-keygen` at a path.
#[derive(Debug, Clone)]
pub struct SshKeygen(Option<Utf8PathBuf>);

impl SshKeygen {
    /// The program at a path; `None` if it is not installed, which is an error where it is needed.
    #[must_use]
    pub fn new(program: Option<Utf8PathBuf>) -> Self {
        Self(program)
    }

    fn command(&self, operation: &str) -> Result<Command, SignatureError> {
        let mut command = Command::new(self.0.as_ref().ok_or(SignatureError::NoProgram)?);
        command.args(["-Y", operation, "-n", NAMESPACE]);
        Ok(command)
    }

    /// Signs a message with a private key, or with the key of an agent whose public key is in the file. A passphrase is asked for on the
    /// terminal.
    ///
    /// # Errors
    /// The program is not installed, or cannot sign.
    pub fn sign(&self, key: &Utf8Path, message: &[u8]) -> Result<Vec<u8>, SignatureError> {
        let mut command = self.command("sign")?;
        command.arg("-f").arg(key);
        let (done, output, message) = run(command, message)?;
        if done { Ok(output) } else { Err(SignatureError::Sign { key: key.to_owned(), message }) }
    }

    /// Returns the first signer whose signature of the message this is, or `None` if it is that of nobody.
    ///
    /// # Errors
    /// The program is not installed or cannot be run.
    pub fn signer<'s>(
        &self,
        signers: &'s [Signer],
        message: &[u8],
        signature: &[u8],
    ) -> Result<Option<&'s Signer>, SignatureError> {
        let dir = tempfile::tempdir()?;
        let place = Utf8Path::from_path(dir.path()).unwrap_or(Utf8Path::new("/nonexistent"));
        let (allowed, file) = (place.join("allowed"), place.join("signature"));
        std::fs::write(&file, signature).at("write", &file)?;
        for signer in signers {
            let line = format!("signer namespaces=\"{NAMESPACE}\" {}\n", signer.key);
            std::fs::write(&allowed, line).at("write", &allowed)?;
            let mut command = self.command("verify")?;
            command.arg("-f").arg(&allowed).args(["-I", "signer", "-s"]).arg(&file);
            if run(command, message)?.0 {
                return Ok(Some(signer));
            }
        }
        Ok(None)
    }

    /// Returns the fingerprint of the key that made a signature, or `None` if the signature is not one of this message. Whether the key is
    /// trusted is another question.
    ///
    /// # Errors
    /// The program is not installed or cannot be run.
    pub fn fingerprint(&self, message: &[u8], signature: &[u8]) -> Result<Option<String>, SignatureError> {
        let dir = tempfile::tempdir()?;
        let file = Utf8Path::from_path(dir.path()).unwrap_or(Utf8Path::new("/nonexistent")).join("signature");
        std::fs::write(&file, signature).at("write", &file)?;
        let mut command = self.command("check-novalidate")?;
        command.arg("-s").arg(&file);
        let (done, output, errors) = run(command, message)?;
        let text = format!("{}{errors}", String::from_utf8_lossy(&output));
        let found = text.split_whitespace().find(|word| word.starts_with("SHA256:"));
        Ok(found.filter(|_| done).map(str::to_owned))
    }
}

/// Runs the program with a message on standard input. Gives whether it succeeded, its output and its messages.
fn run(mut command: Command, message: &[u8]) -> Result<(bool, Vec<u8>, String), SignatureError> {
    let mut input: File = tempfile::tempfile()?;
    input.write_all(message)?;
    std::io::Seek::rewind(&mut input)?;
    let child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => SignatureError::NoProgram,
        _ => SignatureError::Run(error),
    })?;
    let mut output = Vec::new();
    if let Some(pipe) = child.stdout.as_mut() {
        pipe.take(1 << 20).read_to_end(&mut output)?;
    }
    let end = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&end.stderr).trim().to_owned();
    Ok((end.status.success(), output, errors))
}
