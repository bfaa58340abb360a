//! Suites that come with cliq: as a demo without a model, and as a template for new suites.

/// Files of a bundled suite: path and contents.
pub type Files = &'static [(&'static str, &'static str)];

macro_rules! files {
    ($suite:literal: $($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../suites/", $suite, "/", $path)))),+]
    };
}

/// Suite of agents without a model, with a known pass probability and price.
const SIMULATED: Files = files!("simulated":
    "suite.yml", "team/team.yml", "team/agents/worker.sh", "team/roles/worker.md", "roles/hasty.md", "roles/steady.md",
);

/// Suite of documents from notes, for any model.
const DOCUMENTS: Files = files!("documents":
    "suite.yml", "team/team.yml", "team/roles/writer.md", "team/roles/editor.md", "roles/outline.md", "notes/release.txt",
    "notes/incident.txt",
);

/// Suite of a small code repository with failing tests, for any model.
const CODE: Files = files!("code":
    "suite.yml", "alone/team.yml", "alone/roles/developer.md", "greeting/greet.sh", "greeting/test.sh", "greeting/.test.sum",
    "average/average.sh", "average/test.sh", "average/.test.sum",
);

/// Bundled suites by name.
pub const EXAMPLES: [(&str, Files); 3] = [("simulated", SIMULATED), ("documents", DOCUMENTS), ("code", CODE)];
