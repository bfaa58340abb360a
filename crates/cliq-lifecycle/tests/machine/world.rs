//! A plan without a daemon: events in, effects out.

use cliq_gateway::SignalType;
use cliq_lifecycle::{
    Config, Context, Effects, Event, Plan, PlanFile, Purpose, Role, Stage, TaskLoop, WorkId,
};
use serde_json::Map;

pub(crate) const TWO_WAVES: &str = "Goal.\n\n## Wave 1\n\n### Task 1: a\nFiles: a.rs\nDo a.\n\n### Task 2: b\nDo b.\n\n### Task 3: c\nDo c.\n\n## Wave 2\n\n### Task 1: d\nDo d.\n";

pub(crate) fn file() -> PlanFile {
    PlanFile::parse(TWO_WAVES).expect("a plan")
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) file: PlanFile,
    pub(crate) config: Config,
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        Self { plan: Plan::new(file()), file: file(), config }
    }

    pub(crate) fn markers(config: Config) -> Self {
        let mut world = Self::new(Config { task_loop: TaskLoop::Markers, ..config });
        world.signal("implement_wave", r#"{"wave_number":1}"#);
        world
    }

    pub(crate) fn step(&mut self, event: Event) -> Result<Effects, String> {
        let context = Context { config: self.config, file: Ok(&self.file) };
        self.plan.step(event, &context)
    }

    pub(crate) fn try_signal(&mut self, kind: &str, payload: &str) -> Result<Effects, String> {
        let payload = serde_json::from_str(payload)
            .unwrap_or_else(|_| Map::from_iter([("body".to_owned(), payload.into())]));
        self.step(Event::Signal { kind: SignalType::parse(kind).expect("a type"), payload })
    }

    #[track_caller]
    pub(crate) fn signal(&mut self, kind: &str, payload: &str) -> Effects {
        let effects = self.try_signal(kind, payload).expect("it fits");
        self.emitted(&effects);
        effects
    }

    /// Feeds emitted signals back.
    pub(crate) fn emitted(&mut self, effects: &Effects) {
        for (kind, payload) in effects.emit.clone() {
            let effects = self.step(Event::Signal { kind, payload }).expect("what is emitted fits");
            self.emitted(&effects);
        }
    }

    /// The running job of a work, or of infrastructure, in a role.
    #[track_caller]
    pub(crate) fn job(&self, role: Role, work: &str) -> u64 {
        let is_it = |purpose: &Purpose| match purpose {
            Purpose::Work(id) | Purpose::Advise(id) => id.to_string() == work,
            Purpose::Infrastructure => work == "infra",
            Purpose::Merge { .. } => false,
        };
        let found =
            self.plan.jobs.iter().find(|job| !job.settled && job.role == Some(role) && is_it(&job.purpose));
        found.unwrap_or_else(|| panic!("no {role} for {work}: {:#?}", self.plan)).id
    }

    #[track_caller]
    pub(crate) fn says(&mut self, role: Role, work: &str, text: &str) -> Effects {
        let job = self.job(role, work);
        let effects = self
            .step(Event::JobEnded { job, text: text.to_owned(), success: true, usage: None })
            .expect("it fits");
        self.emitted(&effects);
        effects
    }

    #[track_caller]
    pub(crate) fn stage(&self, work: &str) -> &Stage {
        &self.plan.works[&work.parse::<WorkId>().expect("an id")].stage
    }

    pub(crate) fn running(&self) -> Vec<String> {
        let jobs = self.plan.jobs.iter().filter(|job| !job.settled);
        let name = |purpose: &Purpose| match purpose {
            Purpose::Work(id) => id.to_string(),
            Purpose::Advise(id) => format!("for {id}"),
            Purpose::Infrastructure => "infra".to_owned(),
            Purpose::Merge { wave } => format!("merge {wave}"),
        };
        jobs.map(|job| format!("{} {}", job.role.map_or("-", Role::as_str), name(&job.purpose))).collect()
    }

    pub(crate) fn complete(&mut self, work: &str) {
        self.says(Role::Developer, work, &format!("READY_FOR_REVIEW: {work}"));
        self.says(Role::Critic, work, &format!("REVIEW_PASSED: {work}"));
        self.says(Role::Auditor, work, &format!("AUDIT_PASSED: {work}"));
    }
}
