//! MCP client (docs/models.md): tools of servers, for programs without async.
//!
//! Calls block the thread. A server that dies is started again with the next call.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cliq_protocol::{TraceContext, without_credentials};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ContentBlock, Implementation, RequestParamsMeta,
    Tool,
};
use rmcp::service::{NotificationContext, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;

use crate::MESSAGE_LIMIT;
use crate::lines::LenientLines;

/// Time in which the last words of a server are waited for.
const DRAIN: Duration = Duration::from_secs(2);
/// Maximum number of tools of a server.
const TOOL_LIMIT: usize = 200;
/// Maximum number of bytes kept of the standard error of a server.
const COMPLAINT: usize = 2_000;
/// Maximum number of starts of a server.
const STARTS: u32 = 4;

/// Server of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Name, by which its tools are called `NAME__TOOL`.
    pub name: String,
    /// Way to reach it.
    pub transport: McpTransport,
    /// Deadline of each request, and of its start.
    pub timeout: Duration,
}

/// Way to reach a server.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// Program that speaks on standard input and output.
    Program {
        /// Program.
        program: String,
        /// Arguments.
        arguments: Vec<String>,
        /// Working directory.
        dir: String,
        /// Environment variables that it must not have.
        without: Vec<String>,
    },
    /// Server with streamable HTTP.
    Http {
        /// URL.
        url: String,
        /// Bearer token.
        token: Option<String>,
    },
}

impl std::fmt::Debug for McpTransport {
    /// Leaves out the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Program { program, .. } => f.debug_tuple("Program").field(program).finish(),
            Self::Http { url, .. } => f.debug_tuple("Http").field(&without_credentials(url)).finish(),
        }
    }
}

/// Tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpTool {
    /// Name at the server.
    pub name: String,
    /// Purpose and use.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
}

/// Client of one server.
pub struct McpClient {
    server: McpServer,
    runtime: Runtime,
    connected: Option<Connected>,
    starts: u32,
}

struct Connected {
    service: RunningService<RoleClient, Handler>,
    /// Process of a program. Ends when dropped.
    _child: Option<Child>,
}

/// Answers to requests and notifications of the server.
#[derive(Clone)]
struct Handler {
    has_changed: Arc<AtomicBool>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("cliq", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.has_changed.store(true, Ordering::SeqCst);
    }
}

impl McpClient {
    /// Connects to a server.
    ///
    /// # Errors
    /// Returns the reason why the server cannot be started or does not answer.
    pub fn connect(server: McpServer) -> Result<Self, String> {
        // One provider for the process; another part may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start the MCP client: {error}"))?;
        let mut this = Self { server, runtime, connected: None, starts: 0 };
        this.ensure_connected()?;
        Ok(this)
    }

