//! Rules for the schemas of what phases hand over.

use cliq_document::Diagnostic;

use super::Context;

pub(super) fn check(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    for phase in cx.phases() {
        let (Some(schema), Some(node)) = (&phase.outputs, phase.record.node("outputs")) else { continue };
        if let Some(agent) = &phase.agent
            && (agent.value == "a2a" || cx.team.agents.iter().any(|own| own.name.value == agent.value))
        {
            // Only model agents look at the schema.
            let message = format!(
                "agent `{}` of {} does not check its data against `outputs`",
                agent.value,
                phase.title()
            );
            let help = "check it by a command of a gate, or let a model agent work in this phase";
            let span = phase.record.key("outputs").unwrap_or(node.span);
            problems.push(Diagnostic::warning("unchecked-outputs", span, message, help));
        }
        if let Some(why) = cx.files.schema_problem(schema) {
            let name = &phase.name.value;
            let message = format!("the schema of `outputs` of `{name}` is not a valid JSON Schema: {why}");
            let help = "json-schema.org has the specification; docs/models.md has an example";
            problems.push(Diagnostic::error("invalid-schema", node.span, message, help));
        }
    }
}
