//! Guidance of people for the agents of a plan (docs/steering.md).

use cliq_protocol::{MAX_STEERING_MESSAGES, SteeringMessage};
use serde_json::json;

use super::Effects;
use crate::model::{Guidance, Plan, PlanState, Purpose, WorkId};

impl Plan {
    /// Adds a message. A message that was sent before has no effect.
    pub(super) fn guide(
        &mut self,
        message: SteeringMessage,
        task: Option<WorkId>,
        effects: &mut Effects,
    ) -> Result<(), String> {
        if let Some(known) = self.guidance.iter().find(|known| known.message.id == message.id) {
            if known.message.text == message.text && known.task == task {
                effects.ignored = Some("the message was sent before");
                return Ok(());
            }
            return Err(format!(
                "the plan has another message with the id `{}`: choose a new id",
                message.id
            ));
        }
        if matches!(self.state, PlanState::Done | PlanState::Cancelled) {
            return Err(format!("the plan is {} and takes no messages", self.state));
        }
        if self.guidance.len() >= MAX_STEERING_MESSAGES {
            return Err(format!(
                "the plan has received {MAX_STEERING_MESSAGES} messages, which is the limit"
            ));
        }
        if let Some(task) = task
            && matches!(task, WorkId::Task { .. })
            && self.task(task).is_none()
        {
            return Err(format!("the plan has no task {task}"));
        }
        effects.note(
            "guidance",
            json!({"id": message.id, "from": message.from, "text": message.text, "task": task}),
        );
        self.guidance.push(Guidance { message, task, jobs: Vec::new() });
        Ok(())
    }

    /// Assigns each message to the jobs that have started since `before` and that it is for.
    pub(super) fn deliver_guidance(&mut self, before: u64, effects: &mut Effects) {
        for job in self.jobs.iter().filter(|job| job.id >= before && job.role.is_some()) {
            let about = match job.purpose {
                Purpose::Work(id) | Purpose::Advise(id) => Some(id),
                Purpose::Infrastructure | Purpose::Merge { .. } => None,
            };
            for guidance in &mut self.guidance {
                if guidance.task.is_none() || guidance.task == about {
                    guidance.jobs.push(job.id);
                    let detail =
                        json!({"id": guidance.message.id, "job": job.id, "work": about, "role": job.role});
                    effects.note("guidance_delivered", detail);
                }
            }
        }
    }
}
