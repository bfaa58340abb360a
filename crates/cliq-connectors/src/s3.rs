//! S3: objects of any server that speaks its protocol. Requests are signed with `rusty-s3`, and sent as all others are.

use std::borrow::Cow;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_http::ureq::http::Method;
use cliq_http::{Answer, Client, Repeat, Request};
use rusty_s3::actions::{CompleteMultipartUploadResponse, CreateMultipartUpload, ListObjectsV2};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use serde_json::{Value, json};

use crate::append::{append, fetch_before};
use crate::entry::Mode;
use crate::error::file_error;
use crate::files::{content_type, inside};
use crate::service::{Intent, Service, in_parallel};
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// Validity of a signature: longer than all attempts of a call.
const VALID: Duration = Duration::from_secs(6 * 60 * 60);
/// Files from this size on go in parts.
const MULTIPART: u64 = 64 << 20;
/// The smallest part, and the most parts.
const PART: u64 = 16 << 20;
const PARTS: u64 = 9_000;
/// Maximum number of parts uploaded at the same time.
const PARALLEL: usize = 4;
/// Metadata key for the SHA-256 of the original file.
const DIGEST: &str = "x-amz-meta-cliq-sha256";
const HINT: &str =
    "are `agents.s3.access_key_id` and `agents.s3.secret_access_key` right, and do they allow this?";

/// An object, or all objects below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Location {
    /// The bucket.
    pub bucket: String,
    /// The key; empty or with `/` at its end for all objects below.
    pub key: String,
}

impl Location {
    /// Reads `s3://BUCKET/KEY` or `BUCKET/KEY`.
    pub(crate) fn parse(text: &str) -> Result<Self, ConnectorError> {
        let rest = text.strip_prefix("s3://").unwrap_or(text);
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let right = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if bucket.is_empty() || !bucket.chars().all(right) {
            return Err(ConnectorError::new(format!(
                "{text:?} is not a location in S3: write s3://BUCKET/KEY"
            )));
        }
        Ok(Self { bucket: bucket.to_owned(), key: key.to_owned() })
    }

    fn is_prefix(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    fn url(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.key)
    }
}

/// A bucket, for the holder of credentials.
struct Access<'a> {
    client: &'a Client,
    bucket: Bucket,
    credentials: Credentials,
}

impl<'a> Access<'a> {
    fn open(cx: &'a Context<'_>, name: &str) -> Result<Self, ConnectorError> {
        let key = cx.required("s3.access_key_id", "AWS_ACCESS_KEY_ID")?;
        let secret = cx.required("s3.secret_access_key", "AWS_SECRET_ACCESS_KEY")?;
        let credentials = match cx.setting("s3.session_token") {
            Some(token) => Credentials::new_with_token(key, secret, token),
            None => Credentials::new(key, secret),
        };
        let region = cx.setting("s3.region").unwrap_or_else(|| "us-east-1".to_owned());
        let (endpoint, style) = match cx.setting("s3.base_url") {
            Some(url) => (url, UrlStyle::Path),
            // Names with dots are in no certificate.
            None if name.contains('.') => (format!("https://s3.{region}.amazonaws.com"), UrlStyle::Path),
            None => (format!("https://s3.{region}.amazonaws.com"), UrlStyle::VirtualHost),
        };
        let endpoint = endpoint.parse().map_err(|error| {
            ConnectorError::new(format!("`agents.s3.base_url` is not a valid address: {error}"))
        })?;
        let bucket = Bucket::new(endpoint, style, name.to_owned(), region)
            .map_err(|error| ConnectorError::new(format!("`agents.s3.base_url`: {error}")))?;
        Ok(Self { client: &cx.client, bucket, credentials })
    }

