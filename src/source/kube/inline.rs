//! Credentials that are at hand, such as those of a Secret: an address, a CA and a token or certificate, and nothing
//! that would have to be read or run.

use std::fmt;

use kube::Config;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};

use super::access::{KubeError, chain};

/// Text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` out of logs.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// How to reach an API server with what is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inline {
    /// Where this comes from, for people.
    pub place: String,
    /// The URL.
    pub server: String,
    /// The name in the server's certificate, where it is not the one in the URL.
    pub server_name: Option<String>,
    /// The CAs in PEM, in base64; none are those of the system.
    pub ca: Option<String>,
    /// A bearer token.
    pub token: Option<Secret>,
    /// A client certificate in PEM, in base64.
    pub certificate: Option<String>,
    /// Its key, in the same way.
    pub key: Option<Secret>,
}

impl Inline {
    pub(super) async fn config(&self) -> Result<Config, KubeError> {
        let name = "member".to_owned();
        // Made anew of these fields alone, so there is nothing in it that we have not looked at.
        let made = Kubeconfig {
            clusters: vec![NamedCluster {
                name: name.clone(),
                cluster: Some(Cluster {
                    server: Some(self.server.clone()),
                    certificate_authority_data: self.ca.clone(),
                    tls_server_name: self.server_name.clone(),
                    ..Cluster::default()
                }),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: name.clone(),
                auth_info: Some(AuthInfo {
                    token: self.token.as_ref().map(|token| token.reveal().to_owned().into()),
                    client_certificate_data: self.certificate.clone(),
                    client_key_data: self.key.as_ref().map(|key| key.reveal().to_owned().into()),
                    ..AuthInfo::default()
                }),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: name.clone(),
                context: Some(Context { cluster: name.clone(), user: Some(name.clone()), ..Context::default() }),
                ..NamedContext::default()
            }],
            current_context: Some(name),
            ..Kubeconfig::default()
        };
        let made = Config::from_custom_kubeconfig(made, &KubeConfigOptions::default()).await;
        let mut config = made.map_err(|e| KubeError::Client {
            server: self.server.clone(),
            message: chain(&e),
            access: self.place.clone(),
        })?;
        // It would be taken from our own environment.
        config.proxy_url = None;
        Ok(config)
    }
}
