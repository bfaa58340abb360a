//! Signatures of webhooks. Pure: the present time is an argument. Digests and tokens are compared in constant time.
//!
//! One secret signs one construction, by the definition of the trigger: nothing in a request chooses what the signature covers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use subtle::ConstantTimeEq;

/// Largest difference between the timestamp of a request and the present time, in seconds.
const WINDOW: i64 = 300;
/// Longest id of a delivery, in bytes. A longer one is replaced by its digest.
const MAX_ID: usize = 200;

/// Signature scheme of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// GitHub: `X-Hub-Signature-256`, HMAC-SHA256 of the body.
    Github,
    /// GitLab: `webhook-signature` of Standard Webhooks, or the secret in `X-Gitlab-Token`.
    Gitlab,
    /// Slack: `X-Slack-Signature`, HMAC-SHA256 of timestamp and body.
    Slack,
    /// Any sender: `X-Signature-256`, HMAC-SHA256 of the body.
    Hmac,
    /// Any sender: `X-Signature-256`, HMAC-SHA256 of `TIME.BODY`, with the time in `X-Timestamp`.
    HmacTimestamp,
}

impl Scheme {
    /// Words of a file.
    pub const WORDS: [&'static str; 5] = ["github", "gitlab", "slack", "hmac", "hmac-timestamp"];

    /// Returns the scheme of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "github" => Some(Self::Github),
            "gitlab" => Some(Self::Gitlab),
            "slack" => Some(Self::Slack),
            "hmac" => Some(Self::Hmac),
            "hmac-timestamp" => Some(Self::HmacTimestamp),
            _ => None,
        }
    }

    /// Word in a file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Slack => "slack",
            Self::Hmac => "hmac",
            Self::HmacTimestamp => "hmac-timestamp",
        }
    }

    /// Text that the secret signs. A secret of two triggers must sign the same one in both: else a signature of one is a signature of
    /// another text in the other.
    #[must_use]
    pub fn construction(self) -> Construction {
        match self {
            Self::Github | Self::Hmac => Construction::Body,
            Self::HmacTimestamp => Construction::TimeAndBody,
            Self::Slack => Construction::VersionTimeAndBody,
            Self::Gitlab => Construction::IdTimeAndBody,
        }
    }

    /// Headers that contain signatures or tokens. Expressions do not see them.
    pub(crate) const SECRET_HEADERS: [&'static str; 10] = [
        "authorization",
        "cookie",
        "proxy-authorization",
        "x-hub-signature",
        "x-hub-signature-256",
        "x-gitlab-token",
        "webhook-signature",
        "x-slack-signature",
        "x-signature",
        "x-signature-256",
    ];
}

/// Text that a signature covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Construction {
    /// `BODY`.
    Body,
    /// `TIME.BODY`.
    TimeAndBody,
    /// `v0:TIME:BODY`.
    VersionTimeAndBody,
    /// `ID.TIME.BODY`.
    IdTimeAndBody,
}

/// Reason why a request is refused. Says nothing about the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The header of the signature is missing or has another form.
    #[error("the request has no signature of the expected form")]
    Missing,
    /// The signature is of another secret or body.
    #[error("the signature does not match")]
    Wrong,
    /// The timestamp is missing, malformed, or too far from the present.
    #[error("the timestamp of the request is more than 5 minutes off, or missing")]
    Stale,
    /// The sender signs `TIME.BODY`, and the trigger is of `hmac`.
    #[error(
        "the signature covers X-Timestamp and the body, but `signature: hmac` accepts the body alone: write `signature: hmac-timestamp` in triggers.yml"
    )]
    Timestamped,
    /// The trigger is of `hmac-timestamp`, and the request has no `X-Timestamp`.
    #[error(
        "the request has no X-Timestamp, which `signature: hmac-timestamp` needs: if the sender signs the body alone, write `signature: hmac` in triggers.yml"
    )]
    NoTimestamp,
    /// The body begins as `TIME.BODY` does: such a text could be a captured request of a sender that signs timestamps.
    #[error(
        "the body begins with a number and a dot, as a signed timestamp does: `signature: hmac` does not accept such a body"
    )]
    LooksTimestamped,
}

