//! Notifications of a run: those of a phase, which the team declares, and those of the run, which the settings declare
//! (docs/team-yml.md, "Notifications").

use std::sync::Arc;

use cliq_fs::PipelineStatus;
use cliq_protocol::{NotifyRequest, Object, PhaseName};
use cliq_workflow::{PhaseId, resolve_text};
use serde_json::{Value, json};

use super::{Driver, deliveries};
use crate::events::RunEvent;

impl Driver {
    /// Sends the notifications that the team declares for a phase.
    pub(super) fn notify_of(&mut self, id: PhaseId, event: &str) {
        let shared = Arc::clone(&self.shared);
        let phase = shared.workflow().phase(id);
        for wish in phase.notify.iter().filter(|wish| wish.event == event) {
            let resolve = |text: &Option<String>| {
                text.as_deref()
                    .map(|text| resolve_text(text, &shared.values(phase)).unwrap_or_else(|_| text.to_owned()))
            };
            let payload = json!({
                "phase": phase.name, "team": shared.workflow().name, "run_id": shared.run_id,
                "message": resolve(&wish.message),
            });
            let request = NotifyRequest {
                id: None,
                agent: wish.agent.clone(),
                channel: resolve(&wish.channel),
                event: event.to_owned(),
                payload: Some(payload),
                extra: Object::new(),
            };
            self.notify(Some(phase.name.clone()), request);
        }
    }

    /// Sends the notifications that the settings declare for an event of the run.
    pub(super) fn announce(&mut self, event: &str, more: &Object) {
        let shared = Arc::clone(&self.shared);
        let Some(recipients) = shared.plan.notifications.get(event) else { return };
        for recipient in recipients {
            let mut payload = json!({
                "event": event, "team": shared.workflow().name, "run_id": shared.run_id,
                "workspace": shared.dir().workspace(),
            });
            if let Some(title) = &shared.plan.title {
                payload["title"] = title.as_str().into();
            }
            if let Value::Object(payload) = &mut payload {
                payload.extend(more.clone());
            }
            let request = NotifyRequest {
                id: None,
                agent: recipient.agent.clone(),
                channel: Some(recipient.channel.clone()),
                event: event.to_owned(),
                payload: Some(payload),
                extra: Object::new(),
            };
            self.notify(None, request);
        }
    }

    pub(super) fn announce_phase(&mut self, id: PhaseId, event: &str) {
        let phase = self.shared.workflow().phase(id);
        let mut more = Object::new();
        more.insert("phase".to_owned(), json!(phase.name));
        more.insert("phase_type".to_owned(), json!(phase.kind));
        if let Some(view) = self.view.find(&phase.name) {
            more.insert("iteration".to_owned(), json!(view.iterations));
        }
        if event == "on_phase_complete" {
            more.insert("outcome".to_owned(), json!("done"));
        }
        self.announce(event, &more);
    }

    /// A run that failed needs a person as one that escalated does.
    pub(super) fn announce_end(
        &mut self,
        status: PipelineStatus,
        reason: Option<&str>,
        phase: Option<&PhaseName>,
    ) {
        let event = match status {
            PipelineStatus::Completed => "on_complete",
            PipelineStatus::Escalated | PipelineStatus::Failed => "on_escalate",
            PipelineStatus::Cancelled => "on_cancel",
        };
        let mut more = Object::new();
        more.insert("status".to_owned(), json!(status.as_str()));
        if let Some(reason) = reason {
            more.insert("reason".to_owned(), json!(reason));
        }
        if let Some(phase) = phase {
            more.insert("phase".to_owned(), json!(phase));
        }
        self.announce(event, &more);
    }

    pub(super) fn notify(&mut self, phase: Option<PhaseName>, request: NotifyRequest) {
        let (agent, about) = (request.agent.clone(), request.event.clone());
        self.publish(RunEvent::NotifyRequested { phase: phase.clone(), agent, about });
        self.notified += 1;
        self.notifications.spawn(deliveries::deliver(
            Arc::clone(&self.shared),
            phase,
            request,
            self.notified,
        ));
    }
}
