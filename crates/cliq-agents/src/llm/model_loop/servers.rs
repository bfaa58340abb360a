//! Tools of MCP servers: of the settings, and of the team.

use cliq_coder::tools::ToolSpec;
use cliq_protocol::{AgentTools, ToolCall};
use cliq_sdk::PhaseContext;
use cliq_settings::{Environment, McpServerSettings, Settings};

use crate::AnyError;

#[cfg(feature = "mcp")]
pub(super) use connected::McpTools;
#[cfg(not(feature = "mcp"))]
pub(super) use none::McpTools;

#[cfg(not(feature = "mcp"))]
mod none {
    use super::*;

    /// No servers: this program was built without a client.
    pub(in super::super) struct McpTools;

    impl McpTools {
        pub(in super::super) fn connect(
            selection: &AgentTools,
            settings: &Settings,
            _: &Environment,
            ctx: &PhaseContext,
        ) -> Result<Self, AnyError> {
            let are_named = !McpServerSettings::names(settings).is_empty() || !ctx.dispatch().mcp.is_empty();
            if selection.allows_mcp() && are_named {
                return Err("this cliq was built without a client for MCP servers (feature `mcp`)".into());
            }
            Ok(Self)
        }

        pub(in super::super) fn specs(&mut self) -> Result<Vec<ToolSpec>, AnyError> {
            Ok(Vec::new())
        }

        pub(in super::super) fn have_changed(&self) -> bool {
            false
        }

        pub(in super::super) fn call(&mut self, _: &ToolCall, _: usize) -> Option<Result<String, String>> {
            None
        }
    }
}

#[cfg(feature = "mcp")]
mod connected {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use cliq_coder::tools::cap;
    use cliq_mcp::{McpClient, McpServer, McpTransport};
    use cliq_protocol::{MCP_SEPARATOR, McpServerSpec, TRACE_VARIABLE, TraceContext, tool_span};

    use super::*;
    use crate::llm::conversation::number;

    /// Deadline of a request to a server that sets none.
    const USUAL: Duration = Duration::from_secs(60);
    /// Maximum number of characters of the name of a tool: APIs take no more.
    const NAME: usize = 64;
    /// Maximum number of characters of a description.
    const DESCRIPTION: usize = 2_000;

    /// Connected servers, with the tools that the model may call.
    pub(in super::super) struct McpTools {
        clients: Vec<McpClient>,
        trace: Option<CallTrace>,
        selection: AgentTools,
        /// Server and name at the server, by the name for the model.
        tools: BTreeMap<String, (usize, String)>,
    }

    /// Trace that the calls of an activation are part of.
    struct CallTrace {
        context: TraceContext,
        phase: String,
        activation: u32,
    }

    impl CallTrace {
        fn of(environment: &Environment, ctx: &PhaseContext) -> Option<Self> {
            let context = environment.get(TRACE_VARIABLE)?.parse().ok()?;
            Some(Self { context, phase: ctx.phase().name.to_string(), activation: number(ctx)? })
        }

        /// Returns the span of a call.
        fn of_call(&self, id: &str) -> TraceContext {
            self.context.within(tool_span(self.context.trace, &self.phase, self.activation, id))
        }
    }

    impl McpTools {
        /// Connects to the servers of which the model may call a tool.
        pub(in super::super) fn connect(
            selection: &AgentTools,
            settings: &Settings,
            environment: &Environment,
            ctx: &PhaseContext,
        ) -> Result<Self, AnyError> {
            let mut this = Self {
                clients: Vec::new(),
                trace: CallTrace::of(environment, ctx),
                selection: selection.clone(),
                tools: BTreeMap::new(),
            };
            if !selection.allows_mcp() {
                return Ok(this);
            }
            let is_needed = |name: &str| match selection {
                AgentTools::Only(names) => names
                    .iter()
                    .any(|tool| tool.split_once(MCP_SEPARATOR).is_some_and(|(server, _)| server == name)),
                _ => true,
            };
            let mut servers = Vec::new();
            for name in McpServerSettings::names(settings).into_iter().filter(|name| is_needed(name)) {
                servers.push(of_settings(name, settings, environment, ctx)?);
            }
            for (name, spec) in ctx.dispatch().mcp.iter().filter(|(name, _)| is_needed(name)) {
                // A person's own server of the name goes first.
                if !servers.iter().any(|server: &McpServer| server.name == *name) {
                    servers.push(of_team(name, spec, environment, ctx)?);
                }
            }
            for server in servers {
                this.clients.push(McpClient::connect(server)?);
            }
            Ok(this)
        }

