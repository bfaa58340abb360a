//! Installing a team that a model made: whole or not at all, and never in the place of another.

use camino::{Utf8Path, Utf8PathBuf};

use super::definition::CheckedDefinition;
use crate::AnyError;

/// Writes a team into the teams of a cliq home. Gives its folder.
pub(super) fn install(home: &Utf8Path, team: &CheckedDefinition) -> Result<Utf8PathBuf, AnyError> {
    let name = team.workflow.name.name();
    let scope = home.join("teams/@local");
    let target = scope.join(name);
    if target.symlink_metadata().is_ok() {
        return Err(format!("the team @local/{name} exists: it is not replaced").into());
    }
    std::fs::create_dir_all(&scope)?;
    let new = tempfile::Builder::new().prefix(".new-").tempdir_in(&scope)?;
    let dir = Utf8Path::from_path(new.path()).ok_or("the cliq home is not UTF-8")?;
    std::fs::create_dir(dir.join("roles"))?;
    std::fs::write(dir.join("team.yml"), &team.definition.team_yml)?;
    for role in &team.definition.roles {
        std::fs::write(dir.join("roles").join(format!("{}.md", role.name)), &role.content)?;
    }
    // The directory of another that came in between is not empty: the system refuses.
    std::fs::rename(dir, &target).map_err(|error| format!("cannot install {target}: {error}"))?;
    drop(new.keep());
    Ok(target)
}
