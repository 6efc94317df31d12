//! `join`: a cluster becomes a member.

use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::api::{Cluster, EnrolError};
use super::leave::remove;
use super::manifests::{self, ANNOTATION_ACCESS, ANNOTATION_UID, Grant, Placed, READ, Rights};
use super::{Say, crds};
use crate::api;
use crate::controller::members::{self, BadId, IdRules};
use crate::model::ClusterId;
use crate::source::kube::{Access, Inline, Secret};

/// How long the member may take to make a token, and to let its account do what it may.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Join {
    /// The member's context, by which the operator reaches it.
    pub access: Access,
    /// The id; none where the member's ClusterProperty says it.
    pub id: Option<String>,
    /// The URL at which the hub reaches the member, where it is not the operator's.
    pub server: Option<String>,
    /// Our namespace in both clusters.
    pub namespace: String,
    /// What is asked of ids.
    pub rules: IdRules,
    /// The hub's controller shall only read in the member.
    pub read_only: bool,
    /// What the controller may do besides what it does by default.
    pub grants: Vec<Grant>,
}

/// Makes `member` a member of `hub`; its id.
///
/// # Errors
/// At the first step that can't be done. It may be repeated.
pub async fn join(member: &Cluster, hub: &Cluster, wanted: &Join, say: &mut Say<'_>) -> Result<ClusterId, EnrolError> {
    let id = id(member, wanted).await?;
    let uid = uid(member).await?;
    may_register(hub, wanted, &id, &uid).await?;
    let rights =
        if wanted.read_only { Rights::Read(self::uid(hub).await?) } else { Rights::Write(wanted.grants.clone()) };
    say(&format!("{}: joins as cluster {id}", member.name));

    crds::install(member, say).await?;
    make(member, &manifests::namespace(&wanted.namespace), say).await?;
    for object in manifests::account(&wanted.namespace, &rights) {
        make(member, &object, say).await?;
    }
    // What was granted before and is not any more.
    if !wanted.read_only && !wanted.grants.contains(&Grant::SourceLeases) {
        for placed in manifests::source_leases(&wanted.namespace).iter().rev() {
            remove(member, &placed.path, &placed.what, say).await?;
        }
    }
    let inline = credentials(member, wanted, &rights).await?;

    make(hub, &manifests::namespace(&wanted.namespace), say).await?;
    make(hub, &manifests::registration(&wanted.namespace, &id, &uid, &rights, &inline), say).await?;
    if wanted.server.is_none() && is_loopback(&inline.server) {
        say(&format!(
            "{}: the hub will look for it at {}, which leads back to whoever asks: if the controller does not run on \
             this machine, repeat the command with --server URL",
            hub.name, inline.server
        ));
    }
    let how = if wanted.read_only { ", for reading only" } else { "" };
    say(&format!("{}: cluster {id} is registered{how}", hub.name));
    Ok(id)
}

async fn make(cluster: &Cluster, placed: &Placed, say: &mut Say<'_>) -> Result<(), EnrolError> {
    let outcome = cluster.apply(&placed.path, &placed.object).await?;
    say(&format!("{}: {}: {}", cluster.name, placed.what, outcome.word()));
    Ok(())
}

/// The id that was given, or that of the cluster's own ClusterProperty; both must agree (R91).
async fn id(member: &Cluster, wanted: &Join) -> Result<ClusterId, EnrolError> {
    let refused = |bad: BadId| EnrolError::refused(member, bad.to_string());
    let property = cluster_property(member, api::PROPERTY_CLUSTER).await?;
    let (text, from) = match (&wanted.id, &property) {
        (Some(given), Some(property)) if given != property => {
            return Err(refused(BadId::Disagreement { setting: given.clone(), property: property.clone() }));
        }
        (Some(given), _) => (given, "--id"),
        (None, Some(property)) => (property, "the ClusterProperty cluster.clusterset.k8s.io"),
        (None, None) => return Err(refused(BadId::Unknown { remedy: "give --id ID" })),
    };
    members::parse(text, from, &wanted.rules).map_err(refused)
}

pub(super) async fn cluster_property(member: &Cluster, name: &str) -> Result<Option<String>, EnrolError> {
    for version in ["v1beta1", "v1alpha1"] {
        let path = format!("/apis/{}/{version}/clusterproperties/{name}", api::ABOUT_GROUP);
        if let Some(object) = member.get(&path).await? {
            return Ok(object["spec"]["value"].as_str().map(str::to_owned).filter(|value| !value.is_empty()));
        }
    }
    Ok(None)
}

/// What tells this cluster from all others.
pub(super) async fn uid(cluster: &Cluster) -> Result<String, EnrolError> {
    let namespace = cluster.get("/api/v1/namespaces/kube-system").await?.unwrap_or_default();
    match namespace["metadata"]["uid"].as_str() {
        Some(uid) => Ok(uid.to_owned()),
        None => Err(EnrolError::refused(cluster, "it has no namespace kube-system; is it a Kubernetes cluster?")),
    }
}

