//! `cliq demo --plan`: a plan from ready to done, with everything that can go wrong on the way, by real processes.

use std::fs;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use camino::Utf8Path;
use cliq_fs::IoContext;
use cliq_gateway::{PlanEvent, Store};
use cliq_lifecycle::{Plan, PlanState, read};
use cliq_store::{Location, SqlStore};

use super::stage::look_at;
use crate::failure::Failure;
use crate::gateway::block_on;
use crate::render::plan as show;
use crate::ui::{self, paint};

const FILES: [(&str, &str); 2] = [
    ("plan.md", include_str!("../../../demo-plan/plan.md")),
    ("agent.sh", include_str!("../../../demo-plan/agent.sh")),
];
const NAME: &str = "toolbox";
const ROLES: [&str; 7] =
    ["developer", "critic", "auditor", "remediation", "health-auditor", "reviewer", "master"];
/// Answer to the question of the demo's agent.
const ANSWER: &str = "Bonjour";
/// Everything takes seconds; after this long something is wrong.
const PATIENCE: Duration = Duration::from_secs(180);

pub(super) fn run(dir: &Utf8Path) -> Result<ExitCode, Failure> {
    fs::create_dir_all(dir).at("create", dir)?;
    let dir = &dir.canonicalize_utf8()?;
    for (path, text) in FILES {
        let path = dir.join(path);
        fs::write(&path, text).at("write", &path)?;
    }
    // A home of its own, so that no other daemon or queue is involved.
    let demo = Demo { dir, home: dir.join(".home") };
    demo.cliq(&["init"])?;
    for role in ROLES {
        demo.cliq(&["settings", "set", &format!("roles.{role}.command"), &format!("sh '{dir}/agent.sh'")])?;
    }
    demo.cliq(&["settings", "set", "task_loop", "markers"])?;
    demo.show(&["plan", "add", "plan.md", "--name", NAME])?;
    demo.show(&["plan", "start", NAME])?;
    let plan = block_on(demo.follow())?;
    ui::raw_styled(&format!("\n{}", show::status(&plan, NAME)))?;
    look_at(
        dir,
        &[
            ("plan.md", "the plan"),
            ("tools/", "what the agents made"),
            (".cliq/plans/toolbox/jobs/", "a directory per agent: its brief, its log, its journal"),
        ],
    )?;
    for (command, what) in [("plan events toolbox", "all that happened"), ("signal history", "all signals")] {
        let command = format!("CLIQ_HOME=.home cliq {command}");
        ui::line(format!("  {command:<44} {what}, in {dir}"))?;
    }
    Ok(if plan.state == PlanState::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Demo<'a> {
    dir: &'a Utf8Path,
    home: camino::Utf8PathBuf,
}

/// A daemon, which is not left behind.
struct DaemonProcess(Child);

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Demo<'_> {
    fn command(&self, args: &[&str]) -> Result<Command, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args).current_dir(self.dir).env("CLIQ_HOME", &self.home).env_remove("CLIQ_PROJECT");
        command.stdin(Stdio::null());
        Ok(command)
    }

    fn cliq(&self, args: &[&str]) -> Result<(), Failure> {
        let output = self.command(args)?.output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(Failure::failed(format!(
            "cliq {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )))
    }

    /// A command as a person types it.
    fn show(&self, args: &[&str]) -> Result<(), Failure> {
        ui::line(format!("{} cliq {}", paint(ui::DIM, "$"), args.join(" ")))?;
        self.cliq(args)
    }

    fn daemon(&self) -> Result<DaemonProcess, Failure> {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.home.join("daemon.log"))?;
        let mut command = self.command(&["daemon", "run"])?;
        command.stdout(log.try_clone()?).stderr(log);
        Ok(DaemonProcess(command.spawn()?))
    }

    /// Shows what happens, answers the question, and kills the daemon once, in the middle of the second wave.
    async fn follow(&self) -> Result<Plan, Failure> {
        let store = SqlStore::open(&Location::Sqlite(self.home.join("cliq.db"))).await?;
        let project = self.dir.as_str();
        ui::line(format!("{} cliq daemon run &", paint(ui::DIM, "$")))?;
        let mut daemon = self.daemon()?;
        let (mut seen, mut killed, deadline) = (0, false, Instant::now() + PATIENCE);
        loop {
            // First the plan, then what happened: nothing is missed of one that is done.
            let row = store.plan(project, NAME).await?;
            let plan = read(&row.ok_or_else(|| Failure::failed("the plan has gone"))?)?;
            for event in store.events(project, NAME, seen).await? {
                seen = event.id;
                if let Some(line) = describe(&event) {
                    ui::line(line)?;
                }
            }
            if matches!(plan.state, PlanState::Done | PlanState::Cancelled) {
                return Ok(plan);
            }
            if let Some(question) = plan.questions.first() {
                ui::line(format!(
                    "  {} {}",
                    paint(ui::YELLOW, "?"),
                    ui::plain(question_line(&question.text))
                ))?;
                self.show(&["plan", "answer", NAME, ANSWER, "--question", &question.id.to_string()])?;
            }
            if !killed && plan.wave == 2 && !plan.jobs.is_empty() {
                killed = true;
                ui::line(format!(
                    "{} kill -9 {}   (the daemon, while agents are at work)",
                    paint(ui::DIM, "$"),
                    daemon.0.id()
                ))?;
                daemon.0.kill()?;
                daemon.0.wait()?;
                ui::line(format!("{} cliq daemon run &", paint(ui::DIM, "$")))?;
                daemon = self.daemon()?;
            }
            if let Some(status) = daemon.0.try_wait()? {
                let log = self.home.join("daemon.log");
                return Err(Failure::failed(format!("the daemon ended ({status}); {log} says why")));
            }
            if Instant::now() > deadline {
                return Err(Failure::failed(format!("plan {NAME} is still {}", plan.state))
                    .hint("`cliq plan events toolbox` says how far it came"));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn question_line(text: &str) -> &str {
    text.lines().find(|line| line.starts_with("Question:")).unwrap_or(text.lines().next().unwrap_or_default())
}

/// The line of an event that a viewer of the demo should see.
fn describe(event: &PlanEvent) -> Option<String> {
    let text = |key: &str| event.detail[key].as_str().unwrap_or_default().replace('_', " ");
    let (style, line) = match event.kind.as_str() {
        "state" => (ui::BOLD, format!("{} → {}", text("from"), text("to"))),
        "wave" => {
            (ui::BOLD, format!("wave {} begins, {} tasks", event.detail["wave"], event.detail["tasks"]))
        }
        "started" => (ui::DIM, format!("  {} begins with {}", text("role"), event.detail["work"].as_str()?)),
        "said" => {
            let marker = event.detail["marker"].as_str()?.to_uppercase();
            let style =
                if marker.ends_with("FAILED") || marker.ends_with("BLOCKED") { ui::RED } else { ui::GREEN };
            (style, format!("  {}: {marker} {}", text("role"), event.detail["work"].as_str()?))
        }
        "blocked" => (ui::RED, "  infrastructure is blocked: nothing new starts".to_owned()),
        "remediation" => (ui::YELLOW, format!("  {}, attempt {}", text("role"), event.detail["attempt"])),
        "healthy" => (ui::GREEN, "  infrastructure is healthy again".to_owned()),
        "task_complete" => (ui::GREEN, format!("  ✓ {}", event.detail["task"].as_str()?)),
        _ => return None,
    };
    Some(paint(style, line))
}
