//! Names of the OpenTelemetry semantic conventions for generative AI, and of what is cliq's own (docs/telemetry.md).
//!
//! The version is pinned: a test compares the names, types and required attributes with the published model of that version.

/// Address of the schema that the names belong to. The conventions for generative AI are part of it up to this version.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";
/// Name of the instrumentation scope.
pub const SCOPE: &str = "cliq";

/// Values of `gen_ai.operation.name`.
pub mod operation {
    /// Run.
    pub const INVOKE_WORKFLOW: &str = "invoke_workflow";
    /// Activation of an agent.
    pub const INVOKE_AGENT: &str = "invoke_agent";
    /// Reply of a model.
    pub const CHAT: &str = "chat";
    /// Call of a tool.
    pub const EXECUTE_TOOL: &str = "execute_tool";
}

/// Attributes of the conventions.
pub mod key {
    /// Operation.
    pub const OPERATION: &str = "gen_ai.operation.name";
    /// Provider of the model.
    pub const PROVIDER: &str = "gen_ai.provider.name";
    /// Name of the team.
    pub const WORKFLOW: &str = "gen_ai.workflow.name";
    /// Name of the agent: the phase.
    pub const AGENT: &str = "gen_ai.agent.name";
    /// Conversation: the run.
    pub const CONVERSATION: &str = "gen_ai.conversation.id";
    /// Requested model.
    pub const REQUEST_MODEL: &str = "gen_ai.request.model";
    /// Model that replied.
    pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
    /// Ends of the reply.
    pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
    /// Tokens of input, cached ones included.
    pub const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
    /// Tokens of output, reasoning included.
    pub const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
    /// Tokens of input that were read from a cache.
    pub const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
    /// Tokens of output that are reasoning.
    pub const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
    /// Type of counted tokens: `input` or `output`.
    pub const TOKEN_TYPE: &str = "gen_ai.token.type";
    /// Name of the tool.
    pub const TOOL: &str = "gen_ai.tool.name";
    /// Type of the tool: `function`, or `extension` for a tool of an MCP server.
    pub const TOOL_TYPE: &str = "gen_ai.tool.type";
    /// Id of the call.
    pub const CALL: &str = "gen_ai.tool.call.id";
    /// Arguments of the call. Content.
    pub const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
    /// Result of the call. Content.
    pub const RESULT: &str = "gen_ai.tool.call.result";
    /// Instructions before the conversation. Content.
    pub const INSTRUCTIONS: &str = "gen_ai.system_instructions";
    /// Messages to the model. Content.
    pub const INPUT: &str = "gen_ai.input.messages";
    /// Messages of the model. Content.
    pub const OUTPUT: &str = "gen_ai.output.messages";
    /// Method of MCP.
    pub const MCP_METHOD: &str = "mcp.method.name";
    /// Class of the error, present if and only if the span has failed.
    pub const ERROR: &str = "error.type";
    /// Method of a request.
    pub const HTTP_METHOD: &str = "http.request.method";
    /// Method of a request that the conventions do not know.
    pub const HTTP_METHOD_ORIGINAL: &str = "http.request.method_original";
    /// Route of a request.
    pub const HTTP_ROUTE: &str = "http.route";
    /// Status of a response.
    pub const HTTP_STATUS: &str = "http.response.status_code";
    /// Path of a request.
    pub const URL_PATH: &str = "url.path";
    /// Scheme of a request.
    pub const URL_SCHEME: &str = "url.scheme";
}

/// Attributes of cliq.
pub mod own {
    /// Run.
    pub const RUN: &str = "cliq.run.id";
    /// Plan that an agent works for. Attribute of the resource.
    pub const PLAN: &str = "cliq.plan.name";
    /// Task of the plan. Attribute of the resource.
    pub const PLAN_TASK: &str = "cliq.plan.task";
    /// Outcome of the run: `completed`, `escalated`, `failed`, `cancelled`.
    pub const RUN_OUTCOME: &str = "cliq.run.outcome";
    /// Title of the run. Content.
    pub const RUN_TITLE: &str = "cliq.run.title";
    /// Phase, with the number of its item.
    pub const PHASE: &str = "cliq.phase.name";
    /// Type of the phase.
    pub const PHASE_KIND: &str = "cliq.phase.type";
    /// Number of the activation, or of the evaluation of a gate.
    pub const ITERATION: &str = "cliq.phase.iteration";
    /// Number of the item, from 0.
    pub const ITEM: &str = "cliq.phase.item";
    /// Agent by its name in the settings, such as `claude-api`.
    pub const AGENT: &str = "cliq.agent";
    /// Limit that ended the work before it was done.
    pub const LIMIT: &str = "cliq.limit";
    /// Outcome of a gate: `pass`, `route`, `escalate`.
    pub const VERDICT: &str = "cliq.gate.verdict";
    /// Phase that a gate sent the work to.
    pub const TARGET: &str = "cliq.gate.target";
    /// Reason in a sentence. Content.
    pub const REASON: &str = "cliq.reason";
    /// Kind of a reply (docs/outcomes.md).
    pub const REPLY: &str = "cliq.reply.kind";
    /// Cost in US dollars.
    pub const COST: &str = "cliq.usage.cost_usd";
    /// Tokens of input of all replies of an agent or run.
    pub const INPUT_TOKENS: &str = "cliq.usage.input_tokens";
    /// Tokens of output of all replies of an agent or run.
    pub const OUTPUT_TOKENS: &str = "cliq.usage.output_tokens";
    /// Whether a part of the counts is an estimate.
    pub const ESTIMATED: &str = "cliq.usage.estimated";
    /// Decision about a permission that the agent asked for.
    pub const PERMISSION: &str = "cliq.tool.permission";
    /// MCP server of a tool.
    pub const MCP_SERVER: &str = "cliq.mcp.server";
    /// Command.
    pub const COMMAND: &str = "cliq.command.name";
    /// Repository of a command that runs in each.
    pub const REPOSITORY: &str = "cliq.command.repository";
    /// Exit code of a command.
    pub const EXIT_CODE: &str = "cliq.command.exit_code";
    /// Review.
    pub const REVIEW: &str = "cliq.review.id";
    /// Whether the review is a question of an agent at work, not a human gate.
    pub const QUESTION: &str = "cliq.review.is_question";
    /// Number of files with conflicts.
    pub const CONFLICTS: &str = "cliq.merge.conflicts";
}

/// Kind of a span under the name of OpenInference, for spans of which readers of that convention would not know it.
pub const OPENINFERENCE_KIND: &str = "openinference.span.kind";

/// Name of the provider in the conventions, where it is another than in cliq.
#[must_use]
pub fn provider(name: &str) -> &str {
    match name {
        "google" | "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" | "grok" => "x_ai",
        "bedrock" => "aws.bedrock",
        "vertex" => "gcp.vertex_ai",
        "azure" => "azure.ai.openai",
        other => other,
    }
}
