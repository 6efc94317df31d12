//! The battery: the same objects, asked of live CoreDNS with `kubernetes … multicluster` and of ours. Answers are equal
//! except where a row of `dns.md` says otherwise in its Take column; every difference is attributed to a row, and an
//! unattributed one fails.

#[path = "../support/mod.rs"]
mod support;

mod compare;
mod objects;
mod oracle;
mod queries;
mod reply;
mod rows;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use namesake::answers::{EndpointNames, Options, Store};
use namesake::dns::Transport;
use namesake::source::Convert;
use serde_json::Value;
use testbed::{Bed, Cluster, CoreDns, dig};

use compare::{Case, Part};
use reply::Reply;
use support::Ask;
use world::World;

/// As the issue asks, and far more than that.
const LEAST: usize = 2000;

/// How many unattributed differences are shown.
const SHOWN: usize = 25;

/// The objects as the API server returns them.
struct Objects {
    namespaces: Vec<Value>,
    imports: Vec<Value>,
    slices: Vec<Value>,
}

impl Objects {
    async fn of(cluster: &Cluster) -> Self {
        let list = async |path: &str| {
            let answer = cluster.request("GET", path, None).await.unwrap();
            answer["items"].as_array().expect("a list").clone()
        };
        Self {
            namespaces: list("/api/v1/namespaces").await,
            imports: list("/apis/multicluster.x-k8s.io/v1beta1/serviceimports").await,
            slices: list(
                "/apis/discovery.k8s.io/v1/endpointslices?labelSelector=multicluster.kubernetes.io/service-name",
            )
            .await,
        }
    }

    /// Our store of them, through the same conversion as in the product.
    fn store(&self, options: &Options) -> Arc<Store> {
        let convert = Convert { pod_names: options.endpoint_pod_names, namespaces: options.namespaces.clone() };
        let imports = self.imports.iter().filter_map(|object| convert.import(&object.to_string()));
        let slices = self.slices.iter().filter_map(|object| convert.slice(&object.to_string()));
        namesake::feed::load(options.clone(), imports.chain(slices).collect())
    }
}

#[tokio::test]
async fn every_difference_from_live_coredns_rests_on_a_row() {
    let bed = Bed::new().unwrap();
    let cluster = bed.cluster("east").await.unwrap();
    cluster.install_crds("v0.5.2").await.unwrap();
    cluster.apply_values(objects::all()).await.unwrap();
    cluster.delete(objects::DELETED).await.unwrap();
    let objects = Objects::of(&cluster).await;
    let mut used = BTreeSet::new();
    for setup in setups() {
        let coredns = CoreDns::start_in(&bed, &setup.corefile(&cluster)).await.unwrap();
        until_synced(&coredns).await;
        println!("\n== CoreDNS with {:?}, ours with what is the same", setup.coredns);
        used.extend(battery(&objects, &setup, &coredns));
    }
    // A row that explains nothing would only hide what comes.
    let unused: Vec<_> = rows::all().filter(|row| !used.contains(row.id)).map(|row| row.id).collect();
    assert!(unused.is_empty(), "rows that no difference rests on: {unused:?}");
}