        /// Descriptions of the tools that the model may call.
        pub(in super::super) fn specs(&mut self) -> Result<Vec<ToolSpec>, AnyError> {
            self.tools.clear();
            let mut specs = Vec::new();
            for (n, client) in self.clients.iter_mut().enumerate() {
                let server = client.name().to_owned();
                for tool in client.tools()? {
                    let name = name_of(&server, &tool.name);
                    let is_new = !self.tools.contains_key(&name);
                    if !is_new || !self.selection.allows(&name) {
                        continue;
                    }
                    let description = format!("Tool of the server `{server}`. {}", tool.description);
                    let description = description.chars().take(DESCRIPTION).collect();
                    specs.push(ToolSpec { name: name.clone(), description, schema: tool.schema });
                    self.tools.insert(name, (n, tool.name));
                }
            }
            Ok(specs)
        }

        /// Whether a server has announced other tools.
        pub(in super::super) fn have_changed(&self) -> bool {
            self.clients.iter().any(McpClient::has_changed)
        }

        /// Calls a tool. Returns `None` if it is not one of a server.
        pub(in super::super) fn call(
            &mut self,
            call: &ToolCall,
            limit: usize,
        ) -> Option<Result<String, String>> {
            let (server, name) = self.tools.get(&call.name)?;
            let trace = self.trace.as_ref().map(|trace| trace.of_call(&call.id));
            let outcome = self.clients[*server].call(name, call.arguments.clone(), trace);
            Some(outcome.map(|text| cap(text, limit)).map_err(|text| cap(text, limit)))
        }
    }

    /// Name of a tool for models: letters, digits, `_` and `-`.
    fn name_of(server: &str, tool: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let tool = tool.chars().map(|c| if is_plain(c) { c } else { '_' });
        format!("{server}{MCP_SEPARATOR}").chars().chain(tool).take(NAME).collect()
    }

    fn of_settings(
        name: String,
        settings: &Settings,
        environment: &Environment,
        ctx: &PhaseContext,
    ) -> Result<McpServer, AnyError> {
        // All fields are named, so a new setting does not compile until it has a use here.
        let McpServerSettings { command, args, env, trusted, url, token, timeout } =
            McpServerSettings::read(settings, &name);
        let transport = match (command, url) {
            (Some(program), None) => program_in_sandbox(program, args, env, trusted, environment, ctx)?,
            (None, Some(url)) => {
                McpTransport::Http { url, token: token.map(|token| token.reveal().to_owned()) }
            }
            _ => {
                return Err(format!(
                    "the MCP server `{name}` needs one of `mcp.{name}.command` and `mcp.{name}.url`"
                )
                .into());
            }
        };
        Ok(McpServer { name, transport, timeout })
    }

    fn of_team(
        name: &str,
        spec: &McpServerSpec,
        environment: &Environment,
        ctx: &PhaseContext,
    ) -> Result<McpServer, AnyError> {
        let transport = match (&spec.command, &spec.url) {
            (Some(command), _) => {
                let program = match spec.program_of_team() {
                    Some(path) => ctx.cliq_dir().join("team").join(path).into_string(),
                    None => command.clone(),
                };
                let (arguments, env) = (spec.args.clone(), spec.env.clone());
                program_in_sandbox(program, arguments, env, false, environment, ctx)?
            }
            (None, Some(url)) => McpTransport::Http { url: url.clone(), token: None },
            (None, None) => {
                return Err(format!("the MCP server `{name}` has neither a program nor a URL").into());
            }
        };
        let timeout = spec.timeout_seconds.map_or(USUAL, Duration::from_secs);
        Ok(McpServer { name: name.to_owned(), transport, timeout })
    }

    /// A program in the sandbox of the phase's tools, unless a person trusts it.
    fn program_in_sandbox(
        program: String,
        mut arguments: Vec<String>,
        env: Vec<String>,
        is_trusted: bool,
        environment: &Environment,
        ctx: &PhaseContext,
    ) -> Result<McpTransport, AnyError> {
        let dir = ctx.workspace().to_string();
        let wrapper = crate::wrapper(environment)?.filter(|_| !is_trusted);
        let (program, without) = match wrapper {
            Some(wrapper) => {
                let wrapper = wrapper.with([], env);
                let (starter, mut before) = wrapper.command(ctx.workspace(), environment.get("PATH"))?;
                before.push(program);
                before.append(&mut arguments);
                arguments = before;
                (starter, Vec::new())
            }
            None => {
                let keys = crate::variables().into_iter().filter(|name| !env.iter().any(|kept| kept == name));
                (program, keys.map(str::to_owned).collect())
            }
        };
        Ok(McpTransport::Program { program, arguments, dir, without })
    }
}
