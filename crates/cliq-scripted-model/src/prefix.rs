//! Accounting of requests: tokens, and the share of them that a provider would read from its cache.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// Beginnings of requests that are in the cache.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    known: HashSet<u64>,
}

/// Bytes of JSON per token, roughly.
const BYTES: u64 = 4;

impl Prefixes {
    /// Counts a request and remembers its beginnings. Returns its tokens, and those of them that were known.
    pub(crate) fn count(&mut self, blocks: &[(Value, bool)]) -> (u64, u64) {
        let (mut hasher, mut bytes, mut cached) = (DefaultHasher::new(), 0, 0);
        let mut ends = Vec::new();
        for (block, is_end) in blocks {
            let text = block.to_string();
            text.hash(&mut hasher);
            bytes += text.len() as u64;
            let prefix = hasher.clone().finish();
            if self.known.contains(&prefix) {
                cached = bytes;
            }
            if *is_end {
                ends.push(prefix);
            }
        }
        self.known.extend(ends);
        (bytes / BYTES, cached / BYTES)
    }
}

/// Signature of a thought that is made after these blocks.
pub(crate) fn signature(blocks: &[(Value, bool)]) -> String {
    let mut hasher = DefaultHasher::new();
    for (block, _) in blocks {
        block.to_string().hash(&mut hasher);
    }
    format!("signature-{:016x}", hasher.finish())
}

/// Whether all thoughts in a request are where they were made.
pub(crate) fn are_bound(blocks: &[(Value, bool)]) -> bool {
    blocks.iter().enumerate().all(|(n, (block, _))| {
        block[1]["type"] != "thinking" || block[1]["signature"] == signature(&blocks[..n]).as_str()
    })
}
