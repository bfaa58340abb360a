//! The audit log, and sign-ins by a provider.

use cliq_model::{
    AuditAction, AuditFilter, AuditStore, NewToken, Person, RunStore, Scope, SignInAttempt, SignInStore,
    TokenKind,
};
use futures_util::future::join_all;

use super::test_database::{Place, TestDatabase, at};

fn action(actor: &str, ts: &str) -> AuditAction {
    AuditAction {
        ts: at(ts),
        actor: actor.to_owned(),
        person: (actor == "Ann").then(|| "ann@example.com".to_owned()),
        via: "api".to_owned(),
        action: "POST /api/v1/runs".to_owned(),
        target: "/api/v1/runs".to_owned(),
        outcome: "201".to_owned(),
        request_id: None,
        peer: Some("127.0.0.1".to_owned()),
    }
}

pub(crate) async fn entries_are_kept_in_order_and_never_changed(place: &TestDatabase) {
    let store = place.store().await;
    for (actor, ts) in [("ci", "2026-01-01"), ("Ann", "2026-01-02"), ("ci", "2026-01-03")] {
        store.add_audit(&action(actor, ts)).await.unwrap();
    }
    let list = async |filter: AuditFilter| {
        let entries = store.audit(&AuditFilter { limit: 10, ..filter }).await.unwrap();
        entries.into_iter().map(|entry| (entry.id, entry.action.ts)).collect::<Vec<_>>()
    };
    let entry = |id: i64| (id, at(&format!("2026-01-0{id}")));
    assert_eq!(list(AuditFilter::default()).await, [entry(3), entry(2), entry(1)]);
    assert_eq!(list(AuditFilter { after: Some(1), ..Default::default() }).await, [entry(2), entry(3)]);
    assert_eq!(list(AuditFilter { before: Some(3), ..Default::default() }).await, [entry(2), entry(1)]);
    let by = |actor: &str| AuditFilter { actor: Some(actor.to_owned()), ..Default::default() };
    assert_eq!(list(by("ci")).await, [entry(3), entry(1)]);
    assert_eq!(list(by("ann@example.com")).await, [entry(2)]);
    let range =
        AuditFilter { since: Some(at("2026-01-02")), until: Some(at("2026-01-03")), ..Default::default() };
    assert_eq!(list(range).await, [entry(2)]);
    assert_eq!(
        store.audit(&AuditFilter { limit: 1, ..by("Ann") }).await.unwrap()[0].action,
        action("Ann", "2026-01-02")
    );
    // The database itself refuses changes.
    for statement in
        ["UPDATE audit SET actor = 'nobody'", "DELETE FROM audit", "DELETE FROM audit WHERE id = 1"]
    {
        let refused = place.execute(statement).await;
        assert!(refused.unwrap_err().contains("append-only"), "{statement}");
    }
    assert_eq!(list(AuditFilter::default()).await.len(), 3);
}

pub(crate) async fn sign_in_is_completed_once(place: &impl Place) {
    let store = place.store().await;
    let attempt = |state: &str, expires_at: &str| SignInAttempt {
        state: state.to_owned(),
        browser: "b".to_owned(),
        nonce: "n".to_owned(),
        verifier: "v".to_owned(),
        expires_at: at(expires_at),
    };
    store.add_sign_in(&attempt("old", "2026-01-01"), at("2025-12-31")).await.unwrap();
    store.add_sign_in(&attempt("s", "2026-01-03"), at("2026-01-02")).await.unwrap();
    assert_eq!(store.take_sign_in("old").await.unwrap(), None, "void attempts are removed");
    let taken = join_all((0..8).map(|_| store.take_sign_in("s"))).await;
    let taken: Vec<_> = taken.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(taken, [attempt("s", "2026-01-03")]);
    assert!(!format!("{taken:?}").contains("\"v\""));
    let person = Person {
        issuer: "https://id.example".to_owned(),
        subject: "7".to_owned(),
        mail: Some("ann@example.com".to_owned()),
        name: "Ann".to_owned(),
        id_token: None,
    };
    for (kind, end) in [
        (TokenKind::Session, "2026-02-01"),
        (TokenKind::Session, "2026-01-05"),
        (TokenKind::Api, "2026-02-01"),
    ] {
        let made = NewToken::generate(kind, "Ann", Scope::Run, at("2026-01-01"), Some(at(end)));
        let (_, mut token) = made.unwrap();
        token.person = (kind == TokenKind::Session).then(|| person.clone());
        store.add_token(&token).await.unwrap();
    }
    let sessions = store.sessions(at("2026-01-10")).await.unwrap();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].person.as_ref(), Some(&person));
    assert_eq!(store.tokens().await.unwrap().len(), 1);
}
