//! A kubeconfig from the hub → what is needed to connect, or a refusal.
//!
//! Whoever may write Secrets in the hub must not thereby run programs in the controller, read its files, or have it send
//! credentials where nobody checks who listens. So only what is inline is taken, over TLS that is verified, and
//! everything else is refused by name. The operator's own kubeconfig is another matter: it is read as kubectl reads it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::refusal::BadKubeconfig;
use crate::source::kube::{Inline, Secret};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Config {
    current_context: Option<String>,
    #[serde(default)]
    contexts: Vec<NamedContext>,
    #[serde(default)]
    clusters: Vec<NamedCluster>,
    #[serde(default)]
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Option<Context>,
}

#[derive(Deserialize)]
struct Context {
    #[serde(default)]
    cluster: String,
    #[serde(default)]
    user: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: Option<BTreeMap<String, Value>>,
}

const NO_FILES: &str = "files of the controller are not for Secrets to name";
const INLINE_FILE: &str = "put its content into the kubeconfig with `kubectl config view --flatten`";
const NO_PROGRAMS: &str = "no program is run for a kubeconfig from the hub";
const TOKEN: &str = "put the token of a ServiceAccount or a client certificate into it (`namesake join` makes such a \
                     Secret), or give the cluster as a context of the controller's own kubeconfig";

/// Fields of a cluster that are refused: why, and what to do.
const CLUSTER: [(&str, &str, &str); 3] = [
    ("certificate-authority", NO_FILES, INLINE_FILE),
    (
        "insecure-skip-tls-verify",
        "the credentials would go to anybody who answers",
        "put the server's CA into certificate-authority-data",
    ),
    (
        "proxy-url",
        "it would have the controller connect to somebody else",
        "take it out, or give the cluster as a context of the controller's own kubeconfig",
    ),
];

/// Fields of a user that are refused.
const USER: [(&str, &str, &str); 12] = [
    ("exec", NO_PROGRAMS, TOKEN),
    ("auth-provider", NO_PROGRAMS, TOKEN),
    ("tokenFile", NO_FILES, INLINE_FILE),
    ("client-certificate", NO_FILES, INLINE_FILE),
    ("client-key", NO_FILES, INLINE_FILE),
    ("username", "no API server takes passwords any more", TOKEN),
    ("password", "no API server takes passwords any more", TOKEN),
    ("as", "what is written must be written in our own name", "take it out"),
    ("as-uid", "what is written must be written in our own name", "take it out"),
    ("as-groups", "what is written must be written in our own name", "take it out"),
    ("as-user-extra", "what is written must be written in our own name", "take it out"),
    // An old spelling that some tools still write.
    ("token-file", NO_FILES, INLINE_FILE),
];

/// What the kubeconfig `text`, found under `key`, says of its current context. `place` names both for people.
pub(super) fn inline(text: &str, key: &str, place: &str) -> Result<Inline, BadKubeconfig> {
    let unreadable = |message: String| BadKubeconfig::Unreadable { key: key.to_owned(), message };
    let incomplete = |what: String| BadKubeconfig::Incomplete { key: key.to_owned(), what };
    let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let config: Config = serde_saphyr::from_str(text).map_err(|e| unreadable(first_line(e.to_string())))?;

    let context = match config.current_context.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => config
            .contexts
            .iter()
            .find(|c| c.name == name)
            .ok_or_else(|| incomplete(format!("its current-context {name:?} is not among its contexts")))?,
        None => match config.contexts.as_slice() {
            [only] => only,
            contexts => {
                return Err(incomplete(format!("no current-context says which of its {} is meant", contexts.len())));
            }
        },
    };
    let context =
        context.context.as_ref().ok_or_else(|| incomplete(format!("its context {:?} is empty", context.name)))?;
    let cluster = config.clusters.iter().find(|c| c.name == context.cluster).and_then(|c| c.cluster.as_ref());
    let cluster = cluster.ok_or_else(|| incomplete(format!("there is no cluster {:?} in it", context.cluster)))?;
    let user = config.users.iter().find(|u| u.name == context.user).and_then(|u| u.user.as_ref());
    let user = user.ok_or_else(|| incomplete(format!("there is no user {:?} in it", context.user)))?;

    for (fields, table, kind, name) in
        [(cluster, &CLUSTER[..], "cluster", &context.cluster), (user, &USER[..], "user", &context.user)]
    {
        if let Some((field, why, remedy)) = table.iter().find(|(field, ..)| fields.get(*field).is_some_and(is_set)) {
            let field = format!("{field} of {kind} {name:?}");
            return Err(BadKubeconfig::Refused { key: key.to_owned(), field, why, remedy });
        }
    }

    let text = |fields: &BTreeMap<String, Value>, field: &str| match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Some(_) => Err(unreadable(format!("{field} is no text"))),
    };
    let server = text(cluster, "server")?.ok_or_else(|| incomplete("it names no server".to_owned()))?;
    if !is_https(&server) {
        return Err(BadKubeconfig::Refused {
            key: key.to_owned(),
            field: format!("server {server:?}"),
            why: "it is no https:// URL of a host, and the credentials would be readable on the way",
            remedy: "give the https:// URL of the API server",
        });
    }
    let inline = Inline {
        place: place.to_owned(),
        server,
        server_name: text(cluster, "tls-server-name")?,
        ca: text(cluster, "certificate-authority-data")?,
        token: text(user, "token")?.map(Secret::new),
        certificate: text(user, "client-certificate-data")?,
        key: text(user, "client-key-data")?.map(Secret::new),
    };
    match (&inline.token, &inline.certificate, &inline.key) {
        (None, None, None) => {
            Err(incomplete(format!("user {:?} has neither token nor client-certificate-data", context.user)))
        }
        (_, Some(_), None) => {
            Err(incomplete(format!("user {:?} has a client certificate without client-key-data", context.user)))
        }
        (_, None, Some(_)) => {
            Err(incomplete(format!("user {:?} has a key without client-certificate-data", context.user)))
        }
        _ => Ok(inline),
    }
}

/// Whether a field asks for anything.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        _ => true,
    }
}

/// Whether it is a URL that is spoken to over TLS, of a host, without credentials of its own.
fn is_https(server: &str) -> bool {
    server.parse::<http::Uri>().is_ok_and(|url| {
        url.scheme_str() == Some("https")
            && url
                .authority()
                .is_some_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'))
    })
}