/// Identity of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Key of the delivery.
    pub key: String,
    /// Description for people.
    pub description: String,
    /// Digest of the body, as a second key: the signature does not cover the id.
    pub content_key: Option<String>,
}

fn mac(secret: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret));
    for part in parts {
        context.update(part);
    }
    context.sign().as_ref().to_vec()
}

fn is_hex_of(text: &str, expected: &[u8]) -> bool {
    hex::decode(text).is_ok_and(|given| bool::from(given.ct_eq(expected)))
}

fn check_time(text: Option<&str>, now: i64) -> Result<&str, SignatureError> {
    let text = text.filter(|text| text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit()));
    let time = text.and_then(|text| text.parse::<i64>().ok());
    match (text, time) {
        (Some(text), Some(time)) if now.abs_diff(time) <= WINDOW as u64 => Ok(text),
        _ => Err(SignatureError::Stale),
    }
}

/// Checks the signature of a request at `now`, in seconds since 1970. `header` returns the value of a header by its lower-case name.
///
/// Time is linear in the size of body and headers. An error has at most 300 bytes, and nothing of the request.
///
/// # Errors
/// Returns an error if the signature is missing or wrong, or the request is too old.
pub fn verify<'a>(
    scheme: Scheme,
    secret: &str,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
    now: i64,
) -> Result<Delivery, SignatureError> {
    let key = secret.as_bytes();
    let content = hex::encode(digest(&SHA256, body).as_ref());
    let by_content = || (format!("body:{content}"), format!("body {}", &content[..12]));
    // The id of a sender whose signature covers the body only.
    let unsigned = |id: Option<&str>| match id.map(clean) {
        Some(id) => Delivery {
            key: format!("delivery:{id}"),
            description: format!("delivery {id}"),
            content_key: Some(format!("body:{content}")),
        },
        None => {
            let (key, description) = by_content();
            Delivery { key, description, content_key: None }
        }
    };
    let signed = |id: String| Delivery {
        key: format!("delivery:{id}"),
        description: format!("delivery {id}"),
        content_key: None,
    };
    let is_right = |is_right: bool| if is_right { Ok(()) } else { Err(SignatureError::Wrong) };
    match scheme {
        Scheme::Github => {
            let given = header("x-hub-signature-256").and_then(|value| value.strip_prefix("sha256="));
            is_right(is_hex_of(given.ok_or(SignatureError::Missing)?, &mac(key, &[body])))?;
            Ok(unsigned(header("x-github-delivery")))
        }
        Scheme::Gitlab => {
            if let Some(given) = header("webhook-signature") {
                return standard(secret, given, &header, body, now).map(signed);
            }
            let given = header("x-gitlab-token").ok_or(SignatureError::Missing)?;
            // Digests, so that the length of the secret does not show.
            let same = digest(&SHA256, given.as_bytes()).as_ref().ct_eq(digest(&SHA256, key).as_ref());
            is_right(bool::from(same))?;
            Ok(unsigned(header("idempotency-key").or_else(|| header("x-gitlab-event-uuid"))))
        }
        Scheme::Slack => {
            let given = header("x-slack-signature").and_then(|value| value.strip_prefix("v0="));
            let given = given.ok_or(SignatureError::Missing)?;
            let time = check_time(header("x-slack-request-timestamp"), now)?;
            let expected = mac(key, &[b"v0:", time.as_bytes(), b":", body]);
            is_right(is_hex_of(given, &expected))?;
            // Slack repeats a delivery with a new timestamp and the same body.
            let (key, description) = by_content();
            Ok(Delivery { key, description, content_key: None })
        }
        Scheme::Hmac => {
            let given = given_hmac(&header)?;
            if !is_hex_of(given, &mac(key, &[body])) {
                let time = header("x-timestamp").unwrap_or_default();
                let is_timestamped = is_hex_of(given, &mac(key, &[time.as_bytes(), b".", body]));
                return Err(if is_timestamped { SignatureError::Timestamped } else { SignatureError::Wrong });
            }
            if begins_with_time(body) {
                return Err(SignatureError::LooksTimestamped);
            }
            Ok(unsigned(header("x-delivery-id").or_else(|| header("idempotency-key"))))
        }
        Scheme::HmacTimestamp => {
            let given = given_hmac(&header)?;
            let time = check_time(Some(header("x-timestamp").ok_or(SignatureError::NoTimestamp)?), now)?;
            is_right(is_hex_of(given, &mac(key, &[time.as_bytes(), b".", body])))?;
            Ok(unsigned(header("x-delivery-id").or_else(|| header("idempotency-key"))))
        }
    }
}

