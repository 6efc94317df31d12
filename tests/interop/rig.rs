//! Two clusters, our controller with both as members, and our DNS server as seen from the second one, `west`: there the
//! other implementation has written.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use testbed::{ClusterOptions, Dig, Process, dig};
use tokio::sync::OnceCell;

use crate::clusterset::objects::exported;
use crate::clusterset::place::text;
use crate::clusterset::running::stays;
use crate::clusterset::{Clusterset, Controller, PATIENCE, Place, Story, until};

pub struct Rig {
    pub set: Clusterset,
    dns: SocketAddr,
    admin: SocketAddr,
    _controller: Controller,
    _server: Process,
}

/// The rig that all tests share, each in namespaces of its own. It ends with the process of the tests.
pub async fn rig() -> &'static Rig {
    static RIG: OnceCell<Rig> = OnceCell::const_new();
    RIG.get_or_init(async || {
        let both = ClusterOptions { dual_stack: true, ..ClusterOptions::default() };
        let set = Clusterset::start(vec![("east", ClusterOptions::default()), ("west", both)]).await;
        let controller = Controller::start(&set.bed, set.as_members()).await;
        let local = || SocketAddr::from(([127, 0, 0, 1], set.bed.port().unwrap()));
        let (dns, admin) = (local(), local());
        let server = set
            .bed
            .process("dns", env!("CARGO_BIN_EXE_namesake"))
            .arg("dns")
            .args([format!("--kubeconfig={}", set.clusters[1].kubeconfig().display())])
            .args([format!("--listen={dns}"), format!("--admin={admin}")])
            .spawn()
            .unwrap();
        server.wait_for_http(admin, "/ready", 200, PATIENCE).await.unwrap();
        Rig { set, dns, admin, _controller: controller, _server: server }
    })
    .await
}

/// What an answer says: its records' data, sorted; or the status, where it is not NOERROR.
fn said(dig: &Dig, kind: &str) -> Vec<String> {
    match dig.status.as_str() {
        "NOERROR" => dig.data(kind).iter().map(ToString::to_string).collect(),
        other => vec![other.to_owned()],
    }
}

/// A namespace in both clusters, and questions about it.
pub struct Stage {
    rig: &'static Rig,
    pub story: Story,
}

impl Stage {
    pub async fn new(name: &str) -> Self {
        let rig = rig().await;
        Self { rig, story: Story::new(&rig.set, name).await }
    }

    /// The cluster with our exports.
    pub fn east(&self) -> &Place {
        self.story.at(0)
    }

    /// The cluster with the other implementation's objects.
    pub fn west(&self) -> &Place {
        self.story.at(1)
    }

    /// The whole name of what stands in front of this namespace.
    pub fn name(&self, front: &str) -> String {
        format!("{front}.{}.svc.clusterset.local.", self.story.namespace)
    }

    /// Waits until this is the answer; a status such as `NXDOMAIN` stands for no answer.
    pub async fn answers(&self, front: &str, kind: &str, wanted: &[&str]) {
        let name = self.name(front);
        until(&format!("{name} {kind} is {wanted:?}"), PATIENCE, async || {
            let found = said(&dig(self.rig.dns, &["+noedns", &name, kind]).unwrap(), kind);
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    /// SRV records as `port target`, the target without this namespace's end; their priority is 0 and their weights
    /// share 100.
    pub async fn services(&self, front: &str, wanted: &[&str]) {
        let name = self.name(front);
        let end = self.name("");
        until(&format!("{name} SRV is {wanted:?}"), PATIENCE, async || {
            let dig = dig(self.rig.dns, &["+noedns", &name, "SRV"]).unwrap();
            let shown = |data: &&str| {
                let fields: Vec<&str> = data.split(' ').collect();
                assert_eq!((fields.len(), fields[0]), (4, "0"), "{data}");
                format!("{} {}", fields[2], fields[3].trim_end_matches(&end))
            };
            let found: Vec<String> = dig.data("SRV").iter().map(shown).collect::<BTreeSet<_>>().into_iter().collect();
            if found == wanted { Ok(()) } else { Err(format!("{} {found:?}", dig.status)) }
        })
        .await;
    }

    /// What the server says of why it answers so.
    pub async fn explained(&self, front: &str) -> String {
        let path = format!("/explain?name={}&type=A", self.name(front));
        testbed::http::get(self.rig.admin, &path, Duration::from_secs(5)).await.unwrap().1
    }

    /// Writes objects of the other implementation.
    pub async fn write(&self, yaml: &str) {
        self.west().apply(yaml).await;
    }

    /// The cluster IP that the API server gave a Service.
    pub async fn cluster_ip(&self, service: &str) -> String {
        text(&self.west().get("services", service).await.unwrap()["spec"]["clusterIP"]).to_owned()
    }

    /// Writes the status of an object of the other implementation.
    pub async fn write_status(&self, plural: &str, name: &str, status: Value) {
        let path = format!("{}/{name}/status", self.west().path(plural));
        self.west().send("PATCH", &path, Some(&serde_json::json!({ "status": status }))).await.unwrap();
    }

    /// Everything in the namespace that the other implementation may have written, whole, with its resourceVersion.
    pub async fn everything(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for plural in ["services", "endpoints", "endpointslices", "serviceimports", "serviceexports"] {
            for object in self.west().list(plural, "").await {
                all.insert(format!("{plural}/{}", text(&object["metadata"]["name"])), object.to_string());
            }
        }
        all
    }

    /// Our controller has an export of another service, and one of this name, which the other implementation imports:
    /// the first is imported beside, the second is not and says so, and nothing of theirs is touched by their coming
    /// and going.
    pub async fn left_alone(&self, name: &str) {
        let (east, west) = (self.east(), self.west());
        let before = self.everything().await;
        assert!(before.contains_key(&format!("serviceimports/{name}")), "the other one has not written: {before:?}");
        let untouched = async || {
            let now = self.everything().await;
            let different = before.iter().filter(|(key, object)| now.get(*key) != Some(object));
            let different: Vec<_> = different.map(|(key, object)| (object, now.get(key))).collect();
            if different.is_empty() { Ok(()) } else { Err(format!("{different:?}")) }
        };
        let ours = || exported("own", &["10.9.9.1"]) + &exported(name, &["10.9.9.2"]);
        east.apply(&ours()).await;
        west.until_ready("own").await;
        west.until_addresses("own", &["10.9.9.1"]).await;
        self.in_the_way(name).await;
        untouched().await.unwrap();

        // It stays so, as long as ours is there and when it goes.
        stays("theirs is theirs", Duration::from_secs(2), untouched).await;
        for export in ["own", name] {
            east.delete("serviceexports", export).await;
        }
        west.until_gone("own").await;
        until("nothing is left but theirs", PATIENCE, async || {
            let now = self.everything().await;
            if now == before { Ok(()) } else { Err(format!("{now:?}\ninstead of\n{before:?}")) }
        })
        .await;
    }

    /// The export in `east` says whose import is in the way, in its condition and in an Event.
    async fn in_the_way(&self, name: &str) {
        let east = self.east();
        let wanted = format!("west: ServiceImport {name} exists and is not managed by namesake");
        east.until_export_says(name, "Ready", "False/Failed").await;
        let message = east.message("serviceexports", name, "Ready").await;
        assert!(message.contains(&wanted), "{message}");
        until("an Event says so", PATIENCE, async || {
            let events = east.events("ServiceExport", name).await;
            let found = events.iter().any(|event| event.starts_with("Warning Failed: ") && event.contains(&wanted));
            if found { Ok(()) } else { Err(format!("{events:?}")) }
        })
        .await;
    }
}
