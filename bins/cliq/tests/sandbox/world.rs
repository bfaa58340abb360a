//! A person's machine around a project: a home with secrets, another program of the person, a cliq home.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cliq_testkit::env::{CommandOutput, Env, done};

/// Mechanisms that this machine has. Both are needed: a machine that lacks one does not show what holds.
pub(crate) fn mechanisms() -> Vec<&'static str> {
    let support =
        cliq_project::Host::new(cliq_project::Environment::of_process(), "cliq".into()).sandbox_support();
    let mut found = Vec::new();
    match &support.bubblewrap {
        Ok(_) => found.push("bubblewrap"),
        Err(why) => cliq_testkit::not_run(why),
    }
    if support.landlock >= cliq_project::internals::LANDLOCK_VERSION {
        found.push("landlock");
    } else {
        cliq_testkit::not_run("the kernel has no Landlock of version 6");
    }
    found
}

pub(crate) struct World {
    pub(crate) env: Env,
    /// Outside of the workspace, and not below `/tmp`, which is private in a sandbox.
    place: tempfile::TempDir,
    victim: Option<Child>,
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(victim) = &mut self.victim {
            let _ = victim.kill();
            let _ = victim.wait();
        }
    }
}

impl World {
    /// A project of a team, with the command that is hostile.
    pub(crate) fn new(workflow: &str, agents: &[(&str, &str)]) -> Self {
        let env = Env::bare();
        env.team(workflow, agents);
        let place = cliq_testkit::visible_dir();
        let this = Self { env, place, victim: None };
        fs::create_dir_all(this.outside("home/.ssh")).unwrap();
        fs::create_dir_all(this.outside("home/.cliqrc/reviews")).unwrap();
        for (name, text) in [
            ("home/.ssh/id_rsa", "the secret\n"),
            ("home/.netrc", "the secret\n"),
            ("home/.bash_history", "the secret\n"),
            ("home/notes.txt", "a note\n"),
            ("home/.bashrc", "# nothing\n"),
            ("home/.cliqrc/reviews/link.json", "the secret\n"),
            ("outside.txt", "outside\n"),
        ] {
            fs::write(this.outside(name), text).unwrap();
        }
        fs::set_permissions(this.outside("outside.txt"), fs::Permissions::from_mode(0o644)).unwrap();
        this.cliq(&["init"]).expect(0);
        this.cliq(&["assemble", "../team"]).expect(0);
        this
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.env.command(arguments);
        command
            .env("HOME", self.outside("home"))
            .env("CLIQ_HOME", self.outside("home/.cliqrc"))
            .env("SECRET_TOKEN", "the secret");
        command
    }

    pub(crate) fn cliq(&self, arguments: &[&str]) -> CommandOutput {
        done(&self.command(arguments).output().unwrap())
    }

    /// Starts another program of the person. It listens on sockets, whose addresses are in `victim.json`.
    pub(crate) fn with_victim(mut self) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sandbox/victim.py");
        let child = Command::new("python3")
            .arg(script)
            .arg(self.place.path())
            .env("VICTIM_SECRET", "the secret")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.victim = Some(child);
        self.env.wait_for("the victim listens", || self.outside("victim.json").exists());
        self
    }
}
