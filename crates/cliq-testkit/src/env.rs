//! A project of its own for each test: home, workspace, team.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub use crate::not_run;

/// First lines of test agents in sh.
pub const PRELUDE: &str = r#"#!/bin/sh
message=$(cat)
say() { printf '{"ts":"2026-01-01T00:00:00.000Z","version":1,"type":"phase",%s}\n' "$1" >> "$CLIQ_SIGNAL_FILE"; }
ok() { say '"status":"ok"'; }
progress() { say '"status":"progress","message":"'"$1"'"'; }
complete() { say '"status":"complete","result":{}'; }
verdict() { say '"status":"complete","result":{"verdict":'"$1"'}'; }
hand() {
  mkdir -p "$CLIQ_DIR/channels/$CLIQ_PHASE--$1"
  printf '%s\n' "$2" > "$CLIQ_DIR/channels/$CLIQ_PHASE--$1/.h"
  mv "$CLIQ_DIR/channels/$CLIQ_PHASE--$1/.h" "$CLIQ_DIR/channels/$CLIQ_PHASE--$1/handoff.json"
}
"#;

/// Temporary home and workspace, in which the built `cliq` runs.
pub struct Env {
    _guard: tempfile::TempDir,
    root: PathBuf,
    workspace: PathBuf,
}

impl Drop for Env {
    /// Ends every tmux server that was started here.
    fn drop(&mut self) {
        for socket in self.sockets() {
            let _ = tmux().arg("-S").arg(socket).arg("kill-server").output();
        }
    }
}

/// Result of a command.
#[derive(Debug)]
pub struct CommandOutput {
    /// Exit code, or -1 after a signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl CommandOutput {
    /// Checks the exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Checks that the output contains a text.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        let all = format!("{}\n{}", self.stdout, self.stderr);
        assert!(all.contains(text), "{text:?} is not in\n{all}");
        self
    }

    /// Parses standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}:\n{}\n{}", self.stdout, self.stderr))
    }

    /// Events of `run --json`.
    pub fn events(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("an event per line")).collect()
    }
}

impl Env {
    /// A home and an empty workspace.
    pub fn bare() -> Self {
        Self::named("work")
    }

    /// As [`Self::bare`], with a workspace of this name.
    pub fn named(name: &str) -> Self {
        let guard = tempfile::tempdir().expect("a temporary directory");
        let root = guard.path().canonicalize().expect("it is there");
        for dir in [root.join(name), root.join("tmux")] {
            fs::create_dir_all(dir).expect("directory");
        }
        Self { _guard: guard, workspace: root.join(name), root }
    }

    /// A project with a team of `phases` (the lines under `workflow:`), agents and other files of the team folder. An
    /// agent's script gets the prelude.
    pub fn new(workflow: &str, agents: &[(&str, &str)]) -> Self {
        Self::new_in("work", workflow, agents)
    }

    /// As [`Self::new`], in a workspace of this name.
    pub fn new_in(name: &str, workflow: &str, agents: &[(&str, &str)]) -> Self {
        let env = Self::named(name);
        env.team(workflow, agents);
        env.cliq(["init"]).expect(0);
        env.cliq(["assemble", "../team"]).expect(0);
        env
    }

    /// Writes the team folder: `team.yml`, agents, and a role for each phase.
    pub fn team(&self, workflow: &str, agents: &[(&str, &str)]) {
        let mut yml = "name: \"@local/test\"\n".to_owned();
        if !agents.is_empty() {
            yml.push_str("agents:\n");
        }
        for (name, script) in agents {
            yml.extend(["  ", name, ": {entry: agents/", name, "}\n"]);
            let text =
                if script.starts_with("#!") { (*script).to_owned() } else { format!("{PRELUDE}{script}") };
            self.write_executable(&format!("../team/agents/{name}"), &text);
        }
        yml.push_str(workflow);
        self.write("../team/team.yml", &yml);
        for line in yml.lines() {
            let line = line.trim_start();
            let block = line.strip_prefix("- name: ");
            if let Some(name) = block.or_else(|| line.strip_prefix("- {name: ")?.split(',').next()) {
                self.write(&format!("../team/roles/{name}.md"), &format!("You are {name}.\n"));
            }
        }
    }

    /// Returns the workspace.
    pub fn work(&self) -> PathBuf {
        self.workspace.clone()
    }

