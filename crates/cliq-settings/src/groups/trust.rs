//! Setting `trusted_projects`.

use camino::Utf8Path;

use super::group;
use crate::layers::Settings;

group! {
    /// Projects that a person trusts.
    Person struct TrustSettings {
        "trusted_projects", projects: Vec<String>,
            "directories of projects whose skills agents may read, with all directories below them; `cliq trust` adds one";
    }
}

impl TrustSettings {
    /// Whether a person trusts the project in a directory.
    #[must_use]
    pub fn trusts(settings: &Settings, project: &Utf8Path) -> bool {
        let real = |path: &Utf8Path| path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
        let project = real(project);
        Self::read(settings).projects.iter().any(|trusted| project.starts_with(real(Utf8Path::new(trusted))))
    }
}
