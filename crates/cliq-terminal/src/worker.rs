//! Threads that ask the source, so that the screen never waits for a disk or a server.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{io, thread};

use crate::app::Message;
use crate::event::{Event, Reply, Request};
use crate::source::{Action, Source};

/// Threads: one for runs and phases, one for texts and changes, one for what a person waits for.
#[derive(Debug)]
pub(crate) struct Workers {
    runs: Sender<Job>,
    texts: Sender<Job>,
    actions: Sender<Job>,
}

#[derive(Debug)]
enum Job {
    Load(Request),
    Act(Box<Action>),
}

impl Workers {
    pub(crate) fn start(source: &Arc<dyn Source>, messages: &Sender<Message>) -> io::Result<Self> {
        let start = |name: &str| {
            let (sender, jobs) = channel();
            let (source, messages) = (Arc::clone(source), messages.clone());
            thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || work(source.as_ref(), &jobs, &messages))?;
            io::Result::Ok(sender)
        };
        Ok(Self { runs: start("runs")?, texts: start("texts")?, actions: start("actions")? })
    }

    pub(crate) fn load(&self, request: Request) {
        let worker = match request {
            Request::Runs | Request::Detail(_) => &self.runs,
            Request::Text(_) | Request::Changes(_) => &self.texts,
            Request::Review(..) | Request::Offers(_) => &self.actions,
        };
        let _ = worker.send(Job::Load(request));
    }

    pub(crate) fn act(&self, action: Action) {
        let _ = self.actions.send(Job::Act(Box::new(action)));
    }
}

/// Ends the screen if its thread panics: requests would wait for ever.
struct EndOnPanic<'a>(&'a Sender<Message>);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.0.send(Message::Ended);
        }
    }
}

fn work(source: &dyn Source, jobs: &Receiver<Job>, messages: &Sender<Message>) {
    let _end = EndOnPanic(messages);
    for job in jobs {
        let event = match job {
            Job::Load(request) => Event::Loaded(Box::new(load(source, request))),
            Job::Act(action) => {
                let result = source.carry_out(&action);
                Event::Acted(action, result)
            }
        };
        if messages.send(Message::Event(event)).is_err() {
            return;
        }
    }
}

fn load(source: &dyn Source, request: Request) -> Reply {
    match request {
        Request::Runs => Reply::Runs(source.runs()),
        Request::Detail(run) => {
            let reply = source.detail(&run);
            Reply::Detail(run, reply)
        }
        Request::Text(request) => {
            let reply = source.text(&request);
            Reply::Text(request, reply)
        }
        Request::Changes(request) => {
            let reply = source.changes(&request.run, request.phase.as_deref(), request.review.as_deref());
            Reply::Changes(request, reply)
        }
        Request::Review(run, review) => {
            let reply = source.review(&run, &review);
            Reply::Review(run, review, reply)
        }
        Request::Offers(near) => Reply::Offers(source.offers(near.as_ref())),
    }
}
