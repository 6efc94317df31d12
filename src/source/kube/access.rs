//! Where the API server is and who we are there: the pod's own service account, or a kubeconfig.

use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::inline::Inline;

/// How long a connection may take. The default of 30 s would hide a dead API server from readiness for as long.
const CONNECT: Duration = Duration::from_secs(3);

/// The folder of a pod's service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// How to reach the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// As the pod's service account, at the address Kubernetes puts into the pod's environment.
    InCluster,
    /// As a kubeconfig says.
    Kubeconfig {
        /// The file.
        file: PathBuf,
        /// The context in it; none is the current one.
        context: Option<String>,
    },
    /// With credentials that are at hand: nothing is read and nothing is run for them.
    Inline(Inline),
}

/// Where an API server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its URL.
    pub server: String,
    /// The name in its certificate, where it is not the one in the URL.
    pub server_name: Option<String>,
    /// Its CAs in PEM, in base64; none are those of the system.
    pub ca: Option<String>,
    /// Whether it is reached through a proxy.
    pub proxied: bool,
}

/// kubectl's own choice: the first file of $KUBECONFIG that has `context`, or is there at all where none is asked for;
/// else `~/.kube/config`.
#[must_use]
pub fn default_kubeconfig(context: Option<&str>) -> PathBuf {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let files: Vec<_> = std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
    let has = |file: &&PathBuf| {
        context.is_none_or(|name| {
            Kubeconfig::read_from(file).is_ok_and(|read| read.contexts.iter().any(|c| c.name == name))
        })
    };
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".kube/config");
    files.iter().find(has).or(files.first()).cloned().unwrap_or_else(home)
}

/// Why there is no client. `Display` says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeError {
    /// Not in a pod, or in one without service account.
    #[error(
        "there is no service account of a pod here ({message}); run in a pod with automountServiceAccountToken, or \
         give --kubeconfig FILE, or --from DIR"
    )]
    NotInCluster {
        /// What is missing.
        message: String,
    },
    /// The kubeconfig can't be read.
    #[error("kubeconfig {}: {message}; give a readable kubeconfig with --kubeconfig", file.display())]
    File {
        /// The kubeconfig.
        file: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The kubeconfig has no current context, and none was given.
    #[error("kubeconfig {} has no current-context; give one of {known} with --context, or with --hub or --member of the controller", file.display())]
    NoCurrentContext {
        /// The kubeconfig.
        file: PathBuf,
        /// The contexts it has.
        known: String,
    },
    /// The context is not there.
    #[error("kubeconfig {} has no context {context:?}; give one of {known} with --context, or with --hub or --member of the controller", file.display())]
    NoContext {
        /// The kubeconfig.
        file: PathBuf,
        /// What was asked for.
        context: String,
        /// The contexts it has.
        known: String,
    },
    /// The context's cluster or user can't be used.
    #[error("kubeconfig {}, context {context:?}: {message}; correct its cluster and user", file.display())]
    Context {
        /// The kubeconfig.
        file: PathBuf,
        /// The context.
        context: String,
        /// What is wrong.
        message: String,
    },
    /// No client can be made of what was read.
    #[error("no client for the API server {server}: {message}; correct the certificates and credentials of {access}")]
    Client {
        /// Its address.
        server: String,
        /// What is wrong.
        message: String,
        /// Where they come from.
        access: String,
    },
}

impl Access {
    /// Reads what is needed to connect, from the files as they are now.
    pub(super) async fn config(&self) -> Result<Config, KubeError> {
        let mut config = match self {
            Self::InCluster => Config::incluster().map_err(|e| KubeError::NotInCluster { message: chain(&e) })?,
            Self::Kubeconfig { file, context } => kubeconfig(file, context.as_deref()).await?,
            Self::Inline(inline) => inline.config().await?,
        };
        config.connect_timeout = Some(CONNECT);
        // The client would hide 429, 503 and 504 from us for seconds; we retry ourselves, and say so.
        config.default_retry = false;
        Ok(config)
    }

    /// A client, for single requests: it does not follow renewed credentials.
    ///
    /// # Errors
    /// Where the credentials can't be read, or no client can be made of them.
    pub async fn client(&self) -> Result<kube::Client, KubeError> {
        Ok(super::connect::connect(self).await?.0)
    }

