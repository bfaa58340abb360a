//! Calls of the program `git` with a private directory, and with nothing of the user's or the project's configuration.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};

use crate::CheckpointError;

/// Settings of each call. What a project's `.gitattributes` asks for is overridden by `info/attributes` of the store.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.quotePath=false",
    "core.preloadIndex=true",
    "core.attributesFile=/dev/null",
    "core.looseCompression=0",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.directory=*",
    "diff.external=",
    "advice.addEmbeddedRepo=false",
];

/// A repository of the workspace, as git sees it through the store.
pub(crate) struct Git<'a> {
    pub(crate) store: &'a Utf8Path,
    /// Value of `PATH`, to find git.
    pub(crate) path: Option<&'a str>,
    /// Working tree, or `None` for calls that need none.
    pub(crate) work_tree: Option<&'a Utf8Path>,
    /// Index file, or `None` for calls that need none.
    pub(crate) index: Option<Utf8PathBuf>,
    /// File with patterns of ignored files.
    pub(crate) excludes: Option<Utf8PathBuf>,
}

impl Git<'_> {
    /// Runs git and returns its output.
    pub(crate) fn run<I: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = I>,
    ) -> Result<Vec<u8>, CheckpointError> {
        self.run_with(args, &[])
    }

    /// Runs git with an input and returns its output.
    pub(crate) fn run_with<I: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = I>,
        input: &[u8],
    ) -> Result<Vec<u8>, CheckpointError> {
        let args: Vec<_> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let mut command = Command::new("git");
        command.env_clear().envs(self.path.map(|path| ("PATH", path))).envs([
            ("GIT_DIR", self.store.as_str()),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_CEILING_DIRECTORIES", "/"),
            ("LC_ALL", "C"),
            ("HOME", self.store.as_str()),
        ]);
        if let Some(work_tree) = self.work_tree {
            command.env("GIT_WORK_TREE", work_tree).current_dir(work_tree);
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        let excludes = self.excludes.as_deref().map_or("/dev/null", Utf8Path::as_str);
        command.args(["-c", &format!("core.excludesFile={excludes}")]);
        command.args(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => CheckpointError::NoGit,
            _ => CheckpointError::Io { path: "git".into(), source: error },
        })?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // Git may write before it has read all.
            scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        });
        let output = output.map_err(|source| CheckpointError::Io { path: "git".into(), source })?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let call = args.first().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
        let text = String::from_utf8_lossy(&output.stderr);
        let reason = text.lines().next_back().unwrap_or("no reason was given").to_owned();
        Err(CheckpointError::Git { call, reason })
    }
}

/// Parts of an output that are separated by NUL.
pub(crate) fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}
