//! Names that an expression reads.

use std::collections::{BTreeMap, BTreeSet};

use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};

use crate::expression::walk;

/// A name that an expression reads, with the member that it selects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reference {
    /// Name of the variable, such as `handoff`.
    pub root: String,
    /// Selected member, such as `review` of `handoff.review.findings`; `None` if the variable is used as a whole.
    pub member: Option<String>,
    /// Whether the value of the member is read, as opposed to a mere test for its presence.
    pub is_read: bool,
    /// Whether the expression tests for the presence of the member: `has(handoff.review)` or `"review" in handoff`.
    pub is_tested: bool,
}

/// Returns the references of an expression, and the names that its macros bind.
pub(crate) fn find(tree: &IdedExpr) -> (Vec<Reference>, BTreeSet<String>) {
    let mut bound = BTreeSet::new();
    walk(tree, &mut |part| {
        if let Expr::Comprehension(loop_) = &part.expr {
            bound.extend([&loop_.iter_var].into_iter().chain(&loop_.iter_var2).cloned());
        }
    });
    bound.retain(|name| !name.starts_with('@'));
    let mut found = Found::default();
    found.visit(tree, &mut Vec::new());
    (found.references, bound)
}

#[derive(Default)]
struct Found {
    references: Vec<Reference>,
    index: BTreeMap<(String, Option<String>), usize>,
}

impl Found {
    fn add(&mut self, root: &str, member: Option<&str>, is_test: bool) {
        let key = (root.to_owned(), member.map(str::to_owned));
        let at = *self.index.entry(key.clone()).or_insert_with(|| {
            let (root, member) = key;
            self.references.push(Reference { root, member, is_read: false, is_tested: false });
            self.references.len() - 1
        });
        let reference = &mut self.references[at];
        reference.is_read |= !is_test;
        reference.is_tested |= is_test;
    }

    fn visit<'a>(&mut self, tree: &'a IdedExpr, bound: &mut Vec<&'a str>) {
        if let Some(Member { variable, name, is_test }) = member_of(tree)
            && !bound.contains(&variable)
        {
            return self.add(variable, Some(name), is_test);
        }
        match &tree.expr {
            Expr::Ident(name) if !bound.contains(&name.as_str()) && !name.starts_with('@') => {
                self.add(name, None, false);
            }
            Expr::Comprehension(loop_) => {
                self.visit(&loop_.iter_range, bound);
                self.visit(&loop_.accu_init, bound);
                let before = bound.len();
                bound.extend([loop_.iter_var.as_str(), loop_.accu_var.as_str()]);
                bound.extend(loop_.iter_var2.as_deref());
                for part in [&loop_.loop_cond, &loop_.loop_step, &loop_.result] {
                    self.visit(part, bound);
                }
                bound.truncate(before);
            }
            _ => children(tree).into_iter().for_each(|part| self.visit(part, bound)),
        }
    }
}

/// Reference to a member of a variable.
struct Member<'a> {
    variable: &'a str,
    name: &'a str,
    /// Whether only the existence of the member is tested.
    is_test: bool,
}

/// Returns variable and member of `a.b`, `has(a.b)`, `a["b"]` and `"b" in a`.
fn member_of(tree: &IdedExpr) -> Option<Member<'_>> {
    match &tree.expr {
        Expr::Select(select) => {
            let Expr::Ident(root) = &select.operand.expr else { return None };
            Some(Member { variable: root, name: &select.field, is_test: select.test })
        }
        Expr::Call(call) if call.target.is_none() && call.args.len() == 2 => {
            let (variable, key, is_test) = match call.func_name.as_str() {
                operators::INDEX => (&call.args[0], &call.args[1], false),
                operators::IN => (&call.args[1], &call.args[0], true),
                _ => return None,
            };
            let (Expr::Ident(root), Expr::Literal(LiteralValue::String(key))) = (&variable.expr, &key.expr)
            else {
                return None;
            };
            Some(Member { variable: root, name: key.inner(), is_test })
        }
        _ => None,
    }
}

/// Returns the direct parts of an expression that is not a loop.
fn children(tree: &IdedExpr) -> Vec<&IdedExpr> {
    match &tree.expr {
        Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).collect(),
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => crate::expression::entries(&map.entries).collect(),
        Expr::Struct(structure) => crate::expression::entries(&structure.entries).collect(),
        _ => Vec::new(),
    }
}
