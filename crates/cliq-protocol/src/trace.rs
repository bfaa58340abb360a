//! Context of a distributed trace: the header `traceparent` of the W3C recommendation Trace Context (docs/telemetry.md).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// Environment variable that has the context of the caller.
pub const TRACE_VARIABLE: &str = "TRACEPARENT";

/// Id of a trace: 16 bytes, not all zero. As text 32 lower case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId([u8; 16]);

/// Id of a span: 8 bytes, not all zero. As text 16 lower case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId([u8; 8]);

/// Position in a trace: the trace, the span that is the parent of what follows, and whether the trace is recorded.
///
/// The text form is the header `traceparent`, version 00: `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// Trace.
    pub trace: TraceId,
    /// Span of the caller.
    pub span: SpanId,
    /// Whether the caller records the trace.
    pub is_sampled: bool,
}

/// The text is not a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent: write it as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
pub struct TraceContextError;

impl TraceId {
    /// Returns the id of a name. Equal names have equal ids.
    #[must_use]
    pub fn of(name: &str) -> Self {
        // Samplers compare the bits of an id, so all of them are those of a digest.
        let first = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes());
        let second = Uuid::new_v5(&first, name.as_bytes());
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&ends(first));
        bytes[8..].copy_from_slice(&ends(second));
        Self::from_bytes(bytes).unwrap_or(Self([1; 16]))
    }

    /// Returns the id with these bytes, or `None` if all are zero.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// Returns the id of the span with a name in this trace. Equal names have equal ids. A part of a name cannot be mistaken for another
    /// one: parts are joined by a character that none contains.
    #[must_use]
    pub fn span(self, name: &[&str]) -> SpanId {
        let digest = Uuid::new_v5(&Uuid::from_bytes(self.0), name.join("\u{1f}").as_bytes());
        SpanId::from_bytes(ends(digest)).unwrap_or(SpanId([1; 8]))
    }

    /// The last 63 bits, which samplers compare with their bound.
    #[must_use]
    pub const fn sampling_value(self) -> u64 {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1
    }
}

impl SpanId {
    /// Returns the id with these bytes, or `None` if all are zero.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 8] {
        self.0
    }
}

impl TraceContext {
    /// Parses a `traceparent`. A later version is read as far as it is that of version 00, as the recommendation says.
    ///
    /// # Errors
    /// Returns an error if the text has another form, or an id of zeros.
    pub fn parse(text: &str) -> Result<Self, TraceContextError> {
        let text = text.trim();
        let mut parts = text.split('-');
        let mut part = |digits: usize| {
            parts
                .next()
                .filter(|part| part.len() == digits && part.bytes().all(is_hex))
                .ok_or(TraceContextError)
        };
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        if version == "ff" || (version == "00" && parts.next().is_some()) {
            return Err(TraceContextError);
        }
        let flags = u8::from_str_radix(flags, 16).map_err(|_| TraceContextError)?;
        let trace = bytes(trace).and_then(TraceId::from_bytes).ok_or(TraceContextError)?;
        let span = bytes(span).and_then(SpanId::from_bytes).ok_or(TraceContextError)?;
        Ok(Self { trace, span, is_sampled: flags & 1 == 1 })
    }

    /// Returns the context of a span in the same trace.
    #[must_use]
    pub fn within(self, span: SpanId) -> Self {
        Self { span, ..self }
    }
}

/// Returns the span of a call of a tool by an activation: for the process that makes the call, and for the one that reads of it.
/// `first` is the first of the activations that a transcript continues.
#[must_use]
pub fn tool_span(trace: TraceId, phase: &str, first: u32, call: &str) -> SpanId {
    trace.span(&["tool", phase, &first.to_string(), call])
}

/// The ends of a digest in the form of a UUID. The bits of version and variant, which are the same in each, are in its middle.
fn ends(digest: Uuid) -> [u8; 8] {
    let [a, b, c, d, .., e, f, g, h] = digest.into_bytes();
    [a, b, c, d, e, f, g, h]
}

/// Whether a byte is a hexadecimal digit as the recommendation has them: in lower case.
fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    (text.len() == 2 * N).then_some(bytes)
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl FromStr for SpanId {
    type Err = TraceContextError;

    fn from_str(text: &str) -> Result<Self, TraceContextError> {
        let is_plain = text.bytes().all(is_hex);
        bytes(text).filter(|_| is_plain).and_then(Self::from_bytes).ok_or(TraceContextError)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl FromStr for TraceContext {
    type Err = TraceContextError;

    fn from_str(text: &str) -> Result<Self, TraceContextError> {
        Self::parse(text)
    }
}

impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn headers_of_the_recommendation_are_read() {
        let context = TraceContext::parse(HEADER).expect("valid");
        assert_eq!(context.to_string(), HEADER);
        assert!(context.is_sampled);
        assert!(!TraceContext::parse(&HEADER.replace("-01", "-02")).expect("valid").is_sampled);
        // A later version may have more parts.
        assert!(TraceContext::parse(&format!("{}-more", HEADER.replacen("00", "01", 1))).is_ok());
        for wrong in [
            "",
            "00",
            &HEADER.to_uppercase(),
            &format!("{HEADER}-more"),
            &HEADER.replacen("00", "ff", 1),
            &HEADER.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &HEADER.replace("b7ad6b7169203331", &"0".repeat(16)),
            &HEADER.replace("b7ad", "b7ä"),
        ] {
            assert_eq!(TraceContext::parse(wrong), Err(TraceContextError), "{wrong}");
        }
    }

    #[test]
    fn names_decide_ids() {
        let trace = TraceId::of("run");
        assert_eq!(trace, TraceId::of("run"));
        assert_ne!(trace, TraceId::of("ruN"));
        assert_ne!(trace.span(&["a", "b"]), trace.span(&["ab"]));
        assert_ne!(trace.span(&["a"]), TraceId::of("other").span(&["a"]));
    }

    proptest! {
        #[test]
        fn contexts_survive_their_text(trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(), is_sampled: bool) {
            let (Some(trace), Some(span)) = (TraceId::from_bytes(trace), SpanId::from_bytes(span)) else { return Ok(()) };
            let context = TraceContext { trace, span, is_sampled };
            prop_assert_eq!(TraceContext::parse(&context.to_string()), Ok(context));
            prop_assert_eq!(span.to_string().parse(), Ok(span));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,80}") {
            let _ = TraceContext::parse(&text);
        }
    }
}
