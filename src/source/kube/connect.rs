//! Clients: the connections to an API server, which notice when nobody is there any more.

use std::sync::Arc;
use std::time::Duration;

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

use super::access::{Access, KubeError, chain};

/// How long credentials may take: a kubeconfig can have a program run for them, and programs hang.
const CREDENTIALS: Duration = Duration::from_secs(20);

/// A connection over which nothing has come for so long is asked whether it still stands (TCP keepalive, RFC 9293
/// §3.8.4). A watch can be silent for most of a minute, so that a network which swallows packets, or a machine that lost
/// its power, could not be told from a quiet cluster for as long.
const QUIET: Duration = Duration::from_secs(5);

/// How long after a question that got no answer it is asked again.
const AGAIN: Duration = Duration::from_secs(3);

/// So many in a row without an answer end the connection: 14 s after the last sign of life.
const UNANSWERED: u32 = 3;

/// A client for the API server at `access`, with its host.
pub(super) async fn connect(access: &Access) -> Result<(Client, Arc<str>), KubeError> {
    let config = access.config().await?;
    let server = config.cluster_url.to_string();
    let host: Arc<str> = host(&config.cluster_url).into();
    // A kubeconfig may have a program run for its credentials, which takes its time.
    let client = tokio::task::spawn_blocking(move || client(config).map_err(|e| chain(&e)));
    let client = match tokio::time::timeout(CREDENTIALS, client).await {
        Ok(made) => made.unwrap_or_else(|panicked| Err(panicked.to_string())),
        Err(_) => Err(format!("no credentials within {} s", CREDENTIALS.as_secs())),
    };
    let client = client.map_err(|message| KubeError::Client { server, message, access: access.describe() })?;
    Ok((client, host))
}

/// kube's own client, but for keepalive, which it does not offer, and for its log lines.
fn client(config: Config) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        return Client::try_from(config); // an error: proxies are not built in
    }
    // First, since a program that is run for credentials and fails is named here alone: TLS runs it too, and is silent.
    let auth = config.auth_layer()?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false); // what is around it does TLS
    tcp.set_keepalive(Some(QUIET));
    tcp.set_keepalive_interval(Some(AGAIN));
    tcp.set_keepalive_retries(Some(UNANSWERED));
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_write_timeout(config.write_timeout);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(auth)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Http::builder(TokioExecutor::new()).build(connector));
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}

/// Host and port, as client-go writes them into its metrics.
fn host(url: &http::Uri) -> String {
    let host = url.host().unwrap_or_default();
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    format!("{host}:{port}")
}
