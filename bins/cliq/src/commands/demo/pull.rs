//! `cliq demo --pull`: a run that fetches pages, works on them, and publishes the result.

use std::process::ExitCode;

use camino::Utf8Path;
use cliq_project::RunOptions;
use cliq_project::internals::{PULL_DEMO_FILES, PULL_DEMO_TEAM};
use cliq_server::DemoSite;

use super::stage::{self, Stage};
use crate::failure::Failure;
use crate::ui;

const REQUIREMENT: &str = "A digest of the pages and the prices of the shop's site is published on it.\n";
const RESULTS: [(&str, &str); 5] = [
    (".cliq/pull/", "the pages as markdown, and the price list as it is"),
    ("digest.md", "what the team made of them"),
    ("site/published/", "what was published"),
    (".cliq/pull/.manifest/fetch.jsonl", "what was fetched: address, time, size, SHA-256"),
    (".cliq/push/publish.jsonl", "what was published, and where"),
];

pub(super) fn run(dir: &Utf8Path) -> Result<ExitCode, Failure> {
    stage::write(dir, PULL_DEMO_FILES, &PULL_DEMO_TEAM)?;
    let site = DemoSite::start(&dir.join("site"))?;
    let url = site.url();
    let stage = Stage::prepare(dir, REQUIREMENT)?;
    stage
        .introduce(&format!("{dir}: a team, and a small site that is served on {url} while the demo runs"))?;
    let mut options = RunOptions::default();
    options.spec.inputs.insert("site".to_owned(), url.to_owned());
    let code = stage.run(dir, &options, !ui::is_watched(), &RESULTS)?;
    if code == ExitCode::SUCCESS {
        ui::line(
            "\n`docs/pull-push.md` describes sources and targets, `docs/connectors.md` the services; both are in the repository of cliq.",
        )?;
    }
    Ok(code)
}
