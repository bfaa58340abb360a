//! `cliq init`

use std::process::ExitCode;

use camino::Utf8Path;
use cliq_fs::{CliqDir, write_atomic};

use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run() -> Result<ExitCode, Failure> {
    let here = project::here()?;
    let existed = here.join(CliqDir::NAME).exists();
    let dir = create(&here)?;
    ui::line(if existed {
        format!("{} is a cliq project already; whatever was missing in .cliq/ is there now", dir.workspace())
    } else {
        format!("{} is a cliq project now", dir.workspace())
    })?;
    if !dir.team_file().exists() {
        ui::line("next: `cliq assemble TEAM` chooses a team; `cliq team list` shows those there are")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a directory a project.
pub(super) fn create(workspace: &Utf8Path) -> Result<CliqDir, Failure> {
    let dir = CliqDir::create(workspace)?;
    if !dir.id_file().exists() {
        // The last bytes of such an id are random; six characters tell projects apart for people.
        let id = uuid::Uuid::now_v7().simple().to_string();
        write_atomic(&dir.id_file(), format!("cliq-{}\n", &id[26..]).as_bytes())?;
    }
    if !dir.settings().exists() {
        write_atomic(&dir.settings(), b"{}\n")?;
    }
    Ok(dir)
}
