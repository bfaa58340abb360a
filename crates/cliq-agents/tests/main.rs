//! Tests of the public surface of cliq-agents, in one program: each program costs a link.

mod agents;
