//! Calls of the program `git` with a private directory, and with nothing of the user's or the project's configuration.

use std::ffi::OsStr;

use crate::GitError;
use camino::{Utf8Path, Utf8PathBuf};

use super::CheckpointError;

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
        let git = crate::Git::new(self.work_tree.unwrap_or(self.store)).private();
        let path = self.path.map(|path| ("PATH", path.to_owned()));
        let tree = self.work_tree.map(|tree| ("GIT_WORK_TREE", tree.to_string()));
        let index = self.index.as_ref().map(|index| ("GIT_INDEX_FILE", index.to_string()));
        let fixed = [
            ("GIT_DIR", self.store.to_string()),
            ("GIT_OPTIONAL_LOCKS", "0".to_owned()),
            ("GIT_CEILING_DIRECTORIES", "/".to_owned()),
            ("HOME", self.store.to_string()),
        ];
        let env = fixed.into_iter().chain(path).chain(tree).chain(index);
        let git = env.fold(git, |git, (name, value)| git.with_env(name, value));
        let git = SETTINGS.iter().fold(git, |git, setting| git.with_setting(*setting));
        let excludes = self.excludes.as_deref().map_or("/dev/null", Utf8Path::as_str);
        let git = git.with_setting(format!("core.excludesFile={excludes}"));
        git.run_with(&args, input).map_err(|error| match error {
            GitError::NotFound => CheckpointError::NoGit,
            GitError::Failed { command, output, .. } => {
                let reason = output.lines().next_back().unwrap_or("no reason was given").to_owned();
                CheckpointError::Git { call: command, reason }
            }
            GitError::Start(source) => CheckpointError::Io { path: "git".into(), source },
            other => CheckpointError::Git {
                call: args.first().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default(),
                reason: other.to_string(),
            },
        })
    }
}
