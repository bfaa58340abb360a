//! Pages of the sign-in. Access control handles the forms.

use axum::response::Html;
use cliq_web::SIGN_IN_PATH;
use maud::html;

use crate::layout;

/// Returns the page that asks for a token, with the reason why the last attempt failed. `provider` is the name of the provider by which
/// people sign in, if there is one.
pub fn sign_in_page(failure: Option<&str>, provider: Option<&str>) -> Html<String> {
    let content = html! {
        h1 { "Sign in" }
        @if let Some(failure) = failure { p.warning role="alert" { (failure) } }
        @if let Some(provider) = provider {
            p.actions { a.button.primary href="/signin/oidc" { "Sign in with " (provider) } }
            h2 { "Or with a token" }
        }
        form.stack method="post" action=(SIGN_IN_PATH) {
            label for="token" { "Token" }
            input #token name="token" type="password" autocomplete="current-password" required;
            button type="submit" class=[provider.is_none().then_some("primary")] { "Sign in" }
        }
        p.hint {
            "On the machine of the server, " code { "cliq server open" } " prints a link that signs in, and "
            code { "cliq server token create --label NAME" } " makes a token."
        }
    };
    layout::bare("Sign in", &content)
}

/// Returns the page after a successful sign-in, which leads to another by its path. A redirect would not do: a browser that came from another
/// site sends a strict cookie from the next page on.
pub fn signed_in_page(to: &str) -> Html<String> {
    let content = html! {
        meta http-equiv="refresh" content=(format!("0; url={to}"));
        h1 { "Signed in" }
        p { a href=(to) { @if to == "/" { "All runs" } @else { "Go on" } } }
    };
    layout::bare("Signed in", &content)
}

/// Returns the page after the end of a session, which leads to the provider to sign out there too.
pub fn signed_out_page(provider: &str) -> Html<String> {
    let content = html! {
        meta http-equiv="refresh" content=(format!("0; url={provider}"));
        h1 { "Signed out" }
        p { "You are signed out here. " a href=(provider) { "Sign out of the provider" } }
    };
    layout::bare("Signed out", &content)
}
