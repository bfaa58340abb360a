//! `cliq demo --model`: a feature by models with tools, which a server on this machine plays.

use std::process::ExitCode;

use camino::Utf8Path;
use cliq_fs::IoContext;
use cliq_project::RunOptions;
use cliq_project::internals::{MODEL_DEMO_FILES, MODEL_DEMO_SCRIPT, write_files};
use cliq_scripted_model::{Behavior, Script, ScriptedModel};

use super::stage::Stage;
use crate::args::ModelApi;
use crate::failure::Failure;
use crate::ui;

const REQUIREMENT: &str = "`sh greet.sh --polite NAME` prints `Good day, NAME.` instead of `Hello, NAME!`.\n\n\
    Without a name, with or without `--polite`, it prints a message on standard error and ends with status 2.\n";
const RESULTS: [(&str, &str); 5] = [
    ("greet.sh", "the program, with the feature"),
    ("test.sh", "its tests"),
    (
        ".cliq/transcripts/developer.1.jsonl",
        "what the developer received, answered and did: `cliq logs developer --transcript`",
    ),
    (".cliq/channels/tester--developer/handoff.md", "why the tester sent the work back"),
    (".cliq/orchestrator.log", "the run"),
];

pub(super) fn run(dir: &Utf8Path, api: ModelApi) -> Result<ExitCode, Failure> {
    std::fs::create_dir_all(dir).at("create", dir)?;
    write_files(dir, MODEL_DEMO_FILES)?;
    let script: Script = serde_json::from_str(MODEL_DEMO_SCRIPT)
        .map_err(|error| Failure::failed(format!("the script of the demo is not valid: {error}")))?;
    let server = ScriptedModel::start(script, Behavior::default())?;
    let (agent, api) = match api {
        ModelApi::Anthropic => ("claude-api", "anthropic"),
        ModelApi::Openai => ("openai-api", "openai"),
        ModelApi::Gemini => ("gemini-api", "gemini"),
    };
    let stage = Stage::prepare_with(dir, "@cliq/code", REQUIREMENT)?;
    for (key, value) in [
        ("default_agent", agent),
        (&format!("agents.{agent}.base_url"), &server.base(api)),
        (&format!("agents.{agent}.model"), "scripted"),
        (&format!("agents.{agent}.api_key"), "none-is-needed"),
        (&format!("agents.{agent}.context_tokens"), "100000"),
    ] {
        stage.set(key, value)?;
    }
    stage.introduce(&format!(
        "{dir}: a program with a test, and the team @cliq/code. The model is a script: a server on {} plays the {api} API while the demo \
         runs. The tools are real, in a sandbox.",
        server.base(api)
    ))?;
    let mut options = RunOptions::default();
    options.spec.inputs.insert("check".to_owned(), "sh test.sh".to_owned());
    let code = stage.run(dir, &options, !ui::is_watched(), &RESULTS)?;
    if code == ExitCode::SUCCESS {
        ui::line(
            "\n`docs/models.md` in the repository of cliq describes how to use models of vendors, or one on this machine.",
        )?;
    }
    Ok(code)
}
