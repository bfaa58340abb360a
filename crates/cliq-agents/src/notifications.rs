//! `slack`, `email` and `webhook`: agents that deliver notifications (SPEC sections 9 and 16).

#[cfg(feature = "email")]
mod email;
mod slack;
mod words;

use std::time::Duration;

use cliq_http::CallError;
use cliq_sdk::{Completion, NotifyContext};
use cliq_settings::{Environment, Settings};
use ring::hmac;
use serde_json::{Value, json};

use crate::AnyError;

const TRIES: usize = 4;
const FIRST_BYTE: Duration = Duration::from_secs(15);

pub(crate) fn deliver(ctx: &NotifyContext, environment: &Environment) -> Result<Completion, AnyError> {
    let details = ctx.details();
    let settings = crate::settings_of(ctx.cliq_dir(), environment)?;
    let channel = details.channel.as_deref().unwrap_or("default");
    let (agent, url_key) = match details.agent.as_str() {
        #[cfg(feature = "email")]
        "email" => return email::deliver(ctx, &settings),
        "slack" => ("slack", "webhook_url"),
        "webhook" => ("webhook", "url"),
        other => {
            return Err(
                format!("this version of cliq has no agent `{other}` that delivers notifications").into()
            );
        }
    };
    let place = |key: &str| format!("agents.{agent}.channels.{channel}.{key}");
    let url = settings.secret(&place(url_key)).ok_or_else(|| {
        format!("there is no channel `{channel}`: `cliq settings set -g {} -` makes it one", place(url_key))
    })?;
    let (body, headers) = match agent {
        "slack" => (slack::message(&details.event, &details.payload), Vec::new()),
        _ => webhook(ctx, &settings, &place("secret"))?,
    };
    let body = serde_json::to_vec(&body)?;
    let client = cliq_http::client(FIRST_BYTE);
    let call = || {
        let mut request = client.post(url.reveal()).header("content-type", "application/json");
        for (name, value) in &headers {
            request = request.header(*name, value);
        }
        let response = request.send(&body).map_err(|error| {
            CallError::new(
                format!("{agent}:{channel} cannot be reached: {error}"),
                cliq_http::is_transient(&error),
            )
        })?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(cliq_http::refusal(&format!("{agent}:{channel}"), response))
        }
    };
    // The address is as good as a key.
    let masked = |text: &str| text.replace(url.reveal(), "********");
    cliq_http::retry(&format!("{agent}:{channel}"), TRIES, call, |said| drop(ctx.progress(masked(said))))
        .map_err(|failed| masked(&failed.message))?;
    Ok(ctx.complete())
}

type Headers = Vec<(&'static str, String)>;

/// What a webhook gets: the event with all there is to know, signed where there is a secret.
fn webhook(ctx: &NotifyContext, settings: &Settings, secret: &str) -> Result<(Value, Headers), AnyError> {
    let details = ctx.details();
    let body = json!({"event": details.event, "channel": details.channel, "payload": details.payload});
    let mut headers = vec![("x-cliq-event", details.event.clone())];
    if let Some(secret) = settings.secret(secret) {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes());
        let tag = hmac::sign(&key, &serde_json::to_vec(&body)?);
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        headers.push(("x-cliq-signature-256", format!("sha256={hex}")));
    }
    Ok((body, headers))
}
