//! `slack`, `email` and `webhook`: agents that deliver notifications (docs/team-yml.md, docs/reviews.md).

#[cfg(feature = "email")]
mod email;
mod slack;
mod words;

use std::time::Duration;

use cliq_http::{Client, Limits, Repeat, Request};
use cliq_sdk::{Completion, NotifyContext};
use cliq_settings::{Environment, Secret, SlackChannelSettings, WebhookChannelSettings};
use ring::hmac;
use serde_json::{Value, json};

use crate::AnyError;

const TRIES: usize = 4;
const FIRST_BYTE: Duration = Duration::from_secs(15);

pub(crate) fn deliver(ctx: &NotifyContext, environment: &Environment) -> Result<Completion, AnyError> {
    let details = ctx.details();
    let settings = crate::settings_of(ctx.cliq_dir(), environment)?;
    let channel = details.channel.as_deref().unwrap_or("default");
    let (agent, url_key, url, secret) = match details.agent.as_str() {
        #[cfg(feature = "email")]
        "email" => return email::deliver(ctx, &settings),
        "slack" => ("slack", "webhook_url", SlackChannelSettings::read(&settings, channel).webhook_url, None),
        "webhook" => {
            let WebhookChannelSettings { url, secret } = WebhookChannelSettings::read(&settings, channel);
            ("webhook", "url", url, secret)
        }
        other => {
            return Err(
                format!("this version of cliq has no agent `{other}` that delivers notifications").into()
            );
        }
    };
    let url = url.ok_or_else(|| {
        format!(
            "there is no channel `{channel}`: `cliq settings set -g agents.{agent}.channels.{channel}.{url_key} -` makes it one"
        )
    })?;
    let (body, headers) = match agent {
        "slack" => (slack::message(&details.event, &details.payload), Vec::new()),
        _ => webhook(ctx, secret.as_ref())?,
    };
    let body = serde_json::to_vec(&body)?;
    let mut request = Request::post(url.reveal())
        .header("content-type", "application/json")
        .bytes(body)
        .called(format!("{agent}:{channel}"))
        // The address is as good as a key.
        .secret(url.reveal())
        // A notification that comes twice is better than none.
        .repeat(Repeat::Safe);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let limits = Limits { first_byte: FIRST_BYTE, whole: 2 * FIRST_BYTE, tries: TRIES, ..Limits::default() };
    let reporter = ctx.reporter().clone();
    let client = Client::new(limits).with_notice(move |said| drop(reporter.progress(said)));
    client.send(&request).map_err(|failed| failed.message)?;
    Ok(ctx.complete())
}

type Headers = Vec<(&'static str, String)>;

/// Returns the payload of a webhook: the event with all its fields, signed if there is a secret.
fn webhook(ctx: &NotifyContext, secret: Option<&Secret>) -> Result<(Value, Headers), AnyError> {
    let details = ctx.details();
    let body = json!({"event": details.event, "channel": details.channel, "payload": details.payload});
    let mut headers = vec![("x-cliq-event", details.event.clone())];
    if let Some(secret) = secret {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes());
        let tag = hmac::sign(&key, &serde_json::to_vec(&body)?);
        headers.push(("x-cliq-signature-256", format!("sha256={}", hex::encode(tag))));
    }
    Ok((body, headers))
}
