//! `slack` and `webhook`: agents that deliver notifications (SPEC section 9).

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
        "slack" => (json!({"text": sentence(&details.event, &details.payload)}), Vec::new()),
        _ => webhook(ctx, &settings, &place("secret"))?,
    };
    let body = serde_json::to_vec(&body)?;
    let client = cliq_http::client(FIRST_BYTE);
    let call = || {
        let mut request = client.post(url.reveal()).header("content-type", "application/json");
        for (name, value) in &headers {
            request = request.header(*name, value);
        }
        let response = request.send(&body).map_err(|error| CallError {
            message: format!("{agent}:{channel} cannot be reached: {error}"),
            is_transient: cliq_http::is_transient(&error),
            pause: None,
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

/// The event in words.
fn sentence(event: &str, payload: &Value) -> String {
    let text = |key: &str| payload.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let team = text("team").unwrap_or("cliq");
    let phase = text("phase").map(|phase| format!(" `{phase}`")).unwrap_or_default();
    let what = match event {
        "on_start" => "the run has started".to_owned(),
        "on_phase_start" => format!("phase{phase} has started"),
        "on_phase_complete" => format!("phase{phase} is done"),
        "on_complete" if phase.is_empty() => "the run is complete".to_owned(),
        "on_complete" => format!("phase{phase} is done"),
        "on_escalate" => format!(
            "a person is needed{}",
            text("phase").map(|p| format!(", in phase `{p}`")).unwrap_or_default()
        ),
        "on_fail" => format!("phase{phase} has failed"),
        "on_cancel" => "the run was cancelled".to_owned(),
        other => format!("{other}{phase}"),
    };
    let mut line = format!("*{team}*: {what}");
    for key in ["message", "reason"] {
        if let Some(more) = text(key) {
            line.push_str("\n> ");
            line.push_str(&more.replace('\n', "\n> "));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_described_in_words() {
        let payload = json!({"team": "@a/b", "phase": "dev", "reason": "it\nfails"});
        assert_eq!(
            sentence("on_escalate", &payload),
            "*@a/b*: a person is needed, in phase `dev`\n> it\n> fails"
        );
        assert_eq!(sentence("on_complete", &json!({})), "*cliq*: the run is complete");
        assert_eq!(sentence("help", &json!({"team": "t", "message": "look"})), "*t*: help\n> look");
    }
}