    fn request<'b>(&self, method: Method, action: &impl S3Action<'b>) -> Request {
        let url = action.sign(VALID);
        // Whoever has the signature can do the same.
        let query = url.query().unwrap_or_default().to_owned();
        Request::new(method, url).secret(query)
    }

    /// The headers of an object; `None` if there is no such object.
    fn head(&self, key: &str) -> Result<Option<Answer>, ConnectorError> {
        let action = self.bucket.head_object(Some(&self.credentials), key);
        match self.client.send(&self.request(Method::HEAD, &action)) {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(ConnectorError::from(error).hint_on_refusal(HINT)),
        }
    }

    fn get(&self, key: &str) -> Request {
        self.request(Method::GET, &self.bucket.get_object(Some(&self.credentials), key))
    }

    /// Writes a file as an object. Gives its ETag.
    fn put(
        &self,
        key: &str,
        file: &LocalFile,
        condition: Option<(&str, &str)>,
    ) -> Result<String, ConnectorError> {
        let with_condition = |request: Request| match condition {
            Some((name, value)) => request.header(name, value),
            None => request,
        };
        if file.size >= MULTIPART {
            return self.put_parts(key, file, &with_condition);
        }
        let mut action = self.bucket.put_object(Some(&self.credentials), key);
        action.headers_mut().insert(DIGEST, Cow::from(file.sha256.clone()));
        let request = self
            .request(Method::PUT, &action)
            .header(DIGEST, &file.sha256)
            .header("content-type", content_type(key))
            .file(&file.path, 0, file.size);
        let answer = self.client.send(&with_condition(request)).map_err(|error| exists(error.into(), key))?;
        Ok(etag(&answer))
    }

    fn put_parts(
        &self,
        key: &str,
        file: &LocalFile,
        with_condition: &dyn Fn(Request) -> Request,
    ) -> Result<String, ConnectorError> {
        let mut action = self.bucket.create_multipart_upload(Some(&self.credentials), key);
        action.headers_mut().insert(DIGEST, Cow::from(file.sha256.clone()));
        let request = self
            .request(Method::POST, &action)
            .header(DIGEST, &file.sha256)
            .header("content-type", content_type(key))
            // One that is begun twice is ended once, and the other is not seen.
            .repeat(Repeat::Safe);
        let begun = self.client.send(&request).map_err(|e| ConnectorError::from(e).hint_on_refusal(HINT))?;
        let text = String::from_utf8_lossy(&begun.body).into_owned();
        let begun = CreateMultipartUpload::parse_response(&text).map_err(|_| not_s3(&request))?;
        let id = begun.upload_id();

        let length = PART.max(file.size.div_ceil(PARTS));
        let offsets: Vec<u64> = (0..file.size.div_ceil(length)).map(|n| n * length).collect();
        let sent = in_parallel(&offsets, PARALLEL, |offset| {
            let number = u16::try_from(offset / length + 1).unwrap_or(u16::MAX);
            let action = self.bucket.upload_part(Some(&self.credentials), key, number, id);
            let request =
                self.request(Method::PUT, &action).file(&file.path, *offset, length.min(file.size - offset));
            self.client.send(&request).map(|answer| etag(&answer))
        });
        let finished = sent
            .into_iter()
            .collect::<Result<Vec<String>, _>>()
            .map_err(ConnectorError::from)
            .and_then(|etags| {
                let action = self.bucket.complete_multipart_upload(
                    Some(&self.credentials),
                    key,
                    id,
                    etags.iter().map(String::as_str),
                );
                let request = self.request(Method::POST, &action).repeat(Repeat::Safe);
                let body = action.body();
                let request = with_condition(request).header("content-type", "application/xml").bytes(body);
                let answer = self.client.send(&request).map_err(|error| exists(error.into(), key))?;
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                // The status is a success before the server knows whether it is one.
                let done = CompleteMultipartUploadResponse::parse(&text);
                done.map(|done| done.etag().trim_matches('"').to_owned()).map_err(|_| {
                    ConnectorError::new(format!(
                        "{} did not put the parts together: {}",
                        request.host(),
                        text.chars().take(300).collect::<String>()
                    ))
                })
            });
        if finished.is_err() {
            let action = self.bucket.abort_multipart_upload(Some(&self.credentials), key, id);
            // What is left is removed by the bucket's own rules, if at all.
            let _ = self.client.send(&self.request(Method::DELETE, &action));
        }
        finished
    }

    /// All objects below a prefix.
    fn list(&self, prefix: &str, limit: usize) -> Result<Vec<Object>, ConnectorError> {
        let (mut objects, mut token) = (Vec::new(), None);
        loop {
            let mut action = self.bucket.list_objects_v2(Some(&self.credentials));
            action.with_prefix(prefix);
            if let Some(token) = token.take() {
                let token: String = token;
                action.with_continuation_token(token);
            }
            let request = self.request(Method::GET, &action);
            let answer = self
                .client
                .send(&request)
                .map_err(|error| ConnectorError::from(error).hint_on_refusal(HINT))?;
            let page = ListObjectsV2::parse_response(&String::from_utf8_lossy(&answer.body))
                .map_err(|_| not_s3(&request))?;
            objects.extend(page.contents.into_iter().map(|object| Object {
                key: object.key,
                size: object.size.unwrap_or_default(),
                etag: object.etag.unwrap_or_default().trim_matches('"').to_owned(),
            }));
            if objects.len() > limit {
                return Err(ConnectorError::new(format!(
                    "there are more than {limit} objects below {prefix:?}: name a smaller prefix"
                )));
            }
            match page.next_continuation_token {
                Some(next) if !next.is_empty() => token = Some(next),
                _ => return Ok(objects),
            }
        }
    }
}

