//! A real terminal for tests: a window of a tmux server of its own.

use std::path::Path;
use std::process::Command;

use crate::env::tmux;
use crate::machine::wait_for;

/// Terminal with a shell, in which a test types.
pub struct Terminal {
    dir: tempfile::TempDir,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

impl Terminal {
    /// Opens a terminal of a size in a directory, with variables of the environment.
    pub fn open(columns: u16, rows: u16, dir: &Path, variables: &[(&str, &str)]) -> Self {
        let terminal = Self { dir: tempfile::tempdir().expect("a directory") };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let dir = dir.to_str().expect("UTF-8");
        let settings: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut arguments =
            vec!["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows, "-c", dir, "env"];
        arguments.extend(["-u", "TMUX", "-u", "TMUX_PANE", "-u", "NO_COLOR", "PS1=prompt> "]);
        arguments.extend(settings.iter().map(String::as_str));
        arguments.extend(["sh", "-i"]);
        terminal.ok(&arguments);
        terminal.shows("prompt>");
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> std::io::Result<std::process::Output> {
        let mut command: Command = tmux();
        // A session of tests may itself run in tmux.
        command.env_remove("TMUX").arg("-S").arg(self.dir.path().join("s")).args(arguments).output()
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.tmux(arguments).expect("tmux runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys, by the names of tmux: `Enter`, `Escape`, `C-s`, `a`.
    #[track_caller]
    pub fn press(&self, keys: &[&str]) {
        self.ok(&[&["send-keys"], keys].concat());
    }

    /// Types a text as it is.
    #[track_caller]
    pub fn text(&self, text: &str) {
        self.ok(&["send-keys", "-l", text]);
    }

    /// Runs a command of the shell.
    #[track_caller]
    pub fn command(&self, command: &str) {
        self.text(command);
        self.press(&["Enter"]);
    }

    /// Returns the cells of the screen as text.
    #[track_caller]
    pub fn screen(&self) -> String {
        self.ok(&["capture-pane", "-p"])
    }

    /// Returns the screen with sequences for colours.
    #[track_caller]
    pub fn coloured_screen(&self) -> String {
        self.ok(&["capture-pane", "-p", "-e"])
    }

    /// Changes the size.
    #[track_caller]
    pub fn resize(&self, columns: u16, rows: u16) {
        self.ok(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    }

    /// Waits until the screen has a text. Returns the screen.
    #[track_caller]
    pub fn shows(&self, text: &str) -> String {
        self.waits(text, |screen| screen.contains(text))
    }

    /// Waits until the screen fulfils a condition. Returns the screen.
    #[track_caller]
    pub fn waits(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let started = std::time::Instant::now();
        wait_for(what, || {
            let screen = self.screen();
            // The screen tells more than the name of the condition.
            assert!(
                started.elapsed() < crate::machine::PATIENCE - PICTURE || condition(&screen),
                "{what}:\n{screen}"
            );
            condition(&screen).then_some(screen)
        })
    }

    /// Returns a value that tmux knows of the terminal, such as `#{alternate_on}`.
    #[track_caller]
    pub fn state(&self, format: &str) -> String {
        self.ok(&["display-message", "-p", format]).trim().to_owned()
    }
}

/// Time before the deadline at which a failed wait shows the screen.
const PICTURE: std::time::Duration = std::time::Duration::from_secs(2);
