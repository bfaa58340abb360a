//! The tmux commands that cliq uses, typed. Each call is one run of the `tmux` program.

use std::ffi::OsString;
use std::io;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use cliq_fs::CliqDir;

use crate::blocking::spawn_blocking;
use crate::phase_status::PhaseStatus;

/// The size of the session while no client is attached.
const SIZE: [&str; 4] = ["-x", "200", "-y", "50"];
/// Grace period for a server that was asked to end.
const LEAVING: Duration = Duration::from_secs(3);
const PANE_FORMAT: &str = "#{pane_id} #{pane_pid}";
/// The user option that holds a pane's title: programs can change the terminal's own title, and not this.
const TITLE: &str = "@cliq_phase";

/// The variable of the server that names the session for people.
const SESSION: &str = "CLIQ_SESSION";

/// Reason why tmux did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TmuxError {
    /// The program cannot be run.
    #[error("cannot run tmux: {0}")]
    Run(#[from] io::Error),
    /// tmux reported an error.
    #[error("tmux: {0}")]
    Refused(String),
    /// tmux printed something unexpected.
    #[error("tmux answered something unknown: {0}")]
    Answer(String),
}

/// A project's tmux server, running or not.
#[derive(Debug, Clone)]
pub struct TmuxServer {
    /// The name of its socket.
    socket: String,
    pub(super) session: String,
}

/// A pane as tmux lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PaneRow {
    pub(super) id: String,
    pub(super) window: String,
    pub(super) dead: bool,
    pub(super) window_width: u32,
    pub(super) window_height: u32,
    pub(super) session: String,
}

/// Result of a script that may open panes.
#[derive(Debug)]
pub(super) struct OpenedPanes {
    /// Those that it opened, each with the process in it.
    pub(super) panes: Vec<(String, u32)>,
    /// The panes there are now.
    pub(super) rows: Vec<PaneRow>,
}

/// Several commands that are one call.
#[derive(Debug, Default)]
pub(super) struct Script(Vec<String>);

impl Script {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn then(&mut self, words: &[&str]) {
        if !self.0.is_empty() {
            self.0.push(";".to_owned());
        }
        self.0.extend(words.iter().map(|word| argument(word)));
    }

    /// A session with one window. What it looks like is settled before anything runs in it.
    pub(super) fn new_session(&mut self, name: &str, command: &[&str]) {
        self.then(&["start-server"]);
        settings(name).iter().for_each(|words| self.then(words));
        let words = ["new-session", "-d", "-s", name, "-n", "phases", "-P", "-F", PANE_FORMAT];
        self.then(&[&words[..], &SIZE, &["--"], command].concat());
    }

    pub(super) fn new_window(&mut self, session: &str, command: &[&str]) {
        let words = ["new-window", "-d", "-t", session, "-n", "phases", "-P", "-F", PANE_FORMAT, "--"];
        self.then(&[&words[..], command].concat());
    }

    pub(super) fn split(&mut self, window: &str, beside: &str, command: &[&str]) {
        let words = ["split-window", "-d", "-t", beside, "-P", "-F", PANE_FORMAT, "--"];
        // Room is made first: tmux splits no pane that is small, however much room its window has.
        self.then(&["select-layout", "-t", window, "tiled"]);
        self.then(&[&words[..], command].concat());
        self.then(&["select-layout", "-t", window, "tiled"]);
    }

    pub(super) fn respawn(&mut self, pane: &str, command: &[&str]) {
        self.then(&[&["respawn-pane", "-k", "-t", pane, "--"], command].concat());
        self.then(&["display-message", "-p", "-t", pane, PANE_FORMAT]);
    }

    /// Opens a hidden pane, in the session for spare panes, and gives its id.
    pub(super) fn spare(&mut self, session: &str, is_first: bool, command: &[&str]) {
        let words: &[&str] = if is_first {
            &["new-session", "-d", "-s", session, "-n", "phases", "-x", SIZE[1], "-y", SIZE[3]]
        } else {
            &["new-window", "-d", "-t", session, "-n", "phases"]
        };
        self.then(&[words, &["-P", "-F", PANE_FORMAT, "--"], command].concat());
    }

    /// Moves a pane into a window.
    pub(super) fn join(&mut self, window: &str, beside: &str, pane: &str) {
        self.then(&["select-layout", "-t", window, "tiled"]);
        self.then(&["join-pane", "-d", "-s", pane, "-t", beside]);
        self.then(&["select-layout", "-t", window, "tiled"]);
    }

