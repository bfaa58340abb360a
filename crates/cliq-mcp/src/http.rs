//! An MCP server over streamable HTTP: tools that depend on the caller, progress, sessions (docs/mcp.md).
//!
//! A [`HttpBackend`] implements the tools. [`mcp_service`] is a `tower` service for a router; access control has put the caller into the
//! extensions of the request before.

use std::sync::Arc;

use async_trait::async_trait;
use cliq_protocol::TraceContext;
use http::Extensions;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// Tool that is offered to a caller.
#[derive(Debug, Clone)]
pub struct HttpTool {
    /// Name: letters, digits, `_`, `-`.
    pub name: String,
    /// Description for the model that calls it.
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub schema: Map<String, Value>,
    /// Whether the tool changes nothing.
    pub is_read_only: bool,
}

/// Call of a tool.
#[derive(Debug)]
pub struct HttpCall {
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    pub arguments: Map<String, Value>,
    /// Span of the caller, if the message names it in `_meta`.
    pub trace: Option<TraceContext>,
    /// Reporter of progress.
    pub progress: ProgressReporter,
}

/// Implementation of the tools. Errors are for the caller: the problem and the remedy.
#[async_trait]
pub trait HttpBackend: Send + Sync + 'static {
    /// Returns the tools that the caller of a request may use.
    async fn tools(&self, request: &Extensions) -> Result<Vec<HttpTool>, String>;

    /// Calls a tool. A caller that goes away cancels the call, not what it has started.
    async fn call(&self, request: &Extensions, call: HttpCall) -> Result<Value, String>;
}

/// Reporter of progress to the caller, if the caller asked for it.
#[derive(Debug)]
pub struct ProgressReporter {
    target: Option<(Peer<RoleServer>, ProgressToken)>,
}

impl ProgressReporter {
    /// Reports that `done` of `all` steps are done. An unreachable caller is ignored.
    pub async fn report(&self, done: f64, all: Option<f64>, message: String) {
        let Some((peer, token)) = &self.target else { return };
        let mut param = ProgressNotificationParam::new(token.clone(), done).with_message(message);
        if let Some(all) = all {
            param = param.with_total(all);
        }
        let _ = peer.notify_progress(param).await;
    }
}

/// Handler of one session.
#[derive(Clone)]
pub struct McpSession {
    backend: Arc<dyn HttpBackend>,
    instructions: &'static str,
}

impl std::fmt::Debug for McpSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpSession").finish_non_exhaustive()
    }
}

/// Service for the route of the endpoint.
pub type McpService = StreamableHttpService<McpSession, LocalSessionManager>;

/// Returns the service. `stop` ends all sessions. The host names of requests must have been checked before.
#[must_use]
pub fn mcp_service(
    backend: Arc<dyn HttpBackend>,
    instructions: &'static str,
    stop: CancellationToken,
) -> McpService {
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.cancellation_token = stop;
    let session = McpSession { backend, instructions };
    StreamableHttpService::new(move || Ok(session.clone()), Arc::default(), config)
}

/// Extensions of the HTTP request of a message.
fn request_of(context: &RequestContext<RoleServer>) -> Extensions {
    context.extensions.get::<http::request::Parts>().map(|parts| parts.extensions.clone()).unwrap_or_default()
}

impl ServerHandler for McpSession {
    fn get_info(&self) -> ServerConfig {
        let mut me = Implementation::from_build_env();
        "cliq".clone_into(&mut me.name);
        env!("CARGO_PKG_VERSION").clone_into(&mut me.version);
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(me)
            .with_instructions(self.instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.backend.tools(&request_of(&context)).await;
        let tools = tools.map_err(|message| ErrorData::internal_error(message, None))?;
        let tool = |tool: HttpTool| {
            let annotations = ToolAnnotations::new().read_only(tool.is_read_only);
            Tool::new(tool.name, tool.description, tool.schema).with_annotations(annotations)
        };
        Ok(ListToolsResult::with_all_items(tools.into_iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let token = context.meta.get_progress_token();
        let progress = ProgressReporter { target: token.map(|token| (context.peer.clone(), token)) };
        let request = request_of(&context);
        let call = HttpCall {
            name: call.name.into_owned(),
            arguments: call.arguments.unwrap_or_default(),
            // Text that is no context is as good as none.
            trace: context.meta.get_traceparent().and_then(|trace| trace.parse().ok()),
            progress,
        };
        let called = self.backend.call(&request, call);
        let result = tokio::select! {
            result = called => result,
            () = context.ct.cancelled() => Err("the call was cancelled".to_owned()),
        };
        let result = match result {
            Ok(value) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(format!("{value:#}"))]);
                result.structured_content = value.is_object().then_some(value);
                result
            }
            Err(message) => CallToolResult::error(vec![ContentBlock::text(message)]),
        };
        Ok(result.into())
    }
}
