//! Frame of every page: head, navigation, foot.

use axum::response::Html;
use cliq_model::Scope;
use maud::{DOCTYPE, Markup, html};

use crate::assets;
use crate::visitor::Visitor;
use cliq_web::Problem;

/// Links of the navigation, in groups.
const NAVIGATION: [(&str, &[(&str, &str)]); 4] = [
    ("Work", &[("/", "Mission control"), ("/runs", "Runs"), ("/reviews", "Reviews")]),
    ("Library", &[("/teams", "Teams"), ("/studio", "Studio"), ("/evaluations", "Evaluations")]),
    ("Automation", &[("/plans", "Plans"), ("/signals", "Signals"), ("/triggers", "Triggers")]),
    ("Server", &[("/projects", "Projects"), ("/usage", "Usage")]),
];
/// Links for administrators, in the last group.
const ADMINISTRATION: [(&str, &str); 2] = [("/tokens", "Tokens"), ("/audit", "Audit log")];

fn document(title: &str, body: &Markup) -> Html<String> {
    document_with(title, None, body)
}

/// A document with a script of its own beside that of all pages.
fn document_with(title: &str, script: Option<&str>, body: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · cliq" }
                link rel="stylesheet" href=(assets::url("style.css"));
                link rel="icon" href=(assets::url("icon.svg")) type="image/svg+xml" data-alert=(assets::url("icon-alert.svg"));
                script src=(assets::url("app.js")) defer {}
                @if let Some(script) = script { script src=(script) defer {} }
            }
            (body)
        }
    };
    Html(page.into_string())
}

/// A page for a person who is signed in.
pub(super) fn page(visitor: &Visitor, title: &str, current: Option<&str>, content: &Markup) -> Html<String> {
    document(title, &body(visitor, current, content))
}

/// A page for a person who is signed in, with a script of its own.
pub(super) fn page_with_script(
    visitor: &Visitor,
    title: &str,
    current: &str,
    script: &str,
    content: &Markup,
) -> Html<String> {
    document_with(title, Some(script), &body(visitor, Some(current), content))
}

fn body(visitor: &Visitor, current: Option<&str>, content: &Markup) -> Markup {
    html! {
        body {
            a.skip href="#content" { "Skip to content" }
            header.top {
                a.brand href="/" { "cliq" }
                nav aria-label="Main" {
                    @for (n, (group, links)) in NAVIGATION.iter().enumerate() {
                        @let more: &[(&str, &str)] = if n + 1 == NAVIGATION.len() && visitor.caller.scope >= Scope::Admin { &ADMINISTRATION } else { &[] };
                        span.group role="group" aria-label=(group) {
                            @for (path, name) in links.iter().chain(more) {
                                a href=(path) aria-current=[(current == Some(path)).then_some("page")] {
                                    (name) @if *path == "/" { span #needed.n {} }
                                }
                            }
                        }
                    }
                }
                @if visitor.may_run() {
                    a.button.primary href="/runs/new" { "New run" }
                }
                form.signout method="post" action="/signout" { button type="submit" { "Sign out" } }
            }
            p #connection role="status" aria-live="polite" {}
            main #content tabindex="-1" { (content) }
        }
    }
}

/// A page without navigation.
pub(super) fn bare(title: &str, content: &Markup) -> Html<String> {
    let body = html! {
        body {
            header.top { a.brand href="/" { "cliq" } }
            main #content.narrow { (content) }
        }
    };
    document(title, &body)
}

/// A page of its own, without ways to others.
pub(super) fn plain(title: &str, content: &Markup) -> Html<String> {
    let body = html! {
        body {
            a.skip href="#decision" { "Skip to the decision" }
            header.top { span.brand { "cliq" } }
            main #content { (content) }
        }
    };
    document(title, &body)
}

/// Renders a problem for people.
pub(super) fn problem(problem: &Problem) -> Markup {
    html! {
        h1 { (problem.title) }
        p { (problem.detail) }
        @if !problem.errors.is_empty() {
            ul { @for error in &problem.errors { li { (error) } } }
        }
        p { a href="/runs" { "All runs" } }
    }
}
