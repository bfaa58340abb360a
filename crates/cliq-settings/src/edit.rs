//! Changing a settings file.

use std::fs;
use std::io::Write;

use camino::Utf8Path;
use serde_json::{Map, Value};

use crate::SettingsError;
use crate::keys::{Key, parts};
use crate::layers::{read, sandbox_of};

/// Sets a key in a file, which is created where it is missing. The file is readable by its owner only.
///
/// # Errors
/// The key is unknown, the value has the wrong type, or the file cannot be read or written. It is as it was then.
pub fn set(file: &Utf8Path, path: &str, text: &str) -> Result<(), SettingsError> {
    let value = Key::find(path)?.parse(path, text)?;
    let mut values = read(file)?;
    let mut parts = parts(path);
    let last = parts.pop().unwrap_or_default();
    let mut map = &mut values;
    for part in parts {
        let inner = map.entry(part).or_insert_with(|| Value::Object(Map::new()));
        if !inner.is_object() {
            *inner = Value::Object(Map::new());
        }
        let Value::Object(inner) = inner else { unreachable!("it was just made one") };
        map = inner;
    }
    map.insert(last.to_owned(), value);
    sandbox_of(&values)?;
    write(file, values)
}

/// Removes a key from a file. `false` where it was not set there.
///
/// # Errors
/// The key is unknown, or the file cannot be read or written.
pub fn unset(file: &Utf8Path, path: &str) -> Result<bool, SettingsError> {
    Key::find(path)?;
    let mut values = read(file)?;
    let parts = parts(path);
    if !remove(&mut values, &parts) {
        return Ok(false);
    }
    write(file, values)?;
    Ok(true)
}

/// Removes the value at a path, and objects that become empty. Returns whether there was one.
pub(crate) fn remove(map: &mut Map<String, Value>, path: &[&str]) -> bool {
    match path {
        [] => false,
        [last] => map.remove(*last).is_some(),
        [first, rest @ ..] => {
            let Some(Value::Object(inner)) = map.get_mut(*first) else { return false };
            let removed = remove(inner, rest);
            if inner.is_empty() {
                map.remove(*first);
            }
            removed
        }
    }
}

fn write(file: &Utf8Path, values: Map<String, Value>) -> Result<(), SettingsError> {
    let failed = |source| SettingsError::File { file: file.to_owned(), action: "cannot write", source };
    let dir = file.parent().unwrap_or(Utf8Path::new("."));
    fs::create_dir_all(dir).map_err(failed)?;
    let mut text = serde_json::to_vec_pretty(&Value::Object(values)).map_err(|e| failed(e.into()))?;
    text.push(b'\n');
    // Made for its owner alone: it may hold keys.
    let mut temporary = tempfile::Builder::new().prefix(".tmp-").tempfile_in(dir).map_err(failed)?;
    temporary.write_all(&text).map_err(failed)?;
    temporary.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}
