//! Real Kubernetes control planes, a real CoreDNS and a real `dig` on one machine, for tests and for people.
//!
//! A test has as many clusters as it wants in three lines:
//!
//! ```no_run
//! # async fn test() -> testbed::Result<()> {
//! let bed = testbed::Bed::new()?;
//! let clusters = bed.clusters(["east", "west"]).await?;
//! clusters[0].apply("{apiVersion: v1, kind: Namespace, metadata: {name: demo}}").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Each cluster has an etcd, a kube-apiserver with RBAC on and a kube-controller-manager of its own, needs neither root
//! nor containers, and is ready in 3 to 4 seconds. It can be killed, hung and restarted ([`Cluster::kill_api`],
//! [`Cluster::stop`], [`Cluster::start_api`]), cut off ([`Cluster::proxy`]), and asked who asked what
//! ([`Cluster::audit`]). Everything ends when the bed is dropped, also by a panic, and when the test process is killed.
//!
//! With [`ClusterOptions::node`] a cluster has a node as well, in network namespaces: real pods, kube-proxy and packets
//! ([`Cluster::exec`], [`Cluster::cut_off`]). That needs root and some Debian packages, and takes some 5 seconds more.
//! [`PacketBed`] is several of them with Namesake deployed as its README says, and DNS in every arrangement.
//!
//! The programs are built from Go modules by the script `build` beside this package when they are missing.
//! Methods that wait are `async`; [`dig()`] and [`Cluster::kubectl`] block.

mod access;
mod audit;
mod bed;
mod binaries;
mod cluster;
mod clusterdns;
mod coredns;
mod deployment;
mod dig;
mod error;
mod exec;
mod fabric;
mod image_archive;
mod images;
mod network;
mod node;
mod objects;
mod own_image;
mod packets;
mod parts;
mod pki;
mod place;
mod ports;
mod process;
mod proxy;
mod site;

pub mod http;
pub mod protobuf;

pub use access::merge_kubeconfigs;
pub use audit::{Audit, AuditEntry};
pub use bed::Bed;
pub use binaries::binaries;
pub use cluster::{Cluster, ClusterOptions};
pub use clusterdns::{Arrangement, ClusterDns};
pub use coredns::CoreDns;
pub use deployment::NAMESPACE;
pub use dig::{Counts, Dig, Edns, Record, dig};
pub use error::{Error, Result};
pub use exec::ExecOutput;
pub use image_archive::{ImageArchive, ImageConfig, Layer};
pub use images::{NETSHOOT, PAUSE, SOCAT, suite_images};
pub use network::Network;
pub use node::{NodeOptions, ProxyMode};
pub use objects::mcs_crds;
pub use own_image::{NAMESAKE, OwnImage};
pub use packets::{PacketBed, PacketOptions, Phase};
pub use parts::Part;
pub use place::environment;
pub use process::{Process, ProcessBuilder};
pub use proxy::Proxy;
