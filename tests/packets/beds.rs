//! The clusters that the scenarios are played on: a bed for each family, with everything deployed as a user would.

use std::net::IpAddr;
use std::process::Command;
use std::time::Instant;

use serde::Serialize;
use testbed::{Arrangement, PacketBed, PacketOptions};

use crate::clusterset::place::text;
use crate::grid::{Column, Family};
use crate::stage::Stage;

/// The beds that a run needs.
pub struct Beds(Vec<(Family, PacketBed)>);

/// What a bed is made of, for the report.
#[derive(Serialize)]
pub struct Facts {
    pub family: &'static str,
    pub clusters: Vec<ClusterFacts>,
}

/// What one of its clusters is made of.
#[derive(Serialize)]
pub struct ClusterFacts {
    pub name: String,
    pub kubernetes: String,
    pub kubelet: String,
    pub containers: String,
    pub kernel: String,
}

impl Beds {
    /// Starts a bed of two clusters for each family, side by side.
    pub async fn start(families: &[Family]) -> testbed::Result<Self> {
        let starts = families.iter().map(|family| async move {
            let began = Instant::now();
            let options = PacketOptions { dual_stack: *family == Family::DualStack, ..PacketOptions::clusters(2) };
            let bed = PacketBed::start(options).await?;
            let names: Vec<_> = bed.clusters.iter().map(testbed::Cluster::name).collect();
            let (names, seconds) = (names.join(" and "), began.elapsed().as_secs_f64());
            println!("{}: {names} are ready after {seconds:.1} s", family.name());
            Ok((*family, bed))
        });
        futures_util::future::try_join_all(starts).await.map(Self)
    }

    /// A stage for a scenario in this column.
    pub fn stage(&self, column: Column) -> Stage {
        let (_, bed) =
            self.0.iter().find(|(family, _)| *family == column.family).expect("every bed in use was started");
        let nameserver = |index| match column.arrangement {
            // What pods have without asking for it.
            Arrangement::Forward => None,
            other => Some(bed.nameserver(index, other)),
        };
        let nameservers: Vec<Option<IpAddr>> = (0..bed.clusters.len()).map(nameserver).collect();
        Stage::new(&bed.clusters, nameservers)
    }

    /// What they are made of, as they say themselves.
    pub async fn facts(&self) -> Vec<Facts> {
        let mut all = Vec::new();
        for (family, bed) in &self.0 {
            let mut clusters = Vec::new();
            for cluster in &bed.clusters {
                let version = cluster.request("GET", "/version", None).await.unwrap_or_default();
                let nodes = cluster.request("GET", "/api/v1/nodes", None).await.unwrap_or_default();
                let node = &nodes["items"][0]["status"]["nodeInfo"];
                let of = |field: &str| text(&node[field]).to_owned();
                clusters.push(ClusterFacts {
                    name: cluster.name().to_owned(),
                    kubernetes: text(&version["gitVersion"]).to_owned(),
                    kubelet: of("kubeletVersion"),
                    containers: of("containerRuntimeVersion"),
                    kernel: of("kernelVersion"),
                });
            }
            all.push(Facts { family: family.name(), clusters });
        }
        all
    }
}

/// The version of the CoreDNS in the clusters, as its program says it.
pub fn coredns_version() -> Option<String> {
    let output = Command::new(testbed::binaries().ok()?.join("coredns")).arg("-version").output().ok()?;
    let first = String::from_utf8(output.stdout).ok()?.lines().next()?.trim().to_owned();
    Some(first.trim_start_matches("CoreDNS-").to_owned())
}
