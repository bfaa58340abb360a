//! Calls of one side that wait for a response. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::rpc::Id;

/// Number of abandoned and answered calls that are remembered, so that a late or repeated response is named.
const REMEMBERED: usize = 1024;

/// Calls of this side that are not answered yet, with a note of the caller for each.
#[derive(Debug, Clone)]
pub struct Calls<T> {
    last: i64,
    open: BTreeMap<i64, T>,
    abandoned: BTreeSet<i64>,
}

/// Relation of a response to the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered<T> {
    /// First response to an open call.
    Open(T),
    /// Response to a call that was given up.
    Late,
    /// Response to a call that is answered already.
    Repeated,
    /// Response with an id that was never used.
    Unknown,
}

impl<T> Default for Calls<T> {
    fn default() -> Self {
        Self { last: 0, open: BTreeMap::new(), abandoned: BTreeSet::new() }
    }
}

impl<T> Calls<T> {
    /// Opens a call and returns its id. No id is used twice.
    pub fn open(&mut self, note: T) -> Id {
        self.last += 1;
        self.open.insert(self.last, note);
        self.last.into()
    }

    /// Closes the call that a response belongs to.
    pub fn close(&mut self, id: &Id) -> Answered<T> {
        let Id::Number(number) = id else { return Answered::Unknown };
        // Peers in JavaScript may write 1 as 1.0.
        let whole =
            number.as_i64().or_else(|| number.as_f64().filter(|n| n.fract() == 0.0).map(|n| n as i64));
        let Some(id) = whole.filter(|id| (1..=self.last).contains(id)) else { return Answered::Unknown };
        match self.open.remove(&id) {
            Some(note) => Answered::Open(note),
            None if self.abandoned.remove(&id) => Answered::Late,
            None => Answered::Repeated,
        }
    }

    /// Gives up the calls with a note that matches, and returns their ids. Their responses are late from now on.
    pub fn abandon(&mut self, mut is_given_up: impl FnMut(&T) -> bool) -> Vec<i64> {
        let ids: Vec<i64> =
            self.open.iter().filter(|(_, note)| is_given_up(note)).map(|(id, _)| *id).collect();
        for id in &ids {
            self.open.remove(id);
            self.abandoned.insert(*id);
        }
        while self.abandoned.len() > REMEMBERED {
            self.abandoned.pop_first();
        }
        ids
    }

    /// Returns the notes of the open calls, oldest first.
    pub fn notes(&self) -> impl Iterator<Item = &T> {
        self.open.values()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Number;

    use super::*;

    #[test]
    fn each_response_belongs_to_one_call() {
        let mut calls = Calls::default();
        let (one, two) = (calls.open("one"), calls.open("two"));
        assert_eq!(calls.close(&one), Answered::Open("one"));
        assert_eq!(calls.close(&one), Answered::Repeated);
        calls.abandon(|note| *note == "two");
        assert_eq!(calls.close(&two), Answered::Late);
        assert_eq!(calls.close(&two), Answered::Repeated);
        assert_eq!(calls.close(&3.into()), Answered::Unknown);
        assert_eq!(calls.close(&Id::Text("1".into())), Answered::Unknown);
        assert_eq!(calls.open("three"), 3.into());
        let float = Id::Number(Number::from_f64(3.0).unwrap());
        assert_eq!(calls.close(&float), Answered::Open("three"));
    }
}
