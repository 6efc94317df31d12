//! Pods and a Service's selector → EndpointSlices, as kube-controller-manager's EndpointSlice controller makes them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::made::hash;
use super::pods::Pod;
use crate::api;
use crate::model::{ServiceKey, SliceKey};
use crate::reconcile::objects::{
    Endpoint, Family, Identity, Map, Meta, PodRef, ServiceSpec, SliceContent, SlicePort, TargetPort,
};
use crate::reconcile::observed::Slice;

/// The manager of the slices that the controller makes.
pub(super) const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// Most endpoints of one slice, the controller's default.
const MOST: usize = 100;

/// A pod with all that an endpoint needs to know of it.
#[derive(Debug, Clone)]
pub(super) struct RunningPod {
    pub(super) name: String,
    pub(super) uid: Box<str>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) zone: Option<Box<str>>,
    pub(super) pod: Pod,
}

/// The slices of one Service: per family and per set of ports that its pods resolve to, 100 endpoints each.
pub(super) fn slices(key: &ServiceKey, spec: &ServiceSpec, pods: &[&RunningPod]) -> Vec<(SliceKey, Slice)> {
    let mut groups: BTreeMap<(Family, Vec<SlicePort>), Vec<Endpoint>> = BTreeMap::new();
    for pod in pods {
        let ports = ports(spec, &pod.pod);
        for family in &spec.families {
            let address = pod.addresses.iter().find(|address| Family::of(**address) == *family);
            if let Some(address) = address {
                groups.entry((*family, ports.clone())).or_default().push(endpoint(key, spec, pod, *address));
            }
        }
    }
    let mut made = Vec::new();
    for ((family, ports), endpoints) in groups {
        let ports_text = format!("{ports:?}");
        for (n, endpoints) in endpoints.chunks(MOST).enumerate() {
            let suffix = hash(&[family.as_str(), &ports_text, &n.to_string()]) % 0x10_0000;
            let name = format!("{}-{suffix:05x}", key.name);
            let mut labels: Map =
                [(api::LABEL_KUBERNETES_SERVICE_NAME, key.name.as_str()), (api::LABEL_SLICE_MANAGED_BY, CONTROLLER)]
                    .map(|(label, value)| (label.into(), value.into()))
                    .into();
            if spec.headless {
                labels.insert(api::LABEL_HEADLESS.into(), "".into());
            }
            let slice = Slice {
                meta: Meta {
                    id: Identity { uid: name.as_str().into(), ..Identity::default() },
                    generation: 1,
                    labels,
                    ..Meta::default()
                },
                content: SliceContent { family, ports: ports.clone(), endpoints: endpoints.to_vec() },
            };
            made.push((SliceKey { namespace: key.namespace.clone(), name: name.into() }, slice));
        }
    }
    made
}

/// Where `pod` listens for each port of the Service: the target port, by number or by its containers' names for it. A
/// port that it does not have is left out.
fn ports(spec: &ServiceSpec, pod: &Pod) -> Vec<SlicePort> {
    let resolve = spec.ports.iter().filter_map(|port| {
        let number = match &port.target {
            None => port.port,
            Some(TargetPort::Number(number)) => *number,
            Some(TargetPort::Name(name)) => pod.port(name, port.protocol)?,
        };
        let app_protocol = port.app_protocol.clone();
        Some(SlicePort { name: port.name.clone(), protocol: port.protocol, port: number, app_protocol })
    });
    resolve.collect()
}

fn endpoint(key: &ServiceKey, spec: &ServiceSpec, pod: &RunningPod, address: IpAddr) -> Endpoint {
    let (serving, terminating) = (pod.pod.is_ready(), pod.pod.is_terminating());
    let own_subdomain = pod.pod.spec.subdomain.as_deref() == Some(key.name.as_str());
    Endpoint {
        addresses: vec![address],
        ready: spec.publish_not_ready || (serving && !terminating),
        serving,
        terminating,
        hostname: pod.pod.spec.hostname.clone().filter(|name| own_subdomain && !name.is_empty()),
        zone: pod.zone.clone(),
        node: pod.pod.spec.node_name.clone(),
        pod: Some(PodRef { name: pod.name.as_str().into(), uid: pod.uid.clone() }),
        hint_zones: Vec::new(),
    }
}
