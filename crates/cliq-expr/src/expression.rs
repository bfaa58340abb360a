//! A parsed expression.

use std::collections::BTreeSet;
use std::fmt;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::common::types::CelInt;
use cel::parser::Parser;

use crate::infer::{self, Kind};
use crate::meter::{CHARGE, COPIED, GROWN, LENGTH, MATCHES, READ};
use crate::references::{self, Reference};

/// Maximum length of an expression, in bytes.
pub const MAX_LENGTH: usize = 4096;
/// Maximum nesting of an expression.
pub const MAX_DEPTH: u16 = 48;
/// Maximum number of evaluation steps.
pub const MAX_STEPS: u64 = 1_000_000;

/// Maximum size of all values that one evaluation makes or copies, in bytes. A value that is only read counts an eighth.
pub const MAX_BYTES: u64 = 50_000_000;

/// Maximum number of operators and blanks: a bound for chains, which the parser nests.
const MAX_OPERATORS: u16 = 768;
/// Maximum number of characters that a message quotes.
const MAX_MESSAGE: usize = 600;
/// Stack for parsing and evaluation, in bytes. Memory is used as far as an expression needs it.
const STACK: usize = 64 << 20;

/// Functions of an expression, beside operators.
const FUNCTIONS: &[&str] = &[
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "type",
    "dyn",
    "min",
    "max",
];

/// Reason why a text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct SyntaxError {
    /// Description of the mistake.
    pub message: String,
    /// Line in the expression, 1-based.
    pub line: usize,
    /// Column in the expression, in characters, 1-based.
    pub column: usize,
}

/// An expression in CEL.
#[derive(Clone)]
pub struct Expression {
    source: String,
    /// Tree with counters of steps.
    pub(crate) tree: IdedExpr,
    references: Vec<Reference>,
    bound: BTreeSet<String>,
    kind: Kind,
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Expression {}

impl Expression {
    /// Parses an expression of at most [`MAX_LENGTH`] bytes.
    ///
    /// Time and memory are bounded by the length, the nesting ([`MAX_DEPTH`]) and the number of operators. An error has at most 2,000 bytes.
    ///
    /// # Errors
    /// Returns the first mistake: syntax, an unknown function, or a limit that is exceeded.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        check_size(source)?;
        with_stack(|| Self::parse_bounded(source))
            .unwrap_or_else(|| Err(error_at("no thread could be started to parse it", 1, 1)))
    }

    fn parse_bounded(source: &str) -> Result<Self, SyntaxError> {
        let parser = Parser::new().enable_ident_escape_syntax(true).max_recursion_depth(MAX_DEPTH);
        let (tree, places) = parser.parse_with_source_info(source).map_err(|errors| {
            let first = errors.errors.first();
            let (line, column) = first.map_or((1, 1), |error| error.pos);
            let message = first.map_or("it cannot be parsed", |error| error.msg.trim());
            if message.contains("Recursion limit") {
                return error_at(&too_deep(), 1, 1);
            }
            let message = if message == "UNKNOWN" { "it cannot be parsed" } else { message };
            let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
            let message: String = message.chars().take(MAX_MESSAGE).collect();
            error_at(&message, line, column)
        })?;
        let place = |id: u64| {
            let (start, _) = places.offset_for(id).unwrap_or((1, 1));
            usize::try_from(start).unwrap_or(1)
        };
        if let Some((name, id)) = unknown_function(&tree) {
            let name: String = name.chars().take(MAX_MESSAGE).collect();
            let known = FUNCTIONS.join(", ");
            return Err(SyntaxError {
                message: format!(
                    "there is no function `{name}`: there are {known}, and the macros has, all, exists, exists_one, filter, map"
                ),
                line: 1,
                column: place(id),
            });
        }
        let (references, bound) = references::find(&tree);
        let kind = infer::kind(&tree);
        Ok(Self { source: source.to_owned(), tree: charged(tree), references, bound, kind })
    }

    /// Text of the expression.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Names that the expression reads, each once, in the order of the text.
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// Names that macros such as `all` and `map` bind.
    #[must_use]
    pub fn bound(&self) -> &BTreeSet<String> {
        &self.bound
    }

