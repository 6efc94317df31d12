//! A rolling update of 20 pods under a constant stream of look-ups and connections from another cluster: how many fail,
//! which part was late in each case, and how long each part of the way takes, measured by the packets.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::ask::Trouble;
use crate::chosen::{Choices, Chosen};
use crate::clusterset::Place;
use crate::figures::Figures;
use crate::objects::{self, Manners};
use crate::slices::{Said, Slices};
use crate::stage::{PODS, Stage, for_a_while};
use crate::stream::{Attempt, Stream, Tally, Wanted};
use crate::world::{World, until};

pub const NAME: &str = "rolling update of 20 pods";

/// Where the pods are, and where the clients: not in the third cluster, which may be cut off meanwhile.
const SERVED: usize = 1;
const ASKED: usize = 0;

const REPLICAS: u32 = 20;

/// How long all pods may take to be there and in the slices.
const START: Duration = Duration::from_secs(120);

/// How long the update may take.
const UPDATE: Duration = Duration::from_secs(240);

/// A pod that serves on for this long is still there for clients whose DNS server has cached a set that is as old as that:
/// 5 s, and what the parts of the way take, also where the machine stands still for some seconds meanwhile.
const CAREFUL: Manners = Manners { linger: 20, ready_when_listening: true };

/// A pod that goes as soon as it is told to, and is ready before it listens.
const CARELESS: Manners = Manners { linger: 0, ready_when_listening: false };

/// One of the two services that lead to the same pods.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// By an address of its own, and kube-proxy.
    ClusterSetIp,
    /// By the addresses of the pods, and DNS alone.
    Headless,
}

impl Kind {
    const ALL: [Self; 2] = [Self::ClusterSetIp, Self::Headless];

    fn service(self) -> &'static str {
        match self {
            Self::ClusterSetIp => "web",
            Self::Headless => "pods",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::ClusterSetIp => 80,
            Self::Headless => objects::NAME,
        }
    }
}

/// A connection that is refused and for which no pod was chosen: that is the client's node's doing. It was seen once in 2,422
/// connections, on a node with nftables; what there brings it about while the set of pods changes is not known.
const REJECTED: &str = "rejected by the client's node, no pod was chosen";

/// As a careful owner does it: no look-up fails, and nobody is sent to a pod that is gone.
pub async fn careful(world: &World) {
    let Outcome { asked, failed, rejected } = update(world, "rollout-careful", "pods that linger 20 s", CAREFUL).await;
    assert_eq!(failed - rejected, 0, "look-ups or connections failed, though every pod served until it was forgotten");
    assert!(rejected * 500 <= asked, "the client's node has rejected {rejected} of {asked} connections");
}

/// What came of all attempts.
#[derive(Default)]
struct Outcome {
    asked: usize,
    failed: usize,
    /// Of those that failed: by the client's node.
    rejected: usize,
}

/// As it happens: what fails is counted, and who was late is told.
pub async fn careless(world: &World) {
    update(world, "rollout-careless", "pods that go at once", CARELESS).await;
}

