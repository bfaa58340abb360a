//! The agent card: made of the teams that are installed now, with an ETag, signed where there is a key.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use camino::Utf8Path;
use cliq_a2a::{AgentCard, Provider, Skill};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_project::Host;
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::builder;
use super::card_document::CardDocument;
use super::options::A2aOptions;
use crate::app::App;
use cliq_web::Problem;

/// Time for which a card is reused before the teams are read again.
const FRESH: Duration = Duration::from_secs(2);
/// Form of dates in headers (RFC 9110, section 5.6.7).
const HTTP_DATE: &str = "%a, %d %b %Y %H:%M:%S GMT";
/// Time for which clients may cache the card, in seconds.
const MAX_AGE: u32 = 60;

/// The agent card of this host, signed where there is a key. Reads the teams from the disk. `base_url` is the address of the server.
#[must_use]
pub fn agent_card(host: &Host, options: &A2aOptions, base_url: &str) -> Value {
    card_of(team_skills(host, options), options, base_url)
}

fn card_of(mut skills: Vec<Skill>, options: &A2aOptions, base_url: &str) -> Value {
    if options.enable_builder {
        skills.extend(builder::skills());
    }
    skills.sort_by(|a, b| a.id.cmp(&b.id));
    let card = AgentCard {
        name: format!("cliq ({})", options.instance_id),
        description: "Runs teams of agents that deliver something together. A task is the requirement as text, with a data part that names the team and its inputs.".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        base_url: base_url.to_owned(),
        provider: Provider { organization: "cliq".to_owned(), url: base_url.to_owned() },
        skills,
        versions: options.versions.clone(),
    };
    card.to_json(options.signing_key.as_deref())
}

/// The skills of the teams that are offered. Teams with errors are left out.
fn team_skills(host: &Host, options: &A2aOptions) -> Vec<Skill> {
    // A directory that does not exist: teams of the server's working directory are not offered.
    let teams = host.list_teams(Utf8Path::new("/nonexistent")).unwrap_or_default();
    let mut names: Vec<String> = teams.into_iter().filter(|team| team.valid).map(|team| team.name).collect();
    names.sort();
    names.dedup();
    let offered = names.into_iter().filter(|name| options.advertise.includes(name));
    offered
        .filter_map(|name| {
            let workflow = host.find_team(&name).ok()?.folder.check().workflow?;
            let inputs: Vec<(&str, Option<&str>, bool)> = workflow
                .inputs
                .iter()
                .map(|input| {
                    let required = input.required && input.default.is_none();
                    (input.name.as_str(), input.description.as_deref(), required)
                })
                .collect();
            let (description, tags) = (workflow.description.as_deref(), &workflow.tags);
            Some(Skill::of_team(&name, description, &workflow.use_when, &workflow.not_for, tags, &inputs))
        })
        .collect()
}

impl App {
    /// The agent card as of now.
    pub(crate) async fn agent_card(self: &Arc<Self>) -> Result<Arc<CardDocument>, Problem> {
        let app = Arc::clone(self);
        let made = spawn_blocking(move || {
            let mut cached = app.card.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((at, card)) = &*cached
                && at.elapsed() < FRESH
            {
                return Some(Arc::clone(card));
            }
            let options = app.options.a2a.as_ref()?;
            let skills = team_skills(app.core.host(), options);
            let teams: Vec<String> = skills.iter().map(|skill| skill.id.clone()).collect();
            let value = card_of(skills, options, &app.base_url);
            // A signature is another one each time: what is unchanged keeps it, and its ETag.
            let unsigned = |value: &Value| {
                let mut value = value.clone();
                value.as_object_mut().map(|map| map.remove("signatures"));
                value
            };
            let old = cached.as_ref().map(|(_, card)| Arc::clone(card));
            let card = match old.filter(|old| unsigned(&old.value) == unsigned(&value)) {
                Some(old) => old,
                None => {
                    let text = Bytes::from(value.to_string());
                    let hash = digest(&SHA256, unsigned(&value).to_string().as_bytes());
                    let etag = hex::encode(&hash.as_ref()[..12]);
                    let modified = Timestamp::now();
                    Arc::new(CardDocument { value, teams, text, etag: format!("\"{etag}\""), modified })
                }
            };
            *cached = Some((Instant::now(), Arc::clone(&card)));
            Some(card)
        });
        let made = made.await.map_err(|error| Problem::unavailable(error.to_string()))?;
        made.ok_or_else(|| {
            Problem::not_found("this server is not an A2A agent: `cliq server start --a2a` makes it one")
        })
    }
}

/// The card. Needs no token.
pub(super) async fn card(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Problem> {
    let card = app.agent_card().await?;
    let cache = format!("public, max-age={MAX_AGE}");
    let has = |value: &str| {
        value
            .split(',')
            .any(|tag| matches!(tag.trim().trim_start_matches("W/"), tag if tag == "*" || tag == card.etag))
    };
    let given = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let modified = card.modified.strftime(HTTP_DATE).to_string();
    let own = [
        (header::ETAG, card.etag.clone()),
        (header::LAST_MODIFIED, modified),
        (header::CACHE_CONTROL, cache),
    ];
    // The tag is the finer condition, where both are given (RFC 9110, section 13.2.2).
    let is_known = match given {
        Some(given) => has(given),
        None => headers
            .get(header::IF_MODIFIED_SINCE)
            .and_then(|value| jiff::fmt::rfc2822::parse(value.to_str().ok()?).ok())
            .is_some_and(|since| card.modified.as_second() <= since.timestamp().as_second()),
    };
    if is_known {
        return Ok((StatusCode::NOT_MODIFIED, own).into_response());
    }
    Ok((own, [(header::CONTENT_TYPE, "application/json")], card.text.clone()).into_response())
}

/// The public key that the card is signed with. Needs no token.
pub(super) async fn keys(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    let key = app.options.a2a.as_ref().and_then(|options| options.signing_key.as_ref());
    let key = key.ok_or_else(|| Problem::not_found("the agent card is not signed"))?;
    let headers = [(header::CACHE_CONTROL, format!("public, max-age={MAX_AGE}"))];
    Ok((headers, axum::Json(key.key_set())).into_response())
}