    /// Moves a pane to where another one is, which closes.
    pub(super) fn replace(&mut self, old: &str, pane: &str) {
        self.then(&["swap-pane", "-d", "-s", pane, "-t", old]);
        self.then(&["kill-pane", "-t", old]);
    }

    /// Moves a pane, with its window, to a session.
    pub(super) fn own_window(&mut self, session: &str, pane: &str) {
        self.then(&["move-window", "-d", "-s", pane, "-t", &format!("{session}:")]);
    }

    /// Lets a session take the place of one that has gone.
    pub(super) fn become_session(&mut self, session: &str, name: &str) {
        self.then(&["rename-session", "-t", session, name]);
    }

    pub(super) fn list(&mut self) {
        let format = "#{pane_id} #{window_id} #{pane_dead} #{window_width} #{window_height} #{session_name}";
        self.then(&["list-panes", "-a", "-F", format]);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn title(&mut self, pane: &str, title: &str, status: PhaseStatus) {
        let colour = match status {
            PhaseStatus::Pending => "default",
            PhaseStatus::Running => "cyan",
            PhaseStatus::Waiting | PhaseStatus::Stopped => "yellow",
            PhaseStatus::Completed | PhaseStatus::Skipped => "green",
            PhaseStatus::Escalated | PhaseStatus::Failed => "red",
        };
        let shown = format!("{} {title} {}", status.mark(), status.as_str());
        self.then(&["set-option", "-p", "-t", pane, TITLE, title]);
        self.then(&["set-option", "-p", "-t", pane, "@cliq_title", &format!("#[fg={colour}]{shown}")]);
        self.then(&["select-pane", "-t", pane, "-T", &shown]);
    }
}

/// Returns the settings of each session. `#` starts a format in tmux, and some formats run programs.
fn settings(name: &str) -> Vec<Vec<&str>> {
    vec![
        // A pane whose program ended stays, with its output and status.
        vec!["set-option", "-g", "remain-on-exit", "on"],
        vec!["set-option", "-g", "remain-on-exit-format", ""],
        vec!["set-option", "-g", "pane-border-status", "top"],
        vec!["set-option", "-g", "pane-border-format", " #{@cliq_title}#[default] "],
        vec!["set-option", "-g", "allow-rename", "off"],
        vec!["set-option", "-g", "automatic-rename", "off"],
        vec!["set-option", "-g", "history-limit", "20000"],
        vec!["set-option", "-g", "window-size", "latest"],
        vec!["set-option", "-g", "mouse", "on"],
        vec!["set-option", "-g", "escape-time", "10"],
        vec!["set-option", "-g", "default-terminal", "screen-256color"],
        vec!["set-option", "-g", "status-left", " cliq: #S "],
        vec!["set-option", "-g", "status-left-length", "40"],
        vec!["set-option", "-g", "status-right", " leave: C-b d   next window: C-b n   scroll: mouse "],
        vec!["set-option", "-g", "status-right-length", "60"],
        vec!["set-environment", "-g", SESSION, name],
    ]
}

/// tmux takes a word that ends in `;` for the end of a command.
fn argument(word: &str) -> String {
    match word.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => word.to_owned(),
    }
}

