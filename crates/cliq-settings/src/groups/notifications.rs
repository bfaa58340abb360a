//! Settings `notifications.*`, and those of the agents that deliver notifications.

use std::collections::BTreeMap;

use super::{choice, group};
use crate::secret::Secret;

group! {
    /// Recipients of notifications.
    Shared struct NotificationSettings {
        "notifications.*", channels: BTreeMap<String, Vec<String>> as Channels,
            "whom to tell of an event of a run: on_start, on_phase_start, on_phase_complete, on_complete, on_escalate, on_cancel";
    }
}

group! {
    /// Settings of a Slack channel.
    Shared struct SlackChannelSettings of channel {
        "agents.slack.channels.*.webhook_url", webhook_url: Option<Secret> as SecretUrl,
            "the incoming webhook of a Slack channel; `slack` alone means the channel `default`";
    }
}

group! {
    /// Settings of a channel that posts to a webhook.
    Shared struct WebhookChannelSettings of channel {
        "agents.webhook.channels.*.url", url: Option<Secret> as SecretUrl,
            "where a webhook posts to; `webhook` alone means the channel `default`";
        "agents.webhook.channels.*.secret", secret: Option<Secret>,
            "what a webhook's posts are signed with (HMAC-SHA256)";
    }
}

group! {
    /// Settings of mail.
    Shared struct EmailSettings {
        "agents.email.host", host: Option<String>, "the server that mail is given to (SMTP)";
        "agents.email.port", port: Option<usize>, "its port; without it, 587 with STARTTLS and 465 with TLS";
        "agents.email.security", security: MailSecurity = "starttls",
            "how the connection to it is protected; `none` only for a server on this machine";
        "agents.email.username", username: Option<String>, "the user name at that server, if it asks for one";
        "agents.email.password", password: Option<Secret>, "the password of that user";
        "agents.email.from", from: Option<String>, "the sender of mails, such as `cliq <cliq@example.com>`";
        "agents.email.ca_file", ca_file: Option<String>,
            "a file with certificates (PEM) that are trusted for that server, beside the usual ones";
    }
}

choice! {
    /// Protection of the connection to a mail server.
    enum MailSecurity {
        /// A plain connection that is upgraded to TLS.
        StartTls = "starttls",
        /// TLS from the beginning.
        Tls = "tls",
        /// No protection.
        None = "none",
    }
}
