//! Egress proxy: the only way to the network for processes that may reach some hosts (docs/sandbox.md).
//!
//! Speaks HTTP: `CONNECT` for anything over TLS, and requests with a whole address. Names are resolved here, once, and connected to as
//! resolved.

mod rules;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use rules::{EgressRules, Refusal};

/// Maximum number of connections at the same time. More wait.
const CONNECTIONS: usize = 512;
/// Time within which a host accepts a connection.
const CONNECT: Duration = Duration::from_secs(20);
/// Time within which a client sends the head of a request.
const HEAD: Duration = Duration::from_secs(30);
/// Headers of one connection, which are not passed on (RFC 9110, section 7.6.1).
const OF_CONNECTION: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Called with each refused host and port.
pub type OnRefusal = Arc<dyn Fn(&Refusal) + Send + Sync>;
type Body = BoxBody<Bytes, hyper::Error>;

/// Proxy that is served. Ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct EgressProxy {
    port: u16,
    socket: Utf8PathBuf,
    _dir: tempfile::TempDir,
    _stop: DropGuard,
}

impl EgressProxy {
    /// Starts a proxy on a port of the loopback address and on a UNIX socket in a directory of its own. Needs a tokio runtime with IO
    /// and time.
    ///
    /// # Errors
    /// Returns an error if it cannot listen.
    pub fn start(rules: EgressRules, on_refusal: OnRefusal) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("cliq-egress-").tempdir()?;
        let socket = Utf8Path::from_path(dir.path()).ok_or(io::ErrorKind::InvalidFilename)?.join("proxy");
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let (tcp, unix) = (TcpListener::from_std(listener)?, UnixListener::bind(&socket)?);
        let stop = CancellationToken::new();
        let proxy = Arc::new(Proxy { rules, on_refusal, places: Semaphore::new(CONNECTIONS) });
        tokio::spawn(stop.clone().run_until_cancelled_owned(serve(proxy, tcp, unix, stop.clone())));
        Ok(Self { port, socket, _dir: dir, _stop: stop.drop_guard() })
    }

    /// Port on the loopback address.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// UNIX socket, for processes without this network.
    #[must_use]
    pub fn socket(&self) -> &Utf8Path {
        &self.socket
    }
}

struct Proxy {
    rules: EgressRules,
    on_refusal: OnRefusal,
    places: Semaphore,
}

