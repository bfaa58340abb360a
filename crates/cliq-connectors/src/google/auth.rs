//! Access to Google's services: service accounts (RFC 7523), and people through the device flow (RFC 8628).

use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use camino::{Utf8Path, Utf8PathBuf};
use cliq_http::{Client, Repeat, Request};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::file_error;
use crate::{ConnectorError, Context};

const SCOPE: &str = "https://www.googleapis.com/auth/drive";
/// OAuth scope that Google allows devices.
const DEVICE_SCOPE: &str = "https://www.googleapis.com/auth/drive.file";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const DEVICE_URI: &str = "https://oauth2.googleapis.com/device/code";

/// The key file of a service account, or of an OAuth client.
#[derive(Deserialize)]
struct KeyFile {
    client_email: Option<String>,
    private_key: Option<String>,
    token_uri: Option<String>,
    #[serde(alias = "web")]
    installed: Option<OauthClient>,
}

#[derive(Deserialize)]
struct OauthClient {
    client_id: String,
    client_secret: String,
    token_uri: Option<String>,
    /// Field for self-hosted servers. Absent from the files of Google.
    device_uri: Option<String>,
}

/// Permission that a person granted.
#[derive(Serialize, Deserialize)]
struct Grant {
    refresh_token: String,
}

/// An access token of the settings' account. It is kept until shortly before its end.
pub(super) fn token(cx: &Context<'_>) -> Result<String, ConnectorError> {
    let path = Utf8PathBuf::from(cx.required("gdrive.credentials_file", "GOOGLE_APPLICATION_CREDENTIALS")?);
    if let Some((token, end)) = cx.tokens().get(path.as_str())
        && *end > Instant::now()
    {
        return Ok(token.clone());
    }
    let file = read(&path)?;
    let request = if cx.setting("gdrive.auth_mode").as_deref() == Some("oauth") {
        refresh(cx, &file, &path)?
    } else {
        assertion(&file, &path)?
    };
    let answer = cx.client.json(&request).map_err(|error| {
        ConnectorError::from(error).within(&format!("Google rejected the credentials of {path}"))
    })?;
    let token = answer["access_token"]
        .as_str()
        .ok_or_else(|| ConnectorError::new("Google answered without an access token"))?;
    let valid = answer["expires_in"].as_u64().unwrap_or(600).saturating_sub(60);
    cx.tokens().insert(path.into_string(), (token.to_owned(), Instant::now() + Duration::from_secs(valid)));
    Ok(token.to_owned())
}

/// Whether there are credentials.
pub(super) fn has_credentials(cx: &Context<'_>) -> bool {
    cx.setting("gdrive.credentials_file").is_some()
}

fn read(path: &Utf8Path) -> Result<KeyFile, ConnectorError> {
    let text = cliq_fs::read_text(path, 1 << 20)?;
    // The error of the reader would quote the file.
    serde_json::from_str(&text).map_err(|error| {
        ConnectorError::new(format!("{path}, line {}: it is not a Google key file (JSON)", error.line()))
    })
}

fn assertion(file: &KeyFile, path: &Utf8Path) -> Result<Request, ConnectorError> {
    let wrong =
        |what: &str| ConnectorError::new(format!("{path} is not the key file of a service account: {what}"));
    let email = file.client_email.as_deref().ok_or_else(|| {
        wrong("it has no `client_email`; for an OAuth client, set `agents.gdrive.auth_mode` to oauth")
    })?;
    let pem = file.private_key.as_deref().ok_or_else(|| wrong("it has no `private_key`"))?;
    let token_uri = file.token_uri.as_deref().unwrap_or(TOKEN_URI);
    let lines: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    let der = STANDARD.decode(lines).map_err(|_| wrong("its `private_key` is not PEM"))?;
    let key =
        RsaKeyPair::from_pkcs8(&der).map_err(|_| wrong("its `private_key` is not an RSA key (PKCS#8)"))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let claims = json!({"iss": email, "scope": SCOPE, "aud": token_uri, "iat": now, "exp": now + 3600});
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(&json!({"alg": "RS256", "typ": "JWT"})), encode(&claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature)
        .map_err(|_| wrong("its `private_key` cannot sign"))?;
    let jwt = format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature));
    let fields = [("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", jwt.as_str())];
    Ok(Request::post(token_uri).form(&fields).secret(jwt.clone()).repeat(Repeat::Safe))
}

