//! Tests of the public surface of cliq-sdk, in one program: each program costs a link.

mod agents;
