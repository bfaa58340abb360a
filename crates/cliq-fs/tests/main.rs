//! Tests of the public surface of cliq-fs, in one program: each program costs a link.

mod files;
