//! Records that outlive a kill: a file with a JSON object per line. The last line of a key counts. A line that was cut off counts as none.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ConnectorError;
use crate::error::file_error;

/// Record of a ledger.
pub(crate) trait Record: Serialize + DeserializeOwned + Clone {
    /// Key of the record.
    fn key(&self) -> String;
}

/// The most bytes of a ledger.
const LIMIT: u64 = 256 << 20;

/// A ledger. Several threads may use it.
pub(crate) struct Ledger<T> {
    path: Utf8PathBuf,
    state: Mutex<State<T>>,
}

struct State<T> {
    records: BTreeMap<String, T>,
    file: Option<File>,
}

impl<T: Record> Ledger<T> {
    /// Reads a ledger, and removes what has been overtaken.
    pub(crate) fn open(path: &Utf8Path) -> Result<Self, ConnectorError> {
        let bytes = cliq_fs::read_if_exists(path, LIMIT)?.unwrap_or_default();
        let mut records = BTreeMap::new();
        let (mut lines, mut is_whole) = (0, bytes.last().is_none_or(|byte| *byte == b'\n'));
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            lines += 1;
            match serde_json::from_slice::<T>(line) {
                Ok(record) => drop(records.insert(record.key(), record)),
                Err(_) => is_whole = false,
            }
        }
        if !is_whole || lines > records.len() {
            let mut text = Vec::new();
            for record in records.values() {
                text.extend(line(record)?);
            }
            crate::files::write(path, &text)?;
        }
        Ok(Self { path: path.to_owned(), state: Mutex::new(State { records, file: None }) })
    }

    /// The record of a key.
    pub(crate) fn get(&self, key: &str) -> Option<T> {
        self.lock().records.get(key).cloned()
    }

    /// The first record that fits.
    pub(crate) fn find(&self, fits: impl Fn(&T) -> bool) -> Option<T> {
        self.lock().records.values().find(|record| fits(record)).cloned()
    }

    /// Keeps a record: with the system from now on, so that it outlives this process.
    pub(crate) fn put(&self, record: T) -> Result<(), ConnectorError> {
        let line = line(&record)?;
        let mut state = self.lock();
        if state.file.is_none() {
            let dir = self.path.parent().unwrap_or(&self.path);
            std::fs::create_dir_all(dir).map_err(|error| file_error("make", dir, &error))?;
            state.file = Some(cliq_fs::open_append(&self.path)?);
        }
        if let Some(file) = &mut state.file {
            file.write_all(&line).map_err(|error| file_error("write", &self.path, &error))?;
        }
        state.records.insert(record.key(), record);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line(record: &impl Serialize) -> Result<Vec<u8>, ConnectorError> {
    let mut line = serde_json::to_vec(record).map_err(|error| ConnectorError::new(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Note {
        name: String,
        value: u32,
    }

    impl Record for Note {
        fn key(&self) -> String {
            self.name.clone()
        }
    }

    fn note(name: &str, value: u32) -> Note {
        Note { name: name.to_owned(), value }
    }

    #[test]
    fn the_last_line_counts_and_a_cut_one_does_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(dir.path()).expect("UTF-8").join("below/ledger.jsonl");
        let ledger = Ledger::<Note>::open(&path).expect("opened");
        for record in [note("a", 1), note("b", 2), note("a", 3)] {
            ledger.put(record).expect("kept");
        }
        drop(ledger);
        let mut text = std::fs::read(&path).expect("readable");
        text.extend(b"{\"name\":\"b\",\"val");
        std::fs::write(&path, text).expect("written");
        let ledger = Ledger::<Note>::open(&path).expect("opened");
        assert_eq!((ledger.get("a"), ledger.get("b")), (Some(note("a", 3)), Some(note("b", 2))));
        ledger.put(note("c", 4)).expect("kept");
        let text = std::fs::read_to_string(&path).expect("readable");
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
