//! The programs of a cluster, and what each is started with.

use std::net::Ipv4Addr;

use crate::cluster::{ClusterOptions, Ports};
use crate::node;

/// The programs of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The store of the API server.
    Etcd,
    /// kube-apiserver.
    Api,
    /// kube-controller-manager.
    Controllers,
    /// kube-scheduler. Only where there is a node, as the next ones.
    Scheduler,
    /// kube-proxy.
    Proxy,
    /// containerd, the kubelet, and with them all pods.
    Node,
}

impl Part {
    /// All of them, in the order in which they are numbered.
    pub(crate) const ALL: [Part; 6] =
        [Part::Etcd, Part::Api, Part::Controllers, Part::Scheduler, Part::Proxy, Part::Node];

    /// Its name, which is that of its log; for all but the node also that of its program.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Etcd => "etcd",
            Part::Api => "kube-apiserver",
            Part::Controllers => "kube-controller-manager",
            Part::Scheduler => "kube-scheduler",
            Part::Proxy => "kube-proxy",
            Part::Node => "node",
        }
    }
}

/// The controllers that matter without nodes.
const CONTROLLERS: &str = "namespace-controller,serviceaccount-controller,serviceaccount-token-controller,\
    root-ca-certificate-publisher-controller,garbage-collector-controller,endpoints-controller,\
    endpointslice-controller,endpointslice-mirroring-controller,deployment-controller,replicaset-controller,\
    statefulset-controller,clusterrole-aggregation-controller,service-cidr-controller";

/// Those that look after nodes and their pods, and those without whose status no pod is admitted under a quota or
/// evicted under a budget.
const NODE_CONTROLLERS: &str = "node-ipam-controller,node-lifecycle-controller,pod-garbage-collector-controller,\
    taint-eviction-controller,resourcequota-controller,disruption-controller";

/// What the arguments are made of.
pub(crate) struct Arguments<'a> {
    pub(crate) number: u32,
    pub(crate) ports: Ports,
    pub(crate) options: &'a ClusterOptions,
}

impl Arguments<'_> {
    pub(crate) fn etcd(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.peer);
        vec![
            "--name=bed".into(),
            "--data-dir=etcd".into(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=bed={peer}"),
            // A bed lives for minutes; nothing in it must survive the machine.
            "--unsafe-no-fsync".into(),
            "--snapshot-count=5000".into(),
            "--log-level=warn".into(),
        ]
    }

    pub(crate) fn api(&self) -> Vec<String> {
        let mut args = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            format!("--secure-port={}", self.ports.api),
            "--tls-cert-file=api.crt".into(),
            "--tls-private-key-file=api.key".into(),
            "--cert-dir=certs".into(),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            "--service-account-key-file=sa.pub".into(),
            "--service-account-signing-key-file=sa.key".into(),
            format!("--service-cluster-ip-range={}", self.service_networks()),
            "--authorization-mode=Node,RBAC".into(),
            "--token-auth-file=tokens.csv".into(),
            "--allow-privileged=true".into(),
            "--profiling=false".into(),
            "--audit-policy-file=audit-policy.yaml".into(),
            "--audit-log-path=audit.log".into(),
            // One file: a rotated part would be missing from the counts.
            "--audit-log-maxsize=100000".into(),
        ];
        if self.options.node.is_some() {
            args.push("--bind-address=0.0.0.0".into());
            args.push(format!("--advertise-address={}", node::node_ip(self.number)));
            args.push("--kubelet-preferred-address-types=InternalIP".into());
        } else {
            args.push("--bind-address=127.0.0.1".into());
            // A loopback address may not be advertised, and without nodes nobody needs the Endpoints of `kubernetes`.
            args.push(format!("--advertise-address={}", Ipv4Addr::new(203, 0, 113, self.number as u8)));
            args.push("--endpoint-reconciler-type=none".into());
        }
        args.extend(self.options.api_args.iter().cloned());
        args
    }

    pub(crate) fn controllers(&self) -> Vec<String> {
        let kubeconfig = "controllers.kubeconfig";
        let mut args = vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--leader-elect=false".into(),
            "--use-service-account-credentials=true".into(),
            "--service-account-private-key-file=sa.key".into(),
            "--root-ca-file=ca.crt".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.ports.controllers),
            "--cert-dir=certs-controllers".into(),
            format!("--service-cluster-ip-range={}", self.service_networks()),
            "--concurrent-namespace-syncs=10".into(),
            "--profiling=false".into(),
            "--kube-api-qps=200".into(),
            "--kube-api-burst=400".into(),
        ];
        if self.options.node.is_some() {
            args.push(format!("--controllers={CONTROLLERS},{NODE_CONTROLLERS}"));
            args.push("--allocate-node-cidrs=true".into());
            args.push(format!("--cluster-cidr={}", self.pod_networks()));
            args.push("--node-cidr-mask-size-ipv4=24".into());
            args.extend(self.options.dual_stack.then(|| "--node-cidr-mask-size-ipv6=64".into()));
        } else {
            args.push(format!("--controllers={CONTROLLERS}"));
        }
        args.extend(self.options.controllers_args.iter().cloned());
        args
    }

    pub(crate) fn scheduler(&self) -> Vec<String> {
        let kubeconfig = "scheduler.kubeconfig";
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--leader-elect=false".into(),
            "--bind-address=127.0.0.1".into(),
            "--cert-dir=certs-scheduler".into(),
            "--profiling=false".into(),
        ]
    }

    fn service_networks(&self) -> String {
        let n = 100 + self.number;
        if self.options.dual_stack { format!("10.{n}.0.0/16,fd00:{n}::/108") } else { format!("10.{n}.0.0/16") }
    }

    fn pod_networks(&self) -> String {
        let n = 200 + self.number;
        if self.options.dual_stack { format!("10.{n}.0.0/16,fd00:{n}::/56") } else { format!("10.{n}.0.0/16") }
    }
}
