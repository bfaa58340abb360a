//! Joining meshes (docs/a2a.md): token, registration, registration again before the token expires, leave at a
//! clean stop. A mesh that fails never stops the server.

mod client;
pub(crate) mod status;

use std::sync::Arc;
use std::time::Duration;

use cliq_orchestrator::internals::spawn_blocking;
use cliq_settings::Mesh;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::app::App;
use client::{MeshClient, Token};
use cliq_supervisor::internals::Duty;
use status::MeshState;

/// The pauses after failures: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// Maximum interval between registrations: a mesh may forget the server, and the card may have changed.
const HEARTBEAT: Duration = Duration::from_secs(300);
/// The shortest time between two registrations, however short the life of a token is.
const SHORTEST: Duration = Duration::from_millis(200);
/// Deadline for the deregistration.
const LEAVE: Duration = Duration::from_secs(5);

/// Keeps the server registered with its meshes until it stops, and leaves them then.
pub(crate) async fn join(app: Arc<App>) {
    let Some(options) = &app.options.a2a else { return };
    let mut members = JoinSet::new();
    for mesh in options.meshes.clone() {
        app.meshes.set(&mesh.name, MeshState::Joining, None, None);
        members.spawn(stay(Arc::clone(&app), mesh));
    }
    members.join_all().await;
}

async fn stay(app: Arc<App>, mesh: Mesh) {
    let name = mesh.name.clone();
    let client = Arc::new(MeshClient::new(mesh));
    let (mut token, mut failures, mut is_new): (Option<Token>, u32, bool) = (None, 0, true);
    // Of several servers on one database, one is registered.
    let mut duty = Duty::new(&format!("mesh/{name}"));
    loop {
        if !duty.is_own(app.core.runs.as_ref(), app.core.supervisor.options()).await.unwrap_or(false) {
            app.meshes.set(&name, MeshState::Joining, None, Some("another server is registered".to_owned()));
            tokio::select! {
                () = app.core.stopping.cancelled() => break,
                () = tokio::time::sleep(app.core.supervisor.options().lease / 3) => continue,
            }
        }
        let pause = match register(&app, &client, &mut token).await {
            Ok(pause) => {
                if failures > 0 || is_new {
                    tracing::info!(mesh = %name, "joined");
                }
                (failures, is_new) = (0, false);
                app.meshes.set(&name, MeshState::Joined, Some(pause), None);
                pause
            }
            Err(reason) => {
                // The token may be the reason.
                token = None;
                let pause = PAUSES.0.saturating_mul(1 << failures.min(12)).min(PAUSES.1);
                failures += 1;
                tracing::warn!(mesh = %name, reason, "the mesh was not joined; it is tried again");
                app.meshes.set(&name, MeshState::Failing, Some(pause), Some(reason));
                pause
            }
        };
        tokio::select! {
            () = app.core.stopping.cancelled() => break,
            () = tokio::time::sleep(pause) => {}
            () = lost(&app, &mut duty) => token = None,
        }
    }
    if let Some(token) = token {
        let identity = identity(&app);
        let leave = spawn_blocking(move || client.deregister(&token, &identity));
        match tokio::time::timeout(LEAVE, leave).await {
            Ok(Ok(Ok(()))) => tracing::info!(mesh = %name, "left"),
            Ok(Ok(Err(reason))) => tracing::warn!(mesh = %name, reason, "the mesh was not left"),
            _ => tracing::warn!(mesh = %name, "the mesh was not left in time"),
        }
    }
}

/// Keeps the duty. Ends when another server has it.
async fn lost(app: &App, duty: &mut Duty) {
    loop {
        tokio::time::sleep(app.core.supervisor.options().lease / 3).await;
        if matches!(duty.is_own(app.core.runs.as_ref(), app.core.supervisor.options()).await, Ok(false)) {
            return;
        }
    }
}

/// Registers once. Gives how long the registration is good for.
async fn register(
    app: &Arc<App>,
    client: &Arc<MeshClient>,
    token: &mut Option<Token>,
) -> Result<Duration, String> {
    let card = app.agent_card().await.map_err(|problem| problem.detail)?;
    let mut body = identity(app);
    body["agent_card"] = card.value.clone();
    let (client, kept) = (Arc::clone(client), token.take());
    let done = spawn_blocking(move || {
        let token = match kept.filter(|token| !token.is_worn()) {
            Some(token) => token,
            None => client.token()?,
        };
        client.register(&token, &body)?;
        Ok::<_, String>(token)
    });
    let new = done.await.map_err(|error| error.to_string())??;
    // Well before the token expires.
    let pause = new.left().map_or(HEARTBEAT, |left| left.mul_f64(0.6)).min(HEARTBEAT);
    *token = Some(new);
    Ok(pause.max(SHORTEST))
}

fn identity(app: &App) -> Value {
    let options = app.options.a2a.as_ref();
    let agent_type = options.map(|options| options.agent_type.as_str()).unwrap_or_default();
    json!({"agent_type": agent_type, "instance_id": app.options.instance_id(),
        "agent_card_url": format!("{}{}", app.base_url, cliq_a2a::AgentCard::PATH)})
}
