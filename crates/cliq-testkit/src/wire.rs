//! A connection that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Proxy between a program and a server on this machine, which can cut connections.
pub struct Wire {
    /// Port of the proxy.
    pub port: u16,
    is_cut: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    /// Starts a proxy on the loopback interface to a port of this machine.
    pub fn to(port: u16) -> Self {
        Self::between("127.0.0.1", port)
    }

    /// One that is reached at an address of this machine.
    pub fn between(address: &str, port: u16) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let this = Self {
            port: listener.local_addr().unwrap().port(),
            is_cut: Arc::default(),
            streams: Arc::default(),
        };
        let (is_cut, streams) = (Arc::clone(&this.is_cut), Arc::clone(&this.streams));
        std::thread::spawn(move || {
            for near in listener.incoming().filter_map(Result::ok) {
                if is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let mut chunk = vec![0; 64 << 10];
                        while let Ok(count @ 1..) = from.read(&mut chunk) {
                            if to.write_all(&chunk[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                streams.lock().unwrap().extend([near, far]);
            }
        });
        this
    }

    /// Cuts all connections, and refuses new ones.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.streams.lock().unwrap().drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }

    /// Accepts connections again.
    pub fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}
