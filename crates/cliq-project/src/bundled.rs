//! Teams and files that are part of the program.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use camino::Utf8Path;
use cliq_fs::{FsError, IoContext};

/// A team that is part of the program.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct BundledTeam {
    /// Name, `@cliq/NAME`.
    pub name: &'static str,
    /// Files: path below the team folder, and text.
    pub files: &'static [(&'static str, &'static str)],
}

macro_rules! files {
    ($dir:literal: $($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../", $dir, "/", $path)))),*]
    };
}

/// The team of `cliq demo`.
pub const DEMO_TEAM: BundledTeam = BundledTeam {
    name: "@cliq/demo",
    files: files!("demo/team":
        "team.yml", "roles/links.md", "roles/headings.md", "roles/front-matter.md", "roles/fixer.md", "roles/report.md",
        "agents/lib.sh", "agents/inspector.sh", "agents/fixer.sh", "agents/reporter.sh",
    ),
};

/// The files that `cliq demo` puts beside its team: pages, and the checks that they have to pass.
pub const DEMO_FILES: &[(&str, &str)] = files!("demo":
    "checks/links.sh", "checks/headings.sh", "checks/front-matter.sh", "checks/lib.sh",
    "pages/index.md", "pages/guide/install.md", "pages/guide/first-steps.md", "pages/guide/upgrade.md",
    "pages/reference/settings.md", "pages/reference/commands.md", "pages/about.md",
);

/// The team of `cliq demo --review`.
pub const REVIEW_DEMO_TEAM: BundledTeam = BundledTeam {
    name: "@cliq/demo-review",
    files: files!("demo-review/team": "team.yml", "roles/approval.md"),
};

/// The files that `cliq demo --review` puts beside its team.
pub const REVIEW_DEMO_FILES: &[(&str, &str)] = files!("demo-review": "menu.csv", "menu.md");

/// The team of `cliq demo --pull`.
pub const PULL_DEMO_TEAM: BundledTeam =
    BundledTeam { name: "@cliq/demo-pull", files: files!("demo-pull/team": "team.yml") };

/// The files that `cliq demo --pull` puts beside its team: a site.
pub const PULL_DEMO_FILES: &[(&str, &str)] =
    files!("demo-pull": "site/about.html", "site/prices.html", "site/stock.csv");

/// The files of `cliq demo --model`: a small program with a test.
pub const MODEL_DEMO_FILES: &[(&str, &str)] = files!("demo-model": "greet.sh", "test.sh", "README.md");

/// The script of the model of `cliq demo --model`.
pub const MODEL_DEMO_SCRIPT: &str = include_str!("../demo-model/script.json");

const FEATURE_DEV_JS: BundledTeam = BundledTeam {
    name: "@cliq/feature-dev-js",
    files: files!("teams/feature-dev-js":
        "team.yml", "roles/architect.md", "roles/tester.md", "roles/developer.md", "roles/reviewer.md", "roles/git-resolver.md",
    ),
};

const HELLO_WORLD: BundledTeam = BundledTeam {
    name: "@cliq/hello-world",
    files: files!("teams/hello-world": "team.yml", "roles/planner.md", "roles/writer.md", "roles/reviewer.md"),
};

const CODE: BundledTeam = BundledTeam {
    name: "@cliq/code",
    files: files!("teams/code":
        "team.yml", "roles/architect.md", "roles/developer.md", "roles/tester.md", "roles/reviewer.md",
    ),
};

/// Teams of one phase that the agent `builder` does, for callers of A2A. They are found by name, and not listed.
pub(crate) const HIDDEN: &[BundledTeam] = &[
    BundledTeam { name: "@builder/build-team", files: files!("teams/builder/build-team": "team.yml") },
    BundledTeam { name: "@builder/improve-role", files: files!("teams/builder/improve-role": "team.yml") },
    BundledTeam { name: "@builder/improve-team", files: files!("teams/builder/improve-team": "team.yml") },
    BundledTeam { name: "@builder/validate-team", files: files!("teams/builder/validate-team": "team.yml") },
];

/// The files of a new team; `@local/new-team` stands for its name.
pub(crate) const NEW_TEAM: &[(&str, &str)] = files!("new-team": "team.yml", "roles/developer.md", "roles/fixer.md", "agents/worker.sh", "tests/phases.yml");

/// Every bundled team.
pub(crate) const BUNDLED: &[BundledTeam] =
    &[HELLO_WORLD, CODE, FEATURE_DEV_JS, DEMO_TEAM, REVIEW_DEMO_TEAM, PULL_DEMO_TEAM];

/// Files that a demonstration works on, by the name of its team. Other teams have none.
#[must_use]
pub fn demo_files(team: &str) -> &'static [(&'static str, &'static str)] {
    match team {
        "@cliq/demo" => DEMO_FILES,
        "@cliq/demo-review" => REVIEW_DEMO_FILES,
        _ => &[],
    }
}

/// Writes files below a directory, creating directories as needed. Scripts, which begin with `#!`, become executable.
///
/// # Errors
/// A file or directory cannot be written.
pub fn write_files<'a>(
    dir: &Utf8Path,
    files: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
) -> Result<(), FsError> {
    for (path, text) in files {
        let path = dir.join(path);
        let parent = path.parent().unwrap_or(dir);
        fs::create_dir_all(parent).at("create", parent)?;
        fs::write(&path, text).at("write", &path)?;
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).at("make executable", &path)?;
        }
    }
    Ok(())
}