    /// Sockets of tmux servers, running or not.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.join("tmux")).into_iter().flatten().filter_map(Result::ok);
        let sockets = entries.flat_map(|dir| fs::read_dir(dir.path()).into_iter().flatten());
        sockets.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }

    /// Runs tmux on the project's session and returns its output. Empty if there is no session.
    pub fn tmux(&self, args: &[&str]) -> String {
        let ours =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cliq-"));
        let Some(socket) = self.sockets().into_iter().find(ours) else { return String::new() };
        let output = tmux().arg("-S").arg(socket).args(args).output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns a path in the workspace.
    pub fn path(&self, path: &str) -> PathBuf {
        self.work().join(path)
    }

    /// Writes a file of the workspace.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directory");
        let mut file = fs::File::create(&path).expect("file");
        file.write_all(text.as_bytes()).expect("written");
    }

    /// Writes an executable file of the workspace.
    pub fn write_executable(&self, path: &str, text: &str) {
        self.write(path, text);
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).expect("mode");
    }

    /// Reads a file of the workspace.
    #[track_caller]
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Reads a JSON file of the workspace.
    #[track_caller]
    pub fn read_json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// Whether a path of the workspace exists.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Whether something has been written to a file: a shell makes it a moment before.
    pub fn has_text(&self, path: &str) -> bool {
        fs::metadata(self.path(path)).is_ok_and(|meta| meta.len() > 0)
    }

    /// Returns a command of `cliq` in the workspace, without keys of models.
    pub fn command<I: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(crate::program());
        command
            .args(args)
            .current_dir(self.work())
            .env("CLIQ_HOME", self.root.join("home"))
            .env("HOME", self.root.join("nobody"))
            .env("LC_ALL", LOCALE)
            .env("TMUX_TMPDIR", self.root.join("tmux"))
            .env_remove("TMUX")
            .env_remove("CLIQ_RUN_ID")
            .env_remove("CLIQ_PROJECT")
            .stdin(Stdio::null());
        for key in ["ANTHROPIC", "OPENAI", "GEMINI", "GOOGLE", "CURSOR", "CODEX"] {
            command.env_remove(format!("{key}_API_KEY"));
        }
        for base in ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"] {
            command.env_remove(base);
        }
        command
    }

    /// Command of another user, who owns the project from now on and has a copy of the program: directories of this checkout may be
    /// closed to others. Needs root.
    #[track_caller]
    pub fn command_of<I: AsRef<std::ffi::OsStr>>(
        &self,
        (user, group): (u32, u32),
        args: impl IntoIterator<Item = I>,
    ) -> Command {
        let program = self.root.join("cliq");
        fs::copy(crate::program(), &program).expect("a copy of the program");
        let owned = Command::new("chown").arg("-R").arg(format!("{user}:{group}")).arg(&self.root).status();
        assert!(owned.expect("chown").success());
        let own = self.command(args);
        let mut command = Command::new(program);
        command.args(own.get_args()).current_dir(self.work()).stdin(Stdio::null()).uid(user).gid(group);
        for (key, value) in own.get_envs() {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command
    }

    /// As on a machine where no vendor's command line is installed.
    pub fn without_models(&self) {
        for agent in ["claude-code", "cursor", "gemini", "codex"] {
            self.cliq(["settings", "set", "-g", &format!("agents.{agent}.command"), "/nowhere"]).expect(0);
        }
    }

    /// Runs `cliq` to its end.
    #[must_use = "assert the exit code"]
    pub fn cliq<I: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = I>) -> CommandOutput {
        done(&self.command(args).output().expect("cliq starts"))
    }

    /// Starts `cliq`.
    pub fn spawn<I: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("cliq starts")
    }

    /// Returns the id of the last run.
    pub fn run_id(&self) -> String {
        let journal = self.read(".cliq/journal.jsonl");
        let first: Value = serde_json::from_str(journal.lines().next().expect("a line")).expect("json");
        first["run_id"].as_str().expect("an id").to_owned()
    }

    /// Returns the cliq home.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Processes of the run that are still alive.
    pub fn left_over(&self) -> Vec<String> {
        self.marked(&format!("CLIQ_RUN_ID={}", self.run_id()))
    }

    /// Processes that have this in their environment.
    pub fn marked(&self, mark: &str) -> Vec<String> {
        let entries = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
        entries
            .filter(|entry| {
                fs::read(entry.path().join("environ"))
                    .is_ok_and(|env| env.split(|&b| b == 0).any(|v| v == mark.as_bytes()))
            })
            .map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
            .collect()
    }

    /// Every file below a directory, relative to it.
    pub fn files(&self, dir: &str) -> Vec<String> {
        let mut found = Vec::new();
        collect(&self.path(dir), &self.path(dir), &mut found);
        found.sort();
        found
    }

    /// Waits until `condition` holds.
    #[track_caller]
    pub fn wait_for(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !condition() {
            assert!(Instant::now() < deadline, "{what} did not come");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns state and number of activations of each phase from `status --json`.
    pub fn phases(&self) -> BTreeMap<String, (String, u64)> {
        let status = self.cliq(["status", "--json"]).expect(0).json();
        status["phases"]
            .as_array()
            .expect("phases")
            .iter()
            .map(|p| {
                let text = |key: &str| p[key].as_str().expect(key).to_owned();
                (text("name"), (text("status"), p["iterations"].as_u64().expect("iterations")))
            })
            .collect()
    }
}

/// Returns the exit code and the output of a command.
pub fn done(output: &Output) -> CommandOutput {
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn collect(base: &Path, dir: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            collect(base, &path, found);
        } else {
            found.push(path.strip_prefix(base).expect("below").to_string_lossy().into_owned());
        }
    }
}

/// Whether a program can be run; where not, records that the test could not.
pub fn has_program(program: &str) -> bool {
    let has = Command::new(program).arg("--version").output().is_ok();
    if !has {
        not_run(&format!("there is no {program} here"));
    }
    has
}

/// A Python with these packages: that of `target/venv`, which `./test` makes, else the system's. Where there is none,
/// records that the test could not be run.
pub fn python_with(packages: &str) -> Option<PathBuf> {
    let ours = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    let has = |python: &PathBuf| {
        let import = format!("import {packages}");
        Command::new(python).args(["-c", &import]).output().is_ok_and(|output| output.status.success())
    };
    let found = [ours, "python3".into()].into_iter().find(has);
    if found.is_none() {
        not_run(&format!(
            "there is no Python with {packages} here: `./test` installs them where it finds python3"
        ));
    }
    found
}

/// Prints a note for readers of the test's output.
pub fn print_note(what: &str) {
    eprintln!("{what}");
}

/// A locale that every Linux has. In one without UTF-8, tmux shows titles as underscores.
const LOCALE: &str = "C.UTF-8";

/// The program `tmux`.
pub fn tmux() -> Command {
    let mut command = Command::new("tmux");
    command.env("LC_ALL", LOCALE);
    command
}
