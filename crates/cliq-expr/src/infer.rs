//! Types as far as literals and operators determine them.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, operators};

/// Inferred type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// A list.
    List,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A map or a value of another type that is neither boolean nor list.
    Other,
    /// Known only when the expression is evaluated.
    Unknown,
}

impl Kind {
    /// Noun with its article, for messages.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::List => "a list",
            Self::Number => "a number",
            Self::Text => "a text",
            Self::Other => "a map",
            Self::Unknown => "a value",
        }
    }
}

/// Infers the type of an expression.
pub(crate) fn kind(tree: &IdedExpr) -> Kind {
    match &tree.expr {
        Expr::Literal(LiteralValue::Boolean(_)) => Kind::Bool,
        Expr::Literal(LiteralValue::String(_)) => Kind::Text,
        Expr::Literal(LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_)) => Kind::Number,
        Expr::Literal(LiteralValue::Null | LiteralValue::Bytes(_)) | Expr::Map(_) | Expr::Struct(_) => {
            Kind::Other
        }
        Expr::List(_) => Kind::List,
        Expr::Select(select) if select.test => Kind::Bool,
        // Inputs of a run are texts.
        Expr::Select(select) if matches!(&select.operand.expr, Expr::Ident(name) if name == "inputs") => {
            Kind::Text
        }
        Expr::Ident(name) => match name.as_str() {
            "inputs" | "handoff" | "verdict" | "results" => Kind::Other,
            "index" => Kind::Number,
            _ => Kind::Unknown,
        },
        Expr::Comprehension(loop_) => match kind(&loop_.result) {
            Kind::Unknown => kind(&loop_.accu_init),
            known => known,
        },
        Expr::Call(call) => of_call(call),
        Expr::Select(_) | Expr::Unspecified => Kind::Unknown,
    }
}

fn of_call(call: &CallExpr) -> Kind {
    match call.func_name.as_str() {
        operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::EQUALS
        | operators::NOT_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::IN
        | operators::NOT_STRICTLY_FALSE
        | "contains"
        | "startsWith"
        | "endsWith"
        | "matches"
        | "bool" => Kind::Bool,
        "size" | "int" | "uint" | "double" => Kind::Number,
        operators::SUBSTRACT
        | operators::MULTIPLY
        | operators::DIVIDE
        | operators::MODULO
        | operators::NEGATE => Kind::Number,
        "string" => Kind::Text,
        "bytes" | "type" => Kind::Other,
        operators::ADD => both(&call.args, |kind| matches!(kind, Kind::Unknown)),
        operators::CONDITIONAL => match call.args.as_slice() {
            [_, then, otherwise] if kind(then) == kind(otherwise) => kind(then),
            _ => Kind::Unknown,
        },
        operators::INDEX => match call.args.first().map(|of| &of.expr) {
            Some(Expr::Ident(name)) if name == "inputs" => Kind::Text,
            _ => Kind::Unknown,
        },
        _ => Kind::Unknown,
    }
}

/// Type of a sum: that of the operand whose type is known.
fn both(args: &[IdedExpr], is_open: impl Fn(Kind) -> bool) -> Kind {
    args.iter().map(kind).find(|kind| !is_open(*kind)).unwrap_or(Kind::Unknown)
}
