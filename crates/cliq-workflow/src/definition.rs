//! The definition of a phase as text, part by part, to find out what of it changed (docs/changed.md).

use std::fmt::Debug;

use cliq_protocol::Budget;

use crate::{Command, Phase, PhaseId, Rule, RuleOutcome, Scope, ValidatedWorkflow};

/// A part of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DefinitionPart {
    /// Field of team.yml.
    Field(&'static str),
    /// Command, by name.
    Command(String),
}

impl ValidatedWorkflow {
    /// Returns the parts of a phase's definition that are set, each with a text that is the same for the same definition in the same version
    /// of cliq. Agent and model are not among them, as both may come from elsewhere.
    #[must_use]
    pub fn definition(&self, id: PhaseId) -> Vec<(DefinitionPart, String)> {
        let names =
            |ids: &[PhaseId]| -> Vec<&str> { ids.iter().map(|id| self.phase(*id).name.as_str()).collect() };
        // Each field is named, so that a new one is not forgotten.
        let Phase {
            name,
            kind,
            support,
            depends_on,
            dependents: _,
            agent: _,
            role,
            model: _,
            parameters,
            outputs,
            agent_tools,
            skills,
            permissions,
            conversation,
            config,
            action,
            commands,
            max_iterations,
            route_targets,
            rules,
            conditions,
            when,
            for_each,
            retry,
            inputs_files,
            review,
            sources,
            targets,
            team,
            inputs,
            timeout,
            budget,
            sandbox,
            notify,
        } = self.phase(id);
        let mut parts = Parts::default();
        parts.add("type", kind);
        parts.add_if(*support, "support", support);
        parts.add_if(!depends_on.is_empty(), "depends_on", &names(depends_on));
        parts.add_if(role != name.as_str(), "role", role);
        parts.add_some("outputs", outputs.as_ref());
        parts.add_some("effort", parameters.effort.as_ref());
        parts.add_some("temperature", parameters.temperature.as_ref());
        parts.add_some("max_tokens", parameters.max_tokens.as_ref());
        parts.add_if(!parameters.extra_body.is_empty(), "extra_body", &parameters.extra_body);
        parts.add_some("agent_tools", agent_tools.as_ref());
        parts.add_if(!skills.is_all(), "skills", skills);
        parts.add_some("permissions", permissions.as_ref());
        parts.add_if(!conversation.is_fresh(), "conversation", conversation);
        parts.add_if(!config.is_empty(), "config", config);
        parts.add_some("action", action.as_ref());
        parts.add_if(kind.is_gate(), "max_iterations", max_iterations);
        parts.add_if(!route_targets.is_empty(), "route_to", &names(route_targets));
        if !rules.is_empty() || !conditions.is_empty() {
            let rule = |rule: &Rule| match rule {
                Rule::Route(to) => self.phase(*to).name.to_string(),
                Rule::Escalate => "ESCALATE".to_owned(),
            };
            let plain: Vec<_> = rules.iter().map(|(command, to)| (command, rule(to))).collect();
            let conditional = conditions.iter().map(|condition| {
                let to = match &condition.to {
                    RuleOutcome::Pass => "PASS".to_owned(),
                    RuleOutcome::Rule(to) => rule(to),
                };
                (&condition.condition, to, &condition.reason)
            });
            parts.add("rules", &(plain, conditional.collect::<Vec<_>>()));
        }
        parts.add_some("when", when.as_ref());
        if let Some(list) = for_each {
            let resolver = list.on_conflict.map(|id| self.phase(id).name.as_str());
            parts.add("for_each", &list.items);
            parts.add("max_items", &list.max_items);
            parts.add_some("max_parallel", list.max_parallel.as_ref());
            parts.add_if(list.continues_on_failure, "on_item_failure", &"continue");
            parts.add_if(list.worktrees, "workspace", &"worktree");
            parts.add_some("on_conflict", resolver.as_ref());
        }
        parts.add_some("retry", retry.as_ref());
        parts.add_if(!inputs_files.is_empty(), "inputs_files", inputs_files);
        parts.add_some("review", review.as_ref());
        parts.add_if(!sources.is_empty(), "sources", sources);
        parts.add_if(!targets.is_empty(), "targets", targets);
        parts.add_some("team", team.as_ref());
        parts.add_if(!inputs.is_empty(), "inputs", inputs);
        parts.add_some("timeout", timeout.as_ref());
        parts.add_if(*budget != Budget::default(), "budget", budget);
        parts.add_if(*sandbox != Default::default(), "sandbox", sandbox);
        parts.add_if(!notify.is_empty(), "notify", notify);
        for command in commands {
            let Command { name, run, condition, scope, escalate_on_fail, required, timeout } = command;
            let rest = (condition, *scope, *escalate_on_fail, *required, timeout);
            let is_plain = rest == (&None, Scope::Workspace, true, false, &None);
            let text = if is_plain { run.clone() } else { format!("{run} {rest:?}") };
            parts.0.push((DefinitionPart::Command(name.clone()), text));
        }
        parts.0
    }
}

#[derive(Default)]
struct Parts(Vec<(DefinitionPart, String)>);

impl Parts {
    fn add(&mut self, field: &'static str, value: &dyn Debug) {
        self.0.push((DefinitionPart::Field(field), format!("{value:?}")));
    }

    fn add_if(&mut self, is_set: bool, field: &'static str, value: &dyn Debug) {
        if is_set {
            self.add(field, value);
        }
    }

    fn add_some<T: Debug>(&mut self, field: &'static str, value: Option<&T>) {
        if let Some(value) = value {
            self.add(field, value);
        }
    }
}
