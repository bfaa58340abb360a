//! `cliq team install`

use std::process::ExitCode;

use crate::failure::Failure;
use crate::ui::{GREEN, paint};
use crate::{project, render, ui};

pub(super) fn run(source: &str) -> Result<ExitCode, Failure> {
    let fetching =
        |url: &str| drop(ui::line(format!("fetching {}", cliq_protocol::without_credentials(url))));
    let installed = project::host().install_team(source, fetching)?;
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

fn suffix(version: Option<&str>) -> String {
    version.map(|version| format!(" v{version}")).unwrap_or_default()
}
