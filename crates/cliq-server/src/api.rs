//! The HTTP API under `/api/v1` (docs/server.md), described by OpenAPI from the code.

mod audit;
mod changes;
mod drafts;
mod errors;
mod events;
mod files;
mod handoffs;
mod health;
mod instances;
mod logs;
mod meshes;
mod plans;
mod pushes;
mod review_comments;
mod review_schemas;
mod reviews;
mod runs;
mod signals;
mod steering;
mod teams;
mod tokens;
mod triggers;
mod usage;

pub(crate) use reviews::document as review_document;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, Ref, RefOr, Schema};
use utoipa::{Modify, OpenApi as _, PartialSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::COOKIE;
use crate::app::App;
use cliq_web::{PROBLEM_JSON, Problem};
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "cliq server",
        description = "Runs teams of agents. Errors are problems of RFC 9457. Lists are pages: `next` is the cursor of the next one.",
        license(name = "MIT", identifier = "MIT")
    ),
    modifiers(&Security),
    security(("token" = []), ("session" = [])),
    tags(
        (name = "runs", description = "Start, follow and steer runs."),
        (name = "instances", description = "Registered projects."),
        (name = "teams", description = "Teams that can run."),
        (name = "drafts", description = "Teams that are being written."),
        (name = "reviews", description = "What waits for a person, and the decision."),
        (name = "plans", description = "Plans, which outlive a run, and signals to them."),
        (name = "triggers", description = "Triggers and their firings."),
        (name = "server", description = "Tokens, usage, health.")
    )
)]
struct Description;

struct Security;

impl Modify for Security {
    fn modify(&self, openapi: &mut OpenApi) {
        let components = openapi.components.get_or_insert_default();
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
        let cookie = SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new(COOKIE)));
        components.add_security_scheme("session", cookie);
    }
}

fn described() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(runs::list, runs::start))
        .routes(routes!(runs::get))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::resume))
        .routes(routes!(steering::list, steering::send))
        .routes(routes!(runs::timeline))
        .routes(routes!(runs::graph))
        .routes(routes!(changes::changes))
        .routes(routes!(changes::checkpoints))
        .routes(routes!(events::events))
        .routes(routes!(logs::logs))
        .routes(routes!(logs::log))
        .routes(routes!(logs::transcripts))
        .routes(routes!(logs::transcript))
        .routes(routes!(handoffs::handoffs))
        .routes(routes!(handoffs::handoff))
        .routes(routes!(pushes::list))
        .routes(routes!(files::files))
        .routes(routes!(files::content))
        .routes(routes!(instances::list, instances::register))
        .routes(routes!(instances::get, instances::forget))
        .routes(routes!(teams::list))
        .routes(routes!(teams::get))
        .routes(routes!(teams::graph))
        .routes(routes!(teams::validate))
        .routes(routes!(teams::schema))
        .routes(routes!(drafts::generate))
        .routes(routes!(drafts::list, drafts::create))
        .routes(routes!(drafts::get, drafts::remove))
        .routes(routes!(drafts::file, drafts::save, drafts::remove_file))
        .routes(routes!(drafts::validate))
        .routes(routes!(drafts::trial))
        .routes(routes!(drafts::improve))
        .routes(routes!(drafts::install))
        .routes(routes!(drafts::publish))
        .routes(routes!(plans::list))
        .routes(routes!(plans::get))
        .routes(routes!(plans::events))
        .routes(routes!(plans::command))
        .routes(routes!(signals::list))
        .routes(routes!(signals::emit))
        .routes(routes!(signals::get))
        .routes(routes!(signals::retry))
        .routes(routes!(reviews::list))
        .routes(routes!(reviews::get, reviews::create))
        .routes(routes!(reviews::content))
        .routes(routes!(reviews::decide))
        .routes(routes!(review_comments::comment))
        .routes(routes!(review_comments::withdraw))
        .routes(routes!(reviews::update))
        .routes(routes!(triggers::list))
        .routes(routes!(triggers::get))
        .routes(routes!(triggers::firings))
        .routes(routes!(triggers::test))
        .routes(routes!(triggers::pause))
        .routes(routes!(triggers::resume))
        .routes(routes!(audit::list))
        .routes(routes!(audit::sessions))
        .routes(routes!(audit::end_session))
        .routes(routes!(meshes::list))
        .routes(routes!(usage::usage))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(tokens::sign_in_link))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
}

/// The OpenAPI description of the API.
#[must_use]
pub fn openapi() -> OpenApi {
    complete(described().into_openapi())
}

/// Every response needs a description: those of success say no more than their status. All problems are of one schema.
fn complete(mut openapi: OpenApi) -> OpenApi {
    let components = openapi.components.get_or_insert_default();
    components.schemas.insert("Problem".to_owned(), <Problem as PartialSchema>::schema());
    constrain(&mut components.schemas);
    let items = openapi.paths.paths.values_mut();
    let operations =
        items.flat_map(|item| [&mut item.get, &mut item.post, &mut item.put, &mut item.delete]).flatten();
    for (status, response) in operations.flat_map(|operation| &mut operation.responses.responses) {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            let code = status.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
            code.and_then(|code| code.canonical_reason())
                .unwrap_or("Response")
                .clone_into(&mut response.description);
        }
        if let RefOr::T(response) = response
            && let Some(RefOr::T(content)) = response.content.get_mut(PROBLEM_JSON)
        {
            content.schema = Some(RefOr::Ref(Ref::from_schema_name("Problem")));
        }
    }
    openapi
}

/// Adds constraints that span several fields, or that the derived schemas do not express.
fn constrain(schemas: &mut std::collections::BTreeMap<String, RefOr<Schema>>) {
    let mut edit = |name: &str, change: &dyn Fn(&mut serde_json::Value)| {
        let Some(schema) = schemas.get_mut(name) else { return };
        let mut value = serde_json::to_value(&*schema).unwrap_or_default();
        change(&mut value);
        if let Ok(changed) = serde_json::from_value(value) {
            *schema = changed;
        }
    };
    edit("NewRun", &|schema| {
        let repository = "^(https|ssh)://[a-z0-9]+(\\.[a-z0-9]+)*/[A-Za-z0-9]+(/[A-Za-z0-9]+)*$";
        schema["properties"]["repos"]["items"]["pattern"] = repository.into();
        let text = "^[^\\x00]*$";
        schema["properties"]["inputs"]["propertyNames"] =
            serde_json::json!({"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]*$"});
        schema["properties"]["inputs"]["additionalProperties"]["pattern"] = text.into();
        for field in ["requirement", "agent"] {
            schema["properties"][field]["pattern"] = text.into();
        }
        schema["required"] = serde_json::json!(["team"]);
        schema["properties"]["team"]["type"] = "string".into();
    });
    edit("UnsavedFiles", &|schema| {
        let path = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,40}(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,40}){0,5}$";
        schema["properties"]["files"]["propertyNames"] =
            serde_json::json!({"type": "string", "pattern": path});
    });
    edit("PlanCommand", &|schema| {
        for command in schema["oneOf"].as_array_mut().into_iter().flatten() {
            command["additionalProperties"] = false.into();
        }
    });
}

/// The routes of the API.
pub(crate) fn router() -> Router<Arc<App>> {
    let (router, description) = described().split_for_parts();
    let text: Arc<str> = complete(description).to_json().unwrap_or_default().into();
    let serve = move || {
        let text = Arc::clone(&text);
        async move { ([("content-type", "application/json")], text.to_string()) }
    };
    router
        .route("/api/v1/openapi.json", get(move |_: cliq_web::Reader| serve()))
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
}
