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
use axum::routing::MethodFilter;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{HttpMethod, OpenApi, Ref, RefOr, Schema};
use utoipa::{Modify, OpenApi as _, PartialSchema};

use crate::access::COOKIE;
use crate::app::App;
use cliq_web::{Endpoint, PROBLEM_JSON, Problem, get, on};
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

/// Defines the description and the routes of the operations by one list of their handlers.
macro_rules! operations {
    ($($module:ident::$handler:ident,)+) => {
        #[derive(utoipa::OpenApi)]
        #[openapi(paths($($module::$handler),+))]
        struct Operations;

        fn routes() -> Router<Arc<App>> {
            let router = Router::new();
            // The name that utoipa gives to the description of a handler.
            pastey::paste! {
                $(let router = route::<$module::[<__path_ $handler>]>(router, &Endpoint::new($module::$handler));)+
            }
            router
        }
    };
}

operations! {
    runs::list,
    runs::start,
    runs::get,
    runs::cancel,
    runs::resume,
    steering::list,
    steering::send,
    runs::timeline,
    runs::graph,
    changes::changes,
    changes::checkpoints,
    events::events,
    logs::logs,
    logs::log,
    logs::transcripts,
    logs::transcript,
    handoffs::handoffs,
    handoffs::handoff,
    pushes::list,
    files::files,
    files::content,
    instances::list,
    instances::register,
    instances::get,
    instances::forget,
    teams::list,
    teams::get,
    teams::graph,
    teams::validate,
    teams::schema,
    drafts::generate,
    drafts::list,
    drafts::create,
    drafts::get,
    drafts::remove,
    drafts::file,
    drafts::save,
    drafts::remove_file,
    drafts::validate,
    drafts::trial,
    drafts::improve,
    drafts::install,
    drafts::publish,
    plans::list,
    plans::get,
    plans::events,
    plans::command,
    signals::list,
    signals::emit,
    signals::get,
    signals::retry,
    reviews::list,
    reviews::get,
    reviews::create,
    reviews::content,
    reviews::decide,
    review_comments::comment,
    review_comments::withdraw,
    reviews::update,
    triggers::list,
    triggers::get,
    triggers::firings,
    triggers::test,
    triggers::pause,
    triggers::resume,
    audit::list,
    audit::sessions,
    audit::end_session,
    meshes::list,
    usage::usage,
    tokens::list,
    tokens::create,
    tokens::revoke,
    tokens::sign_in_link,
    health::healthz,
    health::readyz,
    health::metrics,
}

/// Adds a described operation to a router.
fn route<P: utoipa::Path>(router: Router<Arc<App>>, endpoint: &Endpoint<Arc<App>>) -> Router<Arc<App>> {
    P::methods().into_iter().fold(router, |router, method| {
        let methods = match method {
            HttpMethod::Get => MethodFilter::GET,
            HttpMethod::Post => MethodFilter::POST,
            HttpMethod::Put => MethodFilter::PUT,
            HttpMethod::Delete => MethodFilter::DELETE,
            HttpMethod::Options => MethodFilter::OPTIONS,
            HttpMethod::Head => MethodFilter::HEAD,
            HttpMethod::Patch => MethodFilter::PATCH,
            HttpMethod::Trace => MethodFilter::TRACE,
        };
        router.route(&P::path(), on(methods, endpoint.clone()))
    })
}

/// The OpenAPI description of the API.
#[must_use]
pub fn openapi() -> OpenApi {
    let mut description = Description::openapi();
    description.merge(Operations::openapi());
    complete(description)
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
    let text: Arc<str> = openapi().to_json().unwrap_or_default().into();
    let serve = move || {
        let text = Arc::clone(&text);
        async move { ([("content-type", "application/json")], text.to_string()) }
    };
    routes()
        .route("/api/v1/openapi.json", get(move |_: cliq_web::Reader| serve()))
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
}