    /// Name of the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.server.name
    }

    /// Whether the server has announced other tools since [`McpClient::tools`] was called.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        let handler = self.connected.as_ref().map(|connected| connected.service.service());
        handler.is_some_and(|handler| handler.has_changed.load(Ordering::SeqCst))
    }

    /// Returns the tools of the server, at most 200.
    ///
    /// # Errors
    /// Returns the reason if the server does not list them in time.
    pub fn tools(&mut self) -> Result<Vec<McpTool>, String> {
        self.ensure_connected()?;
        let Some(connected) = &self.connected else { return Err(self.failed("it is not connected")) };
        connected.service.service().has_changed.store(false, Ordering::SeqCst);
        let peer = connected.service.peer().clone();
        let listed = async { tokio::time::timeout(self.server.timeout, peer.list_all_tools()).await };
        match self.runtime.block_on(listed) {
            Ok(Ok(tools)) => Ok(tools.into_iter().take(TOOL_LIMIT).map(tool).collect()),
            Ok(Err(error)) => {
                self.connected = None;
                Err(self.failed(&error.to_string()))
            }
            Err(_) => Err(self.failed("it does not list its tools in time")),
        }
    }

    /// Calls a tool. Returns its text. `trace` is the span of the call, which the server can continue (docs/telemetry.md).
    ///
    /// # Errors
    /// Returns the text of a tool that failed, or the reason why there is no result.
    pub fn call(
        &mut self,
        tool: &str,
        arguments: Map<String, Value>,
        trace: Option<TraceContext>,
    ) -> Result<String, String> {
        self.ensure_connected()?;
        let Some(connected) = &self.connected else { return Err(self.failed("it is not connected")) };
        let peer = connected.service.peer().clone();
        let mut request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        if let Some(trace) = trace {
            request.set_traceparent(&trace.to_string());
        }
        let called = async { tokio::time::timeout(self.server.timeout, peer.call_tool(request)).await };
        match self.runtime.block_on(called) {
            Ok(Ok(result)) => {
                let mut text: Vec<String> = result.content.iter().map(content).collect();
                if text.is_empty() {
                    text.extend(result.structured_content.as_ref().map(ToString::to_string));
                }
                let text = text.join("\n");
                if result.is_error == Some(true) { Err(text) } else { Ok(text) }
            }
            Ok(Err(ServiceError::McpError(error))) => Err(self.failed(&error.message)),
            Ok(Err(error)) => {
                self.connected = None;
                Err(self.failed(&format!("{error}; whether the tool had an effect is unknown")))
            }
            Err(_) => {
                let seconds = self.server.timeout.as_secs();
                Err(self.failed(&format!(
                    "no result after {seconds} s; whether the tool had an effect is unknown"
                )))
            }
        }
    }

    fn failed(&self, why: &str) -> String {
        format!("MCP server `{}`: {}", self.server.name, without_credentials(why))
    }

    fn ensure_connected(&mut self) -> Result<(), String> {
        if self.connected.as_ref().is_some_and(|connected| !connected.service.is_closed()) {
            return Ok(());
        }
        self.connected = None;
        if self.starts >= STARTS {
            return Err(self.failed(&format!("it ended {STARTS} times and is not started again")));
        }
        self.starts += 1;
        let connecting = async { tokio::time::timeout(self.server.timeout, connect(&self.server)).await };
        match self.runtime.block_on(connecting) {
            Ok(Ok(connected)) => self.connected = Some(connected),
            Ok(Err(why)) => return Err(self.failed(&why)),
            Err(_) => return Err(self.failed("it does not answer in time")),
        }
        Ok(())
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // Inside of the runtime: dropping a process registers its end there.
        let _guard = self.runtime.enter();
        self.connected = None;
    }
}

async fn connect(server: &McpServer) -> Result<Connected, String> {
    let handler = Handler { has_changed: Arc::default() };
    match &server.transport {
        McpTransport::Program { program, arguments, dir, without } => {
            let mut command = Command::new(program);
            command.args(arguments).current_dir(dir).kill_on_drop(true);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            for name in without {
                command.env_remove(name);
            }
            let mut child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err(format!("{program} has no pipes"));
            };
            let complaint = child.stderr.take().map(|errors| tokio::spawn(first_lines(errors)));
            let lines = LenientLines::new(output, MESSAGE_LIMIT);
            let service = match handler.serve((lines, input)).await {
                Ok(service) => service,
                Err(error) => {
                    // Its own words say more than that it went away.
                    let _ = child.kill().await;
                    // A process that it left behind may hold its output open.
                    let said = match complaint {
                        Some(complaint) => {
                            let said = tokio::time::timeout(DRAIN, complaint).await;
                            said.map(Result::unwrap_or_default).unwrap_or_default()
                        }
                        None => String::new(),
                    };
                    return Err(format!("{error}{}{}", if said.is_empty() { "" } else { ": " }, said.trim()));
                }
            };
            Ok(Connected { service, _child: Some(child) })
        }
        McpTransport::Http { url, token } => {
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            config.auth_header.clone_from(token);
            config.max_sse_event_size = MESSAGE_LIMIT;
            let transport = StreamableHttpClientTransport::from_config(config);
            let service = handler.serve(transport).await.map_err(|error| error.to_string())?;
            Ok(Connected { service, _child: None })
        }
    }
}

/// Reads standard error to its end and returns its beginning.
async fn first_lines(mut errors: impl AsyncRead + Unpin) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = errors.read(&mut buffer).await {
        let room = COMPLAINT.saturating_sub(kept.len()).min(n);
        kept.extend_from_slice(&buffer[..room]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn tool(tool: Tool) -> McpTool {
    McpTool {
        name: tool.name.into_owned(),
        description: tool.description.unwrap_or_default().into_owned(),
        schema: Value::Object(tool.input_schema.as_ref().clone()),
    }
}

fn content(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image: {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio: {}]", audio.mime_type),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}
