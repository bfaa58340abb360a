//! Counters of the work and the memory of one evaluation.
//!
//! Values of the interpreter are trees: each copy of a value costs its whole size, also if parts of it are equal. So each place that copies,
//! compares or reads a value is charged with the whole size of that value, before it is copied.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cel::common::types::{CelBool, CelBytes, CelInt, CelList, CelMap, CelMapKey, CelString};
use cel::common::value::{CowVal, Val};
use cel::{Context, ExecutionError, FunctionContext};
use regex::Regex;

use crate::expression::{MAX_BYTES, MAX_STEPS};

/// Function that counts the steps of a loop. Its name cannot be written in an expression.
pub(crate) const CHARGE: &str = "@charge";
/// Function that counts the size of a concatenation.
pub(crate) const GROWN: &str = "@grown";
/// Function that counts the size of a value that is copied.
pub(crate) const COPIED: &str = "@copied";
/// Function that counts the size of a value that is compared or read, which is cheaper than a copy.
pub(crate) const READ: &str = "@read";
/// Function that counts the length of a text of which the characters are counted.
pub(crate) const LENGTH: &str = "@length";
/// Match of a regular expression, with a cache and a limit of size.
pub(crate) const MATCHES: &str = "@matches";

/// Size of a value without its content, in bytes.
const NODE: u64 = 48;
/// Number of bytes that can be read at the cost of one that is copied.
const READ_DIVISOR: u64 = 8;
/// Sizes of compiled regular expressions, in bytes, and the cost of each byte of the text: a large program can need a step per state.
const REGEX_SIZES: [(usize, u64); 3] = [(64 << 10, 10), (256 << 10, 40), (1 << 20, 400)];
/// Number of regular expressions in the cache.
const MAX_REGEXES: usize = 50;

type CelFunction = Box<
    dyn for<'c, 'v> Fn(&mut FunctionContext<'c, 'v>) -> Result<CowVal<'c, 'v>, ExecutionError> + Send + Sync,
>;

/// Counters of one evaluation.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    steps: AtomicU64,
    bytes: AtomicU64,
    regexes: Mutex<HashMap<String, (Regex, u64)>>,
}

impl Meter {
    /// Whether the limit of steps was exceeded.
    pub(crate) fn has_too_many_steps(&self) -> bool {
        self.steps.load(Ordering::Relaxed) > MAX_STEPS
    }

    /// Whether the limit of bytes was exceeded.
    pub(crate) fn is_too_large(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > MAX_BYTES
    }

    /// Declares the functions that count.
    pub(crate) fn declare(self: &Arc<Self>, context: &mut Context<'_, '_>) -> Result<(), ExecutionError> {
        let declare = |context: &mut Context<'_, '_>, name: &str, function: CelFunction| {
            context.add_function(name, function).map_err(|error| internal(&error.to_string()))
        };
        let meter = Arc::clone(self);
        let charge = function(move |mut args| {
            let weight = args.pop().and_then(|w| w.downcast_ref::<CelInt>().map(|w| *w.inner())).unwrap_or(1);
            let range = args.pop().ok_or_else(|| internal("no range"))?;
            let weight = u64::try_from(weight).unwrap_or(1).max(1);
            meter.step(elements(range.as_ref()).saturating_mul(weight))?;
            meter.copy(range.as_ref())?;
            Ok(range)
        });
        declare(context, CHARGE, charge)?;
        let meter = Arc::clone(self);
        let grown = function(move |mut args| {
            let value = args.pop().ok_or_else(|| internal("no value"))?;
            meter.step(elements(value.as_ref()))?;
            meter.copy(value.as_ref())?;
            Ok(value)
        });
        declare(context, GROWN, grown)?;
        let meter = Arc::clone(self);
        let copied = function(move |mut args| {
            let value = args.pop().ok_or_else(|| internal("no value"))?;
            meter.copy(value.as_ref()).map(|()| value)
        });
        declare(context, COPIED, copied)?;
        let meter = Arc::clone(self);
        let read = function(move |mut args| {
            let value = args.pop().ok_or_else(|| internal("no value"))?;
            meter.charge(value.as_ref(), READ_DIVISOR).map(|()| value)
        });
        declare(context, READ, read)?;
        let meter = Arc::clone(self);
        let length = function(move |mut args| {
            let value = args.pop().ok_or_else(|| internal("no value"))?;
            let length = value.downcast_ref::<CelString<'_>>().map_or(0, |text| text.inner().len() as u64);
            meter.pay(length / READ_DIVISOR).map(|()| value)
        });
        declare(context, LENGTH, length)?;
        let meter = Arc::clone(self);
        let matches = function(move |args| {
            let text = |value: &CowVal<'_, '_>| {
                value.downcast_ref::<CelString<'_>>().map(|text| text.inner().to_owned())
            };
            match args.as_slice() {
                [subject, pattern] => match (text(subject), text(pattern)) {
                    (Some(subject), Some(pattern)) => {
                        Ok(CowVal::owned(CelBool::from(meter.matches(&subject, &pattern)?)))
                    }
                    _ => Err(ExecutionError::function_error("matches", "it takes two texts")),
                },
                _ => Err(ExecutionError::function_error("matches", "it takes two texts")),
            }
        });
        declare(context, MATCHES, matches)
    }

