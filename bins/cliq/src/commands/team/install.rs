//! `cliq team install`

use std::process::ExitCode;

use cliq_project::{Installation, TeamPermissions};

use crate::failure::Failure;
use crate::ui::{BOLD, GREEN, paint};
use crate::{project, render, ui};

pub(super) fn run(source: &str, yes: bool, allow_downgrade: bool) -> Result<ExitCode, Failure> {
    let host = project::host();
    let team = host.prepare_installation(source, &fetching)?;
    show(&team)?;
    if !yes && ui::can_ask() && !ui::confirm(&format!("install {}?", team.name))? {
        return Err(Failure::refused("nothing was installed"));
    }
    let installed = host.install(team, allow_downgrade)?;
    let file = installed.place.join("team.yml");
    render::diagnostics::show(&installed.text, &file, &installed.warnings);
    let (name, version) = (&installed.name, suffix(installed.version.as_deref()));
    match &installed.replaced {
        Some(old) => {
            let new = if version.is_empty() { " the new one" } else { &version };
            ui::line(format!("replacing {name}{} by{new}", suffix(old.as_deref())))?;
        }
        None => ui::line(format!("installing {name}{version}"))?,
    }
    ui::line(format!("{} installed to {}", paint(GREEN, "✓"), installed.place))?;
    ui::line(format!("next: `cliq assemble {name}` in a project"))?;
    Ok(ExitCode::SUCCESS)
}

/// Says what is fetched, as that may take long.
pub(crate) fn fetching(url: &str) {
    let _ = ui::line(format!("fetching {}", cliq_protocol::without_credentials(url)));
}

/// Shows a team before it is installed: signature and permissions.
fn show(team: &Installation) -> Result<(), Failure> {
    if let Some(signature) = &team.signature {
        let version = team.version.as_ref().map(ToString::to_string);
        ui::line(format!("{}{}: {}", team.name, suffix(version.as_deref()), ui::plain(signature)))?;
    }
    permissions(&team.permissions)
}

/// Shows the permissions of teams.
pub(super) fn permissions(teams: &[TeamPermissions]) -> Result<(), Failure> {
    for team in teams {
        let sentences = team.sentences();
        ui::line(paint(BOLD, format!("{}{} may:", team.team, suffix(team.version.as_deref()))))?;
        for sentence in sentences {
            ui::line(format!("  {}", ui::plain(&sentence)))?;
        }
    }
    Ok(())
}

fn suffix(version: Option<&str>) -> String {
    version.map(|version| format!(" v{version}")).unwrap_or_default()
}
