//! The HTTP+JSON binding of 1.0 (section 11 of the specification).

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cliq_a2a::{A2aError, Call, ErrorKind, Version};
use serde_json::{Map, Value};

use super::A2aCaller;
use super::agent::{self, Reply, execute, may};
use super::json_rpc::{VERSION, event_stream, last_event_id, not_allowed, spoken, unsupported, version_of};
use crate::app::App;
use cliq_web::{Problem, any, get, post, read_json_body};

/// Media type of the binding. `application/json` is sent to callers that ask for it and not for this one.
const JSON: &str = "application/a2a+json";
const PLAIN_JSON: &str = "application/json";

fn media_type(headers: &HeaderMap) -> &'static str {
    let accepted = headers.get_all(header::ACCEPT);
    let accepted: Vec<String> = accepted
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(|one| one.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
        .collect();
    let accepts = |name: &str| accepted.iter().any(|one| one == name);
    if accepts(PLAIN_JSON) && !accepts(JSON) { PLAIN_JSON } else { JSON }
}

pub(super) fn router() -> Router<Arc<App>> {
    let message = |method: &'static str| {
        post(async move |State(app): State<Arc<App>>, request: Request| {
            answer(app, request, method, Map::new()).await
        })
    };
    Router::new()
        .route("/message:send", message("SendMessage"))
        .route("/message:stream", message("SendStreamingMessage"))
        .route(
            "/tasks",
            get(async |State(app): State<Arc<App>>, request: Request| {
                answer(app, request, "ListTasks", Map::new()).await
            }),
        )
        .route("/tasks/{task}", any(task))
        .route("/tasks/{task}/pushNotificationConfigs", any(push_configs))
        .route("/tasks/{task}/pushNotificationConfigs/{config}", any(push_config))
        .route(
            "/extendedAgentCard",
            get(async |State(app): State<Arc<App>>, request: Request| {
                answer(app, request, "GetExtendedAgentCard", Map::new()).await
            }),
        )
        .fallback(async || error_response(&no_such_address()))
        .method_not_allowed_fallback(async || wrong_method())
}

fn no_such_address() -> A2aError {
    A2aError::new(ErrorKind::MethodNotFound, "there is nothing at this address: see section 11.3 of A2A 1.0")
}

fn wrong_method() -> Response {
    let error = A2aError::new(ErrorKind::InvalidRequest, "the method is not allowed at this address");
    (StatusCode::METHOD_NOT_ALLOWED, error_response(&error)).into_response()
}

fn parameters<const N: usize>(values: [(&str, String); N]) -> Map<String, Value> {
    values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// `/tasks/{id}`, `/tasks/{id}:cancel`, `/tasks/{id}:subscribe`
async fn task(
    State(app): State<Arc<App>>,
    Path(task): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (id, action) = task.rsplit_once(':').unwrap_or((&task, ""));
    let method = match (action, request.method()) {
        ("", &Method::GET) => "GetTask",
        ("cancel", &Method::POST) => "CancelTask",
        // The table of the specification says POST, its Protocol Buffers say GET.
        ("subscribe", &Method::POST | &Method::GET) => "SubscribeToTask",
        ("" | "cancel" | "subscribe", _) => return Ok(wrong_method()),
        _ => return Ok(error_response(&no_such_address())),
    };
    let id = id.to_owned();
    answer(app, request, method, parameters([("id", id)])).await
}

async fn push_configs(
    State(app): State<Arc<App>>,
    Path(task): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let method = match *request.method() {
        Method::GET => "ListTaskPushNotificationConfigs",
        Method::POST => "CreateTaskPushNotificationConfig",
        _ => return Ok(wrong_method()),
    };
    answer(app, request, method, parameters([("taskId", task)])).await
}

async fn push_config(
    State(app): State<Arc<App>>,
    Path((task, config)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let method = match *request.method() {
        Method::GET => "GetTaskPushNotificationConfig",
        Method::DELETE => "DeleteTaskPushNotificationConfig",
        _ => return Ok(wrong_method()),
    };
    answer(app, request, method, parameters([("taskId", task), ("id", config)])).await
}

/// Carries out a method. Parameters are the body or the query, and those of the path.
async fn answer(
    app: Arc<App>,
    request: Request,
    method: &'static str,
    path: Map<String, Value>,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let caller = A2aCaller::from_request_parts(&mut parts, &app).await?;
    let media_type = media_type(&parts.headers);
    let bytes = if parts.method == Method::POST { read_json_body(body).await? } else { bytes::Bytes::new() };
    let prepared = || -> Result<agent::Request, A2aError> {
        let query = parts.uri.query();
        let version = match version_of(&parts.headers, query) {
            Some(text) => Version::parse(&text).map_err(|error| unsupported(&app, &error.to_string()))?,
            None => Version::V1_0,
        };
        spoken(&app, Version::V1_0)?;
        if version != Version::V1_0 {
            let message = "this address speaks A2A 1.0: callers of 0.3 use the JSON-RPC binding";
            return Err(
                A2aError::new(ErrorKind::VersionNotSupported, message).with("supportedVersions", "1.0")
            );
        }
        let mut params = if parts.method == Method::POST { body_of(&bytes)? } else { query_of(query)? };
        params.extend(path);
        let call = Call::parse(version, method, &Value::Object(params))?;
        Ok(agent::Request { version, call, last_event_id: last_event_id(&parts.headers)? })
    };
    let result = match prepared() {
        Ok(request) if !may(&caller, &request.call) => return Err(not_allowed(&caller)),
        Ok(request) => execute(&app, &caller, request).await,
        Err(error) => Err(error),
    };
    Ok(match result {
        Ok(Reply::Result(result)) => {
            ([(header::CONTENT_TYPE, media_type)], result.to_string()).into_response()
        }
        Ok(Reply::Stream(stream)) => event_stream(stream, str::to_owned),
        Err(error) => {
            let mut response = error_response(&error);
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
            response
        }
    })
}

/// The parameters of a body. An empty one has none.
fn body_of(bytes: &[u8]) -> Result<Map<String, Value>, A2aError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match cliq_protocol::lenient_json(bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(A2aError::new(ErrorKind::InvalidRequest, "the body must be an object")),
        Err(error) => Err(A2aError::new(ErrorKind::ParseError, format!("the body is not JSON: {error}"))),
    }
}

/// The parameters of a query, as texts.
fn query_of(query: Option<&str>) -> Result<Map<String, Value>, A2aError> {
    let pairs: Vec<(String, String)> =
        serde_urlencoded::from_str(query.unwrap_or_default()).map_err(|error| {
            A2aError::new(ErrorKind::InvalidRequest, format!("the query cannot be read: {error}"))
        })?;
    let own = pairs.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case(VERSION));
    Ok(own.map(|(name, value)| (name, value.into())).collect())
}

fn error_response(error: &A2aError) -> Response {
    let status = StatusCode::from_u16(error.kind.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response =
        (status, [(header::CONTENT_TYPE, JSON)], error.to_http_json().to_string()).into_response();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, 2.into());
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn queries_become_parameters() {
        let read = query_of(Some("pageSize=5&A2A-Version=1.0&contextId=a%20b")).unwrap();
        assert_eq!(Value::Object(read), json!({"pageSize": "5", "contextId": "a b"}));
    }
}