    /// Inferred type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether the expression reads a name, such as `item`.
    #[must_use]
    pub fn reads(&self, name: &str) -> bool {
        self.references.iter().any(|reference| reference.root == name)
    }
}

/// Runs a function with enough stack for any expression; `None` if no thread can be started.
pub(crate) fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok()?;
        match thread.join() {
            Ok(value) => Some(value),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Refuses what the parser would need too much stack or time for.
fn check_size(source: &str) -> Result<(), SyntaxError> {
    if source.trim().is_empty() {
        return Err(error_at("it is empty", 1, 1));
    }
    if source.len() > MAX_LENGTH {
        let message = format!("it has {} bytes; the maximum is {MAX_LENGTH}", source.len());
        return Err(error_at(&message, 1, 1));
    }
    let (mut depth, mut operators) = (0u16, 0u16);
    let (mut line, mut column) = (1, 0);
    for c in source.chars() {
        (line, column) = if c == '\n' { (line + 1, 0) } else { (line, column + 1) };
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            // Chains of operators nest without brackets.
            '!' | '-' | '?' | '+' | '*' | '/' | '%' | '<' | '>' | '=' | '.' | ' ' | '\t' | '\n' => {
                operators += 1
            }
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(error_at(&too_deep(), line, column));
        }
        if operators > MAX_OPERATORS {
            let message = format!("it has more than {MAX_OPERATORS} operators and blanks");
            return Err(error_at(&message, line, column));
        }
    }
    Ok(())
}

fn too_deep() -> String {
    format!("it is nested too deeply: the maximum is {MAX_DEPTH}")
}

fn error_at(message: &str, line: isize, column: isize) -> SyntaxError {
    let number = |n: isize| usize::try_from(n).unwrap_or(1).max(1);
    SyntaxError { message: message.to_owned(), line: number(line), column: number(column) }
}