    /// Where it leads, without any credentials.
    ///
    /// # Errors
    /// Where what says it can't be read.
    pub async fn endpoint(&self) -> Result<Endpoint, KubeError> {
        let config = self.config().await?;
        let pem = config.root_cert.filter(|certificates| !certificates.is_empty()).map(|certificates| {
            let one = |der: Vec<u8>| {
                let text = serde_json::to_value(k8s_openapi::ByteString(der)).ok();
                let text = text.as_ref().and_then(|text| text.as_str()).unwrap_or_default().to_owned();
                format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
            };
            certificates.into_iter().map(one).collect::<String>()
        });
        let base64 = |text: String| {
            let text = serde_json::to_value(k8s_openapi::ByteString(text.into_bytes())).ok()?;
            text.as_str().map(str::to_owned)
        };
        Ok(Endpoint {
            server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            server_name: config.tls_server_name,
            ca: pem.and_then(base64),
            proxied: config.proxy_url.is_some(),
        })
    }

    /// Something that differs when the files that were read have been replaced.
    pub(super) fn stamp(&self) -> Stamp {
        let files = match self {
            // Kubernetes renews the token and the CA bundle in place. The client re-reads both by itself, but only
            // once a minute.
            Self::InCluster => {
                vec![Path::new(SERVICE_ACCOUNT).join("token"), Path::new(SERVICE_ACCOUNT).join("ca.crt")]
            }
            Self::Kubeconfig { file, .. } => {
                let mut files = Kubeconfig::read_from(file).map(|config| named_files(&config)).unwrap_or_default();
                files.push(file.clone());
                files
            }
            Self::Inline(_) => Vec::new(),
        };
        Stamp(files.iter().map(|file| look(file)).collect())
    }

    /// For people: where credentials come from.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::InCluster => "the pod's service account".to_owned(),
            Self::Kubeconfig { file, .. } => format!("kubeconfig {}", file.display()),
            Self::Inline(inline) => inline.place.clone(),
        }
    }
}

/// The files behind an [`Access`], as the file system sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(Vec<Option<File>>);

/// Device, inode, time of the last change to the second and below it, and length.
type File = (u64, u64, i64, i64, u64);

fn look(file: &Path) -> Option<File> {
    let meta = fs::metadata(file).ok()?;
    Some((meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
}

/// The files that a kubeconfig names; [`Kubeconfig::read_from`] has made their paths absolute.
fn named_files(config: &Kubeconfig) -> Vec<PathBuf> {
    let clusters = config.clusters.iter().filter_map(|c| c.cluster.as_ref()?.certificate_authority.clone());
    let users = config.auth_infos.iter().filter_map(|u| u.auth_info.as_ref()).flat_map(|user| {
        [user.client_certificate.clone(), user.client_key.clone(), user.token_file.clone()].into_iter().flatten()
    });
    clusters.chain(users).map(PathBuf::from).collect()
}

async fn kubeconfig(file: &Path, context: Option<&str>) -> Result<Config, KubeError> {
    let read =
        Kubeconfig::read_from(file).map_err(|e| KubeError::File { file: file.to_owned(), message: chain(&e) })?;
    let known = || {
        let names: Vec<_> = read.contexts.iter().map(|c| c.name.as_str()).collect();
        if names.is_empty() { "(it has none)".to_owned() } else { names.join(", ") }
    };
    let context = match context.or(read.current_context.as_deref()).filter(|name| !name.is_empty()) {
        Some(context) => context.to_owned(),
        None => return Err(KubeError::NoCurrentContext { file: file.to_owned(), known: known() }),
    };
    let Some(cluster) = read.contexts.iter().find(|c| c.name == context).and_then(|c| c.context.as_ref()) else {
        return Err(KubeError::NoContext { file: file.to_owned(), context, known: known() });
    };
    // The client has no proxy built in. It takes one from HTTPS_PROXY too, heedless of NO_PROXY, and then gives up:
    // only a proxy that the kubeconfig itself asks for is worth that error.
    let proxied = read
        .clusters
        .iter()
        .filter(|c| c.name == cluster.cluster)
        .filter_map(|c| c.cluster.as_ref()?.proxy_url.as_ref())
        .any(|url| !url.is_empty());
    let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
    let mut config = Config::from_custom_kubeconfig(read, &options).await.map_err(|e| KubeError::Context {
        file: file.to_owned(),
        context,
        message: chain(&e),
    })?;
    if !proxied {
        config.proxy_url = None;
    }
    Ok(config)
}

/// An error with its causes in one line: the outermost alone often says no more than "client error", and what a YAML
/// parser draws below its first line is no text for a log.
pub(crate) fn chain(error: &dyn Error) -> String {
    let line = |error: &dyn Error| error.to_string().lines().next().unwrap_or_default().to_owned();
    let mut text = line(error);
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = line(cause);
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