/// An object of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Object {
    key: String,
    size: u64,
    etag: String,
}

fn etag(answer: &Answer) -> String {
    answer.header("etag").unwrap_or_default().trim_matches('"').to_owned()
}

fn not_s3(request: &Request) -> ConnectorError {
    ConnectorError::new(format!(
        "{} answered something that is not S3: is `agents.s3.base_url` right?",
        request.host()
    ))
}

fn exists(error: ConnectorError, key: &str) -> ConnectorError {
    match error.status {
        Some(409 | 412) => already(key),
        _ => error.hint_on_refusal(HINT),
    }
}

fn already(key: &str) -> ConnectorError {
    ConnectorError::new(format!(
        "there is an object {key:?} already, or it was changed meanwhile: `mode: replace` replaces it"
    ))
}

/// Result of pulling an object or a prefix.
pub(crate) struct PullResult {
    pub(crate) entry: Entry,
    pub(crate) etag: Option<String>,
    pub(crate) sha256: Option<String>,
}

/// Fetches an object to a file, or all objects below a prefix to a directory. `None` if the object has the ETag of an earlier fetch.
/// `known` gives the ETag under which a file of the directory was fetched before.
pub(crate) fn fetch(
    cx: &Context<'_>,
    location: &Location,
    path: &Utf8Path,
    etag_before: Option<&str>,
    known: &(dyn Fn(&Utf8Path) -> Option<String> + Sync),
) -> Result<Option<PullResult>, ConnectorError> {
    let access = Access::open(cx, &location.bucket)?;
    if location.is_prefix() {
        return fetch_all(cx, &access, location, path, known).map(Some);
    }
    let mut request = access.get(&location.key);
    if let Some(etag) = etag_before {
        request = request.header("if-none-match", format!("\"{etag}\""));
    }
    let Some((entry, etag, sha256)) = fetch_one(cx, &access, &request, &location.url(), path)? else {
        return Ok(None);
    };
    let entry = entry.with("etag", etag.clone());
    Ok(Some(PullResult { entry, etag: Some(etag), sha256: Some(sha256) }))
}