/// The registrations in the hub.
pub(super) async fn registrations(hub: &Cluster, namespace: &str) -> Result<Vec<Value>, EnrolError> {
    let query = format!("&labelSelector={}", api::LABEL_CLUSTER.replace('/', "%2F"));
    hub.list(&format!("/api/v1/namespaces/{namespace}/secrets"), &query).await
}

/// One cluster has one id, and one id is that of one cluster.
async fn may_register(hub: &Cluster, wanted: &Join, id: &ClusterId, uid: &str) -> Result<(), EnrolError> {
    for secret in registrations(hub, &wanted.namespace).await? {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        let theirs = secret["metadata"]["annotations"][ANNOTATION_UID].as_str();
        let label = secret["metadata"]["labels"][api::LABEL_CLUSTER].as_str().unwrap_or_default();
        if label == id.as_str() && theirs != Some(uid) {
            let message = format!(
                "Secret {name} registers another cluster as {id}; give this one another id with --id, or take that one \
                 out with `namesake leave`, or, if it is gone, delete that Secret in the hub"
            );
            return Err(EnrolError::refused(hub, message));
        }
        if label != id.as_str() && theirs == Some(uid) {
            let message = format!(
                "Secret {name} registers this cluster as {label} already; take it out with `namesake leave` before it \
                 joins as {id}"
            );
            return Err(EnrolError::refused(hub, message));
        }
        let read_only = is_read_only(&secret);
        if theirs == Some(uid) && read_only != wanted.read_only {
            let (has, flag) = if read_only { ("for reading only", " --read-only") } else { ("for writing too", "") };
            let message = format!(
                "Secret {name} registers this cluster {has} already; take it out with `namesake leave{flag}` before it \
                 joins in another way"
            );
            return Err(EnrolError::refused(hub, message));
        }
    }
    Ok(())
}

/// Whether a registration is for reading only.
pub(super) fn is_read_only(secret: &Value) -> bool {
    secret["metadata"]["annotations"][ANNOTATION_ACCESS] == READ
}

/// How the hub reaches the member, tried from here.
async fn credentials(member: &Cluster, wanted: &Join, rights: &Rights) -> Result<Inline, EnrolError> {
    let token_secret = rights.token();
    let path = format!("/api/v1/namespaces/{}/secrets/{token_secret}", wanted.namespace);
    let end = Instant::now() + PATIENCE;
    let (token, own_ca) = loop {
        let secret = member.get(&path).await?.unwrap_or_default();
        let text = |key: &str| {
            let value = serde_json::from_value::<ByteString>(secret["data"][key].clone()).ok()?;
            String::from_utf8(value.0).ok().filter(|text| !text.is_empty())
        };
        if let Some(token) = text("token") {
            break (token, secret["data"]["ca.crt"].as_str().map(str::to_owned));
        }
        if Instant::now() > end {
            let message = format!(
                "its controller manager made no token for Secret {token_secret} in {} s; see that it runs, and repeat the command",
                PATIENCE.as_secs()
            );
            return Err(EnrolError::refused(member, message));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let endpoint = wanted.access.endpoint().await?;
    // At another address than the operator's, it is the cluster's own CA that is to be expected.
    let ca = if wanted.server.is_some() { own_ca } else { endpoint.ca.or(own_ca) };
    let inline = |server: &str| Inline {
        place: format!("the account {} in {}", rights.account(), member.name),
        server: server.to_owned(),
        server_name: endpoint.server_name.clone(),
        ca: ca.clone(),
        token: Some(Secret::new(token.clone())),
        certificate: None,
        key: None,
    };
    if endpoint.proxied {
        let message = "the hub would have to reach it through the proxy of this context, which is not to be had from \
                       Secrets; give a URL that it reaches by itself with --server";
        if wanted.server.is_none() {
            return Err(EnrolError::refused(member, message));
        }
    }
    let server = wanted.server.as_deref().unwrap_or(&endpoint.server);
    let found = inline(server);
    if wanted.server.is_none() {
        works(member, &found, rights, end).await?;
    }
    Ok(found)
}

/// Until the account may do what it may: a new permission is not known everywhere at once.
async fn works(member: &Cluster, inline: &Inline, rights: &Rights, end: Instant) -> Result<(), EnrolError> {
    let account = Cluster::connect(&member.name, &Access::Inline(inline.clone())).await?;
    let (resource, verb) = match rights {
        Rights::Write(_) => (api::SERVICE_IMPORTS, "delete"),
        Rights::Read(_) => (api::SERVICE_EXPORTS, "watch"),
    };
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"group": api::GROUP, "resource": resource, "verb": verb}},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    loop {
        let answer = account.request("POST", path, Some(&review), "application/json").await;
        match answer {
            Ok(answer) if answer["status"]["allowed"] == true => return Ok(()),
            Ok(_) if Instant::now() > end => {
                let account = rights.account();
                let message = format!("its account {account} is not allowed what its role allows; repeat the command");
                return Err(EnrolError::refused(member, message));
            }
            Err(error) if Instant::now() > end => return Err(error),
            _ => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

fn is_loopback(server: &str) -> bool {
    let url = server.parse::<http::Uri>().ok();
    let host = url.as_ref().and_then(http::Uri::host).unwrap_or_default();
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
