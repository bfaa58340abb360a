//! An MCP server over standard input and output (docs/signals.md): agents that speak the Model Context Protocol emit signals
//! by it, and look at signals, plans and runs.
//!
//! A [`Backend`] implements the tools; this crate offers them.

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "http")]
mod http;

mod lines;

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use lines::LenientLines;

/// Maximum size of a message, in bytes.
const MESSAGE_LIMIT: usize = 16 << 20;

#[cfg(feature = "client")]
pub use client::{McpClient, McpServer, McpTool, McpTransport};
#[cfg(feature = "http")]
pub use http::{HttpBackend, HttpCall, HttpTool, McpService, McpSession, ProgressReporter, mcp_service};

/// The implementation of the tools. Errors are for the caller: what was wrong, and what would be right.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Puts a signal into the queue. Gives the signal.
    async fn create_signal(&self, signal: CreateSignal) -> Result<Value, String>;
    /// Signals, the newest last.
    async fn list_signals(&self, filter: ListSignals) -> Result<Value, String>;
    /// Returns the state of a plan, or of all plans.
    async fn plan_status(&self, plan: Option<String>) -> Result<Value, String>;
    /// Returns the state of the project's run.
    async fn run_status(&self) -> Result<Value, String>;
}

/// A signal to be emitted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CreateSignal {
    /// The type, such as `implement_finished`, `implement_task_finished`, `review_approved`, `review_changes_requested`,
    /// `planner_finished`, `verify_approved` or `verify_failed`.
    #[serde(alias = "type")]
    pub signal_type: String,
    /// The plan that it is about. Default: the one that the caller works on.
    #[serde(default, alias = "plan_file")]
    pub plan: Option<String>,
    /// Payload of the signal, such as `{"wave_number": 1, "task_number": 2}`, or `{"body": "what has to be changed"}`.
    #[serde(default)]
    pub payload: Option<Payload>,
    /// The project's directory. Default: the one that the caller works in.
    #[serde(default)]
    pub project: Option<String>,
}

/// Payload of a signal.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Payload {
    /// Fields.
    Object(Map<String, Value>),
    /// Free text.
    Text(String),
}

impl Payload {
    /// As it is written on a command line.
    #[must_use]
    pub fn into_text(self) -> String {
        match self {
            Self::Object(object) => Value::Object(object).to_string(),
            Self::Text(text) => text,
        }
    }
}

/// Filter for signals.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ListSignals {
    /// Only those that are `pending`, `processing`, `done` or `failed`.
    #[serde(default)]
    pub status: Option<String>,
    /// Only those about this plan.
    #[serde(default)]
    pub plan: Option<String>,
    /// At most so many, the newest. Default: 50.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Name of the plan.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WhichPlan {
    /// The plan. Default: the one that the caller works on, else all of the project.
    #[serde(default)]
    pub plan: Option<String>,
}

#[derive(Clone)]
struct Server {
    backend: Arc<dyn Backend>,
}

/// The result of a tool; what went wrong is a result too, so that the model reads it.
fn result(outcome: Result<Value, String>) -> CallToolResult {
    match outcome {
        Ok(value) => CallToolResult::structured(value),
        Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
    }
}

#[tool_router]
impl Server {
    #[tool(
        description = "Emit a signal to the daemon that drives plans: that a task, an implementation, a review or a verification is finished, and how.",
        annotations(destructive_hint = false)
    )]
    async fn signal_create(&self, Parameters(signal): Parameters<CreateSignal>) -> CallToolResult {
        result(self.backend.create_signal(signal).await)
    }

    #[tool(
        description = "List signals of the project with their status, and the reasons of those that failed.",
        annotations(read_only_hint = true)
    )]
    async fn signal_list(&self, Parameters(filter): Parameters<ListSignals>) -> CallToolResult {
        result(self.backend.list_signals(filter).await)
    }

    #[tool(
        description = "How a plan stands: its state, its tasks, the agents at work, open questions.",
        annotations(read_only_hint = true)
    )]
    async fn plan_status(&self, Parameters(which): Parameters<WhichPlan>) -> CallToolResult {
        result(self.backend.plan_status(which.plan).await)
    }

    #[tool(
        description = "How the project's run stands: each phase with its status and iterations.",
        annotations(read_only_hint = true)
    )]
    async fn run_status(&self) -> CallToolResult {
        result(self.backend.run_status().await)
    }
}

#[tool_handler]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut me = Implementation::from_build_env();
        me.name = "cliq".to_owned();
        me.version = env!("CARGO_PKG_VERSION").to_owned();
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(me).with_instructions(
            "Signals tell the cliq daemon what happened to a plan. Emit one with signal_create when your part is done; a signal that does not fit fails, and signal_list says why.",
        )
    }
}

/// Reason why the server ended other than by the end of its input.
#[derive(Debug, thiserror::Error)]
#[error("the MCP server: {0}")]
pub struct McpError(String);

/// Serves on standard input and output until the input ends. Needs a tokio runtime.
///
/// # Errors
/// The client does not speak the protocol.
pub async fn serve(backend: Arc<dyn Backend>) -> Result<(), McpError> {
    let (input, output) = rmcp::transport::stdio();
    let lines = LenientLines::new(input, MESSAGE_LIMIT);
    let service = match (Server { backend }).serve((lines, output)).await {
        Ok(service) => service,
        // The client connected and closed the connection.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(McpError(error.to_string())),
    };
    service.waiting().await.map(drop).map_err(|error| McpError(error.to_string()))
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
