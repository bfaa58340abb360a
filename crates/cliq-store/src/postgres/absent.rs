//! PostgreSQL in a program without the feature `postgres`: no address of it can be made, so nothing else of it can exist.

use std::fmt;
use std::time::Duration;

use crate::error::DatabaseError;
use crate::location::BadDatabaseUrl;
use crate::statement::{Answer, Argument};

/// Address of a PostgreSQL database. Needs the feature `postgres`.
#[derive(Debug, Clone)]
pub enum PostgresAddress {}

impl PostgresAddress {
    pub(crate) fn parse(_: &str) -> Result<Self, BadDatabaseUrl> {
        Err(BadDatabaseUrl::Unsupported)
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum PostgresError {}

impl fmt::Display for PostgresError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for PostgresError {}

impl PostgresError {
    pub(crate) fn is_broken(&self) -> bool {
        match *self {}
    }

    pub(crate) fn of_server(&self) -> Option<(Option<String>, String)> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum PostgresRow {}

impl PostgresRow {
    pub(crate) fn text(&self, _: &str) -> Result<String, PostgresError> {
        match *self {}
    }

    pub(crate) fn optional_text(&self, _: &str) -> Result<Option<String>, PostgresError> {
        match *self {}
    }

    pub(crate) fn integer(&self, _: &str) -> Result<i64, PostgresError> {
        match *self {}
    }

    pub(crate) fn optional_integer(&self, _: &str) -> Result<Option<i64>, PostgresError> {
        match *self {}
    }

    pub(crate) fn optional_real(&self, _: &str) -> Result<Option<f64>, PostgresError> {
        match *self {}
    }
}

#[derive(Debug)]
pub(crate) enum PostgresConnection {}

impl PostgresConnection {
    pub(crate) async fn open(address: &PostgresAddress, _: Duration) -> Result<Self, DatabaseError> {
        match *address {}
    }

    pub(crate) async fn begin(&mut self) -> Result<PostgresTransaction<'_>, DatabaseError> {
        match *self {}
    }

    pub(crate) async fn end_left(&mut self) -> Result<(), DatabaseError> {
        match *self {}
    }

    pub(crate) async fn run(&mut self, _: &'static str, _: &[Argument<'_>]) -> Result<Answer, DatabaseError> {
        match *self {}
    }

    pub(crate) async fn run_composed(
        &mut self,
        _: &str,
        _: &[Argument<'_>],
    ) -> Result<Answer, DatabaseError> {
        match *self {}
    }
}

pub(crate) struct PostgresTransaction<'c> {
    never: std::convert::Infallible,
    _connection: std::marker::PhantomData<&'c mut PostgresConnection>,
}

impl PostgresTransaction<'_> {
    pub(crate) async fn commit(self) -> Result<(), DatabaseError> {
        match self.never {}
    }

    pub(crate) async fn script(&mut self, _: &'static str) -> Result<(), DatabaseError> {
        match self.never {}
    }

    pub(crate) async fn run(&mut self, _: &'static str, _: &[Argument<'_>]) -> Result<Answer, DatabaseError> {
        match self.never {}
    }
}
