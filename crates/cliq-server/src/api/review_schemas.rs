//! Schemas of the reviews that runs on other machines send. The types belong to `cliq-review`, which knows no OpenAPI.

use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// New review (`PUT /api/v1/reviews/{id}`), as the `hug` agent creates it.
pub(crate) struct ReviewInput;

/// Event of a review, as the run that created it records it.
pub(crate) struct ReviewEventInput;

const TIME: &str =
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z$";
/// Name of a team.
const TEAM: &str = "^@[a-z][a-z0-9]{0,30}/[a-z][a-z0-9]{0,30}$";
const RUN_ID: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";

fn schema_of(value: Value) -> RefOr<Schema> {
    // A test reads the whole description, so a malformed schema is noticed there.
    serde_json::from_value(value).unwrap_or_default()
}

fn counter() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": 1000})
}

impl PartialSchema for ReviewInput {
    fn schema() -> RefOr<Schema> {
        schema_of(json!({
            "type": "object",
            "description": "A new review, as the `hug` agent creates it (`docs/reviews.md`): pending, without answers.",
            "required": ["id", "project", "team", "run_id", "phase", "iteration", "max_iterations", "evaluation", "attempt",
                "reviewers", "state", "created", "deadline"],
            "properties": {
                "id": {"type": "string", "pattern": "^[0-9a-f]{32}$", "description": "Id, as in the address."},
                "project": {"type": "string", "pattern": "^/[A-Za-z0-9/_.-]*$", "description": "Workspace of the run."},
                "team": {"type": "string", "pattern": TEAM, "description": "Name of the team."},
                "run_id": {"type": "string", "pattern": RUN_ID, "description": "Id of the run."},
                "phase": {"type": "string", "pattern": "^[a-z][a-z0-9]{0,30}$", "description": "Name of the phase."},
                "iteration": counter(),
                "max_iterations": counter(),
                "evaluation": counter(),
                "attempt": counter(),
                "reviewers": {"type": "array", "minItems": 1, "maxItems": 10, "items": {"type": "string", "pattern": "^[a-z][a-z0-9]{0,30}$"},
                    "description": "Reviewers who must approve."},
                "state": {"type": "string", "enum": ["pending"]},
                "created": {"type": "string", "pattern": TIME, "description": "UTC with milliseconds."},
                "deadline": {"type": "string", "pattern": TIME, "description": "UTC with milliseconds."}
            }
        }))
    }
}

impl ToSchema for ReviewInput {
    fn name() -> std::borrow::Cow<'static, str> {
        "ReviewInput".into()
    }
}

impl PartialSchema for ReviewEventInput {
    fn schema() -> RefOr<Schema> {
        let event = |name: &str, required: &[&str], fields: Value| {
            let mut properties = fields;
            properties["event"] = json!({"type": "string", "enum": [name]});
            let required: Vec<&str> = [&["event"], required].concat();
            json!({"type": "object", "required": required, "properties": properties})
        };
        let text = json!({"type": "string"});
        schema_of(json!({
            "description": "Event of a review, as the run that created it records it.",
            "oneOf": [
                event("clock", &[], json!({})),
                event("cancel", &["reason"], json!({"reason": text})),
                event("notice_settled", &["id", "state"],
                    json!({"id": text, "state": {"type": "string", "enum": ["planned", "sent", "unknown"]}})),
                event("notice_settled", &["id", "state", "error"],
                    json!({"id": text, "state": {"type": "string", "enum": ["failed"]}, "error": text})),
                event("relink", &["links"], json!({"links": {"type": "array", "items": {
                    "type": "object", "required": ["reviewer", "sha256"], "properties": {"reviewer": text, "sha256": text}}}})),
                event("audited", &["file", "sha256"], json!({"file": text, "sha256": text}))
            ]
        }))
    }
}

impl ToSchema for ReviewEventInput {
    fn name() -> std::borrow::Cow<'static, str> {
        "ReviewEventInput".into()
    }
}