fn refresh(cx: &Context<'_>, file: &KeyFile, path: &Utf8Path) -> Result<Request, ConnectorError> {
    let client = oauth_client(file, path)?;
    let grant_file = grant_file(cx)?;
    let text = cliq_fs::read_text(&grant_file, 1 << 20).map_err(|_| {
        ConnectorError::new("you have not signed in to Google yet: `cliq auth gdrive` does it")
    })?;
    let grant: Grant = serde_json::from_str(&text).map_err(|_| {
        ConnectorError::new(format!("{grant_file} cannot be read: `cliq auth gdrive` makes it anew"))
    })?;
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", grant.refresh_token.as_str()),
        ("client_id", client.client_id.as_str()),
        ("client_secret", client.client_secret.as_str()),
    ];
    let request = Request::post(client.token_uri.as_deref().unwrap_or(TOKEN_URI)).form(&fields);
    Ok(request.secret(&grant.refresh_token).secret(&client.client_secret).repeat(Repeat::Safe))
}

fn oauth_client<'a>(file: &'a KeyFile, path: &Utf8Path) -> Result<&'a OauthClient, ConnectorError> {
    file.installed.as_ref().ok_or_else(|| {
        ConnectorError::new(format!(
            "{path} is not the file of an OAuth client: download one of the type \"TVs and limited input devices\""
        ))
    })
}

fn grant_file(cx: &Context<'_>) -> Result<Utf8PathBuf, ConnectorError> {
    let home = cx.home.as_ref().ok_or_else(|| ConnectorError::new("neither CLIQ_HOME nor HOME is set"))?;
    Ok(home.join("google-grant.json"))
}

/// Steps that a person must take to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DevicePrompt {
    /// The page to open.
    pub url: String,
    /// The code to enter there.
    pub code: String,
}

/// Signs a person in through the device flow. `show` gets what the person has to do; the call returns once that is done, or the time for
/// it is over. Gives the file that keeps the grant.
///
/// # Errors
/// The settings have no OAuth client, Google refuses, or the person does.
pub fn sign_in(cx: &Context<'_>, show: &dyn Fn(&DevicePrompt)) -> Result<Utf8PathBuf, ConnectorError> {
    let path = Utf8PathBuf::from(cx.required("gdrive.credentials_file", "GOOGLE_APPLICATION_CREDENTIALS")?);
    let file = read(&path)?;
    let client = oauth_client(&file, &path)?;
    let fields = [("client_id", client.client_id.as_str()), ("scope", DEVICE_SCOPE)];
    let begun =
        cx.client.json(&Request::post(client.device_uri.as_deref().unwrap_or(DEVICE_URI)).form(&fields))?;
    let text =
        |value: &Value, keys: &[&str]| keys.iter().find_map(|key| value[*key].as_str()).map(str::to_owned);
    let incomplete = || ConnectorError::new("Google answered without a code for the device");
    let device_code = text(&begun, &["device_code"]).ok_or_else(incomplete)?;
    show(&DevicePrompt {
        url: text(&begun, &["verification_url", "verification_uri"]).ok_or_else(incomplete)?,
        code: text(&begun, &["user_code"]).ok_or_else(incomplete)?,
    });
    let mut pause = Duration::from_secs(begun["interval"].as_u64().unwrap_or(5).clamp(1, 60));
    let end = Instant::now() + Duration::from_secs(begun["expires_in"].as_u64().unwrap_or(1800).min(3600));
    let fields = [
        ("client_id", client.client_id.as_str()),
        ("client_secret", client.client_secret.as_str()),
        ("device_code", device_code.as_str()),
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
    ];
    let request = Request::post(client.token_uri.as_deref().unwrap_or(TOKEN_URI))
        .form(&fields)
        .secret(&client.client_secret);
    let once = Client::new(cliq_http::Limits { tries: 1, ..cliq_http::Limits::default() });
    while Instant::now() < end && !cx.client.is_cancelled() {
        std::thread::sleep(pause);
        match once.json(&request) {
            Ok(answer) => {
                let refresh_token = text(&answer, &["refresh_token"]).ok_or_else(incomplete)?;
                let file = grant_file(cx)?;
                write_private(&file, &Grant { refresh_token })?;
                return Ok(file);
            }
            Err(error) if error.message.contains("authorization_pending") || error.status == Some(428) => {}
            Err(error) if error.message.contains("slow_down") => pause += Duration::from_secs(5),
            Err(error) if error.message.contains("access_denied") => {
                return Err(ConnectorError::new("access was refused on the page"));
            }
            Err(error) if error.is_transient => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ConnectorError::new("the code has expired: begin again"))
}

/// Writes a file that only its owner reads.
fn write_private(path: &Utf8Path, grant: &Grant) -> Result<(), ConnectorError> {
    use std::io::Write;
    let dir = path.parent().unwrap_or(path);
    let failed = |error: &std::io::Error| file_error("write", path, error);
    std::fs::create_dir_all(dir).map_err(|error| failed(&error))?;
    // Temporary files are their owner's alone.
    let mut part = tempfile::NamedTempFile::new_in(dir).map_err(|error| failed(&error))?;
    part.write_all(json!(grant).to_string().as_bytes()).map_err(|error| failed(&error))?;
    part.persist(path).map_err(|error| failed(&error.error))?;
    Ok(())
}
