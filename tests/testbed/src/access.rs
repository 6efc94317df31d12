//! Who may speak to a cluster: its kubeconfig files, tokens and clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::error::{Doing, Error, Result};
use crate::ports;

/// A kubeconfig with everything inline. JSON is YAML, so the file needs no other writer.
pub(crate) fn kubeconfig(name: &str, user: &str, server: &str, ca_pem: &str, token: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {
            "server": server,
            "certificate-authority-data": base64(ca_pem.as_bytes()),
        }}],
        "users": [{"name": format!("{name}-{user}"), "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": format!("{name}-{user}")}}],
    })
}

/// Who may speak to a new cluster.
pub(crate) struct Users {
    pub(crate) admin_token: String,
}

/// Gives each of them a token, and writes the API server's list of tokens and a kubeconfig for each.
pub(crate) fn write_users(dir: &Path, cluster: &str, with_node: bool, port: u16, ca_pem: &str) -> Result<Users> {
    let node = crate::site::node_name(cluster);
    let mut users = vec![
        ("admin", "admin".to_owned(), ",\"system:masters\""),
        ("controllers", "system:kube-controller-manager".to_owned(), ""),
    ];
    if with_node {
        users.push(("scheduler", "system:kube-scheduler".to_owned(), ""));
        users.push(("proxy", "system:kube-proxy".to_owned(), ""));
        users.push(("node", format!("system:node:{node}"), ",\"system:nodes\""));
    }
    let server = format!("https://127.0.0.1:{port}");
    let mut tokens = String::new();
    let mut admin_token = String::new();
    for (user, name, groups) in users {
        let token = ports::random_hex()?;
        tokens.push_str(&format!("{token},{name},{user}{groups}\n"));
        write_json(&dir.join(format!("{user}.kubeconfig")), &kubeconfig(cluster, user, &server, ca_pem, &token))?;
        if user == "admin" {
            admin_token = token;
        }
    }
    fs::write(dir.join("tokens.csv"), tokens).doing(dir.display())?;
    Ok(Users { admin_token })
}

pub(crate) fn write_json(path: &Path, value: &Value) -> Result<()> {
    // Indented, because people open these files.
    let text = serde_json::to_string_pretty(value).doing(path.display())?;
    fs::write(path, text + "\n").doing(path.display())
}

pub(crate) fn read_json(path: &Path) -> Result<Value> {
    serde_json::from_str(&fs::read_to_string(path).doing(path.display())?).doing(path.display())
}

/// One kubeconfig of several, with all their contexts; the first one's is the current one.
pub fn merge_kubeconfigs<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Result<String> {
    let mut merged: Option<Value> = None;
    for file in files {
        let next = read_json(file.as_ref())?;
        match &mut merged {
            None => merged = Some(next),
            Some(all) => {
                for list in ["clusters", "users", "contexts"] {
                    let more = next[list].as_array().cloned().unwrap_or_default();
                    if let Some(have) = all[list].as_array_mut() {
                        have.extend(more);
                    }
                }
            }
        }
    }
    let merged = merged.ok_or_else(|| Error::new("no kubeconfig to merge"))?;
    serde_json::to_string_pretty(&merged).doing("merging kubeconfigs")
}

impl Cluster {
    /// A client with all rights (`system:masters`), on the runtime that calls.
    pub fn admin(&self) -> Client {
        // Making a client cannot fail with a certificate and an address that served `wait_ready` already.
        self.client(self.admin_token()).expect("an admin client of a started cluster")
    }

    /// A client with this bearer token, on the runtime that calls.
    pub fn client(&self, token: &str) -> Result<Client> {
        let uri = self.server().parse().doing(self.server())?;
        let mut config = kube::Config::new(uri);
        config.root_cert = Some(vec![self.ca_der().to_vec()]);
        config.auth_info = serde_json::from_value(json!({"token": token})).doing("a token")?;
        config.connect_timeout = Some(Duration::from_secs(5));
        // Retries would hide from a test what the server said.
        config.default_retry = false;
        Client::try_from(config).doing(format!("a client of cluster {}", self.name()))
    }

    /// The kubeconfig of the administrator. Its only context is named like the cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir().join("admin.kubeconfig")
    }

    /// Writes a kubeconfig for a ServiceAccount, with a token of the API server's own making (TokenRequest): RBAC sees
    /// `system:serviceaccount:<namespace>:<name>`. Its only context is named like the cluster.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let token = self.service_account_token(namespace, name, Duration::from_secs(3600)).await?;
        let path = self.dir().join(format!("{namespace}-{name}.kubeconfig"));
        write_json(&path, &kubeconfig(self.name(), name, &self.server(), self.ca_pem(), &token))?;
        Ok(path)
    }

    /// A token for a ServiceAccount. The API server takes no less than 10 minutes of life.
    pub async fn service_account_token(&self, namespace: &str, name: &str, life: Duration) -> Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": life.as_secs()},
        });
        let answer = self.request("POST", &path, Some(&body)).await?;
        let token = answer["status"]["token"].as_str();
        token.map(str::to_owned).ok_or_else(|| Error::new(format!("{path}: no token in the answer")))
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, b| word << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize] as char;
            text.push(if i <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_pads_like_rfc_4648() {
        let pairs =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")];
        for (plain, coded) in pairs {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