fn fetch_one(
    cx: &Context<'_>,
    access: &Access<'_>,
    request: &Request,
    url: &str,
    path: &Utf8Path,
) -> Result<Option<(Entry, String, String)>, ConnectorError> {
    let dir = path.parent().unwrap_or(path);
    std::fs::create_dir_all(dir).map_err(|error| file_error("make", dir, &error))?;
    let progress = crate::progress::Bytes::new(&*cx.progress, url);
    let download = access
        .client
        .download(request, dir.as_std_path(), cx.bounds.file, &|done, total| progress.at(done, total));
    let download = download.map_err(|error| {
        let error = ConnectorError::from(error);
        if error.is_not_found() {
            return ConnectorError { message: format!("there is no object {url}"), status: error.status };
        }
        error.hint_on_refusal(HINT)
    })?;
    let Some(download) = download else { return Ok(None) };
    let etag = download.header("etag").unwrap_or_default().trim_matches('"').to_owned();
    let modified = download.header("last-modified").map(str::to_owned);
    let entry = Entry {
        reference: url.to_owned(),
        file: cx.shown(path),
        size: download.size,
        content_type: download.content_type.clone(),
        url: Some(url.to_owned()),
        ..Entry::default()
    };
    let sha256 = download.sha256.clone();
    download.keep(path.as_std_path()).map_err(|error| file_error("write", path, &error))?;
    Ok(Some((entry.with("last_modified", modified), etag, sha256)))
}

fn fetch_all(
    cx: &Context<'_>,
    access: &Access<'_>,
    location: &Location,
    dir: &Utf8Path,
    known: &(dyn Fn(&Utf8Path) -> Option<String> + Sync),
) -> Result<PullResult, ConnectorError> {
    let objects = access.list(&location.key, cx.bounds.files)?;
    // Consoles make objects of no bytes for directories.
    let objects: Vec<Object> = objects.into_iter().filter(|object| !object.key.ends_with('/')).collect();
    if objects.is_empty() {
        return Err(ConnectorError::new(format!("there are no objects below {}", location.url())));
    }
    let mut places = Vec::with_capacity(objects.len());
    for object in objects {
        let relative = inside(&object.key[location.key.len()..])?;
        places.push((relative, object));
    }
    crate::folder::check_no_conflicts(places.iter().map(|(place, _)| place.as_path()))?;
    std::fs::create_dir_all(dir).map_err(|error| file_error("make", dir, &error))?;
    (cx.progress)(&format!("{}: {} objects", location.url(), places.len()));
    let results = in_parallel(&places, cx.bounds.parallel, |(place, object)| {
        let path = dir.join(place);
        let url = format!("s3://{}/{}", location.bucket, object.key);
        let is_there = path.is_file() && known(place).is_some_and(|etag| etag == object.etag);
        let file = json!({"ref": url, "file": cx.shown(&path), "size": object.size, "etag": object.etag});
        if is_there {
            return Ok(file);
        }
        fetch_one(cx, access, &access.get(&object.key), &url, &path).map(|_| file)
    });
    let files = results.into_iter().collect::<Result<Vec<Value>, _>>()?;
    crate::folder::remove_others(
        dir,
        &places.iter().map(|(place, _)| place.clone()).collect::<Vec<Utf8PathBuf>>(),
    )?;
    let total = places.iter().map(|(_, object)| object.size).sum();
    let entry = Entry {
        reference: location.url(),
        file: cx.shown(dir),
        size: total,
        url: Some(location.url()),
        ..Entry::default()
    };
    Ok(PullResult { entry: entry.with("files", Value::Array(files)), etag: None, sha256: None })
}

/// The connector.
pub(crate) struct S3;

impl Service for S3 {
    fn fetch(&self, cx: &Context<'_>, source: &Source, file: &Utf8Path) -> Result<Entry, ConnectorError> {
        let location = Location::parse(source.wanted()?)?;
        let pulled = fetch(cx, &location, file, None, &|_| None)?;
        let entry = pulled
            .map(|pulled| pulled.entry)
            .ok_or_else(|| ConnectorError::new("the server says that nothing changed"))?;
        Ok(Entry { reference: source.wanted()?.to_owned(), ..entry })
    }

