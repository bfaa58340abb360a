//! Misbehaviour of agents that is tolerated. Each kind has a name.

/// Behaviour of an agent that the protocol does not allow or define, and that was tolerated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Anomaly {
    /// Output that is not JSON.
    #[error("output that is not a message: {0}")]
    Noise(String),
    /// JSON that is not a message.
    #[error("ignored a line: {0}")]
    Invalid(crate::rpc::InvalidReason),
    /// Incomplete last line.
    #[error("ignored an incomplete last line of {bytes} bytes")]
    HalfLine {
        /// Length in bytes.
        bytes: usize,
    },
    /// Response to a call that was given up.
    #[error("ignored a late response to call {0}")]
    LateResponse(String),
    /// Second response to a call.
    #[error("ignored a repeated response to call {0}")]
    RepeatedResponse(String),
    /// Response to a call that was never made.
    #[error("ignored a response to call {0}, which was never made")]
    UnknownResponse(String),
    /// Request for a method that is not offered.
    #[error("refused a call of `{0}`, which is not offered")]
    UnknownMethod(String),
    /// Request or update whose parameters cannot be read.
    #[error("refused a call of `{method}` with invalid parameters: {reason}")]
    InvalidParams {
        /// Name of the method.
        method: String,
        /// Violation.
        reason: String,
    },
    /// Update of a kind that is not known.
    #[error("unknown update `{0}`")]
    UnknownUpdate(String),
    /// Update or request of another session.
    #[error("message of another session `{0}`")]
    OtherSession(String),
    /// Permission or question while no turn runs. It was answered with `cancelled`.
    #[error("answered a {0} outside of a turn with `cancelled`")]
    AskedOutsideTurn(&'static str),
    /// More open permissions and questions than the limit.
    #[error("refused a {0}: too many are open")]
    TooManyAsked(&'static str),
    /// Permission request without an option of the kind that was chosen. It was answered with `cancelled`.
    #[error("the agent offers no option of kind `{0}`; answered with `cancelled`")]
    NoOnceOption(&'static str),
    /// MCP server that was not passed on.
    #[error("the agent cannot use the MCP server `{name}`: it does not offer the transport `{transport}`")]
    McpTransport {
        /// Name of the server.
        name: String,
        /// Transport of the server.
        transport: String,
    },
    /// Resume was offered and does not exist. The conversation is loaded instead.
    #[error("the agent offers session/resume and refused it; using session/load")]
    ResumeRefused,
    /// Children of the agent that were still alive after its end.
    #[error("killed processes that the agent left behind")]
    LeftProcesses,
}