/// Calls `visit` with each part of an expression, outermost first.
pub(crate) fn walk<'a>(tree: &'a IdedExpr, visit: &mut dyn FnMut(&'a IdedExpr)) {
    visit(tree);
    match &tree.expr {
        Expr::Call(call) => {
            call.target.iter().map(AsRef::as_ref).chain(&call.args).for_each(|part| walk(part, visit))
        }
        Expr::Comprehension(loop_) => {
            for part in
                [&loop_.iter_range, &loop_.accu_init, &loop_.loop_cond, &loop_.loop_step, &loop_.result]
            {
                walk(part, visit);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|part| walk(part, visit)),
        Expr::Map(map) => entries(&map.entries).for_each(|part| walk(part, visit)),
        Expr::Struct(structure) => entries(&structure.entries).for_each(|part| walk(part, visit)),
        Expr::Select(select) => walk(&select.operand, visit),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

pub(crate) fn entries(entries: &[cel::common::ast::IdedEntryExpr]) -> impl Iterator<Item = &IdedExpr> {
    entries.iter().flat_map(|entry| match &entry.expr {
        EntryExpr::MapEntry(entry) => [Some(&entry.key), Some(&entry.value)].into_iter().flatten(),
        EntryExpr::StructField(field) => [Some(&field.value), None].into_iter().flatten(),
    })
}

fn unknown_function(tree: &IdedExpr) -> Option<(&str, u64)> {
    let mut unknown = None;
    walk(tree, &mut |part| {
        let name = match &part.expr {
            Expr::Call(call) => call.func_name.as_str(),
            Expr::Struct(structure) => structure.type_name.as_str(),
            _ => return,
        };
        let is_operator = name.contains(['_', '@', '!']) && !name.chars().any(|c| c.is_ascii_alphanumeric())
            || matches!(name, operators::IN | operators::NOT_STRICTLY_FALSE);
        if unknown.is_none() && !is_operator && !FUNCTIONS.contains(&name) {
            unknown = Some((name, part.id));
        }
    });
    unknown
}

/// Puts counters around the ranges of loops, around concatenations, and around values that are copied, compared or read, so that the work
/// and the memory of an evaluation are bounded.
fn charged(tree: IdedExpr) -> IdedExpr {
    let IdedExpr { id, expr } = tree;
    let expr = match expr {
        Expr::Call(call) => charged_call(id, call),
        Expr::Comprehension(loop_) => {
            let parts = [&loop_.loop_cond, &loop_.loop_step, &loop_.result];
            let weight: i64 = parts.into_iter().map(weight).sum();
            let loop_ = *loop_;
            let weight = IdedExpr { id, expr: Expr::Literal(LiteralValue::Int(CelInt::from(weight))) };
            let range = counted(CHARGE, vec![charged(loop_.iter_range), weight]);
            Expr::Comprehension(Box::new(ComprehensionExpr {
                iter_range: IdedExpr { id, expr: range },
                accu_init: charged(loop_.accu_init),
                loop_cond: charged(loop_.loop_cond),
                loop_step: charged(loop_.loop_step),
                result: charged(loop_.result),
                ..loop_
            }))
        }
        Expr::List(mut list) => {
            list.elements = list.elements.into_iter().map(|part| copied(charged(part))).collect();
            Expr::List(list)
        }
        Expr::Map(mut map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    entry.key = copied(charged(std::mem::take(&mut entry.key)));
                    entry.value = copied(charged(std::mem::take(&mut entry.value)));
                }
            }
            Expr::Map(map)
        }
        Expr::Select(mut select) => {
            select.operand = Box::new(charged(*select.operand));
            Expr::Select(select)
        }
        other => other,
    };
    IdedExpr { id, expr }
}

fn charged_call(id: u64, call: CallExpr) -> Expr {
    // Loops build their results by appending; these sums are part of the loop's steps, and the elements are charged.
    let appends =
        matches!(call.args.first().map(|arg| &arg.expr), Some(Expr::Ident(name)) if name.starts_with('@'));
    let mut target = call.target.map(|target| charged(*target));
    let mut args: Vec<IdedExpr> = call.args.into_iter().map(charged).collect();
    let mut func_name = call.func_name;
    match func_name.as_str() {
        operators::ADD if appends => {}
        operators::ADD => {
            let sum = Expr::Call(CallExpr { func_name, target: None, args });
            return counted(GROWN, vec![IdedExpr { id, expr: sum }]);
        }
        // These return one of their operands, or look at one bit of it.
        operators::CONDITIONAL
        | operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::NOT_STRICTLY_FALSE
        | operators::INDEX
        | operators::OPT_INDEX
        | operators::OPT_SELECT
        | "type" => {}
        "size" => {
            target = target.map(|part| measured(LENGTH, part));
            args = args.into_iter().map(|part| measured(LENGTH, part)).collect();
        }
        "matches" if args.len() + usize::from(target.is_some()) == 2 => {
            args.splice(0..0, target.take());
            args = args.into_iter().map(read).collect();
            func_name = MATCHES.to_owned();
        }
        // These take copies of their arguments.
        "min" | "max" | "dyn" | "string" | "bytes" => {
            target = target.map(copied);
            args = args.into_iter().map(copied).collect();
        }
        _ => {
            target = target.map(read);
            args = args.into_iter().map(read).collect();
        }
    }
    Expr::Call(CallExpr { func_name, target: target.map(Box::new), args })
}

/// Counts the size of a value before it is copied. Literals are part of the expression, whose length has a limit.
fn copied(tree: IdedExpr) -> IdedExpr {
    if matches!(tree.expr, Expr::Literal(_)) { tree } else { measured(COPIED, tree) }
}

/// Counts the size of a value before it is compared or read. Literals are part of the expression, whose length has a limit.
fn read(tree: IdedExpr) -> IdedExpr {
    if matches!(tree.expr, Expr::Literal(_)) { tree } else { measured(READ, tree) }
}

fn measured(function: &str, tree: IdedExpr) -> IdedExpr {
    IdedExpr { id: tree.id, expr: counted(function, vec![tree]) }
}

fn counted(function: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args })
}

/// Number of parts of an expression.
fn weight(tree: &IdedExpr) -> i64 {
    let mut parts = 0;
    walk(tree, &mut |_| parts += 1);
    parts
}
