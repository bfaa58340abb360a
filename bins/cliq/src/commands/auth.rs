//! `cliq auth`

use std::process::ExitCode;

use cliq_settings::{GdriveAccount, GdriveSettings};

use crate::args::AuthService;
use crate::failure::Failure;
use crate::project;
use crate::ui::{self, BOLD, GREEN, paint};

pub(super) fn run(service: AuthService) -> Result<ExitCode, Failure> {
    let settings = project::settings()?;
    match service {
        AuthService::Gdrive => {
            let show = |url: &str, code: &str| {
                let _ =
                    ui::line(format!("Open {} and enter the code {}", paint(BOLD, url), paint(BOLD, code)));
                let _ = ui::line("Waiting until that is done …");
            };
            let file = cliq_agents::sign_in(&settings, &project::host().environment, &show)
                .map_err(|error| Failure::failed(error.to_string()))?;
            if GdriveSettings::read(&settings).auth_mode != GdriveAccount::OAuth {
                ui::hint("`cliq settings set -g agents.gdrive.auth_mode oauth` makes agents use it");
            }
            ui::line(format!("{} signed in; {file} keeps the grant", paint(GREEN, "✓")))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