async fn update(world: &World, namespace: &str, manners_in_words: &str, manners: Manners) -> Outcome {
    let stage = Stage::new(world, namespace).await;
    let (source, importer) = (stage.at(SERVED), stage.at(ASKED));
    let deployment = objects::deployment(source.id(), "web", REPLICAS, &[objects::NAME], manners);
    let mut pods = objects::headless("pods", &[objects::port("name", objects::NAME, objects::NAME)]);
    pods["spec"]["selector"] = json!({"app": "web"});
    let web = objects::service("web", &objects::ports());
    source.apply_values(vec![deployment, web, pods, objects::export("web"), objects::export("pods")]).await;

    let there: Vec<_> = Kind::ALL.map(|kind| Slices::of_service(source, kind.service())).into();
    let here: Vec<_> = Kind::ALL.map(|kind| Slices::mirrored(importer, kind.service(), source.id())).into();
    for slices in here.iter().chain(&there) {
        slices.until_ready(REPLICAS as usize, START).await;
    }
    let client = &stage.clients[ASKED];
    for kind in Kind::ALL {
        until(&format!("{} is reached", kind.service()), PODS, async || {
            let said = client.reach_often(&stage.name(kind.service()), kind.port(), 40).await;
            let failed = said.iter().filter(|said| said.is_err()).count();
            if failed == 0 { Ok(()) } else { Err(format!("{failed} of 40 failed")) }
        })
        .await;
    }
    let choices = Choices::follow(&importer.cluster).await;
    let streams = Kind::ALL.map(|kind| Stream::start(client, Wanted::new(&stage.name(kind.service()), kind.port())));
    for_a_while(Duration::from_secs(1)).await;
    let began = Instant::now();
    restart(source, "web").await;
    let updated = Instant::now();
    // The last of the old pods go on until the end of their time, and caches keep what they have for as long.
    for_a_while(Duration::from_secs(u64::from(manners.linger) + 6)).await;
    let mut tallies = Vec::new();
    for stream in streams {
        tallies.push(stream.stop().await);
    }
    let chosen = choices.of(client.address);
    let mut outcome = Outcome::default();
    for (index, kind) in Kind::ALL.into_iter().enumerate() {
        let way = Way { kind, source: &there[index], importer: &here[index], chosen: &chosen };
        let tally = &tallies[index];
        outcome.asked += tally.attempts.len();
        outcome.failed += tally.failed();
        outcome.rejected += tally.failures().filter(|(attempt, _)| way.cause(attempt).0 == REJECTED).count();
        let what = format!("{manners_in_words}, {}", kind_in_words(kind));
        let took = format!("{:.0} s of update", (updated - began).as_secs_f64());
        world.note(NAME, what.clone(), format!("{}, {took}", tally.words()));
        for (who, cause) in way.causes(tally) {
            world.note(NAME, what.clone(), format!("failed since {who}: {cause}"));
        }
        for (stretch, figures) in way.stretches(tally) {
            world.note(NAME, what.clone(), format!("{stretch}: {figures}"));
        }
        assert_eq!(tally.left_out, 0, "the stream was held up");
    }
    stage.remove().await;
    outcome
}

fn kind_in_words(kind: Kind) -> &'static str {
    match kind {
        Kind::ClusterSetIp => "by address (kube-proxy)",
        Kind::Headless => "headless (DNS)",
    }
}

