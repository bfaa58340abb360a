//! Requests to webhooks: signature, replay, form. A firing is on the disk before the sender gets its response; nothing starts before.

use cliq_model::{Added, NewFiring, StoreError};
use cliq_protocol::{MAX_JSON_VALUES, has_too_many_values, lenient_json, shorten};
use serde_json::{Map, Value, json};

use super::Engine;
use super::firings::digest_of;
use crate::model::Source;
use crate::signature::{Scheme, SignatureError, verify};

/// Maximum size of a body, in bytes.
pub const MAX_BODY: usize = 1 << 20;
/// Maximum number of headers that expressions see, and of bytes of each.
const MAX_HEADERS: usize = 100;
const MAX_HEADER: usize = 4096;

/// Response to a request that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// The firing was stored.
    Stored(i64),
    /// The delivery is known: it starts nothing again.
    Known(i64),
    /// Slack checks the address: the response is this text.
    Challenge(String),
}

/// Reason why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum HookRefusal {
    /// No webhook has this name.
    #[error("there is no webhook of this name")]
    Unknown,
    /// The secret is not set on the server.
    #[error("the secret of the webhook is not set on the server")]
    NoSecret,
    /// The signature is missing, wrong or old.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The body is neither JSON nor a form.
    #[error("the body cannot be read: {0}")]
    Malformed(String),
    /// The body came before under another id.
    #[error("the content of this delivery was received before under another id")]
    Replayed,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// Checks a request and stores its firing. `headers` have lower-case names. Returns once the firing is on the disk.
    ///
    /// # Errors
    /// Returns the reason for a refusal. Nothing is stored then.
    pub async fn accept(
        &self,
        name: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<Accepted, HookRefusal> {
        let inner = &self.inner;
        let trigger = inner.catalog().find(name).ok_or(HookRefusal::Unknown)?;
        let Source::Webhook(webhook) = &trigger.source else { return Err(HookRefusal::Unknown) };
        let secret = webhook.secret.as_ref().ok_or(HookRefusal::NoSecret)?;
        let now = cliq_fs::now();
        let header =
            |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let delivery =
            verify(webhook.scheme, secret.reveal(), header, body, now.unix_millis().div_euclid(1000))?;
        let value = parse_body(header("content-type"), body).map_err(HookRefusal::Malformed)?;
        if webhook.scheme == Scheme::Slack
            && value["type"] == "url_verification"
            && let Some(challenge) = value["challenge"].as_str()
        {
            return Ok(Accepted::Challenge(challenge.to_owned()));
        }
        let values = json!({"headers": visible(headers), "body": value, "now": now.to_string()});
        let is_paused = inner.store.trigger_row(name).await?.is_some_and(|row| row.is_paused);
        let firing = NewFiring {
            trigger: trigger.name.clone(),
            at: now,
            cause: delivery.description,
            key: delivery.key,
            content_key: delivery.content_key,
            digest: digest_of(body),
            payload: values.to_string(),
            depth: 1,
            skipped: is_paused.then(|| "the trigger is paused".to_owned()),
        };
        match inner.store.add_firing(&firing).await? {
            Added::New(id) => {
                inner.pending.notify_one();
                Ok(Accepted::Stored(id))
            }
            Added::Known(id) => Ok(Accepted::Known(id)),
            Added::Replayed => Err(HookRefusal::Replayed),
        }
    }
}

/// Headers that expressions see: not those with signatures and tokens.
fn visible(headers: &[(String, String)]) -> Map<String, Value> {
    let is_visible = |name: &str| !Scheme::SECRET_HEADERS.contains(&name);
    let headers = headers.iter().filter(|(name, value)| is_visible(name) && value.len() <= MAX_HEADER);
    headers.take(MAX_HEADERS).map(|(name, value)| (name.clone(), json!(value))).collect()
}

/// Parses a body: JSON, or the fields of a form. A form with the field `payload` has JSON in it. Text that is not Unicode is read with
/// U+FFFD; the signature is that of the bytes.
///
/// A body has at most 1 MiB ([`MAX_BODY`]) and [`MAX_JSON_VALUES`] values. Time and memory are linear in it; an error has at most 300 bytes.
///
/// # Errors
/// Returns the reason if the body is neither.
pub fn parse_body(content_type: Option<&str>, body: &[u8]) -> Result<Value, String> {
    let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    fn short(error: impl std::fmt::Display) -> String {
        shorten(&error.to_string(), 300).into_owned()
    }
    let json_of = |text: &[u8]| {
        if has_too_many_values(text) {
            return Err(format!("it has more than {MAX_JSON_VALUES} values"));
        }
        lenient_json(text).map_err(short)
    };
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return json_of(body);
    }
    let fields: Vec<(String, String)> = serde_urlencoded::from_bytes(body).map_err(short)?;
    match fields.iter().find(|(name, _)| name == "payload") {
        Some((_, payload)) => json_of(payload.as_bytes()),
        None => Ok(Value::Object(fields.into_iter().map(|(name, value)| (name, value.into())).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_of_webhooks_are_read_in_linear_time() {
        let form = Some("application/x-www-form-urlencoded; charset=utf-8");
        for piece in ["a=1&", "%", "[", "{\"a\":", "\"\\ud83d", "payload=", "&", "0,"] {
            let body = piece.repeat(MAX_BODY / piece.len());
            for kind in [None, form] {
                if let Err(error) = parse_body(kind, body.as_bytes()) {
                    assert!(error.len() <= 300, "{piece}: {error}");
                }
            }
        }
        let objects = format!("[{}]", vec!["{\"\":0}"; 60_000].join(","));
        assert_eq!(parse_body(None, objects.as_bytes()), Err("it has more than 50000 values".to_owned()));
        // A form with `payload` first or last is its JSON.
        for body in ["x=1&payload=%7B%22n%22%3A1%7D", "payload=%7B%22n%22%3A1%7D&x=1"] {
            assert_eq!(parse_body(form, body.as_bytes()), Ok(json!({"n": 1})), "{body}");
        }
    }
}