    fn publish(
        &self,
        cx: &Context<'_>,
        target: &Target,
        file: &LocalFile,
        intent: &mut Intent<'_>,
    ) -> Result<Entry, ConnectorError> {
        let mut location = Location::parse(target.wanted()?)?;
        if location.is_prefix() {
            // A push names the object; a connector's `name` is that of its entry.
            let name = target.to.as_ref().and(target.name.as_deref()).unwrap_or(file.name());
            location.key.push_str(inside(name)?.as_str());
        }
        let access = Access::open(cx, &location.bucket)?;
        let there = access.head(&location.key)?;
        let entry = |etag: String, size: u64| {
            let entry = Entry {
                reference: target.wanted().unwrap_or_default().to_owned(),
                file: cx.shown(&file.path),
                size,
                content_type: Some(content_type(&location.key).to_owned()),
                url: Some(location.url()),
                ..Entry::default()
            };
            entry.with("etag", etag).with("bucket", location.bucket.clone()).with("key", location.key.clone())
        };
        // An interrupted try has written it after all.
        if let (Some(answer), Some(expected)) = (&there, intent.earlier("sha256"))
            && answer.header(DIGEST) == Some(expected)
        {
            return Ok(entry(etag(answer), file.size));
        }
        match (target.mode(), &there) {
            (Mode::Create, Some(_)) => Err(already(&location.key)),
            (Mode::Create, None) => {
                intent.note(json!({"sha256": file.sha256}))?;
                Ok(entry(access.put(&location.key, file, Some(("if-none-match", "*")))?, file.size))
            }
            (Mode::Replace, _) | (Mode::Append, None) => {
                intent.note(json!({"sha256": file.sha256}))?;
                Ok(entry(access.put(&location.key, file, None)?, file.size))
            }
            (Mode::Append, Some(answer)) => {
                let before = format!("\"{}\"", etag(answer));
                let request = access.get(&location.key).header("if-match", &before);
                let there = fetch_before(cx, access.client, &request);
                let longer = append(there.map_err(|error| exists(error, &location.key))?, file)?;
                intent.note(json!({"sha256": longer.file.sha256}))?;
                let etag = access.put(&location.key, &longer.file, Some(("if-match", &before)))?;
                Ok(entry(etag, longer.file.size))
            }
        }
    }

    fn test(&self, cx: &Context<'_>) -> Result<String, ConnectorError> {
        // The list of buckets needs a right that few keys have. Servers look at the keys before they look for a bucket: what they say of one
        // that hardly exists tells whether they took the keys.
        let access = Access::open(cx, "cliq-doctor-test")?;
        let mut action = access.bucket.list_objects_v2(Some(&access.credentials));
        action.with_max_keys(1);
        let request = access.request(Method::GET, &action);
        let taken = Ok(format!("{} takes the keys", request.host()));
        match access.client.send(&request) {
            Ok(_) => taken,
            Err(error) if error.status == Some(404) && error.message.contains("NoSuchBucket") => taken,
            Err(error) if error.status == Some(403) && error.message.contains("AccessDenied") => taken,
            Err(error) => Err(ConnectorError::from(error).hint_on_refusal(HINT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let read =
            |text: &str| Location::parse(text).map(|place| (place.bucket, place.key)).map_err(|e| e.message);
        assert_eq!(read("s3://b/a/c.txt"), Ok(("b".into(), "a/c.txt".into())));
        assert_eq!(read("b/a"), Ok(("b".into(), "a".into())));
        assert_eq!(read("s3://b"), Ok(("b".into(), String::new())));
        for text in ["", "s3://", "s3:///a", "s3://b?x/a", "a b/c"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