impl TmuxServer {
    /// The server of a project, whether it runs or not. Its socket is named after the project's place.
    #[must_use]
    pub fn of(dir: &CliqDir) -> Self {
        let place = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, dir.root().as_str().as_bytes());
        let name = dir.workspace().file_name().unwrap_or("cliq");
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let session: String = name.chars().map(plain).take(30).collect();
        let digits = place.simple().to_string();
        let session = match session.trim_matches('-') {
            "" => "cliq".to_owned(),
            name => name.to_owned(),
        };
        Self { socket: format!("cliq-{}", &digits[..12]), session }
    }

    /// The version of the tmux that is installed, such as `3.3a`; `None` if there is none that can be used: what
    /// cliq needs is there from 3.2 on.
    #[must_use]
    pub fn installed() -> Option<String> {
        let output = Command::new("tmux").arg("-V").stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let version = text.trim().strip_prefix("tmux ")?.trim_start_matches("next-").to_owned();
        let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().unwrap_or(0));
        let (major, minor) = (numbers.next()?, numbers.next().unwrap_or(0));
        ((major, minor) >= (3, 2)).then_some(version)
    }

    /// A tmux command on this server.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        // Inside of another tmux this is neither its business nor nesting.
        command.env_remove("TMUX").env_remove("TMUX_PANE");
        // Panes inherit the environment of the server.
        cliq_git::remove_local_variables(&mut command);
        command.args(["-L", &self.socket, "-f", "/dev/null"]);
        command
    }

    /// The session's name.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The session as a running server itself knows it: where a team works in another place than its `.cliq` directory
    /// tells, its name is another one.
    ///
    /// # Errors
    /// tmux cannot be run, or there is no such server.
    pub fn shown_session(&self) -> Result<String, TmuxError> {
        let show = ["show-environment", "-g", SESSION];
        let text = text(&self.command().args(show).stdin(Stdio::null()).output()?)?;
        let name = text.trim_end().strip_prefix(SESSION).and_then(|rest| rest.strip_prefix('='));
        name.map(str::to_owned).ok_or_else(|| TmuxError::Answer(text.clone()))
    }

    /// The name of its socket, for `tmux -L`.
    #[must_use]
    pub fn socket(&self) -> &str {
        &self.socket
    }

    /// Whether there is a session.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let mut command = self.command();
        command.args(["has-session"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// The pane that a process works in, if it is one of this server's. `tmux` and `pane` are what it finds in its
    /// environment as `TMUX` and `TMUX_PANE`.
    #[must_use]
    pub fn own_pane(&self, tmux: &str, pane: &str) -> Option<String> {
        let socket = tmux.split(',').next()?;
        (socket.rsplit('/').next() == Some(&self.socket)).then(|| pane.to_owned())
    }

    pub(super) async fn run(&self, script: Script) -> Result<String, TmuxError> {
        text(&self.output(script).await?)
    }

    async fn output(&self, script: Script) -> Result<Output, TmuxError> {
        let mut command = self.command();
        command.args(script.0.iter().map(OsString::from)).stdin(Stdio::null());
        let output = spawn_blocking(move || command.output());
        Ok(output.await.map_err(io::Error::other)??)
    }

    /// Runs a script that may open panes and then lists all. Once one is open, nothing that fails after it counts: a job
    /// would be started again.
    pub(super) async fn open(&self, script: Script) -> Result<OpenedPanes, TmuxError> {
        let output = self.output(script).await?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let pane = |line: &str| {
            let (pane, pid) = line.split_once(' ')?;
            Some((pane.to_owned(), pid.trim().parse().ok()?))
        };
        let panes: Vec<(String, u32)> = printed.lines().filter_map(pane).collect();
        if panes.is_empty() {
            text(&output)?;
        }
        Ok(OpenedPanes { panes, rows: rows(&printed) })
    }

    /// The session that spare panes are in.
    pub(super) fn spare_session(&self) -> String {
        format!("{}-next", self.session)
    }

    /// Ends the session of spare panes.
    pub(super) async fn kill_spares(&self) -> Result<String, TmuxError> {
        let mut script = Script::new();
        script.then(&["kill-session", "-t", &format!("={}", self.spare_session())]);
        self.run(script).await
    }

    /// Returns the panes, oldest first. Empty if the server is not running.
    pub(super) async fn panes(&self) -> Result<Vec<PaneRow>, TmuxError> {
        let mut script = Script::new();
        script.list();
        let text = match self.run(script).await {
            Ok(text) => text,
            Err(TmuxError::Refused(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        Ok(rows(&text))
    }

    /// Returns the exit status and signal of the pane's program, or `None` while it is running.
    pub(super) async fn exit(&self, pane: &str) -> Result<Option<(Option<i32>, Option<i32>)>, TmuxError> {
        let mut script = Script::new();
        let format = "#{pane_id},#{pane_dead},#{pane_dead_status},#{pane_dead_signal}";
        script.then(&["display-message", "-p", "-t", pane, format]);
        let text = self.run(script).await?;
        let mut fields = text.trim().split(',');
        // For a pane that is not there, some versions answer with empty fields instead of an error.
        if fields.next() != Some(pane) {
            return Err(TmuxError::Refused(format!("can't find pane: {pane}")));
        }
        let dead = fields.next() == Some("1");
        let mut number = || fields.next().and_then(|field| field.parse().ok());
        Ok(dead.then(|| (number(), number())))
    }

    /// Ends the server and all processes in its panes, and waits until it has gone.
    pub(super) async fn kill(&self) -> io::Result<()> {
        let server = self.clone();
        spawn_blocking(move || server.discard()).await.map_err(io::Error::other)?
    }

    /// Ends the server and all processes in its panes, and waits until it has gone: a client that asks a server for a session
    /// that is just leaving gets neither.
    ///
    /// # Errors
    /// tmux cannot be run. A server that is not there is none.
    pub fn discard(&self) -> io::Result<()> {
        self.command().arg("kill-server").stdin(Stdio::null()).output()?;
        let last = Instant::now() + LEAVING;
        while Instant::now() < last {
            let asked = self.command().arg("has-session").stdin(Stdio::null()).output()?;
            let said = String::from_utf8_lossy(&asked.stderr);
            if !asked.status.success()
                && (said.contains("no server running") || said.contains("error connecting"))
            {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    pub(super) async fn kill_others(&self, pane: &str) -> Result<String, TmuxError> {
        let mut script = Script::new();
        script.then(&["kill-pane", "-a", "-t", pane]);
        script.then(&["kill-window", "-a", "-t", pane]);
        self.run(script).await
    }

    /// Starts the session with a command of the caller's own in its first window, such as an orchestrator. Gives the pane.
    ///
    /// # Errors
    /// tmux cannot be run or refuses.
    pub fn start(&self, command: &[&str]) -> Result<String, TmuxError> {
        let mut script = Script::new();
        script.new_session(&self.session, command);
        script.then(&["rename-window", "-t", &self.session, "cliq"]);
        let output = self.command().args(&script.0).stdin(Stdio::null()).output()?;
        let text = text(&output)?;
        let pane = text.lines().find_map(|line| Some(line.split_once(' ')?.0.to_owned()));
        pane.ok_or(TmuxError::Answer(text))
    }

    /// Brings a phase's pane to the front. `false` where it has none.
    ///
    /// # Errors
    /// tmux cannot be run or refuses.
    pub fn show(&self, phase: &str) -> Result<bool, TmuxError> {
        let list = ["list-panes", "-a", "-F", "#{pane_id} #{window_id} #{@cliq_phase}"];
        let listed = text(&self.command().args(list).stdin(Stdio::null()).output()?)?;
        let found = listed.lines().find_map(|line| {
            let mut fields = line.splitn(3, ' ');
            let (pane, window) = (fields.next()?, fields.next()?);
            (fields.next() == Some(phase)).then_some((pane, window))
        });
        let Some((pane, window)) = found else { return Ok(false) };
        let select = ["select-window", "-t", window, ";", "select-pane", "-t", pane];
        text(&self.command().args(select).stdin(Stdio::null()).output()?)?;
        Ok(true)
    }

    /// Lets a pane close once its program ends, instead of staying for people to read.
    ///
    /// # Errors
    /// tmux cannot be run.
    pub fn close_at_end(&self, pane: &str) -> Result<(), TmuxError> {
        let set = ["set-option", "-p", "-t", pane, "remain-on-exit", "off"];
        self.command().args(set).stdin(Stdio::null()).output()?;
        match self.look_at(pane) {
            // It has ended already, so that no later event would close it.
            Ok((_, true)) => {
                self.command().args(["kill-pane", "-t", pane]).stdin(Stdio::null()).output()?;
                Ok(())
            }
            // With its pane the server may have gone.
            Ok((_, false)) | Err(TmuxError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the content of a pane and whether its program has ended.
    ///
    /// # Errors
    /// tmux cannot be run or refuses.
    pub fn look_at(&self, pane: &str) -> Result<(String, bool), TmuxError> {
        // The state first: what a program that has ended printed is all there.
        let dead = ["display-message", "-p", "-t", pane, "#{pane_dead}"];
        let dead = text(&self.command().args(dead).stdin(Stdio::null()).output()?)?;
        let shown = ["capture-pane", "-p", "-J", "-S", "-", "-t", pane];
        let shown = text(&self.command().args(shown).stdin(Stdio::null()).output()?)?;
        Ok((shown, dead.trim() == "1"))
    }
}

/// The panes that a script with [`Script::list`] printed, among other things.
pub(super) fn rows(text: &str) -> Vec<PaneRow> {
    text.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<PaneRow> {
    let mut fields = line.split(' ');
    let mut next = || fields.next().map(str::to_owned);
    Some(PaneRow {
        id: next()?,
        window: next()?,
        dead: next()? == "1",
        window_width: next()?.parse().ok()?,
        window_height: next()?.parse().ok()?,
        session: next()?,
    })
}

fn text(output: &Output) -> Result<String, TmuxError> {
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(TmuxError::Refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}
