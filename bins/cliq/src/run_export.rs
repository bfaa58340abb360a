//! Export of a run beside it (docs/telemetry.md). The end of the run waits for it for a moment only; the rest is sent by a process of its own.

use std::process::{Command, Stdio};
use std::time::Duration;

use cliq_orchestrator::{CliqDir, RunPlan, TraceSource};
use cliq_project::{Host, Project};
use cliq_settings::{PriceSettings, Settings};
use cliq_telemetry::conventions::own;
use cliq_telemetry::{ExportOptions, Exporter, Mask, SpanOptions};

use crate::ui;

/// Longest time that the end of a run waits for the export.
const PATIENCE: Duration = Duration::from_millis(80);

/// Longest time in seconds that the process in the background works.
const BACKGROUND: &str = "10";

/// Export of a run.
pub(crate) struct RunExport {
    host: Host,
    dir: CliqDir,
    state: State,
}

enum State {
    /// The run has not begun.
    Ready(Box<ExportOptions>, SpanOptions),
    /// Export at work.
    Working(Exporter),
    /// Reason why there is no export.
    Failed(String),
}

impl RunExport {
    /// Returns the export of a plan's run, or `None` if nothing of it is exported.
    pub(crate) fn of(host: &Host, plan: &RunPlan) -> Option<Self> {
        let dir = plan.dir.clone();
        let project = Project::of(dir.clone(), host.clone());
        // The team of a team phase has the settings of the project around it, as the variables that it gets say.
        let settings = match plan.trace {
            // Options that are not understood lead here too.
            TraceSource::Off if !mentions_telemetry(host) => return None,
            TraceSource::Off | TraceSource::Own { .. } | TraceSource::Within(_) => project.settings(),
        };
        let state = match settings {
            Err(error) => State::Failed(error.to_string()),
            Ok(settings) => match project.telemetry(&settings).map(|options| options.export) {
                Ok(None) => return None,
                Ok(Some(mut export)) => {
                    // Traces of a plan's agents are found together.
                    let of_plan = [(own::PLAN, "CLIQ_PLAN"), (own::PLAN_TASK, "CLIQ_TASK")];
                    let named =
                        of_plan.iter().filter_map(|(name, variable)| Some((name, plan.env.get(*variable)?)));
                    let named = named.filter(|(_, value)| !value.is_empty());
                    export.resource.extend(named.map(|(name, value)| ((*name).to_owned(), value.clone())));
                    let spans = span_options(host, &settings, &export);
                    State::Ready(Box::new(export), spans)
                }
                Err(error) => State::Failed(error.to_string()),
            },
        };
        Some(Self { host: host.clone(), dir, state })
    }

    /// Starts the export once the run has begun. Further calls do nothing.
    pub(crate) fn run_begun(&mut self) {
        let State::Ready(options, spans) = &self.state else { return };
        let started = Exporter::start((**options).clone(), self.dir.clone(), spans.clone());
        self.state = match started {
            Ok(exporter) => State::Working(exporter),
            Err(error) => State::Failed(error.to_string()),
        };
    }

    /// Begins to export what is left once the last record of the run is written: the process has still to end.
    pub(crate) fn run_ended(&mut self) {
        if let State::Working(exporter) = &mut self.state {
            exporter.run_ended();
        }
    }

    /// Exports what is left for a moment, and leaves the rest to a process of its own. Says once if something is wrong.
    pub(crate) fn finish(self) {
        let exporter = match self.state {
            State::Ready(..) => return,
            State::Failed(problem) => return ui::warning(&format!("telemetry: {problem}")),
            State::Working(exporter) => exporter,
        };
        let report = exporter.finish(PATIENCE);
        if let Some(problem) = &report.problem {
            ui::warning(&format!("telemetry: {problem}"));
            ui::hint(if report.is_complete {
                "`cliq telemetry send` sends what was refused, once the receiver takes it"
            } else {
                "it is tried once more in the background; `cliq telemetry send` sends it later"
            });
        }
        if !report.is_complete {
            send_rest(&self.host, &self.dir);
        }
    }
}

/// Starts a process that sends what is left of a run.
fn send_rest(host: &Host, dir: &CliqDir) {
    let mut command = Command::new(&host.program);
    command.args(["-C", dir.workspace().as_str(), "telemetry", "send", "--timeout", BACKGROUND]);
    if *dir.root() != dir.workspace().join(CliqDir::NAME) {
        command.args(["--run-dir", dir.root().as_str()]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // Without it, what is left stays in the files of the run.
    if let Ok(mut child) = command.spawn() {
        // A server or daemon that goes on would keep a process that ended.
        let _ = std::thread::Builder::new().spawn(move || child.wait());
    }
}

/// Starts a process that sends what is left of a run that worked in a container or cluster: its own processes ended with it.
pub(crate) fn send_rest_from_here(project: &Project, settings: &Settings) {
    if project.telemetry(settings).is_ok_and(|options| options.export.is_some()) {
        send_rest(project.host(), project.dir());
    }
}

/// Returns the options of a run's spans: prices of the settings, secrets of the environment and of the receiver.
pub(crate) fn span_options(host: &Host, settings: &Settings, export: &ExportOptions) -> SpanOptions {
    let environment = &host.environment;
    let variables = environment.names().filter_map(|name| Some((name, environment.get(name)?)));
    let mask = Mask::of_environment(variables).with(export.secrets.iter().cloned());
    SpanOptions { content: export.content, prices: PriceSettings::all(settings), mask }
}

/// Whether the environment has options.
fn mentions_telemetry(host: &Host) -> bool {
    host.environment.names().any(|name| name.starts_with("OTEL_"))
}