/// Returns the signature of a sender of `hmac` or `hmac-timestamp`.
fn given_hmac<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Result<&'a str, SignatureError> {
    let given = header("x-signature-256").or_else(|| header("x-signature"));
    let given = given.ok_or(SignatureError::Missing)?;
    Ok(given.strip_prefix("sha256=").unwrap_or(given))
}

/// Returns whether a body begins with digits and a dot. A signature of `TIME.BODY` is one of such a body.
fn begins_with_time(body: &[u8]) -> bool {
    let digits = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && body.get(digits) == Some(&b'.')
}

/// Checks a signature of Standard Webhooks. Returns the id of the delivery.
fn standard<'a>(
    secret: &str,
    given: &str,
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
    now: i64,
) -> Result<String, SignatureError> {
    let id = header("webhook-id").ok_or(SignatureError::Missing)?;
    let time = check_time(header("webhook-timestamp"), now)?;
    let key = secret.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok());
    let key = key.unwrap_or_else(|| secret.as_bytes().to_vec());
    let expected = mac(&key, &[id.as_bytes(), b".", time.as_bytes(), b".", body]);
    let signatures = given.split(' ').filter_map(|part| STANDARD.decode(part.strip_prefix("v1,")?).ok());
    let right = signatures.fold(false, |found, given| found | bool::from(given.ct_eq(&expected)));
    if right { Ok(clean(id)) } else { Err(SignatureError::Wrong) }
}

