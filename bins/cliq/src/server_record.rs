//! `CLIQ_HOME/server.json`: how programs of this machine reach the server. Only its owner can read it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, IoContext, ProjectLock};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::gateway::home;

/// The most bytes of the file.
const LIMIT: u64 = 64 * 1024;

/// Connection data of the server for programs of this machine.
#[derive(Serialize, Deserialize)]
pub(crate) struct ServerRecord {
    /// Process id of the server.
    pub(crate) pid: u32,
    /// Port of the server.
    pub(crate) port: u16,
    /// URL of the server.
    pub(crate) url: String,
    /// A token with all rights, until the server stops.
    pub(crate) token: String,
}

/// The file while the server lives: it goes with this value.
pub(crate) struct RecordFile(Utf8PathBuf);

impl Drop for RecordFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl ServerRecord {
    /// Writes the file.
    pub(crate) fn write(&self, home: &Utf8Path) -> Result<RecordFile, Failure> {
        let (path, new) = (home.join("server.json"), home.join(".server.json.new"));
        let text = serde_json::to_vec_pretty(self).map_err(std::io::Error::other)?;
        // Made anew, so that the mode is right from the beginning.
        let _ = fs::remove_file(&new);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).at("create", &new)?;
        file.write_all(&text).at("write", &new)?;
        fs::rename(&new, &path).at("write", &path)?;
        Ok(RecordFile(path))
    }

    /// Reads the file; `None` if there is none.
    fn read(home: &Utf8Path) -> Option<Self> {
        let text = cliq_fs::read_text(&home.join("server.json"), LIMIT).ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// Returns `CLIQ_HOME/server`: the lock of the server, its logs, the logs of its runs.
pub(crate) fn server_dir() -> Result<CliqDir, Failure> {
    let home = home()?;
    let dir = home.join("server");
    fs::create_dir_all(&dir).at("create", &dir)?;
    Ok(CliqDir::at(&dir, &home)?)
}

/// Returns the record of the server that runs: the holder of the lock wrote it.
pub(crate) fn running() -> Result<Option<ServerRecord>, Failure> {
    let holder = ProjectLock::holder(&server_dir()?)?.flatten();
    Ok(ServerRecord::read(&home()?).filter(|record| Some(record.pid) == holder))
}

/// Returns the address of the server that runs.
pub(crate) fn server_url() -> Result<Option<String>, Failure> {
    Ok(running()?.map(|record| record.url))
}