async fn serve(proxy: Arc<Proxy>, tcp: TcpListener, unix: UnixListener, stop: CancellationToken) {
    loop {
        let accepted: io::Result<Stream> = tokio::select! {
            accepted = tcp.accept() => accepted.map(|(stream, _)| Stream::Tcp(stream)),
            accepted = unix.accept() => accepted.map(|(stream, _)| Stream::Unix(stream)),
        };
        let Ok(stream) = accepted else {
            // Out of descriptors: others become free.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (proxy, stop) = (Arc::clone(&proxy), stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            let Ok(_place) = proxy.places.acquire().await else { return };
            match stream {
                Stream::Tcp(stream) => client(&proxy, stream, &stop).await,
                Stream::Unix(stream) => client(&proxy, stream, &stop).await,
            }
        }));
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Serves one client, with keep-alive.
async fn client<S>(proxy: &Arc<Proxy>, stream: S, stop: &CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (proxy, stop) = (Arc::clone(proxy), stop.clone());
        async move { Ok::<_, Infallible>(proxy.answer(request, stop).await) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).preserve_header_case(true);
    // A client that breaks off is no error of the proxy.
    let _ = server.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

impl Proxy {
    async fn answer(&self, request: Request<Incoming>, stop: CancellationToken) -> Response<Body> {
        let is_tunnel = request.method() == Method::CONNECT;
        let Some((host, port)) = target(request.uri(), is_tunnel) else {
            let said = "this is a proxy: send CONNECT, or requests with a whole http:// address";
            return text(StatusCode::BAD_REQUEST, said.to_owned());
        };
        let upstream = match self.connect(&host, port).await {
            Ok(upstream) => upstream,
            Err(response) => return *response,
        };
        if is_tunnel {
            tokio::spawn(stop.run_until_cancelled_owned(async move {
                if let Ok(client) = hyper::upgrade::on(request).await {
                    let (mut client, mut upstream) = (TokioIo::new(client), upstream);
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut upstream).await;
                }
            }));
            return Response::new(empty());
        }
        match forward(request, &host, port, upstream).await {
            Ok(response) => response,
            Err(error) => text(StatusCode::BAD_GATEWAY, format!("{host} does not answer: {error}")),
        }
    }

    /// Connects to a host that the rules permit, at an address that they permit.
    async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Box<Response<Body>>> {
        let refused = |refusal: Refusal| {
            (self.on_refusal)(&refusal);
            Box::new(text(StatusCode::FORBIDDEN, format!("the sandbox refused: {refusal}")))
        };
        self.rules.check_host(host, port).map_err(refused)?;
        let failed = |why: String| Box::new(text(StatusCode::BAD_GATEWAY, why));
        let resolved = tokio::net::lookup_host((host, port)).await;
        let resolved: Vec<SocketAddr> =
            resolved.map_err(|error| failed(format!("cannot resolve {host}: {error}")))?.collect();
        let permitted = self.rules.check_addresses(host, port, resolved).map_err(refused)?;
        let mut last = None;
        for address in permitted {
            match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = Some(error.to_string()),
                Err(_) => last = Some("timed out".to_owned()),
            }
        }
        Err(failed(format!(
            "cannot connect to {host}: {}",
            last.unwrap_or_else(|| "it has no address".to_owned())
        )))
    }
}

/// Host and port of a request.
fn target(uri: &Uri, is_tunnel: bool) -> Option<(String, u16)> {
    let usual = match (is_tunnel, uri.scheme_str()) {
        (true, _) => None,
        (false, Some("http")) => Some(80),
        _ => return None,
    };
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some((host, uri.port_u16().or(usual)?))
}

/// Passes a request on, on a connection of its own.
async fn forward(
    mut request: Request<Incoming>,
    host: &str,
    port: u16,
    upstream: TcpStream,
) -> Result<Response<Body>, hyper::Error> {
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .handshake(TokioIo::new(upstream))
        .await?;
    tokio::spawn(connection);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    if let Ok(uri) = path.parse() {
        *request.uri_mut() = uri;
    }
    strip(request.headers_mut());
    let name = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let name = if port == 80 { name } else { format!("{name}:{port}") };
    // The host that was checked is the host that is asked.
    if let Ok(value) = HeaderValue::from_str(&name) {
        request.headers_mut().insert(HOST, value);
    }
    let mut response = sender.send_request(request).await?;
    strip(response.headers_mut());
    Ok(response.map(BodyExt::boxed))
}

fn strip(headers: &mut hyper::HeaderMap) {
    let named = headers.get_all("connection").iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> =
        named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    for name in named {
        headers.remove(name);
    }
    for name in OF_CONNECTION {
        headers.remove(name);
    }
}

fn empty() -> Body {
    Full::new(Bytes::new()).map_err(|never| match never {}).boxed()
}

fn text(status: StatusCode, said: String) -> Response<Body> {
    let body = Full::new(Bytes::from(said + "\n")).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Passes connections of a listener on to a UNIX socket, until the process ends. Needs a tokio runtime with IO.
///
/// # Errors
/// Returns an error if the listener cannot be used.
pub async fn forward_to_socket(listener: std::net::TcpListener, socket: &Utf8Path) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    loop {
        let Ok((mut client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let socket = socket.to_owned();
        tokio::spawn(async move {
            if let Ok(mut proxy) = UnixStream::connect(&socket).await {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut proxy).await;
            }
        });
    }
}