/// An id as it may be stored and shown.
fn clean(id: &str) -> String {
    let plain = id.bytes().all(|b| b.is_ascii_graphic());
    if plain && (1..=MAX_ID).contains(&id.len()) {
        return id.to_owned();
    }
    hex::encode(digest(&SHA256, id.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn check(scheme: Scheme, headers: &[(&str, &str)], body: &str) -> Result<Delivery, SignatureError> {
        let find = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        verify(scheme, "It's a Secret to Everybody", find, body.as_bytes(), NOW)
    }

    #[test]
    fn published_example_of_github() {
        let right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let delivery = check(
            Scheme::Github,
            &[("x-hub-signature-256", right), ("x-github-delivery", "d1")],
            "Hello, World!",
        );
        assert_eq!(delivery.unwrap().key, "delivery:d1");
        assert_eq!(
            check(Scheme::Github, &[("x-hub-signature-256", right)], "Hello, World?"),
            Err(SignatureError::Wrong)
        );
        assert_eq!(check(Scheme::Github, &[], "x"), Err(SignatureError::Missing));
        assert_eq!(
            check(Scheme::Github, &[("x-hub-signature-256", &right[7..])], "Hello, World!"),
            Err(SignatureError::Missing)
        );
    }

    #[test]
    fn published_example_of_slack() {
        let secret = "8f742231b10e8888abcd99yyyzzz85a5";
        let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let headers = [
            ("x-slack-signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
            ("x-slack-request-timestamp", "1531420618"),
        ];
        let find = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        assert!(verify(Scheme::Slack, secret, find, body.as_bytes(), 1_531_420_618).is_ok());
        assert!(verify(Scheme::Slack, secret, find, body.as_bytes(), 1_531_420_618 + 300).is_ok());
        for now in [1_531_420_618 + 301, 1_531_420_618 - 301, 0] {
            assert_eq!(verify(Scheme::Slack, secret, find, body.as_bytes(), now), Err(SignatureError::Stale));
        }
    }

    #[test]
    fn published_example_of_standard_webhooks() {
        let headers = [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            (
                "webhook-signature",
                "v1,bm9ldHUjKzFob2VudXRob2VodWUzMjRvdWVvdW9ldQo= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            ),
        ];
        let find = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let body = br#"{"test": 2432232314}"#;
        let delivery = verify(Scheme::Gitlab, secret, find, body, 1_614_265_330).unwrap();
        assert_eq!(delivery.key, "delivery:msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(verify(Scheme::Gitlab, secret, find, b"{}", 1_614_265_330), Err(SignatureError::Wrong));
        assert_eq!(verify(Scheme::Gitlab, secret, find, body, NOW), Err(SignatureError::Stale));
    }

    const TIME: &str = "1700000000";

    fn signed(parts: &[&str]) -> String {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        hex::encode(mac(b"It's a Secret to Everybody", &parts))
    }

    #[test]
    fn captured_delivery_with_its_time_does_not_pass_without_the_header() {
        for body in [r#"{"action": "deploy"}"#, "x=1&payload=%7B%7D", "payload=%7B%7D", "", "7.5", "[1]"] {
            let signature = signed(&[TIME, ".", body]);
            let captured = [("x-signature-256", signature.as_str()), ("x-timestamp", TIME)];
            assert!(check(Scheme::HmacTimestamp, &captured, body).is_ok(), "{body}");
            assert_eq!(check(Scheme::Hmac, &captured, body), Err(SignatureError::Timestamped), "{body}");
            let replayed = format!("{TIME}.{body}");
            let without = [("x-signature-256", signature.as_str()), ("x-delivery-id", "new")];
            assert_eq!(check(Scheme::Hmac, &without, &replayed), Err(SignatureError::LooksTimestamped));
            assert_eq!(check(Scheme::HmacTimestamp, &without, &replayed), Err(SignatureError::NoTimestamp));
        }
    }

    #[test]
    fn signature_of_the_body_alone_is_none_with_a_timestamp() {
        for body in [r#"{"n": 1}"#, "a=b", "1700000000.{}"] {
            let signature = signed(&[body]);
            let headers = [("x-signature", signature.as_str()), ("x-timestamp", TIME)];
            assert_eq!(check(Scheme::HmacTimestamp, &headers, body), Err(SignatureError::Wrong), "{body}");
            let of_another =
                check(Scheme::HmacTimestamp, &headers, body.split_once('.').map_or(body, |t| t.1));
            // A body that begins with its own time is one construction of two texts: `hmac` refuses to sign it.
            assert_eq!(of_another.is_ok(), begins_with_time(body.as_bytes()), "{body}");
            // A header that the signature does not cover changes nothing.
            assert_eq!(check(Scheme::Hmac, &headers, body).is_ok(), !begins_with_time(body.as_bytes()));
        }
    }

    #[test]
    fn timestamps_have_a_tolerance_of_five_minutes() {
        for (time, expected) in [(NOW - 300, true), (NOW + 300, true), (NOW - 301, false), (NOW + 301, false)]
        {
            let time = time.to_string();
            let signature = signed(&[&time, ".", "{}"]);
            let headers = [("x-signature-256", signature.as_str()), ("x-timestamp", time.as_str())];
            assert_eq!(check(Scheme::HmacTimestamp, &headers, "{}").is_ok(), expected, "{time}");
        }
        for time in ["", "-1", "1e9", " 1700000000", "99999999999999999999"] {
            let signature = signed(&[time, ".", "{}"]);
            let headers = [("x-signature-256", signature.as_str()), ("x-timestamp", time)];
            assert_eq!(check(Scheme::HmacTimestamp, &headers, "{}"), Err(SignatureError::Stale), "{time}");
        }
    }

    #[test]
    fn ids_are_stored_plain_or_as_their_digest() {
        assert_eq!(clean("72d3162e-cc78"), "72d3162e-cc78");
        for strange in ["", "a b", "ü", "\u{1b}[31m", &"x".repeat(201)] {
            assert_eq!(clean(strange).len(), 64, "{strange}");
        }
    }
}