/// Waits until CoreDNS has read all objects. It serves after 5 s at the latest, read or not, and until it has, a name that it
/// does not find is SERVFAIL and not NXDOMAIN.
async fn until_synced(coredns: &CoreDns) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = dig(coredns.address(), &["no-such-service.demo.svc.clusterset.local", "A"]);
        match answer {
            Ok(answer) if answer.status == "NXDOMAIN" => return,
            other => assert!(Instant::now() < deadline, "CoreDNS has not read the objects: {other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How both servers are set up.
struct Setup {
    /// Lines of CoreDNS's plugin `kubernetes` besides the common ones.
    coredns: &'static [&'static str],
    /// The same for us.
    ours: Options,
    /// Every which query is asked.
    step: usize,
}

impl Setup {
    fn corefile(&self, cluster: &Cluster) -> String {
        let kubeconfig = format!("kubeconfig {}", cluster.kubeconfig().display());
        let lines = [&[&*kubeconfig, "multicluster clusterset.local"], self.coredns].concat().join("\n    ");
        let plugin = format!("kubernetes cluster.local clusterset.local {{\n    {lines}\n  }}");
        format!("clusterset.local:{{port}} {{\n  bind 127.0.0.1\n  {plugin}\n}}\n")
    }
}

fn setups() -> [Setup; 3] {
    let kubeadm = Options { ttl: 30, ..Options::default() };
    let chosen = Options {
        ttl: 30,
        negttl: 30,
        endpoint_pod_names: true,
        ignore_empty_service: true,
        namespaces: vec!["demo".to_owned(), "bare".to_owned()],
        endpoint_names: EndpointNames::All,
        ..Options::default()
    };
    let lines = &["ttl 30", "endpoint_pod_names", "ignore empty_service", "namespaces demo bare", "pods insecure"];
    [
        Setup { coredns: &[], ours: Options::default(), step: 1 },
        Setup { coredns: lines, ours: chosen, step: 3 },
        Setup { coredns: &["ttl 30"], ours: kubeadm, step: 17 },
    ]
}

/// Asks both servers everything and judges.
fn battery(objects: &Objects, setup: &Setup, coredns: &CoreDns) -> BTreeSet<&'static str> {
    let options = &setup.ours;
    let world = World::new(&objects.namespaces, &objects.imports, &objects.slices, options);
    let store = objects.store(options);
    let asks = queries::all(&world, 0x5eed);
    assert!(asks.len() >= LEAST, "only {} queries", asks.len());
    let asks: Vec<_> = asks.into_iter().step_by(setup.step).collect();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut ask = |asks: &[&Ask]| -> Vec<_> {
        let theirs = oracle::ask_coredns(coredns.address(), asks);
        asks.iter().zip(theirs).map(|(ask, theirs)| (theirs, oracle::ask_us(&store, ask, &mut rng))).collect()
    };
    let replies = ask(&asks.iter().collect::<Vec<_>>());
    let mut cases: Vec<_> = asks
        .iter()
        .zip(replies)
        .map(|(ask, (theirs, ours))| {
            let (place, node) = world.place(&ask.name);
            let read = |bytes: Vec<u8>| {
                Reply::read(&bytes).unwrap_or_else(|| panic!("unreadable reply to {ask:?}: {bytes:02x?}"))
            };
            if let Some(ours) = &ours {
                hickory_proto::op::Message::from_vec(ours)
                    .unwrap_or_else(|e| panic!("hickory-proto on our reply to {ask:?}: {e}"));
            }
            let (coredns, ours) = (theirs.map(read), ours.map(read));
            Case { world: &world, options, ask, place, node, coredns, ours, whole: None }
        })
        .collect();
    // What did not fit over UDP, once more over TCP.
    let cut: Vec<_> = (0..cases.len()).filter(|i| is_cut(&cases[*i])).collect();
    let again: Vec<_> = cut.iter().map(|i| Ask { transport: Transport::Tcp, ..cases[*i].ask.clone() }).collect();
    for (i, (theirs, ours)) in cut.into_iter().zip(ask(&again.iter().collect::<Vec<_>>())) {
        cases[i].whole = theirs.zip(ours).and_then(|(k, o)| Reply::read(&k).zip(Reply::read(&o)));
    }
    judge(&cases)
}

fn is_cut(case: &Case<'_>) -> bool {
    let partial = |r: &Reply| r.tc() || r.additional.len() < r.answers.len();
    case.udp() && [&case.coredns, &case.ours].into_iter().flatten().any(partial)
}

/// Attributes every difference, prints the table, and fails on what is left. Returns the rows that were used.
fn judge(cases: &[Case<'_>]) -> BTreeSet<&'static str> {
    let (mut equal, mut sizes, mut counts, mut unattributed) = (0, 0, BTreeMap::<_, usize>::new(), Vec::new());
    for case in cases {
        let differences = case.differences();
        equal += usize::from(differences.is_empty());
        sizes += usize::from(differences.iter().eq([&Part::OptSize]));
        let (used, left) = rows::attribute(case);
        for row in used {
            *counts.entry(row.id).or_default() += 1;
        }
        if !left.is_empty() {
            unattributed.push((case, left));
        }
    }
    let others = cases.len() - equal - sizes;
    println!("{} queries: {equal} equal answers, {sizes} equal but for the OPT's size, {others} others", cases.len());
    for row in rows::all() {
        if let Some(count) = counts.get(row.id) {
            println!("  {count:>5}  {:<4} {}", row.id, row.says);
        }
    }
    for (case, left) in unattributed.iter().take(SHOWN) {
        println!("\nunattributed {left:?}\n{case}");
    }
    assert!(unattributed.is_empty(), "{} differences rest on no row; the first {SHOWN} are above", unattributed.len());
    counts.into_keys().collect()
}
