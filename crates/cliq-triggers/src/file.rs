//! `triggers.yml` in the cliq home.

mod fields;
mod read;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_document::{Diagnostic, Severity};
use cliq_settings::{Settings, TriggerSettings};

use crate::model::Trigger;

pub use fields::triggers_schema;
pub use read::read_triggers;

/// Maximum size of the file, in bytes.
const MAX_FILE: u64 = 8 << 20;

/// Result of reading triggers.
#[derive(Debug, Clone, Default)]
pub struct TriggersCheck {
    /// The triggers, in the order of the file. Empty if there is an error.
    pub triggers: Vec<Trigger>,
    /// Every problem, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// Text of the file.
    pub text: String,
}

impl TriggersCheck {
    /// Whether there is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|problem| problem.severity == Severity::Error)
    }
}

/// Returns the path of the file in a cliq home.
#[must_use]
pub fn triggers_path(home: &Utf8Path) -> Utf8PathBuf {
    home.join("triggers.yml")
}

/// Reads the triggers of a cliq home. Without a file there are none. Secrets come from the settings `triggers.secrets.NAME`.
///
/// # Errors
/// Returns an error if the file or the settings cannot be read. Problems of the file's content are diagnostics.
pub fn read_file(home: &Utf8Path) -> Result<TriggersCheck, String> {
    let path = triggers_path(home);
    let text = match cliq_fs::read_text(&path, MAX_FILE) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(TriggersCheck::default()),
        Err(error) => return Err(error.to_string()),
    };
    let settings = Settings::load(Some(home), None).map_err(|error| error.to_string())?;
    let secrets = TriggerSettings::read(&settings).secrets;
    Ok(read_triggers(&text, &|name| secrets.get(name).cloned()))
}
