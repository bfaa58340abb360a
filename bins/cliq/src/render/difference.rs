//! Differences of files in the unified form, and permissions that a change adds.

use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::ui::{self, BOLD, DIM, GREEN, RED, YELLOW, paint};

/// Shows permissions that a change adds, and the differences of its files.
pub(crate) fn show(new_permissions: &[String], files: &BTreeMap<String, String>) -> Result<(), Failure> {
    for sentence in new_permissions {
        ui::line(paint(YELLOW, format!("  new: it {}", ui::plain(sentence))))?;
    }
    for (path, difference) in files {
        ui::line(paint(BOLD, format!("  {}", ui::plain(path))))?;
        for line in ui::plain(difference).lines() {
            let line = match line.as_bytes().first() {
                Some(b'+') => paint(GREEN, line),
                Some(b'-') => paint(RED, line),
                Some(b'@') => paint(DIM, line),
                _ => line.to_owned(),
            };
            ui::line(format!("    {line}"))?;
        }
    }
    Ok(())
}