/// Replaces all pods, as `kubectl rollout restart` does, and waits until that is done.
async fn restart(place: &Place, app: &str) {
    let name = format!("{}-{app}", place.id());
    let annotations = json!({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"});
    let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
    place.patch("deployments", &name, patch).await;
    until("all pods are replaced", UPDATE, async || {
        let deployment = place.get("deployments", &name).await.unwrap_or_default();
        let status = &deployment["status"];
        let seen = status["observedGeneration"] == deployment["metadata"]["generation"];
        let done = ["updatedReplicas", "replicas", "availableReplicas"].iter().all(|field| status[field] == REPLICAS);
        if seen && done { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
}

/// The way from a pod's change to the client's packets: the source's slices, the importer's, kube-proxy or DNS.
struct Way<'a> {
    kind: Kind,
    source: &'a Slices,
    importer: &'a Slices,
    /// Which pod kube-proxy chose.
    chosen: &'a Chosen,
}

impl Way<'_> {
    /// The pod that an attempt went to.
    fn pod(&self, attempt: &Attempt) -> Option<IpAddr> {
        match self.kind {
            Kind::ClusterSetIp => self.chosen.pod(attempt.port, attempt.connected_at?),
            Kind::Headless => attempt.address,
        }
    }

    /// Who was late, for the attempts that failed.
    fn causes(&self, tally: &Tally) -> BTreeMap<&'static str, Cause> {
        let mut causes = BTreeMap::<_, Cause>::new();
        for (attempt, trouble) in tally.failures() {
            let (who, late) = self.cause(attempt);
            let cause = causes.entry(who).or_default();
            *cause.troubles.entry(trouble).or_default() += 1;
            late.into_iter().for_each(|late| cause.late.add(late));
        }
        causes
    }

    /// Who was late, and how long before the connection the stage before it had known better.
    fn cause(&self, attempt: &Attempt) -> (&'static str, Option<Duration>) {
        let Some(connected) = attempt.connected_at else { return ("the look-up failed", None) };
        let Some(pod) = self.pod(attempt) else { return (REJECTED, None) };
        let knew = |slices: &Slices| slices.at(pod, connected).filter(|(_, said)| *said != Said::Ready);
        let late = |(since, _): (Instant, Said)| Some(connected.saturating_duration_since(since));
        if self.importer.at(pod, connected).is_none() {
            ("a pod that the importer's slice did not name", None)
        } else if let Some(known) = knew(self.importer) {
            let who = match self.kind {
                Kind::ClusterSetIp => "kube-proxy was late: after the importer's slice",
                Kind::Headless => "DNS or its cache was late: after the importer's slice",
            };
            (who, late(known))
        } else if let Some(known) = knew(self.source) {
            ("the importer's slice was late: after the source's", late(known))
        } else {
            match self.source.at(pod, connected + attempt.took + Duration::from_secs(3)) {
                Some((_, Said::Ready)) => ("a pod that all say is ready did not answer", None),
                _ => ("the pod was gone before the source's slice said so", None),
            }
        }
    }

    /// How long each stretch of the way takes, from the change of the source's slice on.
    fn stretches(&self, tally: &Tally) -> Vec<(String, Figures)> {
        let (mut up, mut down) = (Figures::default(), Figures::default());
        let (mut first, mut last) = (Figures::default(), Figures::default());
        let mut used: BTreeMap<IpAddr, (Instant, Instant)> = BTreeMap::new();
        for attempt in &tally.attempts {
            let (Some(pod), Some(at)) = (self.pod(attempt), attempt.connected_at) else { continue };
            used.entry(pod).and_modify(|(_, last)| *last = (*last).max(at)).or_insert((at, at));
        }
        let began = tally.attempts.first().map(|attempt| attempt.at);
        for (pod, line) in self.source.all() {
            // What was ready before the stream began has no first packet in it.
            let ready = line.iter().find(|(_, said)| *said == Said::Ready).map(|(at, _)| *at);
            if let Some(ready) = ready.filter(|ready| began.is_some_and(|began| *ready > began)) {
                if let Some(here) = self.importer.became(pod, |said| said == Said::Ready) {
                    up.add(here.saturating_duration_since(ready));
                }
                if let Some((used, _)) = used.get(&pod) {
                    first.add(used.saturating_duration_since(ready));
                }
            }
            let Some(ends) = self.source.ended(pod) else { continue };
            if let Some(here) = self.importer.ended(pod) {
                down.add(here.saturating_duration_since(ends));
            }
            if let Some((_, used)) = used.get(&pod) {
                last.add(used.saturating_duration_since(ends));
            }
        }
        vec![
            ("source's slice says ready -> importer's slice".to_owned(), up),
            ("source's slice says ready -> first connection".to_owned(), first),
            ("source's slice says not ready -> importer's slice".to_owned(), down),
            ("source's slice says not ready -> last connection".to_owned(), last),
        ]
    }
}

/// The failures that have one cause.
#[derive(Default)]
struct Cause {
    troubles: BTreeMap<Trouble, usize>,
    /// How late the connections were.
    late: Figures,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: usize = self.troubles.values().sum();
        let troubles: Vec<_> = self.troubles.iter().map(|(trouble, count)| format!("{trouble} {count}")).collect();
        write!(f, "{count} ({})", troubles.join(", "))?;
        if self.late.is_empty() { Ok(()) } else { write!(f, ", {}", self.late) }
    }
}
