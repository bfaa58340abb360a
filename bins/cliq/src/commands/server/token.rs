//! `cliq server token`: tokens, made and revoked in the database, whether a server runs or not.

use std::process::ExitCode;
use std::time::Duration;

use cliq_model::{NewToken, RunStore, Scope, SignInStore, TokenKind};
use cliq_protocol::Timestamp;
use cliq_server::SIGN_IN_PATH;
use comfy_table::{ContentArrangement, Table, presets};

use crate::args::{ScopeName, TokenCommand};
use crate::commands::audit::record;
use crate::failure::Failure;
use crate::gateway::{self, block_on};
use crate::ui;

pub(super) fn run(command: &TokenCommand) -> Result<ExitCode, Failure> {
    block_on(async {
        let store = gateway::open().await?;
        match command {
            TokenCommand::Create { label, scope, expires, json } => {
                let scope = scope_of(*scope);
                let expires = expires.map(in_future);
                let now = in_future(Duration::ZERO);
                let made = NewToken::generate(TokenKind::Api, label, scope, now, expires);
                let (secret, token) =
                    made.ok_or_else(|| Failure::failed("the system has no random numbers"))?;
                store.add_token(&token).await?;
                record(store.as_ref(), "token create", &format!("{} {label}", token.id)).await;
                if *json {
                    ui::json(&serde_json::json!({"id": token.id, "token": secret.reveal()}))?;
                } else {
                    ui::line(secret.reveal())?;
                    ui::hint(&format!(
                        "this is shown once; `cliq server token revoke {}` revokes it",
                        token.id
                    ));
                }
            }
            TokenCommand::List { sessions: true, json } => sessions(store.as_ref(), *json).await?,
            TokenCommand::List { sessions: false, json } => list(store.as_ref(), *json).await?,
            TokenCommand::Revoke { id } => {
                if !store.revoke_token(id).await? {
                    return Err(Failure::usage(format!("there is no token {id}"))
                        .hint("`cliq server token list` shows those there are"));
                }
                record(store.as_ref(), "token revoke", id).await;
                ui::line(format!("token {id} is revoked"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn list(store: &impl RunStore, as_json: bool) -> Result<(), Failure> {
    let tokens = store.tokens().await?;
    if as_json {
        return Ok(ui::json(&serde_json::json!({"tokens": tokens}))?);
    }
    if tokens.is_empty() {
        return Ok(ui::line("no tokens: `cliq server token create --label NAME` makes one")?);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["ID", "LABEL", "SCOPE", "MADE", "EXPIRES"]);
    for token in tokens {
        let expires = token.expires_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
        table.add_row([
            token.id,
            ui::plain(&token.label),
            token.scope.as_str().to_owned(),
            token.created_at.to_string(),
            expires,
        ]);
    }
    Ok(ui::line(table.to_string())?)
}

async fn sessions(store: &impl SignInStore, as_json: bool) -> Result<(), Failure> {
    let sessions = store.sessions(in_future(Duration::ZERO)).await?;
    let mail = |session: &cliq_model::Token| session.person.as_ref().and_then(|person| person.mail.clone());
    if as_json {
        let rows: Vec<_> = sessions
            .iter()
            .map(|session| {
                let mut row = serde_json::json!(session);
                row["mail"] = mail(session).into();
                row
            })
            .collect();
        return Ok(ui::json(&serde_json::json!({"sessions": rows}))?);
    }
    if sessions.is_empty() {
        return Ok(ui::line("no browser is signed in")?);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["ID", "PERSON", "MAIL", "SCOPE", "SINCE", "UNTIL"]);
    for session in sessions {
        let address = ui::plain(&mail(&session).unwrap_or_else(|| "-".to_owned()));
        table.add_row([
            session.id,
            ui::plain(&session.label),
            address,
            session.scope.as_str().to_owned(),
            session.created_at.to_string(),
            session.expires_at.map(|at| at.to_string()).unwrap_or_default(),
        ]);
    }
    Ok(ui::line(table.to_string())?)
}

fn scope_of(name: ScopeName) -> Scope {
    match name {
        ScopeName::Read => Scope::Read,
        ScopeName::Run => Scope::Run,
        ScopeName::Edit => Scope::Edit,
        ScopeName::Admin => Scope::Admin,
    }
}

/// A time from now on, UTC.
pub(super) fn in_future(time: Duration) -> Timestamp {
    cliq_fs::now().after(time)
}

/// Makes a link that signs a browser in, once, within 15 minutes.
pub(super) async fn sign_in_link(store: &impl RunStore, url: &str) -> Result<String, Failure> {
    let now = in_future(std::time::Duration::ZERO);
    let expires = in_future(std::time::Duration::from_secs(15 * 60));
    let made = NewToken::generate(TokenKind::SignIn, "this machine", Scope::Admin, now, Some(expires));
    let (secret, token) = made.ok_or_else(|| Failure::failed("the system has no random numbers"))?;
    store.add_token(&token).await?;
    Ok(format!("{url}{SIGN_IN_PATH}?code={}", secret.reveal()))
}
