//! Shape of a team: a digest of all that decides what follows from what. It is in the journal, so its text is a format: written out here,
//! and not the debug output of types, which change.

use std::fmt::Write;

use cliq_workflow::PhaseId;

use super::RunPlan;

/// Form of the numbers of phases in the text.
#[derive(Clone, Copy)]
enum Numbers {
    /// `PhaseId(1)`: that of 0.1.0, and of journals that are written now.
    Released,
    /// `PhaseId { place: 1, item: None }`: that of builds between releases, as phases got items.
    WithItem,
}

impl RunPlan {
    /// Stands for all of the team that decides what follows from what: phases, their order, route targets, budgets. Two
    /// plans of one shape read each other's journals. What agents and commands do may differ.
    #[must_use]
    pub fn shape(&self) -> String {
        self.shape_with(Numbers::Released)
    }

    /// Whether the shape in a journal, of this version or an earlier one, is that of the team.
    pub(crate) fn has_shape(&self, recorded: &str) -> bool {
        [Numbers::Released, Numbers::WithItem].into_iter().any(|numbers| self.shape_with(numbers) == recorded)
    }

    fn shape_with(&self, numbers: Numbers) -> String {
        let list = |ids: &[PhaseId]| {
            let ids = ids.iter().map(|id| match numbers {
                Numbers::Released => format!("PhaseId({})", id.index()),
                Numbers::WithItem => format!("PhaseId {{ place: {}, item: None }}", id.index()),
            });
            format!("[{}]", ids.collect::<Vec<_>>().join(", "))
        };
        let mut text = String::new();
        for (_, phase) in self.workflow.phases() {
            let fatal: Vec<bool> = phase.commands.iter().map(|command| command.escalate_on_fail).collect();
            let names: Vec<&str> = phase.commands.iter().map(|command| command.name.as_str()).collect();
            let (depends_on, targets) = (list(&phase.depends_on), list(&phase.route_targets));
            let _ = writeln!(
                text,
                "{} {} {} {depends_on} {targets} {} {names:?} {fatal:?}",
                phase.name, phase.kind, phase.support, phase.max_iterations
            );
            // Phases without these have the shape that they had before these existed.
            let required: Vec<&str> =
                phase.commands.iter().filter(|c| c.required).map(|c| c.name.as_str()).collect();
            // Debug output of an expression is its text; a test pins the rest.
            let conditions = (&phase.when, &phase.for_each, &phase.retry);
            if !matches!(conditions, (None, None, None)) || !required.is_empty() {
                let _ = writeln!(text, "{conditions:?} {required:?}");
            }
        }
        uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
    }
}
