//! The server as an A2A agent: clients that others wrote, both versions of the protocol, streams that break, push notifications.

mod builder;
mod card;
mod clients;
mod mesh;
mod owners;
mod protocol;
mod push;
mod remote;
mod replicas;
mod repositories;
mod streams;
mod tasks;
