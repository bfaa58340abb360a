//! Mail, over SMTP.

use std::time::Duration;

use cliq_http::CallError;
use cliq_sdk::{Completion, NotifyContext};
use cliq_settings::{EmailSettings, MailSecurity, Settings};
use lettre::message::Mailbox;
use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, Message, SmtpTransport, Transport};
use serde_json::Value;

use super::words::sentence;
use crate::AnyError;

const TRIES: usize = 3;
const ANSWER: Duration = Duration::from_secs(15);

pub(super) fn deliver(ctx: &NotifyContext, settings: &Settings) -> Result<Completion, AnyError> {
    let details = ctx.details();
    let to = details.channel.as_deref().unwrap_or_default();
    let settings = EmailSettings::read(settings);
    let message = message(&settings, to, &details.event, &details.payload)?;
    let transport = transport(settings)?;
    let send = || {
        transport.send(&message).map(drop).map_err(|error| {
            CallError::new(
                format!("the mail server refuses: {error}"),
                !(error.is_permanent() || error.is_client()),
            )
        })
    };
    cliq_http::retry("email", TRIES, send, |said| drop(ctx.progress(said)))
        .map_err(|failed| failed.message)?;
    Ok(ctx.complete())
}

/// The mail. What comes from a run can end no header: the library encodes it.
fn message(settings: &EmailSettings, to: &str, event: &str, payload: &Value) -> Result<Message, AnyError> {
    let address: Address =
        to.parse().map_err(|_| format!("`{to}` is not a mail address: write email:NAME@HOST"))?;
    let from = settings
        .from
        .as_deref()
        .ok_or("there is no sender: `cliq settings set -g agents.email.from \"cliq <cliq@example.com>\"`")?;
    let from: Mailbox =
        from.parse().map_err(|_| format!("`agents.email.from` is not a mail address: {from}"))?;
    let text = |key: &str| payload.get(key).and_then(Value::as_str).unwrap_or_default();
    let subject = match event {
        "hug_review" => format!("Review needed: {} of {}", text("phase"), text("team")),
        "hug_reminder" => format!("Review still needed: {} of {}", text("phase"), text("team")),
        "hug_outcome" => format!("Review over: {} of {}", text("phase"), text("team")),
        _ => sentence(event, payload).lines().next().unwrap_or_default().replace('*', ""),
    };
    let subject = in_one_line(&subject);
    let reviewer = Some(in_one_line(text("reviewer"))).filter(|name| !name.is_empty());
    let message = Message::builder()
        .from(from)
        .to(Mailbox::new(reviewer, address))
        .subject(subject)
        .header(ContentType::TEXT_PLAIN)
        .body(body(event, payload))?;
    Ok(message)
}

/// Text for a header. The library refuses control characters, in a name by a panic.
fn in_one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

fn body(event: &str, payload: &Value) -> String {
    let text = |key: &str| payload.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut lines =
        vec![text("message").map_or_else(|| sentence(event, payload), str::to_owned), String::new()];
    if let Some(link) = text("link") {
        lines.push(format!("Open the review, and decide: {link}"));
        lines.push("The link is yours alone: who has it decides in your name.".to_owned());
        lines.push(String::new());
    }
    let (passed, total) = (payload["checks"]["passed"].as_u64(), payload["checks"]["total"].as_u64());
    if let (Some(passed), Some(total)) = (passed, total) {
        lines.push(format!("{passed} of {total} checks passed."));
    }
    for (key, label) in
        [("workspace", "project"), ("run_id", "run"), ("review", "review"), ("deadline", "deadline")]
    {
        lines.extend(text(key).map(|value| format!("{label}: {value}")));
    }
    lines.join("\n")
}

fn transport(settings: EmailSettings) -> Result<SmtpTransport, AnyError> {
    // All fields are named, so a new setting does not compile until it has a use here.
    let EmailSettings { host, port, security, username, password, from: _, ca_file } = settings;
    let host = host.ok_or("there is no mail server: `cliq settings set -g agents.email.host HOST`")?;
    let tls = || -> Result<TlsParameters, AnyError> {
        let mut builder = TlsParameters::builder(host.clone());
        if let Some(file) = &ca_file {
            let pem = std::fs::read(file).map_err(|error| format!("cannot read {file}: {error}"))?;
            builder = builder.add_root_certificate(
                Certificate::from_pem(&pem).map_err(|error| format!("{file}: {error}"))?,
            );
        }
        Ok(builder.build()?)
    };
    let (tls, usual_port) = match security {
        MailSecurity::Tls => (Tls::Wrapper(tls()?), 465),
        MailSecurity::None => {
            if !matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1") {
                return Err("`agents.email.security none` is for a server on this machine: links of reviewers would be sent in the clear".into());
            }
            (Tls::None, 25)
        }
        MailSecurity::StartTls => (Tls::Required(tls()?), 587),
    };
    let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(usual_port);
    let mut builder = SmtpTransport::builder_dangerous(host).port(port).tls(tls).timeout(Some(ANSWER));
    if let Some(user) = username {
        let password =
            password.ok_or("`agents.email.username` is set, and `agents.email.password` is not")?;
        builder = builder.credentials(Credentials::new(user, password.reveal().to_owned()));
    }
    Ok(builder.build())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mail_of_a_review() {
        let payload = json!({"team": "@a/b", "phase": "approval", "reviewer": "ann\r\nBcc: x@y.z", "message": "@a/b: look\r\n.\r\nQUIT",
            "link": "http://h/review/1/2", "checks": {"passed": 2, "total": 2}, "deadline": "2026"});
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), r#"{"agents": {"email": {"from": "cliq <cliq@example.com>"}}}"#).unwrap();
        let settings = Settings::load(None, camino::Utf8Path::from_path(file.path())).unwrap();
        let settings = EmailSettings::read(&settings);
        let mail = message(&settings, "ann@example.com", "hug_review", &payload).unwrap();
        let text = String::from_utf8(mail.formatted()).unwrap();
        assert!(text.contains("Subject: Review needed: approval of @a/b\r\n"), "{text}");
        assert!(!text.contains("\r\nBcc:"), "{text}");
        assert!(text.contains("http://h/review/1/2"), "{text}");
        assert!(message(&settings, "nobody", "hug_review", &payload).is_err());
        assert!(message(&settings, "a@b.c\r\nX: y", "hug_review", &payload).is_err());
    }
}
