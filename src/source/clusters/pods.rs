//! Pods, the Nodes they are on, and the workloads that a controller would make pods of.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

use crate::model::Protocol;

/// The parts of a Pod that make an endpoint.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    pub(super) metadata: PodMeta,
    pub(super) spec: PodSpec,
    pub(super) status: Option<PodStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodMeta {
    pub(super) labels: BTreeMap<Box<str>, Box<str>>,
    pub(super) uid: Option<Box<str>>,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpec {
    pub(super) hostname: Option<Box<str>>,
    pub(super) subdomain: Option<String>,
    pub(super) node_name: Option<Box<str>>,
    containers: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Container {
    ports: Vec<ContainerPort>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerPort {
    name: Option<Box<str>>,
    container_port: u16,
    protocol: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodStatus {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<IpAddr>,
    #[serde(rename = "podIPs")]
    pod_ips: Vec<PodIp>,
    conditions: Vec<PodCondition>,
}

#[derive(Debug, Clone, Deserialize)]
struct PodIp {
    ip: IpAddr,
}

#[derive(Debug, Clone, Deserialize)]
struct PodCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Pod {
    /// Whether its containers have ended for good: then it is no endpoint any more.
    pub(super) fn is_over(&self) -> bool {
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    }

    /// What its condition says; a pod that says nothing is ready.
    pub(super) fn is_ready(&self) -> bool {
        let Some(status) = &self.status else { return true };
        let ready = status.conditions.iter().find(|condition| condition.kind == "Ready");
        let waits = matches!(status.phase.as_deref(), Some("Pending" | "Unknown"));
        ready.map_or(!waits, |condition| condition.status == "True")
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The addresses that it says it has.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let Some(status) = &self.status else { return Vec::new() };
        if status.pod_ips.is_empty() {
            return status.pod_ip.into_iter().collect();
        }
        status.pod_ips.iter().map(|ip| ip.ip).collect()
    }

    /// The number of a container's port by name.
    pub(super) fn port(&self, name: &str, wanted: Protocol) -> Option<u16> {
        let ports = self.spec.containers.iter().flat_map(|container| &container.ports);
        let mut fit = ports.filter(|port| port.name.as_deref() == Some(name));
        fit.find(|port| Protocol::new(port.protocol.as_deref()) == Some(wanted)).map(|port| port.container_port)
    }
}

/// The parts of a Node that endpoints take over.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    metadata: PodMeta,
}

impl Node {
    pub(super) fn zone(&self) -> Option<&str> {
        self.metadata.labels.get("topology.kubernetes.io/zone").map(|zone| &**zone)
    }
}

/// A Deployment, StatefulSet or DaemonSet: what a controller would make pods of.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Workload {
    #[serde(skip)]
    pub(super) kind: &'static str,
    #[serde(skip)]
    pub(super) namespace: String,
    #[serde(skip)]
    pub(super) name: String,
    spec: WorkloadSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WorkloadSpec {
    replicas: Option<usize>,
    service_name: Option<String>,
    template: Template,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Template {
    metadata: PodMeta,
    spec: PodSpec,
}

impl Workload {
    /// Whether `pod` is one of its own.
    pub(super) fn owns(&self, pod: &Pod) -> bool {
        let labels = &self.spec.template.metadata.labels;
        labels.iter().all(|(key, value)| pod.metadata.labels.get(key) == Some(value))
    }

    /// Its pods: as many as it asks for, all ready. Those of a StatefulSet have its names, hostnames and subdomain.
    pub(super) fn pods(&self) -> impl Iterator<Item = (String, Pod)> + '_ {
        /// A slip of the pen must not fill the memory.
        const MOST: usize = 1000;
        let stateful = self.kind == "StatefulSet";
        let replicas = if self.kind == "DaemonSet" { 1 } else { self.spec.replicas.unwrap_or(1).min(MOST) };
        (0..replicas).map(move |i| {
            let name = format!("{}-{i}", self.name);
            let mut spec = self.spec.template.spec.clone();
            if stateful {
                spec.hostname = Some(name.as_str().into());
                spec.subdomain.clone_from(&self.spec.service_name);
            }
            (name, Pod { metadata: self.spec.template.metadata.clone(), spec, status: None })
        })
    }
}
