//! Rule for the schemas of what phases hand over.

use cliq_document::Diagnostic;

use super::Context;

pub(super) fn check(cx: &Context<'_>, problems: &mut Vec<Diagnostic>) {
    for phase in cx.phases() {
        let (Some(schema), Some(node)) = (&phase.outputs, phase.record.node("outputs")) else { continue };
        if let Some(why) = cx.files.schema_problem(schema) {
            let name = &phase.name.value;
            let message = format!("the schema of `outputs` of `{name}` is not a valid JSON Schema: {why}");
            let help = "json-schema.org has the specification; docs/models.md has an example";
            problems.push(Diagnostic::error("invalid-schema", node.span, message, help));
        }
    }
}