    fn step(&self, more: u64) -> Result<(), ExecutionError> {
        let before = self.steps.fetch_add(more.min(MAX_STEPS + 1), Ordering::Relaxed);
        if before.saturating_add(more) > MAX_STEPS { Err(internal("too many steps")) } else { Ok(()) }
    }

    fn pay(&self, more: u64) -> Result<(), ExecutionError> {
        let before = self.bytes.fetch_add(more.min(MAX_BYTES + 1), Ordering::Relaxed);
        if before.saturating_add(more) > MAX_BYTES { Err(internal("too much memory")) } else { Ok(()) }
    }

    fn copy(&self, value: &dyn Val) -> Result<(), ExecutionError> {
        self.charge(value, 1)
    }

    /// Charges the size of a value, divided by `divisor`. Nothing is measured once a limit is exceeded.
    fn charge(&self, value: &dyn Val, divisor: u64) -> Result<(), ExecutionError> {
        if self.is_too_large() || self.has_too_many_steps() {
            return Err(internal("too much work"));
        }
        let left = MAX_BYTES.saturating_sub(self.bytes.load(Ordering::Relaxed)).saturating_add(1);
        let most = left.saturating_mul(divisor);
        let mut left = most;
        measure(value, &mut left);
        self.pay((most - left) / divisor)
    }

    fn matches(&self, text: &str, pattern: &str) -> Result<bool, ExecutionError> {
        let mut regexes = self.regexes.lock().unwrap_or_else(PoisonError::into_inner);
        if !regexes.contains_key(pattern) {
            // Compilation takes time by the size of the program.
            self.pay(REGEX_SIZES.map(|(size, _)| size as u64).iter().sum::<u64>() / 2)?;
            let compiled = compile(pattern)?;
            if regexes.len() >= MAX_REGEXES {
                regexes.clear();
            }
            regexes.insert(pattern.to_owned(), compiled);
        }
        let Some((regex, weight)) = regexes.get(pattern) else { return Err(internal("no expression")) };
        self.pay((text.len() as u64).saturating_mul(*weight))?;
        Ok(regex.is_match(text))
    }
}

/// Compiles a regular expression with the smallest limit of size that it fits.
fn compile(pattern: &str) -> Result<(Regex, u64), ExecutionError> {
    let mut reason = String::new();
    for (size, weight) in REGEX_SIZES {
        match regex::RegexBuilder::new(pattern).size_limit(size).dfa_size_limit(1 << 20).build() {
            Ok(regex) => return Ok((regex, weight)),
            Err(regex::Error::CompiledTooBig(_)) => reason = "it is too large".to_owned(),
            Err(error) => {
                reason = error.to_string();
                break;
            }
        }
    }
    let reason: String = reason.lines().last().unwrap_or_default().chars().take(200).collect();
    Err(ExecutionError::function_error("matches", format!("not a valid regular expression: {reason}")))
}

/// Makes a function of the interpreter. Arguments are passed on without a copy.
fn function(
    work: impl for<'c, 'v> Fn(Vec<CowVal<'c, 'v>>) -> Result<CowVal<'c, 'v>, ExecutionError>
    + Send
    + Sync
    + 'static,
) -> CelFunction {
    Box::new(move |context| work(std::mem::take(&mut context.args)))
}

fn internal(message: &str) -> ExecutionError {
    ExecutionError::InternalError(message.to_owned())
}

/// Number of elements or bytes of a value, without the content of its elements.
fn elements(value: &dyn Val) -> u64 {
    let count = if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        list.inner().len()
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        map.inner().len()
    } else if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        text.inner().len()
    } else if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        bytes.inner().len()
    } else {
        1
    };
    count as u64
}

/// Subtracts the size of a value from what is left. Stops at zero.
fn measure(value: &dyn Val, left: &mut u64) {
    *left = left.saturating_sub(NODE);
    if *left == 0 {
        return;
    }
    if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        for item in list.inner() {
            measure(item.as_ref(), left);
            if *left == 0 {
                return;
            }
        }
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        for (key, item) in map.inner() {
            let key = if let CelMapKey::String(text) = key { text.inner().len() as u64 } else { 0 };
            *left = left.saturating_sub(NODE + key);
            measure(item.as_ref(), left);
            if *left == 0 {
                return;
            }
        }
    } else {
        *left = left.saturating_sub(elements(value));
    }
}
